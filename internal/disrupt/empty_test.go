package disrupt

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// quiet is a pool of n empty nodes that have been left alone for long, under a budget of one.
func quiet(n int) *cluster.Snapshot {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	s := &cluster.Snapshot{Now: now, InFlight: map[string]bool{}, Pools: []*cluster.Pool{{
		Name: "default", Budgets: []cluster.Budget{{Nodes: 1, Active: true}}}}}
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		s.Nodes = append(s.Nodes, &cluster.Node{Name: name, ProviderID: "cloud://" + name, Ready: true})
		s.Claims = append(s.Claims, &cluster.Claim{Name: name, Pool: "default", ProviderID: "cloud://" + name,
			LastPodEvent: now.Add(-time.Hour), Conditions: []cluster.Condition{{Type: cluster.Initialized,
				Status: cluster.True, Since: now.Add(-2 * time.Hour)}}})
	}
	return s
}

func keys(r Result) string {
	out := ""
	for _, c := range r.Commands {
		out += c.Key() + " "
	}
	return out
}

func taint(s *cluster.Snapshot, i int) {
	s.Nodes[i].Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
}

func mark(s *cluster.Snapshot, i int, reason command.Reason) {
	s.Claims[i].Conditions = append(s.Claims[i].Conditions, cluster.Condition{Type: cluster.DisruptionReason,
		Status: cluster.True, Reason: string(reason)})
}

func TestBudgetCountsFencesUnderWay(t *testing.T) {
	s := quiet(3)
	if got := keys(Empty(s.Seal(), nil, 0)); got != "fence/n0 " {
		t.Fatalf("first: %s, want one fence", got)
	}
	s.InFlight[command.Fence{Node: "n2"}.Key()] = true
	if got := keys(Empty(s.Seal(), nil, 0)); got != "" {
		t.Errorf("while n2 is being fenced: %s, want nothing: the budget is one", got)
	}
	delete(s.InFlight, command.Fence{Node: "n2"}.Key())
	s.InFlight[command.DeleteClaim{Claim: "n1"}.Key()] = true
	if got := keys(Empty(s.Seal(), nil, 0)); got != "" {
		t.Errorf("while n1 is being deleted: %s, want nothing", got)
	}
}

func TestOnlyOurFencesAreFollowed(t *testing.T) {
	s := quiet(2)
	taint(s, 1)
	if got := keys(Empty(s.Seal(), nil, 0)); got != "" {
		t.Errorf("a node that somebody else tainted: %s, want it left alone and counted", got)
	}
	mark(s, 1, command.Empty)
	if got := keys(Empty(s.Seal(), nil, 0)); got != "delete/n1 " {
		t.Errorf("a node that we fenced: %s, want it deleted", got)
	}
	s.Pools[0].ConsolidateAfter.Never = true
	if got := keys(Empty(s.Seal(), nil, 0)); got != "unfence/n1 " {
		t.Errorf("after the pool said Never: %s, want the node opened again", got)
	}
}

func TestAReasonWithoutAFenceIsTakenBack(t *testing.T) {
	s := quiet(1)
	mark(s, 0, command.Empty)
	s.Pools[0].ConsolidateAfter.Never = true
	if got := keys(Empty(s.Seal(), nil, 0)); got != "unfence/n0 " {
		t.Errorf("a node that stays, whose claim says it is to go: %s, want the reason taken back", got)
	}
}

// The reason of a move that the claim is no longer in is taken back as well, even if the node is empty.
func TestTheReasonOfNoMoveIsTakenBack(t *testing.T) {
	s := quiet(1)
	mark(s, 0, command.Drifted)
	if got := keys(Empty(s.Seal(), nil, 0)); got != "unfence/n0 " {
		t.Errorf("a claim that is in no move and says it has drifted: %s, want the reason taken back", got)
	}
	s.Claims[0].Move = "drifted-x"
	if got := keys(Empty(s.Seal(), nil, 0)); got != "" {
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
			taint(s, 0)
			mark(s, 0, command.Drifted)
		}, "unfence/n0 "},
		"only the reason":          {func(s *cluster.Snapshot) { mark(s, 0, command.Drifted) }, "unfence/n0 "},
		"a fence that is not ours": {func(s *cluster.Snapshot) { taint(s, 0) }, ""},
		"a fence that is being put up": {func(s *cluster.Snapshot) {
			mark(s, 0, command.Drifted)
			s.InFlight["fence/n0"] = true
		}, ""},
		"in a move": {func(s *cluster.Snapshot) {
			taint(s, 0)
			mark(s, 0, command.Drifted)
			s.Claims[0].Move = "drifted-x"
		}, ""},
		"its node is on its way out": {func(s *cluster.Snapshot) {
			taint(s, 0)
			mark(s, 0, command.Drifted)
			s.Nodes[0].Deleting = s.Now
		}, ""},
		"on its way out": {func(s *cluster.Snapshot) {
			taint(s, 0)
			mark(s, 0, command.Drifted)
			s.Claims[0].Deleting = s.Now
		}, ""},
	} {
		s := quiet(1)
		s.Pools[0].Static, s.Pools[0].Replicas = true, 1
		c.change(s)
		if got := keys(Empty(s.Seal(), nil, 0)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAFenceOfOursWithoutAReasonIsTakenDown(t *testing.T) {
	s := quiet(1)
	taint(s, 0)
	s.Nodes[0].Labels = cluster.LabelsOf(map[string]string{excludeFromBalancers: "karpenter"})
	s.Pools[0].ConsolidateAfter.Never = true
	if got := keys(Empty(s.Seal(), nil, 0)); got != "unfence/n0 " {
		t.Errorf("a node that stays, behind a fence of ours: %s, want it opened", got)
	}
}

func TestFencesBeyondTheBudgetAreTakenDown(t *testing.T) {
	s := quiet(3)
	for i := range 2 {
		taint(s, i)
		mark(s, i, command.Empty)
	}
	if got := keys(Empty(s.Seal(), nil, 0)); got != "unfence/n0 delete/n1 " {
		t.Errorf("two fences under a budget of one: %s, want one taken down and one followed", got)
	}
}

// An empty node that waits for a budget is looked at again when that changes.
func TestEmptyNodesWakeWhenABudgetChanges(t *testing.T) {
	s := quiet(1)
	s.Pools[0].Budgets[0] = cluster.Budget{Active: true, ChangesAt: s.Now.Add(time.Hour)}
	if r := Empty(s.Seal(), nil, 0); len(r.Commands) > 0 || !r.WakeAt.Equal(s.Now.Add(time.Hour)) {
		t.Errorf("%v, and it looks again at %s", r.Commands, r.WakeAt)
	}
}

// A fence that comes down says why, and whose it was.
func TestOpeningSaysWhyTheNodeStays(t *testing.T) {
	for want, change := range map[BlockReason]func(*cluster.Snapshot){
		"":           func(s *cluster.Snapshot) { s.Pods = []*cluster.Pod{{UID: "p", Node: "n0", Owner: "o"}} },
		DryRun:       func(s *cluster.Snapshot) { s.Pools[0].Overrides.DryRun = true },
		BudgetBlocks: func(s *cluster.Snapshot) { s.Pools[0].Budgets[0].Nodes = 0 },
	} {
		s := quiet(1)
		s.Claims[0].UID = "uid"
		taint(s, 0)
		mark(s, 0, command.Empty)
		change(s)
		commands := Empty(s.Seal(), nil, 0).Commands
		if len(commands) != 1 {
			t.Fatalf("%q: %v", want, commands)
		}
		if c, ok := commands[0].(command.Unfence); !ok || c.UID != "uid" || c.BlockReason != string(want) {
			t.Errorf("%q: %+v", want, commands[0])
		}
	}
}

// So does that of a move.
func TestGivingUpAMoveSaysWhyItsNodesStay(t *testing.T) {
	s := quiet(1)
	taint(s, 0)
	mark(s, 0, command.Underutilized)
	s.Claims[0].Move = MoveID(command.Underutilized, []string{"n0"})
	s.Pools[0].Overrides.DryRun = true
	result, _ := Execute(s.Seal(), Settings{}, ExecuteInput{})
	if len(result.Commands) != 1 {
		t.Fatalf("commands %v", result.Commands)
	}
	if c, ok := result.Commands[0].(command.Unfence); !ok || c.BlockReason != string(DryRun) {
		t.Errorf("%+v", result.Commands[0])
	}
}

// Pods that cost nothing to evict would come back at once and need a new node, which would be empty again.
func TestANodeOfPodsThatCostNothingIsNotEmpty(t *testing.T) {
	s := quiet(1)
	s.Pods = append(s.Pods, &cluster.Pod{Name: "placeholder", UID: "placeholder", Node: "n0",
		Owner: "ReplicaSet/placeholder", EvictionCost: -10})
	if got := keys(Empty(s.Seal(), nil, 0)); got != "" {
		t.Errorf("with a pod of negative cost: %s, want nothing", got)
	}
	if got := CostOf(s.Pods); got != nodeCost {
		t.Errorf("disturbing the node costs %v, want %v: the pod adds nothing and takes nothing off", got, nodeCost)
	}
}
