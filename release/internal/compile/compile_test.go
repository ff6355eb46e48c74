package compile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/release/internal/source"
)

func TestTheMachineDoesNotChangeTheBytes(t *testing.T) {
	mine := []string{"PATH=/bin", "HOME=/home/me", "GOFLAGS=-race", "GOAMD64=v4", "GOEXPERIMENT=x", "CGO_ENABLED=1",
		"GOWORK=/w"}
	env := Environment(mine, Platform{"linux", "arm64"})
	if !slices.Contains(env, "PATH=/bin") || !slices.Contains(env, "HOME=/home/me") {
		t.Errorf("the compiler can't be found: %v", env)
	}
	for _, want := range []string{"GOFLAGS=", "GOAMD64=v1", "GOEXPERIMENT=", "CGO_ENABLED=0", "GOWORK=off",
		"GOARCH=arm64"} {
		name, _, _ := strings.Cut(want, "=")
		found := slices.DeleteFunc(slices.Clone(env), func(v string) bool { return !strings.HasPrefix(v, name+"=") })
		if !slices.Equal(found, []string{want}) {
			t.Errorf("%s is %v, want %s alone", name, found, want)
		}
	}
}

func TestArgs(t *testing.T) {
	s := source.Source{Version: "v1.2.3", Commit: "abc", Time: time.Unix(0, 0).UTC()}
	got := Args(s, Controller, "/out/tenon")
	for _, want := range []string{"-trimpath", "-buildvcs=false", "/out/tenon", "./cmd/controller"} {
		if !slices.Contains(got, want) {
			t.Errorf("%v lacks %s", got, want)
		}
	}
	flags := got[slices.Index(got, "-ldflags")+1]
	for _, want := range []string{"linkedVersion=v1.2.3", "linkedCommit=abc", "linkedTreeState=clean",
		"linkedDate=1970-01-01T00:00:00Z"} {
		if want = linked + "." + want; !strings.Contains(flags, want) {
			t.Errorf("%s lacks %s", flags, want)
		}
	}
}

// What the linker writes to has to be there: the linker says nothing about a variable that is not.
func TestTheLinkersVariablesExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "internal", "version", "version.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, arg := range Args(source.Source{}, Tenon, "x") {
		for field := range strings.FieldsSeq(arg) {
			name, _, _ := strings.Cut(field, "=")
			name, ours := strings.CutPrefix(name, linked+".")
			if !ours {
				continue
			}
			found++
			if !strings.Contains(string(text), name+",") && !strings.Contains(string(text), name+" string") {
				t.Errorf("internal/version/version.go has no variable %s", name)
			}
		}
	}
	if found != 4 {
		t.Errorf("the linker is told %d variables, want 4", found)
	}
}
