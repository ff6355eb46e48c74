package schedule

import (
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// Were a kind counted into two groups, the second of them would be left out and told, and nothing would panic.
func TestAGroupThatAsksForTooMuchIsDropped(t *testing.T) {
	pods := func(n int) []*cluster.Pod { return make([]*cluster.Pod, n) }
	a := &kind{class: &cluster.PodClass{Key: "a"}, pods: pods(2)}
	b := &kind{class: &cluster.PodClass{Key: "b"}, pods: pods(4)}
	first := &party{parts: []part{{a, 1}, {b, 2}}, units: 1}
	second := &party{parts: []part{{b, 1}, {a, 2}}, units: 1} // of which there is only one left
	third := &party{parts: []part{{b, 1}}, units: 2}
	sh := &shop{}
	kept := sh.inOneGroup([]*party{first, second, third})
	if len(kept) != 2 || kept[0] != first || kept[1] != third {
		t.Errorf("kept %v", kept)
	}
	if len(sh.faults) != 1 || sh.faults[0] != (Fault{Invariant: oneGroup, Class: "a", Have: 3, Most: 2}) || !strings.Contains(sh.faults[0].String(), "at most one group: of class a 3 pods") {
		t.Errorf("told %v", sh.faults)
	}
}
