package render

import (
	"fmt"

	"github.com/tenon-sh/tenon/internal/purchase"
)

// Fault tells of an invariant that a placement was found to violate.
func Fault(f purchase.Fault) string {
	return fmt.Sprintf("%s: of class %s %d pods were given to groups and there are %d",
		Invariant(f.Invariant), f.Class, f.Have, f.Most)
}

// Invariant is what should hold of each placement.
func Invariant(i purchase.Invariant) string {
	if i == purchase.OneGroup {
		return "each pod is in at most one group"
	}
	panic(fmt.Sprintf("render: no words for invariant %d", i))
}
