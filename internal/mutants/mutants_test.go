package main

import (
	"path/filepath"
	"testing"
)

// Text that is put around parts of parts stands where it belongs.
func TestEditsNest(t *testing.T) {
	e := &editor{src: []byte("const a + b + c")}
	e.wrap(6, 15, "(", ")")   // all of it
	e.wrap(6, 11, "[", "]")   // a + b
	e.wrap(6, 7, "<", ">")    // a
	e.wrap(14, 15, "{", "}")  // c
	e.wrap(6, 15, "((", "))") // all of it once more, outside
	e.replace(0, 5, "var")
	if got, want := string(e.result()), "var ((([<a> + b] + {c})))"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Every mutant that may survive is one that there is: a list that names others hides nothing, but says that somebody
// has not looked.
func TestListedSurvivorsExist(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := explained(filepath.Join(root, "internal/mutants/survivors.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(reasons) == 0 {
		t.Fatal("the list is empty")
	}
	all := targets()
	if _, err := plant(root, t.TempDir(), all); err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, target := range all {
		if len(target.mutants) < 20 {
			t.Errorf("%s has only %d mutants", target.name, len(target.mutants))
		}
		for i := range target.mutants {
			key := target.mutants[i].key()
			if known[key] {
				t.Errorf("two mutants are called %s", key)
			}
			known[key] = true
		}
	}
	for key := range reasons {
		if !known[key] {
			t.Errorf("survivors.txt names a mutant that there is not: %s", key)
		}
	}
}
