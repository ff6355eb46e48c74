package purchase

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/topology"
)

// Were a pod set counted into two groups, the second of them would be left out and told, and nothing would panic.
func TestAGroupThatAsksForTooMuchIsDropped(t *testing.T) {
	pods := func(n int) []*cluster.Pod { return make([]*cluster.Pod, n) }
	a := &topology.PodSet{Class: &cluster.PodClass{Key: "a"}, Pods: pods(2)}
	b := &topology.PodSet{Class: &cluster.PodClass{Key: "b"}, Pods: pods(4)}
	first := &podGroup{members: []groupMember{{a, 1}, {b, 2}}, units: 1}
	second := &podGroup{members: []groupMember{{b, 1}, {a, 2}}, units: 1} // of which there is only one left
	third := &podGroup{members: []groupMember{{b, 1}}, units: 2}
	buys := &Buyer{}
	kept := buys.keepConsistentGroups([]*podGroup{first, second, third})
	if len(kept) != 2 || kept[0] != first || kept[1] != third {
		t.Errorf("kept %v", kept)
	}
	if len(buys.Faults) != 1 || buys.Faults[0] != (Fault{Invariant: OneGroup, Class: "a", Have: 3, Most: 2}) {
		t.Errorf("told %v", buys.Faults)
	}
}
