package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
)

// As long as a pool that could be used does not know what the cloud sells, pods wait: planning without it could only
// come to a worse answer.
func TestPodsWaitForWhatIsSold(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *cluster.Pool)
		waits  bool
	}{
		{"it knows", func(*cluster.Pool) {}, false},
		{"it does not know yet", func(p *cluster.Pool) { p.Catalog = nil }, true},
		{"it could not find out", func(p *cluster.Pool) { p.Catalog, p.CatalogError = nil, "denied" }, false},
		{"it could not be used anyway", func(p *cluster.Pool) { p.Catalog, p.NodeClass.Ready = nil, false }, false},
		{"it goes", func(p *cluster.Pool) { p.Catalog, p.Deleting = nil, true }, false},
	} {
		x := newScene()
		other := *x.pool
		other.Name, other.UID = "other", "other"
		c.change(&other)
		x.s.Pools = append(x.s.Pools, &other)
		if p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil); p.Provisioned == c.waits {
			t.Errorf("%s: planned for %t, want %t", c.name, p.Provisioned, !c.waits)
		}
	}
}

// What a search has found is looked at unless pods are being counted, which might want the nodes: then it is asked for
// again.
func TestWhatASearchHasFoundIsLookedAt(t *testing.T) {
	found := &disrupt.Proposal{}
	for _, c := range []struct {
		name     string
		found    *disrupt.Proposal
		counting bool
		looked   bool
	}{{"nothing was searched", nil, false, false}, {"a search was made", found, false, true}, {"pods are being counted",
		found, true, false}} {
		x := newScene()
		if c.counting {
			x.w.UnschedulableSince = x.s.Now
			x.s.Owners["web"] = cluster.Owner{UID: "web", Known: true, Desired: 9}
		}
		x.s.PlannedAt = x.s.Now.Add(-time.Hour)
		if p := plan.Make(x.s.Seal(), defaultPolicy(), nil, c.found); p.ProposalUsed != c.looked {
			t.Errorf("%s: looked at %t, want %t", c.name, p.ProposalUsed, c.looked)
		}
	}
}

// A placement takes on only so many rules between pods. Who has to wait for the next one gets that a second later, and
// comes first then.
func TestPodsOfTooManyRulesTakeTurns(t *testing.T) {
	x := newScene()
	x.s.Pods, x.s.DemandRev, x.s.SupplyRev = nil, 1, 1
	for i := range 129 {
		class := anywhere(fmt.Sprintf("c%03d", i), 10)
		class.Rules = []*cluster.Rule{{Key: class.Key, Kind: cluster.AntiAffinity, TopologyKey: cluster.HostnameLabel,
			Selectors: []cluster.Selector{{Namespaces: []string{"nowhere"}}}}}
		x.pending(class.Key, class, nil)
	}
	deferred := func(p plan.Plan) (names []string) {
		for i := range p.Placement.Unplaced {
			if u := &p.Placement.Unplaced[i]; u.Deferred {
				names = append(names, u.Pod.Name)
			}
		}
		return names
	}
	s := x.s.Seal()
	first := plan.Make(s, defaultPolicy(), nil, nil)
	if got := deferred(first); len(got) != 1 || !first.WakeAt.Equal(s.Now.Add(time.Second)) {
		t.Fatalf("%v have to wait until %s from now, want one of 129 for a second", got, first.WakeAt.Sub(s.Now))
	}
	second := plan.Make(s, defaultPolicy(), &first, nil)
	if got := deferred(second); len(got) != 1 || got[0] == deferred(first)[0] {
		t.Errorf("%v had to wait, then %v", deferred(first), got)
	}
}

// A NodeClass that is not ready yet, and says until when that may last, is looked at again then.
func TestWhatIsAwaitedOfANodeClass(t *testing.T) {
	for _, c := range []struct {
		name    string
		pending bool
		in      time.Duration
		wakes   bool
	}{{"it is being made ready", true, time.Minute, true}, {"it should be by now", true, -time.Minute,
		false}, {"it is ready", false, time.Minute, false}} {
		x := newScene()
		x.s.Pods = x.s.Pods[:1]
		x.claim.SavedPodEvent = x.claim.LastPodEvent
		until := x.s.Now.Add(c.in)
		x.pool.NodeClass = cluster.NodeClassState{Ready: !c.pending, Pending: c.pending, Until: until}
		if p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil); p.WakeAt.Equal(until) != c.wakes {
			t.Errorf("%s: looks again %s from now", c.name, p.WakeAt.Sub(x.s.Now))
		}
	}
}

// While a pool's launches are held up, its pods are planned for again when the next may be tried.
func TestPoolsThatAreHeldAreTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		held  bool
		in    time.Duration
		wakes bool
	}{{"it is held up", true, 5 * time.Second, true}, {"it should have been tried", true, -5 * time.Second,
		false}, {"it was held up", false, 5 * time.Second, false}} {
		x := newScene()
		x.claim.SavedPodEvent = x.claim.LastPodEvent
		until := x.s.Now.Add(c.in)
		x.pool.InBackoff, x.pool.BackoffUntil = c.held, until
		if p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil); p.WakeAt.Equal(until) != c.wakes {
			t.Errorf("%s: looks again %s from now", c.name, p.WakeAt.Sub(x.s.Now))
		}
	}
}

// A new node is kept for the pods that it was made for as long as two batches may take, and for ten seconds at least.
func TestNewNodesAreKeptForTheirPods(t *testing.T) {
	for _, c := range []struct {
		batch, up time.Duration
		goes      bool
	}{{time.Second, 10*time.Second - 1, false}, {time.Second, 10 * time.Second, true}, {8 * time.Second,
		16*time.Second - 1, false}, {8 * time.Second, 16 * time.Second, true}} {
		x := newScene()
		x.s.Pods, x.claim.LastPodEvent = nil, time.Time{}
		for i := range x.claim.Conditions {
			x.claim.Conditions[i].Since = x.s.Now.Add(-c.up)
		}
		policy := defaultPolicy()
		policy.BatchMax = c.batch
		if goes := slices.Contains(keys(plan.Make(x.s.Seal(), policy, nil, nil)), "fence/n"); goes != c.goes {
			t.Errorf("batches take %s and it is up for %s: it goes: %t, want %t", c.batch, c.up, goes, c.goes)
		}
	}
}

// A node without a claim that is being deleted is ended, unless the planner has failed on what had its name.
func TestNodesOnWhichThePlannerFailsStay(t *testing.T) {
	for _, fails := range []bool{false, true} {
		x := newScene()
		x.s.Pods, x.s.Claims = nil, nil
		x.node.Deleting, x.node.Finalized, x.node.ProviderID = x.s.Now, true, ""
		if fails {
			x.s.Quarantine.Claims = map[string]cluster.Failure{"n": {Message: "boom", Until: x.s.Now.Add(time.Minute)}}
		}
		p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil)
		if released := slices.ContainsFunc(p.Commands,
			func(c command.Command) bool { _, ok := c.(command.Release); return ok }); released == fails {
			t.Errorf("the planner fails on it: %t, it is released: %t", fails, released)
		}
	}
}

// Moves that are not begun are told of: those of a pool that only wants to be told, and those that a search has found
// and that may not be any more.
func TestWhatIsOnlyTold(t *testing.T) {
	for _, c := range []struct {
		name, change  string
		would, passed int
	}{
		{"the move begins", "tick 1s", 0, 0},
		{"the pool only wants to be told", "pool default dry-run=true", 1, 1},
		{"a pod must not be disturbed", "protect n1", 0, 1},
	} {
		n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
		n.say("type small cpu=2 memory=8Gi price=0.10", "type large cpu=8 memory=32Gi price=0.40",
			"pool default policy=WhenEmptyOrUnderutilized after=0s", "node n1 pool=default type=large",
			"pods web n=1 cpu=1 node=n1", "tick 1h", "settle",
			"propose n1", c.change, "plan")
		if p := n.last; len(p.DryRuns) != c.would || len(p.NotBegun) != c.passed {
			t.Errorf("%s: %d moves would begin and %d are passed over, want %d and %d", c.name, len(p.DryRuns),
				len(p.NotBegun), c.would, c.passed)
		}
	}
}
