package plan_test

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
)

// The other node of the same machine is no place for the pods of a node that goes: it goes with it.
func TestADuplicateNodeIsNoPlaceForThePodsOfItsMachine(t *testing.T) {
	n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
	for _, line := range []string{
		"type small cpu=4 memory=8Gi price=0.10", "pool default policy=WhenEmptyOrUnderutilized after=0s",
		"node n1 pool=default type=small", "node twin type=small ours=true", "pods web n=1 cpu=3 node=n1",
		"tick 1h", "settle",
	} {
		n.tell(line)
	}
	n.w.nodes["twin"].ProviderID = n.w.nodes["n1"].ProviderID
	found := plan.Search(n.w.snapshot(nil), n.policy)
	p := plan.Make(n.w.snapshot(nil), n.policy, nil, &found)
	for _, c := range p.Commands {
		switch c := c.(type) {
		case command.Fence, command.DeleteClaim:
			t.Errorf("%#v: the pod is to go to the duplicate node, which is the same machine", c)
		}
	}
}
