package disrupt_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// Each thing that keeps a node does, and is told; for some reasons it does not matter.
func TestWhatKeepsANode(t *testing.T) {
	type stay = disrupt.BlockedNode
	at := func(d time.Duration) time.Time { return disrupttest.NewHouse().S.Now.Add(d) }
	u, d, unhealthy, old := command.Underutilized, command.Drifted, command.Unhealthy, command.Expired
	cases := []struct {
		name   string
		reason command.Reason
		change func(h *disrupttest.House)
		want   stay // Why empty: it may go
	}{
		{"nothing", u, func(h *disrupttest.House) {}, stay{}},
		{"made by hand", d, func(h *disrupttest.House) { h.Claim.Pool = "" }, stay{Reason: disrupt.NotManaged}},
		{"pool gone", u, func(h *disrupttest.House) { h.Claim.Pool = "other" }, stay{Reason: disrupt.PoolUnknown}},
		{"pool being deleted", d, func(h *disrupttest.House) {
			h.Pool.Deleting = true
		}, stay{Reason: disrupt.PoolUnknown}},
		{"pool that can't be read", d, func(h *disrupttest.House) {
			h.Pool.Problems = []cluster.Problem{{}}
		}, stay{Reason: disrupt.PoolUnknown}},
		{"pool that can't be read, sick", unhealthy, func(h *disrupttest.House) {
			h.Pool.Problems = []cluster.Problem{{}}
		}, stay{}},
		{"static pool", u, func(h *disrupttest.House) { h.Pool.Static = true }, stay{Reason: disrupt.PoolUnknown}},
		{"static pool drifts", d, func(h *disrupttest.House) { h.Pool.Static = true }, stay{}},
		{"no node", u, func(h *disrupttest.House) { h.S.Nodes = nil }, stay{Reason: disrupt.NotInitialized}},
		{"not initialized", u, func(h *disrupttest.House) {
			h.Claim.Conditions = h.Claim.Conditions[:2]
		}, stay{Reason: disrupt.NotInitialized}},
		{"not initialized and sick", unhealthy, func(h *disrupttest.House) {
			h.Claim.Conditions = h.Claim.Conditions[:2]
		}, stay{}},
		{"not joined and sick", unhealthy, func(h *disrupttest.House) {
			h.Claim.Conditions = h.Claim.Conditions[:1]
		}, stay{Reason: disrupt.NotInitialized}},
		{"its machine is being ended", d, func(h *disrupttest.House) {
			h.Say(cluster.InstanceTerminating, "")
		}, stay{Reason: disrupt.BeingDisrupted}},
		{"deleting", u, func(h *disrupttest.House) {
			h.Claim.Deleting = h.S.Now
		}, stay{Reason: disrupt.BeingDisrupted}},
		{"node deleting", d, func(h *disrupttest.House) {
			h.Node.Deleting = h.S.Now
		}, stay{Reason: disrupt.BeingDisrupted}},
		{"fenced", u, func(h *disrupttest.House) { disrupttest.Taint(h.S, 0) }, stay{Reason: disrupt.BeingDisrupted}},
		{"in a move", u, func(h *disrupttest.House) { h.Claim.Move = "m" }, stay{Reason: disrupt.BeingDisrupted}},
		{"being fenced", d, func(h *disrupttest.House) {
			h.S.InFlight["fence/n"] = true
		}, stay{Reason: disrupt.BeingDisrupted}},
		{"kept by its node", u, func(h *disrupttest.House) {
			h.Node.DoNotDisrupt = true
		}, stay{Reason: disrupt.NodeDoNotDisrupt}},
		{"kept by its claim", d, func(h *disrupttest.House) {
			h.Claim.DoNotDisrupt = true
		}, stay{Reason: disrupt.NodeDoNotDisrupt}},
		{"kept, but sick", unhealthy, func(h *disrupttest.House) { h.Claim.DoNotDisrupt = true }, stay{}},
		{"not to be repaired", unhealthy, func(h *disrupttest.House) {
			h.Node.DoNotRepair = true
		}, stay{Reason: disrupt.NodeDoNotDisrupt}},
		{"its claim is not to be repaired", unhealthy, func(h *disrupttest.House) {
			h.Claim.DoNotRepair = true
		}, stay{Reason: disrupt.NodeDoNotDisrupt}},
		{"not to be repaired", u, func(h *disrupttest.House) { h.Node.DoNotRepair = true }, stay{}},
		{"nobody sells it", u, func(h *disrupttest.House) {
			h.Claim.Labels = disrupttest.LabelsFor("tiny", "a", disrupt.OnDemand)
		}, stay{Reason: disrupt.PriceUnknown}},
		{"nobody sells it there", u, func(h *disrupttest.House) {
			h.Claim.Labels = disrupttest.LabelsFor("large", "z", disrupt.OnDemand)
		}, stay{Reason: disrupt.PriceUnknown}},
		{"nobody sells it, drift", d, func(h *disrupttest.House) {
			h.Claim.Labels = disrupttest.LabelsFor("tiny", "a", disrupt.OnDemand)
		}, stay{}},
		{"only its node says what it is", u, func(h *disrupttest.House) {
			h.Node.Labels, h.Claim.Labels = h.Claim.Labels, nil
		}, stay{}},
		{"no catalog", u, func(h *disrupttest.House) { h.Pool.Catalog = nil }, stay{Reason: disrupt.PriceUnknown}},
		{"only empty ones", u, func(h *disrupttest.House) {
			h.Pool.Policy = cluster.WhenEmpty
		}, stay{Reason: disrupt.PolicyForbids}},
		{"only empty ones, drift", d, func(h *disrupttest.House) { h.Pool.Policy = cluster.WhenEmpty }, stay{}},
		{"only empty ones, and it is", u, func(h *disrupttest.House) {
			h.Pool.Policy, h.S.Pods = cluster.WhenEmpty, nil
		}, stay{}},
		{"never", u, func(h *disrupttest.House) {
			h.Pool.ConsolidateAfter.Never = true
		}, stay{Reason: disrupt.ConsolidationsOff}},
		{"never, drift", d, func(h *disrupttest.House) { h.Pool.ConsolidateAfter.Never = true }, stay{}},
		{"too soon", u, func(h *disrupttest.House) {
			h.Pool.ConsolidateAfter.For = 90 * time.Minute
		}, stay{Reason: disrupt.TooSoon, Until: at(30 * time.Minute)}},
		{"too soon after it came", u, func(h *disrupttest.House) {
			h.Claim.LastPodEvent, h.Pool.ConsolidateAfter.For = at(-3*time.Hour), 130*time.Minute
		}, stay{Reason: disrupt.TooSoon, Until: at(10 * time.Minute)}},
		{"new, and no pod has come", u, func(h *disrupttest.House) {
			h.Claim.LastPodEvent, h.Set.Nomination = time.Time{}, 125*time.Minute
		}, stay{Reason: disrupt.TooSoon, Until: at(5 * time.Minute)}},
		{"a wait for the reason", u, func(h *disrupttest.House) {
			h.Pool.Overrides.QuietPeriods = map[string]cluster.NillableDuration{"Underutilized": {For: 2 * time.Hour}}
		}, stay{Reason: disrupt.TooSoon, Until: at(time.Hour)}},
		{"a wait for the reason instead", u, func(h *disrupttest.House) {
			h.Pool.ConsolidateAfter.Never, h.Pool.Overrides.QuietPeriods = true,
				map[string]cluster.NillableDuration{"Underutilized": {For: time.Minute}}
		}, stay{}},
		{"a wait for drift", d, func(h *disrupttest.House) {
			h.Pool.Overrides.QuietPeriods = map[string]cluster.NillableDuration{"Drifted": {For: 2 * time.Hour}}
		}, stay{Reason: disrupt.TooSoon, Until: at(time.Hour)}},
		{"pods came behind the fence", command.Empty, func(h *disrupttest.House) {
			h.Claim.SavingRestUntil = at(time.Minute)
		}, stay{Reason: disrupt.MoveFailedLately, Until: at(time.Minute)}},
		{"pods came behind the fence, drift", d, func(h *disrupttest.House) {
			h.Claim.SavingRestUntil = at(time.Minute)
		}, stay{}},
		{"given up lately", u, func(h *disrupttest.House) {
			h.Claim.RestUntil = at(time.Minute)
		}, stay{Reason: disrupt.MoveFailedLately, Until: at(time.Minute)}},
		{"given up lately, drift", d, func(h *disrupttest.House) {
			h.Claim.RestUntil = at(time.Minute)
		}, stay{Reason: disrupt.MoveFailedLately, Until: at(time.Minute)}},
		{"tried just now", u, func(h *disrupttest.House) {
			h.Tried(2, 1)
		}, stay{Reason: disrupt.TooSoon, Until: at(2 * time.Minute)}},
		{"tried, and pods have just come", u, func(h *disrupttest.House) {
			h.Tried(2, 1)
			for i := range h.Claim.Conditions {
				h.Claim.Conditions[i].Since = at(-time.Hour)
			}
			h.Claim.LastPodEvent = h.S.Now
		}, stay{Reason: disrupt.TooSoon, Until: at(2 * time.Minute)}},
		{"tried just now, drift", d, func(h *disrupttest.House) { h.Tried(2, 1) }, stay{}},
		{"the first of its workload", u, func(h *disrupttest.House) { h.Tried(1, 1) }, stay{}},
		{"tried, and pods have run", u, func(h *disrupttest.House) { h.Tried(2, 0) }, stay{}},
		{"made after another was taken early", u, func(h *disrupttest.House) { h.Tried(1, 0); h.TakenEarly(0) },
			stay{Reason: disrupt.TooSoon, Until: at(2 * time.Minute)}},
		{"made after another was taken early, drift", d, func(h *disrupttest.House) {
			h.Tried(1, 0)
			h.TakenEarly(0)
		}, stay{}},
		{"made before another was taken early", u, func(h *disrupttest.House) {
			h.Tried(1, 0)
			h.TakenEarly(time.Second)
		}, stay{}},
		{"chosen by kube-scheduler", u, func(h *disrupttest.House) {
			h.Waiting("x").Unschedulable = false
			h.S.Pods[2].Nominated = "n"
		}, stay{Reason: disrupt.PodsExpected}},
		{"nominated by us", d, func(h *disrupttest.House) {
			h.Waiting("x").Nominated = "n"
		}, stay{Reason: disrupt.PodsExpected}},
		{"a free seat", u, func(h *disrupttest.House) {
			h.Waiting("x")
			h.Claim.Seats = []cluster.Seat{{Class: "x", Count: 1}}
		}, stay{Reason: disrupt.PodsExpected}},
		{"no free seat", u, func(h *disrupttest.House) {
			h.Waiting("web")
			h.Claim.Seats = []cluster.Seat{{Class: "web", Count: 1}}
		}, stay{}},
		{"a seat whose room others have taken", u, func(h *disrupttest.House) {
			h.Waiting("x").Class.Requests[0], h.Web.Class.Requests[0], h.Node.Allocatable[0] = 2, 3, 4
			h.Claim.Seats = []cluster.Seat{{Class: "x", Count: 1}}
		}, stay{}},
		{"a seat with room", u, func(h *disrupttest.House) {
			h.Waiting("x").Class.Requests[0], h.Web.Class.Requests[0], h.Node.Allocatable[0] = 2, 3, 5
			h.Claim.Seats = []cluster.Seat{{Class: "x", Count: 1}}
		}, stay{Reason: disrupt.PodsExpected}},
		{"a free seat of an old node, drift", d, func(h *disrupttest.House) {
			h.Waiting("x")
			h.Claim.Seats = []cluster.Seat{{Class: "x", Count: 1}}
		}, stay{}},
		{"a free seat of a new node, drift", d, func(h *disrupttest.House) {
			h.Waiting("x")
			h.Set.Nomination, h.Claim.Seats = 125*time.Minute, []cluster.Seat{{Class: "x", Count: 1}}
		}, stay{Reason: disrupt.PodsExpected, Until: at(5 * time.Minute)}},
		{"a new node without a seat, drift", d, func(h *disrupttest.House) {
			h.Waiting("x")
			h.Set.Nomination = 125 * time.Minute
		}, stay{}},
		{"a seat nobody wants", u, func(h *disrupttest.House) {
			h.Claim.Seats = []cluster.Seat{{Class: "x", Count: 1}}
		}, stay{}},
		{"replaces a node that is there", u, func(h *disrupttest.House) {
			h.Claim.Replaces = "m"
			h.S.Claims = append(h.S.Claims, &cluster.Claim{Name: "d", Pool: "default", Move: "m"})
		}, stay{Reason: disrupt.PodsExpected}},
		{"is left of an earlier try of a move", u, func(h *disrupttest.House) {
			h.Claim.Replaces = "m"
			h.S.Claims = append(h.S.Claims, &cluster.Claim{Name: "d", Pool: "default", Move: "m",
				Conditions: []cluster.Condition{
					{Type: cluster.DisruptionReason, Status: cluster.True, Since: at(-time.Minute)}}})
		}, stay{}},
		{"a pod says no", u, func(h *disrupttest.House) {
			h.Web.DoNotDisrupt = true
		}, stay{Reason: disrupt.PodDoNotDisrupt, Pod: "shop/web"}},
		{"a pod says no for a while", u, func(h *disrupttest.House) {
			h.Web.DoNotDisrupt, h.Web.DoNotDisruptUntil = true, at(time.Minute)
		}, stay{Reason: disrupt.PodDoNotDisrupt, Pod: "shop/web", Until: at(time.Minute)}},
		{"a daemon says no", u, func(h *disrupttest.House) {
			h.Web.DoNotDisrupt, h.Web.Daemon = true, true
		}, stay{Reason: disrupt.PodDoNotDisrupt, Pod: "shop/web"}},
		{"a mirror pod says no", u, func(h *disrupttest.House) {
			h.Web.DoNotDisrupt, h.Web.Mirror = true, true
		}, stay{Reason: disrupt.PodDoNotDisrupt, Pod: "shop/web"}},
		{"a leaving pod says no", u, func(h *disrupttest.House) {
			h.Web.DoNotDisrupt, h.Web.Deleting = true, h.S.Now
		}, stay{}},
		{"a finished pod says no", u, func(h *disrupttest.House) {
			h.Web.DoNotDisrupt, h.Web.Finished = true, true
		}, stay{}},
		{"a pod says no to drift", d, func(h *disrupttest.House) {
			h.Web.DoNotDisrupt = true
		}, stay{Reason: disrupt.PodDoNotDisrupt, Pod: "shop/web"}},
		{"a pod says no to drift in vain", d, func(h *disrupttest.House) {
			h.Web.DoNotDisrupt, h.Claim.HasTerminationGrace = true, true
		}, stay{}},
		{"a pod says no to age in vain", old, func(h *disrupttest.House) {
			h.Web.DoNotDisrupt, h.Claim.HasTerminationGrace = true, true
		}, stay{}},
		{"a pod says no to repair in vain", unhealthy, func(h *disrupttest.House) {
			h.Web.DoNotDisrupt, h.Claim.HasTerminationGrace = true, true
		}, stay{}},
		{"a pod says no to saving", u, func(h *disrupttest.House) {
			h.Web.DoNotDisrupt, h.Claim.HasTerminationGrace = true, true
		}, stay{Reason: disrupt.PodDoNotDisrupt, Pod: "shop/web"}},
		{"a budget says no", u, func(h *disrupttest.House) {
			h.Guard("g", "db", 0)
		}, stay{Reason: disrupt.PDBBlocks, Pod: "shop/db", PDB: "shop/g"}},
		{"a budget wants all, although there are more", u, func(h *disrupttest.House) {
			g := h.Guard("g", "db", 1)
			g.Healthy, g.DesiredHealthy, g.Expected = 3, 2, 1
		}, stay{Reason: disrupt.PDBBlocks, Pod: "shop/db", PDB: "shop/g"}},
		{"a budget says yes", u, func(h *disrupttest.House) { h.Guard("g", "db", 1) }, stay{}},
		{"a budget of others", u, func(h *disrupttest.House) { h.Guard("g", "db", 0).Namespace = "else" }, stay{}},
		{"a budget of a daemon says no", u, func(h *disrupttest.House) {
			h.Guard("g", "db", 0)
			h.Db.Daemon = true
		}, stay{Reason: disrupt.PDBBlocks, Pod: "shop/db", PDB: "shop/g"}},
		{"a budget of a mirror pod", u, func(h *disrupttest.House) {
			h.Guard("g", "db", 0)
			h.Db.Mirror = true
		}, stay{}},
		{"a budget of who stays", u, func(h *disrupttest.House) {
			h.Guard("g", "db", 0)
			h.Db.StaysThroughDrain = true
		}, stay{}},
		{"a budget of who has not begun", u, func(h *disrupttest.House) {
			h.Guard("g", "db", 0)
			h.Db.Phase = "Pending"
		}, stay{}},
		{"a budget does not mind the unhealthy", u, func(h *disrupttest.House) {
			h.Guard("g", "db", 0).AllowsUnhealthy = true
			h.Db.Ready = false
		}, stay{}},
		{"a budget minds the healthy", u, func(h *disrupttest.House) {
			h.Guard("g", "db", 0).AllowsUnhealthy = true
		}, stay{Reason: disrupt.PDBBlocks, Pod: "shop/db", PDB: "shop/g"}},
		{"a budget says no to drift", d, func(h *disrupttest.House) {
			h.Guard("g", "db", 0)
		}, stay{Reason: disrupt.PDBBlocks, Pod: "shop/db", PDB: "shop/g"}},
		{"a budget says no to drift in vain", d, func(h *disrupttest.House) {
			h.Guard("g", "db", 0)
			h.Claim.HasTerminationGrace = true
		}, stay{}},
		{"two budgets", u, func(h *disrupttest.House) {
			h.Guard("f", "db", 1)
			h.Guard("g", "db", 1)
		}, stay{Reason: disrupt.SeveralPDBs, Pod: "shop/db", PDB: "shop/f and shop/g"}},
		{"a workload rests", u, func(h *disrupttest.House) {
			h.Set.EvictionsPerHour, h.S.EvictedToSave["deploy"], h.S.EvictionsDropAt["deploy"] = 1, 2, at(time.Minute)
		}, stay{Reason: disrupt.WorkloadResting, Pod: "shop/web", Until: at(time.Minute)}},
		{"a workload bears one more", u, func(h *disrupttest.House) {
			h.Set.EvictionsPerHour, h.S.EvictedToSave["deploy"] = 1, 1
		}, stay{}},
		{"the pool lets it rest", u, func(h *disrupttest.House) {
			one := 1
			h.Pool.Overrides.EvictionsPerHour, h.S.EvictedToSave["stateful"] = &one, 1
		}, stay{Reason: disrupt.WorkloadResting, Pod: "shop/db"}},
		{"a workload rests, drift", d, func(h *disrupttest.House) {
			h.Set.EvictionsPerHour, h.S.EvictedToSave["deploy"] = 1, 2
		}, stay{}},
	}
	for _, c := range cases {
		h := disrupttest.NewHouse()
		c.change(h)
		s := h.S.Seal()
		candidate, got := disrupt.NewEligibility(s, h.Set).MayDisrupt(h.Claim, c.reason)
		if c.want.Reason == "" {
			if got != nil {
				t.Errorf("%s for %s: %+v, want it to go", c.name, c.reason, *got)
			} else if candidate.Claim != h.Claim || candidate.Node != h.Node || candidate.Pool != h.Pool {
				t.Errorf("%s: the candidate is another: %+v", c.name, candidate)
			}
			continue
		}
		c.want.Claim = "c"
		if len(h.S.Nodes) > 0 {
			c.want.Node = "n"
		}
		if got == nil || *got != c.want {
			t.Errorf("%s for %s: %+v, want %+v", c.name, c.reason, got, c.want)
		}
		if all, blocked, wake := disrupt.Candidates(s, h.Set, c.reason); slices.ContainsFunc(all,
			func(x disrupt.Candidate) bool {
				return x.Claim == h.Claim
			}) ||
			c.want.Reason != disrupt.NotManaged && !slices.Contains(blocked, c.want) || !c.want.Until.IsZero() &&
			!wake.Equal(c.want.Until) {
			t.Errorf("%s for %s: %d candidates, stays %+v, wake at %s", c.name, c.reason, len(all), blocked, wake)
		}
	}
}

// What was asked before the fence and only time could turn is not asked again; what people and pods say is.
func TestWhatIsAskedAgain(t *testing.T) {
	h := disrupttest.NewHouse()
	disrupttest.Taint(h.S, 0)
	disrupttest.Mark(h.S, 0, command.Underutilized)
	h.Claim.Move, h.Claim.RestUntil, h.Claim.LastPodEvent = "m", h.S.Now.Add(time.Hour), h.S.Now
	h.Pool.ConsolidateAfter.For, h.Set.EvictionsPerHour, h.S.EvictedToSave["deploy"] = time.Hour, 1, 9
	if _, blocked := disrupt.NewEligibility(h.S.Seal(), h.Set).MayStillDisrupt(h.Claim,
		command.Underutilized); blocked != nil {
		t.Errorf("a fenced node: %+v, want it to go", *blocked)
	}
	for want, change := range map[disrupt.BlockReason]func(){
		disrupt.PodDoNotDisrupt:   func() { h.Web.DoNotDisrupt = true },
		disrupt.NodeDoNotDisrupt:  func() { h.Node.DoNotDisrupt = true },
		disrupt.ConsolidationsOff: func() { h.Pool.ConsolidateAfter.Never = true },
		disrupt.PolicyForbids:     func() { h.Pool.Policy = cluster.WhenEmpty },
		disrupt.BeingDisrupted:    func() { h.Claim.Deleting = h.S.Now },
	} {
		before := *h
		web, node, pool, claim := *h.Web, *h.Node, *h.Pool, *h.Claim
		change()
		if _, blocked := disrupt.NewEligibility(h.S.Seal(), h.Set).MayStillDisrupt(h.Claim,
			command.Underutilized); blocked == nil || blocked.Reason != want {
			t.Errorf("%+v, want %s", blocked, want)
		}
		*before.Web, *before.Node, *before.Pool, *before.Claim = web, node, pool, claim
	}
}

// Disruption budgets of pods keep the nodes that they kept if every pod were asked about by itself.
func TestGuardsAreAllAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := disrupttest.NewHouse()
		var shared []cluster.Labels
		for i := range 6 {
			shared = append(shared, cluster.LabelsOf(map[string]string{"app": fmt.Sprint(i % 3),
				"tier": fmt.Sprint(i % 2)}))
		}
		shared = append(shared, nil, shared[0][:1])
		for i := range rapid.IntRange(0, 4).Draw(t, "guards") {
			g := h.Guard(fmt.Sprint("g", i), fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "app")),
				rapid.IntRange(0, 1).Draw(t, "allowed"))
			g.AllowsUnhealthy = rapid.Bool().Draw(t, "frees")
			if rapid.IntRange(0, 4).Draw(t, "all") == 0 {
				g.Selector.Labels = nil
			}
		}
		h.S.Pods = nil
		for i := range rapid.IntRange(0, 5).Draw(t, "pods") {
			p := disrupttest.Tenant(fmt.Sprint("p", i), "deploy")
			p.Labels, p.Ready = rapid.SampledFrom(shared).Draw(t, "labels"), rapid.Bool().Draw(t, "ready")
			p.Namespace = rapid.SampledFrom([]string{"shop", "else"}).Draw(t, "namespace")
			h.S.Pods = append(h.S.Pods, p)
		}
		s := h.S.Seal()
		want, moves := "", 0
		for _, p := range s.Pods {
			pdbs := s.PDBsOf(p)
			held := len(pdbs) > 1 || len(pdbs) == 1 && pdbs[0].Allowed == 0 && !pdbs[0].AllowsFreely(p)
			if held && want == "" {
				want = p.ID()
			}
			if s.NeedsNewPlace(p) {
				moves++
			}
		}
		c, got := disrupt.NewEligibility(s, h.Set).MayDisrupt(h.Claim, command.Underutilized)
		switch {
		case (got == nil) != (want == ""), got != nil && got.Pod != want:
			t.Fatalf("%+v, want it held by %q", got, want)
		case got == nil && len(c.Pods) != moves:
			t.Fatalf("%d pods move, want %d", len(c.Pods), moves)
		}
	})
}

// What a candidate holds is what will happen to its pods.
func TestWhatMoves(t *testing.T) {
	h := disrupttest.NewHouse()
	loose, daemon, blocked, gone := disrupttest.Tenant("loose", ""), disrupttest.Tenant("daemon", "set"),
		disrupttest.Tenant("stays", "deploy"),
		disrupttest.Tenant("gone", "deploy")
	daemon.Daemon, blocked.StaysThroughDrain, gone.Deleting = true, true, h.S.Now
	h.Db.EvictionCost, h.Web.EvictionCost, blocked.EvictionCost = -3, 2.5, 0.25
	h.S.Pods = []*cluster.Pod{daemon, h.Db, gone, loose, blocked, h.Web}
	eligibility := disrupt.NewEligibility(h.S.Seal(), h.Set)
	for _, reason := range []command.Reason{command.Underutilized, command.Empty} {
		if _, blocked := eligibility.MayDisrupt(h.Claim, reason); blocked == nil ||
			blocked.Reason != disrupt.PodUnowned ||
			blocked.Pod != loose.ID() {
			t.Errorf("%s: nobody makes loose again, and the node does not stay for it: %+v", reason, blocked)
		}
	}
	c, stay := eligibility.MayDisrupt(h.Claim, command.Drifted)
	if stay != nil {
		t.Fatalf("it stays: %+v", *stay)
	}
	if got := fmt.Sprint(disrupttest.Names(c.Pods)); got != "[db stays web]" {
		t.Errorf("%s move, want db, web, and stays, which ends with the node: nobody makes loose anew", got)
	}
	if c.Evicted != 3 || c.Cost != 1+2.5+0.25+1 || c.Empty || c.Price != 4 || c.Type != "large" ||
		c.CapacityType != disrupt.OnDemand {
		t.Errorf("%+v", c)
	}
	if cost := disrupt.CostOf(h.S.PodsOn("n")); cost != c.Cost {
		t.Errorf("as one of the pool's nodes it costs %g, as a candidate %g", cost, c.Cost)
	}
}

// Empty nodes come first, then the most expensive for the disturbance, then fewer pods, then age, then the name.
func TestOrderOfCandidates(t *testing.T) {
	at := func(name string, born int) *cluster.Claim {
		return &cluster.Claim{Name: name, Created: time.Unix(int64(born), 0)}
	}
	want := []disrupt.Candidate{
		{Claim: at("idle", 9), Empty: true, Price: 1, Cost: 1},
		{Claim: at("dear", 9), Price: 9, Cost: 3, Evicted: 2},
		{Claim: at("few", 9), Price: 4, Cost: 2, Evicted: 1},
		{Claim: at("old", 5), Price: 6, Cost: 3, Evicted: 2},
		{Claim: at("alpha", 7), Price: 4, Cost: 2, Evicted: 2},
		{Claim: at("beta", 7), Price: 4, Cost: 2, Evicted: 2},
		{Claim: at("cheap", 1), Price: 1, Cost: 2, Evicted: 1},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	disrupt.Sort(got)
	for i := range want {
		if got[i].Claim != want[i].Claim {
			t.Errorf("place %d: %s, want %s", i, got[i].Claim.Name, want[i].Claim.Name)
		}
	}
}

// Candidates are listed in that order.
func TestCandidatesAreInOrder(t *testing.T) {
	f := disrupttest.NewFleet()
	f.S.Pods = f.S.Pods[:2] // n3 carries nothing
	list, _, _ := disrupt.Candidates(f.S.Seal(), f.Set, command.Underutilized)
	if len(list) != 3 || list[0].Claim.Name != "n3" {
		t.Errorf("%d candidates, the first is not n3", len(list))
	}
}

// A workload bears as many evictions an hour as its size allows, over all moves that are decided on.
func TestPatienceIsShared(t *testing.T) {
	h := disrupttest.NewHouse()
	h.Set.EvictionsPerHour = 1
	s := h.S.Seal()
	one := disrupt.Candidate{Pool: h.Pool, Pods: []*cluster.Pod{h.Web}}
	rates := disrupt.NewEvictionRates(s, h.Set)
	for i := range 3 {
		pod, _, ok := rates.Allow(one)
		if want := i < 2; ok != want || !ok && pod != h.Web {
			t.Fatalf("eviction %d of a workload of two: %t, want %t", i+1, ok, want)
		}
		rates.Add(one)
	}
	if _, _, ok := disrupt.NewEvictionRates(s, h.Set).Allow(one, one); !ok {
		t.Errorf("two at once are as many as it has")
	}
	if _, _, ok := disrupt.NewEvictionRates(s, h.Set).Allow(one, one, one); !ok {
		t.Errorf("nor do they have to wait for each other where there is one more than are wanted")
	}
	if pod, _, ok := disrupt.NewEvictionRates(s, disrupt.Settings{}).Allow(one, one, one); !ok {
		t.Errorf("without a bound %s rests", pod.Name)
	}
}
