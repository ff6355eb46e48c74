package hostile_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/hostile"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
)

// TestReasonsOfManyClassesAreSmall: thousands of classes that ask for what no pool has are each told what it has. What
// a plan takes and keeps for that is small.
func TestReasonsOfManyClassesAreSmall(t *testing.T) {
	const classes = 1000
	plain, _ := planned(newBook(t, ordinary))
	for _, c := range []struct {
		hostile.Case
		takes, keeps uint64 // bytes for each class
		says         string
	}{
		{hostile.Unsold(classes), 32 << 10, 2 << 10, "(this pool has "},
		{hostile.Mistyped(classes), 10 << 10, 2 << 10, "; did you mean topology.kubernetes.io/zone?"},
	} {
		book := newBook(t, ordinary)
		for _, o := range c.Objects {
			feed(book, o)
		}
		s := book.Snapshot()
		was, before := kept(), allocated()
		p := plan.Make(s, policy(), nil, nil)
		takes := (max(allocated()-before, plain) - plain) / classes
		keeps := (max(kept(), was) - was) / classes
		t.Logf("%s: the plan takes %d bytes for each class and keeps %d", c.Name, takes, keeps)
		if takes > c.takes || keeps > c.keeps {
			t.Errorf("%s: the plan takes %d bytes for each class and keeps %d, expected at most %d and %d",
				c.Name, takes, keeps, c.takes, c.keeps)
		}
		if n := len(p.Placement.Unplaced); n != classes {
			t.Errorf("%s: %d of %d pods are told why they have no place", c.Name, n, classes)
		}
		for i := range p.Placement.Unplaced {
			if text := render.Unplaced(&p.Placement.Unplaced[i]); !strings.Contains(text, c.says) {
				t.Fatalf("%s: expected a reason with %q, found %q", c.Name, c.says, text)
			}
		}
		runtime.KeepAlive(book)
		runtime.KeepAlive(s)
	}
}
