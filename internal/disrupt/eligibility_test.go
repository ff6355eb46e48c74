package disrupt

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/require"
)

// shop is a catalog of types small ($1), medium ($2) and large ($4), in zones a and b, on-demand; spot costs 30% of it
// in zone a and 40% in zone b.
func shop() *cluster.Catalog {
	var types []cluster.Type
	var offers []cluster.Offering
	for i, name := range []string{"small", "medium", "large"} {
		types = append(types, cluster.Type{Name: name})
		for _, zone := range []string{"a", "b"} {
			price := float64(int(1) << i)
			offers = append(offers, offering(i, name, zone, onDemand, price))
			offers = append(offers, offering(i, name, zone, spot, price*map[string]float64{"a": 0.3, "b": 0.4}[zone]))
		}
	}
	return cluster.NewCatalog(types, offers)
}

func offering(kind int, name, zone, terms string, price float64) cluster.Offering {
	return cluster.Offering{Type: kind, Zone: zone, CapacityType: terms, Price: price, Available: true,
		Labels: labelsFor(name, zone, terms)}
}

func labelsFor(name, zone, terms string) cluster.Labels {
	return cluster.LabelsOf(map[string]string{cluster.InstanceTypeLabel: name, cluster.ZoneLabel: zone,
		cluster.CapacityTypeLabel: terms})
}

// house is a pool with one large node that carries two pods, web and db, and has been quiet for long.
type house struct {
	s       *cluster.Snapshot
	set     Settings
	pool    *cluster.Pool
	claim   *cluster.Claim
	node    *cluster.Node
	web, db *cluster.Pod
}

func newHouse() *house {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	h := &house{
		pool: &cluster.Pool{Name: "default", Policy: cluster.WhenEmptyOrUnderutilized, Catalog: shop(),
			NodeClass: cluster.NodeClassState{Ready: true}},
		claim: &cluster.Claim{Name: "c", UID: "u", Pool: "default", ProviderID: "cloud://c", NodeName: "n",
			Created: now.Add(-3 * time.Hour),
			Labels:  labelsFor("large", "a", onDemand), Price: 4, LastPodEvent: now.Add(-time.Hour)},
		node: &cluster.Node{Name: "n", ProviderID: "cloud://c", Ready: true},
		web:  tenant("web", "deploy"), db: tenant("db", "stateful"),
	}
	for _, kind := range []string{cluster.Launched, cluster.Registered, cluster.Initialized} {
		h.claim.Conditions = append(h.claim.Conditions, cluster.Condition{Type: kind, Status: cluster.True,
			Since: now.Add(-2 * time.Hour)})
	}
	h.s = &cluster.Snapshot{Now: now, InFlight: map[string]bool{}, Pools: []*cluster.Pool{h.pool},
		Claims: []*cluster.Claim{h.claim},
		Nodes:  []*cluster.Node{h.node}, Pods: []*cluster.Pod{h.db, h.web}, EvictedToSave: map[string]int{},
		EvictionsDropAt: map[string]time.Time{},
		Owners:          map[string]cluster.Owner{"deploy": {UID: "deploy", Known: true, Desired: 2}}}
	return h
}

func tenant(name, owner string) *cluster.Pod {
	return &cluster.Pod{UID: name, Namespace: "shop", Name: name, Class: &cluster.PodClass{Key: name}, Owner: owner,
		Node: "n", Ready: true,
		EvictionCost: 1, Phase: "Running", Labels: cluster.LabelsOf(map[string]string{"app": name})}
}

func (h *house) guard(name, app string, allowed int) *cluster.PDB {
	g := &cluster.PDB{Namespace: "shop", Name: name, Allowed: allowed, Healthy: 2, DesiredHealthy: 1 + 1 - min(allowed,
		1), Expected: 3,
		Selector: cluster.Selector{Namespaces: []string{"shop"}, Labels: require.Set{}.With("app", require.Only(app))}}
	h.s.PDBs = append(h.s.PDBs, g)
	return g
}

// tried makes the node the given try of a workload of which so many have failed, and has it come up just now.
func (h *house) tried(try, failed int) {
	h.claim.MadeFor = []cluster.MadeFor{{Owner: "web", Try: try}}
	h.s.WorkloadTries = map[string]*cluster.WorkloadTries{"web": {Owner: "web", FailedTries: failed}}
	for i := range h.claim.Conditions {
		h.claim.Conditions[i].Since = h.s.Now
	}
}

// takenEarly has consolidation take another node of the workload so long after the node was made.
func (h *house) takenEarly(after time.Duration) {
	h.s.RemovedEarly = map[string]time.Time{"web": h.claim.Created.Add(after)}
}

func (h *house) waiting(class string) *cluster.Pod {
	p := &cluster.Pod{UID: "waiting", Namespace: "shop", Name: "waiting", Class: &cluster.PodClass{Key: class},
		Owner: "deploy", Unschedulable: true, SchedulerSeen: true}
	h.s.Pods = append(h.s.Pods, p)
	return p
}

// Each thing that keeps a node does, and is told; for some reasons it does not matter.
func TestWhatKeepsANode(t *testing.T) {
	type stay = BlockedNode
	at := func(d time.Duration) time.Time { return newHouse().s.Now.Add(d) }
	u, d, unhealthy, old := command.Underutilized, command.Drifted, command.Unhealthy, command.Expired
	cases := []struct {
		name   string
		reason command.Reason
		change func(h *house)
		want   stay // Why empty: it may go
	}{
		{"nothing", u, func(h *house) {}, stay{}},
		{"made by hand", d, func(h *house) { h.claim.Pool = "" }, stay{Reason: NotManaged}},
		{"pool gone", u, func(h *house) { h.claim.Pool = "other" }, stay{Reason: PoolUnknown}},
		{"pool being deleted", d, func(h *house) { h.pool.Deleting = true }, stay{Reason: PoolUnknown}},
		{"pool that can't be read", d, func(h *house) {
			h.pool.Problems = []cluster.Problem{{}}
		}, stay{Reason: PoolUnknown}},
		{"pool that can't be read, sick", unhealthy, func(h *house) {
			h.pool.Problems = []cluster.Problem{{}}
		}, stay{}},
		{"static pool", u, func(h *house) { h.pool.Static = true }, stay{Reason: PoolUnknown}},
		{"static pool drifts", d, func(h *house) { h.pool.Static = true }, stay{}},
		{"no node", u, func(h *house) { h.s.Nodes = nil }, stay{Reason: NotInitialized}},
		{"not initialized", u, func(h *house) {
			h.claim.Conditions = h.claim.Conditions[:2]
		}, stay{Reason: NotInitialized}},
		{"not initialized and sick", unhealthy, func(h *house) { h.claim.Conditions = h.claim.Conditions[:2] }, stay{}},
		{"not joined and sick", unhealthy, func(h *house) {
			h.claim.Conditions = h.claim.Conditions[:1]
		}, stay{Reason: NotInitialized}},
		{"its machine is being ended", d, func(h *house) {
			h.say(cluster.InstanceTerminating, "")
		}, stay{Reason: BeingDisrupted}},
		{"deleting", u, func(h *house) { h.claim.Deleting = h.s.Now }, stay{Reason: BeingDisrupted}},
		{"node deleting", d, func(h *house) { h.node.Deleting = h.s.Now }, stay{Reason: BeingDisrupted}},
		{"fenced", u, func(h *house) { taint(h.s, 0) }, stay{Reason: BeingDisrupted}},
		{"in a move", u, func(h *house) { h.claim.Move = "m" }, stay{Reason: BeingDisrupted}},
		{"being fenced", d, func(h *house) { h.s.InFlight["fence/n"] = true }, stay{Reason: BeingDisrupted}},
		{"kept by its node", u, func(h *house) { h.node.DoNotDisrupt = true }, stay{Reason: NodeDoNotDisrupt}},
		{"kept by its claim", d, func(h *house) { h.claim.DoNotDisrupt = true }, stay{Reason: NodeDoNotDisrupt}},
		{"kept, but sick", unhealthy, func(h *house) { h.claim.DoNotDisrupt = true }, stay{}},
		{"not to be repaired", unhealthy, func(h *house) { h.node.DoNotRepair = true }, stay{Reason: NodeDoNotDisrupt}},
		{"its claim is not to be repaired", unhealthy, func(h *house) {
			h.claim.DoNotRepair = true
		}, stay{Reason: NodeDoNotDisrupt}},
		{"not to be repaired", u, func(h *house) { h.node.DoNotRepair = true }, stay{}},
		{"nobody sells it", u, func(h *house) {
			h.claim.Labels = labelsFor("tiny", "a", onDemand)
		}, stay{Reason: PriceUnknown}},
		{"nobody sells it there", u, func(h *house) {
			h.claim.Labels = labelsFor("large", "z", onDemand)
		}, stay{Reason: PriceUnknown}},
		{"nobody sells it, drift", d, func(h *house) { h.claim.Labels = labelsFor("tiny", "a", onDemand) }, stay{}},
		{"only its node says what it is", u, func(h *house) {
			h.node.Labels, h.claim.Labels = h.claim.Labels, nil
		}, stay{}},
		{"no catalog", u, func(h *house) { h.pool.Catalog = nil }, stay{Reason: PriceUnknown}},
		{"only empty ones", u, func(h *house) { h.pool.Policy = cluster.WhenEmpty }, stay{Reason: PolicyForbids}},
		{"only empty ones, drift", d, func(h *house) { h.pool.Policy = cluster.WhenEmpty }, stay{}},
		{"only empty ones, and it is", u, func(h *house) { h.pool.Policy, h.s.Pods = cluster.WhenEmpty, nil }, stay{}},
		{"never", u, func(h *house) { h.pool.ConsolidateAfter.Never = true }, stay{Reason: ConsolidationsOff}},
		{"never, drift", d, func(h *house) { h.pool.ConsolidateAfter.Never = true }, stay{}},
		{"too soon", u, func(h *house) {
			h.pool.ConsolidateAfter.For = 90 * time.Minute
		}, stay{Reason: TooSoon, Until: at(30 * time.Minute)}},
		{"too soon after it came", u, func(h *house) {
			h.claim.LastPodEvent, h.pool.ConsolidateAfter.For = at(-3*time.Hour), 130*time.Minute
		}, stay{Reason: TooSoon, Until: at(10 * time.Minute)}},
		{"new, and no pod has come", u, func(h *house) {
			h.claim.LastPodEvent, h.set.Nomination = time.Time{}, 125*time.Minute
		}, stay{Reason: TooSoon, Until: at(5 * time.Minute)}},
		{"a wait for the reason", u, func(h *house) {
			h.pool.Overrides.QuietPeriods = map[string]cluster.NillableDuration{"Underutilized": {For: 2 * time.Hour}}
		}, stay{Reason: TooSoon, Until: at(time.Hour)}},
		{"a wait for the reason instead", u, func(h *house) {
			h.pool.ConsolidateAfter.Never, h.pool.Overrides.QuietPeriods = true,
				map[string]cluster.NillableDuration{"Underutilized": {For: time.Minute}}
		}, stay{}},
		{"a wait for drift", d, func(h *house) {
			h.pool.Overrides.QuietPeriods = map[string]cluster.NillableDuration{"Drifted": {For: 2 * time.Hour}}
		}, stay{Reason: TooSoon, Until: at(time.Hour)}},
		{"pods came behind the fence", command.Empty, func(h *house) {
			h.claim.SavingRestUntil = at(time.Minute)
		}, stay{Reason: MoveFailedLately, Until: at(time.Minute)}},
		{"pods came behind the fence, drift", d, func(h *house) { h.claim.SavingRestUntil = at(time.Minute) }, stay{}},
		{"given up lately", u, func(h *house) {
			h.claim.RestUntil = at(time.Minute)
		}, stay{Reason: MoveFailedLately, Until: at(time.Minute)}},
		{"given up lately, drift", d, func(h *house) {
			h.claim.RestUntil = at(time.Minute)
		}, stay{Reason: MoveFailedLately, Until: at(time.Minute)}},
		{"tried just now", u, func(h *house) { h.tried(2, 1) }, stay{Reason: TooSoon, Until: at(2 * time.Minute)}},
		{"tried, and pods have just come", u, func(h *house) {
			h.tried(2, 1)
			for i := range h.claim.Conditions {
				h.claim.Conditions[i].Since = at(-time.Hour)
			}
			h.claim.LastPodEvent = h.s.Now
		}, stay{Reason: TooSoon, Until: at(2 * time.Minute)}},
		{"tried just now, drift", d, func(h *house) { h.tried(2, 1) }, stay{}},
		{"the first of its workload", u, func(h *house) { h.tried(1, 1) }, stay{}},
		{"tried, and pods have run", u, func(h *house) { h.tried(2, 0) }, stay{}},
		{"made after another was taken early", u, func(h *house) { h.tried(1, 0); h.takenEarly(0) },
			stay{Reason: TooSoon, Until: at(2 * time.Minute)}},
		{"made after another was taken early, drift", d, func(h *house) { h.tried(1, 0); h.takenEarly(0) }, stay{}},
		{"made before another was taken early", u, func(h *house) { h.tried(1, 0); h.takenEarly(time.Second) }, stay{}},
		{"chosen by kube-scheduler", u, func(h *house) {
			h.waiting("x").Unschedulable = false
			h.s.Pods[2].Nominated = "n"
		}, stay{Reason: PodsExpected}},
		{"nominated by us", d, func(h *house) { h.waiting("x").Nominated = "n" }, stay{Reason: PodsExpected}},
		{"a free seat", u, func(h *house) {
			h.waiting("x")
			h.claim.Seats = []cluster.Seat{{Class: "x", Count: 1}}
		}, stay{Reason: PodsExpected}},
		{"no free seat", u, func(h *house) {
			h.waiting("web")
			h.claim.Seats = []cluster.Seat{{Class: "web", Count: 1}}
		}, stay{}},
		{"a seat whose room others have taken", u, func(h *house) {
			h.waiting("x").Class.Requests[0], h.web.Class.Requests[0], h.node.Allocatable[0] = 2, 3, 4
			h.claim.Seats = []cluster.Seat{{Class: "x", Count: 1}}
		}, stay{}},
		{"a seat with room", u, func(h *house) {
			h.waiting("x").Class.Requests[0], h.web.Class.Requests[0], h.node.Allocatable[0] = 2, 3, 5
			h.claim.Seats = []cluster.Seat{{Class: "x", Count: 1}}
		}, stay{Reason: PodsExpected}},
		{"a free seat of an old node, drift", d, func(h *house) {
			h.waiting("x")
			h.claim.Seats = []cluster.Seat{{Class: "x", Count: 1}}
		}, stay{}},
		{"a free seat of a new node, drift", d, func(h *house) {
			h.waiting("x")
			h.set.Nomination, h.claim.Seats = 125*time.Minute, []cluster.Seat{{Class: "x", Count: 1}}
		}, stay{Reason: PodsExpected, Until: at(5 * time.Minute)}},
		{"a new node without a seat, drift", d, func(h *house) {
			h.waiting("x")
			h.set.Nomination = 125 * time.Minute
		}, stay{}},
		{"a seat nobody wants", u, func(h *house) { h.claim.Seats = []cluster.Seat{{Class: "x", Count: 1}} }, stay{}},
		{"replaces a node that is there", u, func(h *house) {
			h.claim.Replaces = "m"
			h.s.Claims = append(h.s.Claims, &cluster.Claim{Name: "d", Pool: "default", Move: "m"})
		}, stay{Reason: PodsExpected}},
		{"is left of an earlier try of a move", u, func(h *house) {
			h.claim.Replaces = "m"
			h.s.Claims = append(h.s.Claims, &cluster.Claim{Name: "d", Pool: "default", Move: "m",
				Conditions: []cluster.Condition{
					{Type: cluster.DisruptionReason, Status: cluster.True, Since: at(-time.Minute)}}})
		}, stay{}},
		{"a pod says no", u, func(h *house) {
			h.web.DoNotDisrupt = true
		}, stay{Reason: PodDoNotDisrupt, Pod: "shop/web"}},
		{"a pod says no for a while", u, func(h *house) {
			h.web.DoNotDisrupt, h.web.DoNotDisruptUntil = true, at(time.Minute)
		}, stay{Reason: PodDoNotDisrupt, Pod: "shop/web", Until: at(time.Minute)}},
		{"a daemon says no", u, func(h *house) {
			h.web.DoNotDisrupt, h.web.Daemon = true, true
		}, stay{Reason: PodDoNotDisrupt, Pod: "shop/web"}},
		{"a mirror pod says no", u, func(h *house) {
			h.web.DoNotDisrupt, h.web.Mirror = true, true
		}, stay{Reason: PodDoNotDisrupt, Pod: "shop/web"}},
		{"a leaving pod says no", u, func(h *house) { h.web.DoNotDisrupt, h.web.Deleting = true, h.s.Now }, stay{}},
		{"a finished pod says no", u, func(h *house) { h.web.DoNotDisrupt, h.web.Finished = true, true }, stay{}},
		{"a pod says no to drift", d, func(h *house) {
			h.web.DoNotDisrupt = true
		}, stay{Reason: PodDoNotDisrupt, Pod: "shop/web"}},
		{"a pod says no to drift in vain", d, func(h *house) {
			h.web.DoNotDisrupt, h.claim.HasTerminationGrace = true, true
		}, stay{}},
		{"a pod says no to age in vain", old, func(h *house) {
			h.web.DoNotDisrupt, h.claim.HasTerminationGrace = true, true
		}, stay{}},
		{"a pod says no to repair in vain", unhealthy, func(h *house) {
			h.web.DoNotDisrupt, h.claim.HasTerminationGrace = true, true
		}, stay{}},
		{"a pod says no to saving", u, func(h *house) {
			h.web.DoNotDisrupt, h.claim.HasTerminationGrace = true, true
		}, stay{Reason: PodDoNotDisrupt, Pod: "shop/web"}},
		{"a budget says no", u, func(h *house) {
			h.guard("g", "db", 0)
		}, stay{Reason: PDBBlocks, Pod: "shop/db", PDB: "shop/g"}},
		{"a budget wants all, although there are more", u, func(h *house) {
			g := h.guard("g", "db", 1)
			g.Healthy, g.DesiredHealthy, g.Expected = 3, 2, 1
		}, stay{Reason: PDBBlocks, Pod: "shop/db", PDB: "shop/g"}},
		{"a budget says yes", u, func(h *house) { h.guard("g", "db", 1) }, stay{}},
		{"a budget of others", u, func(h *house) { h.guard("g", "db", 0).Namespace = "else" }, stay{}},
		{"a budget of a daemon says no", u, func(h *house) {
			h.guard("g", "db", 0)
			h.db.Daemon = true
		}, stay{Reason: PDBBlocks, Pod: "shop/db", PDB: "shop/g"}},
		{"a budget of a mirror pod", u, func(h *house) { h.guard("g", "db", 0); h.db.Mirror = true }, stay{}},
		{"a budget of who stays", u, func(h *house) { h.guard("g", "db", 0); h.db.StaysThroughDrain = true }, stay{}},
		{"a budget of who has not begun", u, func(h *house) { h.guard("g", "db", 0); h.db.Phase = "Pending" }, stay{}},
		{"a budget does not mind the unhealthy", u, func(h *house) {
			h.guard("g", "db", 0).AllowsUnhealthy = true
			h.db.Ready = false
		}, stay{}},
		{"a budget minds the healthy", u, func(h *house) {
			h.guard("g", "db", 0).AllowsUnhealthy = true
		}, stay{Reason: PDBBlocks, Pod: "shop/db", PDB: "shop/g"}},
		{"a budget says no to drift", d, func(h *house) {
			h.guard("g", "db", 0)
		}, stay{Reason: PDBBlocks, Pod: "shop/db", PDB: "shop/g"}},
		{"a budget says no to drift in vain", d, func(h *house) {
			h.guard("g", "db", 0)
			h.claim.HasTerminationGrace = true
		}, stay{}},
		{"two budgets", u, func(h *house) {
			h.guard("f", "db", 1)
			h.guard("g", "db", 1)
		}, stay{Reason: SeveralPDBs, Pod: "shop/db", PDB: "shop/f and shop/g"}},
		{"a workload rests", u, func(h *house) {
			h.set.EvictionsPerHour, h.s.EvictedToSave["deploy"], h.s.EvictionsDropAt["deploy"] = 1, 2, at(time.Minute)
		}, stay{Reason: WorkloadResting, Pod: "shop/web", Until: at(time.Minute)}},
		{"a workload bears one more", u, func(h *house) {
			h.set.EvictionsPerHour, h.s.EvictedToSave["deploy"] = 1, 1
		}, stay{}},
		{"the pool lets it rest", u, func(h *house) {
			one := 1
			h.pool.Overrides.EvictionsPerHour, h.s.EvictedToSave["stateful"] = &one, 1
		}, stay{Reason: WorkloadResting, Pod: "shop/db"}},
		{"a workload rests, drift", d, func(h *house) {
			h.set.EvictionsPerHour, h.s.EvictedToSave["deploy"] = 1, 2
		}, stay{}},
	}
	for _, c := range cases {
		h := newHouse()
		c.change(h)
		s := h.s.Seal()
		candidate, got := NewEligibility(s, h.set).MayDisrupt(h.claim, c.reason)
		if c.want.Reason == "" {
			if got != nil {
				t.Errorf("%s for %s: %+v, want it to go", c.name, c.reason, *got)
			} else if candidate.Claim != h.claim || candidate.Node != h.node || candidate.Pool != h.pool {
				t.Errorf("%s: the candidate is another: %+v", c.name, candidate)
			}
			continue
		}
		c.want.Claim = "c"
		if len(h.s.Nodes) > 0 {
			c.want.Node = "n"
		}
		if got == nil || *got != c.want {
			t.Errorf("%s for %s: %+v, want %+v", c.name, c.reason, got, c.want)
		}
		if all, blocked, wake := Candidates(s, h.set, c.reason); slices.ContainsFunc(all, func(x Candidate) bool {
			return x.Claim == h.claim
		}) ||
			c.want.Reason != NotManaged && !slices.Contains(blocked, c.want) || !c.want.Until.IsZero() &&
			!wake.Equal(c.want.Until) {
			t.Errorf("%s for %s: %d candidates, stays %+v, wake at %s", c.name, c.reason, len(all), blocked, wake)
		}
	}
}

// What was asked before the fence and only time could turn is not asked again; what people and pods say is.
func TestWhatIsAskedAgain(t *testing.T) {
	h := newHouse()
	taint(h.s, 0)
	mark(h.s, 0, command.Underutilized)
	h.claim.Move, h.claim.RestUntil, h.claim.LastPodEvent = "m", h.s.Now.Add(time.Hour), h.s.Now
	h.pool.ConsolidateAfter.For, h.set.EvictionsPerHour, h.s.EvictedToSave["deploy"] = time.Hour, 1, 9
	if _, blocked := NewEligibility(h.s.Seal(), h.set).MayStillDisrupt(h.claim, command.Underutilized); blocked != nil {
		t.Errorf("a fenced node: %+v, want it to go", *blocked)
	}
	for want, change := range map[BlockReason]func(){
		PodDoNotDisrupt:   func() { h.web.DoNotDisrupt = true },
		NodeDoNotDisrupt:  func() { h.node.DoNotDisrupt = true },
		ConsolidationsOff: func() { h.pool.ConsolidateAfter.Never = true },
		PolicyForbids:     func() { h.pool.Policy = cluster.WhenEmpty },
		BeingDisrupted:    func() { h.claim.Deleting = h.s.Now },
	} {
		before := *h
		web, node, pool, claim := *h.web, *h.node, *h.pool, *h.claim
		change()
		if _, blocked := NewEligibility(h.s.Seal(), h.set).MayStillDisrupt(h.claim,
			command.Underutilized); blocked == nil || blocked.Reason != want {
			t.Errorf("%+v, want %s", blocked, want)
		}
		*before.web, *before.node, *before.pool, *before.claim = web, node, pool, claim
	}
}

// Disruption budgets of pods keep the nodes that they kept if every pod were asked about by itself.
func TestGuardsAreAllAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHouse()
		var shared []cluster.Labels
		for i := range 6 {
			shared = append(shared, cluster.LabelsOf(map[string]string{"app": fmt.Sprint(i % 3),
				"tier": fmt.Sprint(i % 2)}))
		}
		shared = append(shared, nil, shared[0][:1])
		for i := range rapid.IntRange(0, 4).Draw(t, "guards") {
			g := h.guard(fmt.Sprint("g", i), fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "app")),
				rapid.IntRange(0, 1).Draw(t, "allowed"))
			g.AllowsUnhealthy = rapid.Bool().Draw(t, "frees")
			if rapid.IntRange(0, 4).Draw(t, "all") == 0 {
				g.Selector.Labels = nil
			}
		}
		h.s.Pods = nil
		for i := range rapid.IntRange(0, 5).Draw(t, "pods") {
			p := tenant(fmt.Sprint("p", i), "deploy")
			p.Labels, p.Ready = rapid.SampledFrom(shared).Draw(t, "labels"), rapid.Bool().Draw(t, "ready")
			p.Namespace = rapid.SampledFrom([]string{"shop", "else"}).Draw(t, "namespace")
			h.s.Pods = append(h.s.Pods, p)
		}
		s := h.s.Seal()
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
		c, got := NewEligibility(s, h.set).MayDisrupt(h.claim, command.Underutilized)
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
	h := newHouse()
	loose, daemon, blocked, gone := tenant("loose", ""), tenant("daemon", "set"), tenant("stays", "deploy"),
		tenant("gone", "deploy")
	daemon.Daemon, blocked.StaysThroughDrain, gone.Deleting = true, true, h.s.Now
	h.db.EvictionCost, h.web.EvictionCost, blocked.EvictionCost = -3, 2.5, 0.25
	h.s.Pods = []*cluster.Pod{daemon, h.db, gone, loose, blocked, h.web}
	eligibility := NewEligibility(h.s.Seal(), h.set)
	for _, reason := range []command.Reason{command.Underutilized, command.Empty} {
		if _, blocked := eligibility.MayDisrupt(h.claim, reason); blocked == nil || blocked.Reason != PodUnowned ||
			blocked.Pod != loose.ID() {
			t.Errorf("%s: nobody makes loose again, and the node does not stay for it: %+v", reason, blocked)
		}
	}
	c, stay := eligibility.MayDisrupt(h.claim, command.Drifted)
	if stay != nil {
		t.Fatalf("it stays: %+v", *stay)
	}
	if got := fmt.Sprint(names(c.Pods)); got != "[db stays web]" {
		t.Errorf("%s move, want db, web, and stays, which ends with the node: nobody makes loose anew", got)
	}
	if c.Evicted != 3 || c.Cost != 1+2.5+0.25+1 || c.Empty || c.Price != 4 || c.Type != "large" ||
		c.CapacityType != onDemand {
		t.Errorf("%+v", c)
	}
	if cost := CostOf(h.s.PodsOn("n")); cost != c.Cost {
		t.Errorf("as one of the pool's nodes it costs %g, as a candidate %g", cost, c.Cost)
	}
}

func names(pods []*cluster.Pod) (out []string) {
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return out
}

// Empty nodes come first, then the most expensive for the disturbance, then fewer pods, then age, then the name.
func TestOrderOfCandidates(t *testing.T) {
	at := func(name string, born int) *cluster.Claim {
		return &cluster.Claim{Name: name, Created: time.Unix(int64(born), 0)}
	}
	want := []Candidate{
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
	Sort(got)
	for i := range want {
		if got[i].Claim != want[i].Claim {
			t.Errorf("place %d: %s, want %s", i, got[i].Claim.Name, want[i].Claim.Name)
		}
	}
}

// Candidates are listed in that order.
func TestCandidatesAreInOrder(t *testing.T) {
	f := newFleet()
	f.s.Pods = f.s.Pods[:2] // n3 carries nothing
	list, _, _ := Candidates(f.s.Seal(), f.set, command.Underutilized)
	if len(list) != 3 || list[0].Claim.Name != "n3" {
		t.Errorf("%d candidates, the first is not n3", len(list))
	}
}

// A workload bears as many evictions an hour as its size allows, over all moves that are decided on.
func TestPatienceIsShared(t *testing.T) {
	h := newHouse()
	h.set.EvictionsPerHour = 1
	s := h.s.Seal()
	one := Candidate{Pool: h.pool, Pods: []*cluster.Pod{h.web}}
	rates := NewEvictionRates(s, h.set)
	for i := range 3 {
		pod, _, ok := rates.Allow(one)
		if want := i < 2; ok != want || !ok && pod != h.web {
			t.Fatalf("eviction %d of a workload of two: %t, want %t", i+1, ok, want)
		}
		rates.Add(one)
	}
	if _, _, ok := NewEvictionRates(s, h.set).Allow(one, one); !ok {
		t.Errorf("two at once are as many as it has")
	}
	if _, _, ok := NewEvictionRates(s, h.set).Allow(one, one, one); !ok {
		t.Errorf("nor do they have to wait for each other where there is one more than are wanted")
	}
	if pod, _, ok := NewEvictionRates(s, Settings{}).Allow(one, one, one); !ok {
		t.Errorf("without a bound %s rests", pod.Name)
	}
}
