package empty

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

func TestBudgetCountsFencesUnderWay(t *testing.T) {
	s := disrupttest.Quiet(3)
	if got := disrupttest.Keys(removeEmpty(s.Seal(), nil, 0)); got != "fence/n0 " {
		t.Fatalf("first: %s, want one fence", got)
	}
	s.InFlight[command.Fence{Node: "n2"}.Key()] = true
	if got := disrupttest.Keys(removeEmpty(s.Seal(), nil, 0)); got != "" {
		t.Errorf("while n2 is being fenced: %s, want nothing: the budget is one", got)
	}
	delete(s.InFlight, command.Fence{Node: "n2"}.Key())
	s.InFlight[command.DeleteClaim{Claim: "n1"}.Key()] = true
	if got := disrupttest.Keys(removeEmpty(s.Seal(), nil, 0)); got != "" {
		t.Errorf("while n1 is being deleted: %s, want nothing", got)
	}
}

func TestOnlyOurFencesAreFollowed(t *testing.T) {
	s := disrupttest.Quiet(2)
	disrupttest.Taint(s, 1)
	if got := disrupttest.Keys(removeEmpty(s.Seal(), nil, 0)); got != "" {
		t.Errorf("a node that somebody else tainted: %s, want it left alone and counted", got)
	}
	disrupttest.Mark(s, 1, command.Empty)
	if got := disrupttest.Keys(removeEmpty(s.Seal(), nil, 0)); got != "delete/n1 " {
		t.Errorf("a node that we fenced: %s, want it deleted", got)
	}
	s.Pools[0].ConsolidateAfter.Never = true
	if got := disrupttest.Keys(removeEmpty(s.Seal(), nil, 0)); got != "unfence/n1 " {
		t.Errorf("after the pool said Never: %s, want the node opened again", got)
	}
}

func TestAReasonWithoutAFenceIsTakenBack(t *testing.T) {
	s := disrupttest.Quiet(1)
	disrupttest.Mark(s, 0, command.Empty)
	s.Pools[0].ConsolidateAfter.Never = true
	if got := disrupttest.Keys(removeEmpty(s.Seal(), nil, 0)); got != "unfence/n0 " {
		t.Errorf("a node that stays, whose claim says it is to go: %s, want the reason taken back", got)
	}
}

// The reason of a move that the claim is no longer in is taken back as well, even if the node is empty.
func TestTheReasonOfNoMoveIsTakenBack(t *testing.T) {
	s := disrupttest.Quiet(1)
	disrupttest.Mark(s, 0, command.Drifted)
	if got := disrupttest.Keys(removeEmpty(s.Seal(), nil, 0)); got != "unfence/n0 " {
		t.Errorf("a claim that is in no move and says it has drifted: %s, want the reason taken back", got)
	}
	s.Claims[0].Move = "drifted-x"
	if got := disrupttest.Keys(removeEmpty(s.Seal(), nil, 0)); got != "" {
		t.Errorf("a claim in a move: %s, want it left to the move", got)
	}
}

// Nobody looks after the empty nodes of a static pool, but what is left of its fences is taken down.
func TestAFenceOfNoMoveInAStaticPoolIsTakenDown(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *cluster.Snapshot)
		want   string
	}{
		"no fence": {func(*cluster.Snapshot) {}, ""},
		"fence and reason": {func(s *cluster.Snapshot) {
			disrupttest.Taint(s, 0)
			disrupttest.Mark(s, 0, command.Drifted)
		}, "unfence/n0 "},
		"only the reason": {func(s *cluster.Snapshot) {
			disrupttest.Mark(s, 0, command.Drifted)
		}, "unfence/n0 "},
		"a fence that is not ours": {func(s *cluster.Snapshot) { disrupttest.Taint(s, 0) }, ""},
		"a fence that is being put up": {func(s *cluster.Snapshot) {
			disrupttest.Mark(s, 0, command.Drifted)
			s.InFlight["fence/n0"] = true
		}, ""},
		"in a move": {func(s *cluster.Snapshot) {
			disrupttest.Taint(s, 0)
			disrupttest.Mark(s, 0, command.Drifted)
			s.Claims[0].Move = "drifted-x"
		}, ""},
		"its node is on its way out": {func(s *cluster.Snapshot) {
			disrupttest.Taint(s, 0)
			disrupttest.Mark(s, 0, command.Drifted)
			s.Nodes[0].Deleting = s.Now
		}, ""},
		"on its way out": {func(s *cluster.Snapshot) {
			disrupttest.Taint(s, 0)
			disrupttest.Mark(s, 0, command.Drifted)
			s.Claims[0].Deleting = s.Now
		}, ""},
	} {
		s := disrupttest.Quiet(1)
		s.Pools[0].Static, s.Pools[0].Replicas = true, 1
		c.change(s)
		if got := disrupttest.Keys(removeEmpty(s.Seal(), nil, 0)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAFenceOfOursWithoutAReasonIsTakenDown(t *testing.T) {
	s := disrupttest.Quiet(1)
	disrupttest.Taint(s, 0)
	s.Nodes[0].Labels = cluster.LabelsOf(map[string]string{disrupt.ExcludeFromBalancers: "karpenter"})
	s.Pools[0].ConsolidateAfter.Never = true
	if got := disrupttest.Keys(removeEmpty(s.Seal(), nil, 0)); got != "unfence/n0 " {
		t.Errorf("a node that stays, behind a fence of ours: %s, want it opened", got)
	}
}

func TestFencesBeyondTheBudgetAreTakenDown(t *testing.T) {
	s := disrupttest.Quiet(3)
	for i := range 2 {
		disrupttest.Taint(s, i)
		disrupttest.Mark(s, i, command.Empty)
	}
	if got := disrupttest.Keys(removeEmpty(s.Seal(), nil, 0)); got != "unfence/n0 delete/n1 " {
		t.Errorf("two fences under a budget of one: %s, want one taken down and one followed", got)
	}
}

// An empty node that waits for a budget is looked at again when that changes.
func TestEmptyNodesWakeWhenABudgetChanges(t *testing.T) {
	s := disrupttest.Quiet(1)
	s.Pools[0].Budgets[0] = cluster.Budget{Active: true, ChangesAt: s.Now.Add(time.Hour)}
	if r := removeEmpty(s.Seal(), nil, 0); len(r.Commands) > 0 || !r.WakeAt.Equal(s.Now.Add(time.Hour)) {
		t.Errorf("%v, and it looks again at %s", r.Commands, r.WakeAt)
	}
}

// A fence that comes down says why, and whose it was.
func TestOpeningSaysWhyTheNodeStays(t *testing.T) {
	for want, change := range map[disrupt.BlockReason]func(*cluster.Snapshot){
		"":                   func(s *cluster.Snapshot) { s.Pods = []*cluster.Pod{{UID: "p", Node: "n0", Owner: "o"}} },
		disrupt.DryRun:       func(s *cluster.Snapshot) { s.Pools[0].Overrides.DryRun = true },
		disrupt.BudgetBlocks: func(s *cluster.Snapshot) { s.Pools[0].Budgets[0].Nodes = 0 },
	} {
		s := disrupttest.Quiet(1)
		s.Claims[0].UID = "uid"
		disrupttest.Taint(s, 0)
		disrupttest.Mark(s, 0, command.Empty)
		change(s)
		commands := removeEmpty(s.Seal(), nil, 0).Commands
		if len(commands) != 1 {
			t.Fatalf("%q: %v", want, commands)
		}
		if c, ok := commands[0].(command.Unfence); !ok || c.UID != "uid" || c.BlockReason != string(want) {
			t.Errorf("%q: %+v", want, commands[0])
		}
	}
}

// Pods that cost nothing to evict would come back at once and need a new node, which would be empty again.
func TestANodeOfPodsThatCostNothingIsNotEmpty(t *testing.T) {
	s := disrupttest.Quiet(1)
	s.Pods = append(s.Pods, &cluster.Pod{Name: "placeholder", UID: "placeholder", Node: "n0",
		Owner: "ReplicaSet/placeholder", EvictionCost: -10})
	if got := disrupttest.Keys(removeEmpty(s.Seal(), nil, 0)); got != "" {
		t.Errorf("with a pod of negative cost: %s, want nothing", got)
	}
	if got := disrupt.CostOf(s.Pods); got != 1 {
		t.Errorf("disturbing the node costs %v, want %v: the pod adds nothing and takes nothing off", got, 1)
	}
}

// removeEmpty removes empty nodes that no pod needs.
func removeEmpty(s *cluster.Snapshot, needed map[string]bool, nomination time.Duration) disrupt.Result {
	return Remove(s, disrupt.NewBudgetTracker(s), Demand{Hosts: needed}, disrupt.Settings{Nomination: nomination})
}
