package plan_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/resource"
)

var unruledClusters = flag.Int("unruled", 20, "how many clusters to let settle under a scheduler that does as it likes")

// unruled is a cluster in which pods go where a scheduler like kube-scheduler likes, which is not where they were
// planned to go: to the emptiest node that takes them. Nothing bounds how often they are evicted.
type unruled struct {
	*storyRunner
	search    time.Time // when cheaper nodes are looked for again
	moves     int
	evictions int
}

func newUnruled(t *testing.T) *unruled {
	n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
	n.policy.Placement = plan.PlaceByNomination
	n.policy.Disrupt = disrupt.Settings{MinSaving: 0.05, MinSavingPerPod: 0.0001, ReplacementTimeout: 10 * time.Minute,
		BalancedK: 2}
	return &unruled{storyRunner: n}
}

// spread binds the pods that wait, each to the emptiest node that takes it.
func (u *unruled) spread() {
	for _, uid := range slices.Sorted(maps.Keys(u.w.pods)) {
		p := u.w.pods[uid]
		if p.Node != "" || !p.Deleting.IsZero() {
			continue
		}
		best, most := "", -1.0
		for _, name := range slices.Sorted(maps.Keys(u.w.nodes)) {
			n := u.w.nodes[name]
			if !n.Ready || !n.Deleting.IsZero() || u.w.judge().objection(p, n) != "" {
				continue
			}
			if free := u.free(n); free > most {
				best, most = name, free
			}
		}
		if best != "" {
			u.w.bindPod(p, best)
		}
	}
}

// free is the part of a node's processors that nobody has asked for.
func (u *unruled) free(n *cluster.Node) float64 {
	left := n.Allocatable[resource.CPU]
	for _, p := range u.w.pods {
		if p.Node == n.Name && p.UsesRoom() {
			left -= p.Class.Requests[resource.CPU]
		}
	}
	return float64(left) / float64(n.Allocatable[resource.CPU])
}

// busy reports whether something is under way.
func (u *unruled) busy() bool {
	for _, c := range u.w.claims {
		if c.Move != "" || !c.Deleting.IsZero() || !c.Is(cluster.Initialized) {
			return true
		}
	}
	return false
}

// step is one plan, what comes of it, and the time that it takes. idle says that nothing was done, and nothing is under
// way.
func (u *unruled) step() (idle bool) {
	w, s := u.w, u.w.snapshot(nil)
	var found *disrupt.Proposal
	idle = !u.busy() && len(s.Pending()) == 0
	if idle && !w.now.Before(u.search) {
		p := plan.Search(s, u.policy)
		found, u.search = &p, w.now.Add(5*time.Second)
	}
	p := plan.Check(plan.Make(s, u.policy, nil, found), s)
	u.moves += len(p.Begun)
	w.rev++
	if p.Provisioned {
		w.planned = p.Now
	}
	for _, c := range p.Commands {
		if _, evicts := c.(command.Evict); evicts {
			u.evictions++
		}
		idle = idle && command.IsStatusUpdate(c)
		w.do(c)
	}
	w.runDaemons()
	u.spread()
	w.now = w.now.Add(time.Second)
	if idle {
		w.now = w.now.Add(time.Minute)
	}
	w.reap()
	if w.inventory == nil || w.now.Sub(w.inventory.At) > 10*time.Second {
		w.countPods()
	}
	return idle
}

// price is what the nodes cost.
func (u *unruled) price() float64 {
	sum := 0.0
	for _, c := range u.w.claims {
		sum += c.Price
	}
	return sum
}

// settle goes on until nothing has happened for two hours, which is longer than any node rests.
func (u *unruled) settle(most int) error {
	still := u.w.now
	for range 20_000 {
		if !u.step() {
			still = u.w.now
		}
		if u.moves > most {
			return fmt.Errorf("%d moves have begun and there is no end of it", u.moves)
		}
		if u.w.now.Sub(still) > 2*time.Hour {
			return nil
		}
	}
	return fmt.Errorf("after %d moves and %d evictions something is still going on", u.moves, u.evictions)
}

// TestUnruledClusterComesToRest lets a scheduler that knows nothing of our plans place the pods of generated clusters.
// The cluster must come to rest after a bounded number of moves all the same. Where pods take gaps that were meant for
// others a node may have to be bought after all; what that costs is less than what would make the next move worthwhile.
func TestUnruledClusterComesToRest(t *testing.T) {
	for seed := range uint64(*unruledClusters) {
		r := rand.New(rand.NewPCG(seed, 11))
		u := newUnruled(t)
		u.tell("type large cpu=8 memory=64Gi price=0.40 zones=a")
		u.tell("type medium cpu=4 memory=32Gi price=0.20 zones=a")
		u.tell("type small cpu=2 memory=16Gi price=0.11 zones=a")
		u.tell("pool default policy=WhenEmptyOrUnderutilized after=1s hash=one no-budgets")
		nodes, pods := 3+r.IntN(5), 0
		for i := range nodes {
			u.tell(fmt.Sprintf("node n%d pool=default type=large", i))
			left := 8000
			for range 1 + r.IntN(4) {
				if cpu := 500 * (1 + r.IntN(9)); cpu <= left {
					u.tell(fmt.Sprintf("pods web%d n=1 cpu=%dm node=n%d", pods, cpu, i))
					pods++
					left -= cpu
				}
			}
		}
		u.tell("tick 1h")
		before := u.price()
		if err := u.settle(4 * nodes); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if u.price() > before*(1+u.policy.Disrupt.MinSaving) || u.evictions > 4*pods {
			t.Errorf("seed %d: from $%.2f to $%.2f with %d moves and %d evictions of %d pods", seed, before, u.price(),
				u.moves, u.evictions, pods)
		}
	}
}

// TestPodsDoNotWanderBetweenReplacements is the cluster in which a pod once went from one replacement to the next: each
// was up and empty when the pod's own node went, and so was the emptiest.
func TestPodsDoNotWanderBetweenReplacements(t *testing.T) {
	u := newUnruled(t)
	u.tell("type large cpu=8 memory=64Gi price=0.40 zones=a")
	u.tell("type medium cpu=4 memory=40Gi price=0.20 zones=a")
	u.tell("pool default policy=WhenEmptyOrUnderutilized after=1s hash=one budget=2")
	u.tell("node a pool=default type=medium")
	u.tell("pods wanderer n=1 cpu=1500m memory=30Gi node=a")
	u.tell("node full pool=default type=large")
	u.tell("pods anchor n=1 cpu=6500m memory=30Gi node=full")
	const halves = 12
	for i := range halves {
		u.tell(fmt.Sprintf("node b%d pool=default type=large", i))
		u.tell(fmt.Sprintf("pods half%d n=1 cpu=3900m memory=36Gi node=b%d", i, i))
	}
	u.tell("tick 1h")
	if err := u.settle(2 * halves); err != nil {
		t.Fatal(err)
	}
	if u.evictions > halves+2 {
		t.Errorf("%d pods were evicted, of which only %d had to go once", u.evictions, halves+1)
	}
	var kinds []string
	for _, c := range u.w.claims {
		kinds = append(kinds, labelOf(c, cluster.InstanceTypeLabel))
	}
	slices.Sort(kinds)
	if got, want := strings.Join(kinds, " "), "large"+strings.Repeat(" medium", halves); got != want {
		t.Errorf("it rests on %q, want %q", got, want)
	}
}
