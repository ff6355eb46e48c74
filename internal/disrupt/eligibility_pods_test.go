package disrupt

import (
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Nobody makes a pod anew that nobody owns: it keeps its node from going for money, unless it would not be evicted or
// is no workload.
func TestPodsThatNobodyOwns(t *testing.T) {
	for _, c := range []struct {
		name   string
		reason command.Reason
		change func(*cluster.Pod)
		why    BlockReason
	}{
		{"to save money", command.Underutilized, func(*cluster.Pod) {}, PodUnowned},
		{"because it is empty", command.Empty, func(*cluster.Pod) {}, PodUnowned},
		{"because it has drifted", command.Drifted, func(*cluster.Pod) {}, ""},
		{"it has an owner", command.Underutilized, func(p *cluster.Pod) { p.Owner = "x" }, ""},
		{"it is the kubelet's", command.Underutilized, func(p *cluster.Pod) { p.Mirror = true }, ""},
		{"it is a daemon", command.Underutilized, func(p *cluster.Pod) { p.Daemon = true }, ""},
		{"it is done", command.Underutilized, func(p *cluster.Pod) { p.Finished = true }, ""},
		{"it stays through the drain", command.Underutilized, func(p *cluster.Pod) { p.StaysThroughDrain = true }, ""},
	} {
		h := newHouse()
		h.web.Owner = ""
		c.change(h.web)
		_, blocked := NewEligibility(h.s.Seal(), h.set).MayDisrupt(h.claim, c.reason)
		if c.why == "" && blocked != nil || c.why != "" && (blocked == nil || *blocked != BlockedNode{Claim: "c",
			Node: "n", Pod: "shop/web", Reason: c.why}) {
			t.Errorf("%s: %+v, want %q", c.name, blocked, c.why)
		}
	}
}

// Which pods of a node need another place if it goes, and how many are evicted: a budget that never lets its pods go
// has them end with the node, where others need no place.
func TestPodsOfACandidate(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(h *house)
		pods    []string
		evicted int
	}{
		{"both", func(*house) {}, []string{"db", "web"}, 2},
		{"one is a daemon", func(h *house) { h.db.Daemon = true }, []string{"web"}, 1},
		{"one leaves already", func(h *house) { h.db.Deleting = h.s.Now }, []string{"web"}, 1},
		{"one is nobody's", func(h *house) { h.db.Owner = "" }, []string{"web"}, 2},
		{"one does not want to", func(h *house) { h.db.DoNotDisrupt = true }, []string{"web"}, 2},
		{"one stays through the drain", func(h *house) { h.db.StaysThroughDrain = true }, []string{"db", "web"}, 1},
		{"a budget lets it go", func(h *house) { h.guard("g", "db", 1) }, []string{"db", "web"}, 2},
		{"a budget does not let it go now", func(h *house) { h.guard("g", "db", 0) }, []string{"db", "web"}, 2},
		{"a budget never lets it go", func(h *house) { h.guard("g", "db", 0).DesiredHealthy = 3 }, []string{"web"}, 2},
		{"a budget never lets it go, and it stays through the drain", func(h *house) {
			h.guard("g", "db", 0).DesiredHealthy = 3
			h.db.StaysThroughDrain = true
		}, []string{"db", "web"}, 1},
	} {
		h := newHouse()
		h.claim.HasTerminationGrace = true // in the end nobody is asked
		c.change(h)
		candidate, blocked := NewEligibility(h.s.Seal(), h.set).MayDisrupt(h.claim, command.Drifted)
		if blocked != nil {
			t.Errorf("%s: %+v, want it to go", c.name, *blocked)
			continue
		}
		var pods []string
		for _, p := range candidate.Pods {
			pods = append(pods, p.Name)
		}
		if !slices.Equal(pods, c.pods) || candidate.Evicted != c.evicted {
			t.Errorf("%s: %v need a place and %d are evicted, want %v and %d", c.name, pods, candidate.Evicted,
				c.pods, c.evicted)
		}
	}
}

// A node that pods can't use stays to show what is wrong as long as nothing else would, and a new one for half a minute
// because what closes it may go by itself. Neither keeps it from going for its own sake.
func TestNodesThatPodsCannotUse(t *testing.T) {
	at := func(d time.Duration) time.Time { return newHouse().s.Now.Add(d) }
	up := func(h *house, ago time.Duration) {
		for i := range h.claim.Conditions {
			h.claim.Conditions[i].Since = at(-ago)
		}
		h.node.Cordoned = true
	}
	u, d := command.Underutilized, command.Drifted
	for _, c := range []struct {
		name   string
		reason command.Reason
		change func(h *house, b *cluster.WorkloadTries)
		want   BlockedNode // Why empty: it may go
	}{
		{"it is one of several", u, func(_ *house, b *cluster.WorkloadTries) { b.Retained = "" }, BlockedNode{}},
		{"it shows what is wrong", u, func(*house, *cluster.WorkloadTries) {}, BlockedNode{Reason: ShowsCause}},
		{"it shows what is wrong, and has drifted", d, func(*house, *cluster.WorkloadTries) {}, BlockedNode{}},
		{"the next try is due, and there is room for it", u, func(h *house, b *cluster.WorkloadTries) {
			b.NextTry, h.pool.Limits = h.s.Now, cluster.Limits{HasNodes: true, Nodes: 2}
		}, BlockedNode{Reason: ShowsCause}},
		{"the next try is due, and the pool has no limits", u, func(h *house, b *cluster.WorkloadTries) {
			b.NextTry = h.s.Now
		}, BlockedNode{Reason: ShowsCause}},
		{"the next try is due, and there is no room for it", u, func(h *house, b *cluster.WorkloadTries) {
			b.NextTry, h.pool.Limits = h.s.Now, cluster.Limits{HasNodes: true, Nodes: 1}
		}, BlockedNode{}},
		{"the next try is not due, and there is no room for it", u, func(h *house, b *cluster.WorkloadTries) {
			h.pool.Limits = cluster.Limits{HasNodes: true, Nodes: 1}
		}, BlockedNode{Reason: ShowsCause}},
		{"the limits can't be read", u, func(h *house, b *cluster.WorkloadTries) {
			b.NextTry, h.pool.Limits = h.s.Now, cluster.Limits{Broken: "cpu"}
		}, BlockedNode{Reason: ShowsCause}},
		{"its pool is gone", u, func(h *house, b *cluster.WorkloadTries) {
			b.NextTry, h.claim.Pool = h.s.Now, "gone"
		}, BlockedNode{Reason: PoolUnknown}},
		{"it has come up just now and is closed", u, func(h *house, b *cluster.WorkloadTries) {
			b.Retained = ""
			up(h, 10*time.Second)
		}, BlockedNode{Reason: TooSoon, Until: at(20 * time.Second)}},
		{"it has come up just now and is closed, and has drifted", d, func(h *house, b *cluster.WorkloadTries) {
			b.Retained = ""
			up(h, 10*time.Second)
		}, BlockedNode{}},
		{"it has come up half a minute ago and is closed", u, func(h *house, b *cluster.WorkloadTries) {
			b.Retained = ""
			up(h, 30*time.Second)
		}, BlockedNode{}},
		{"it has come up just now and shows what is wrong", u, func(h *house, b *cluster.WorkloadTries) {
			b.NextTry, h.pool.Limits = h.s.Now, cluster.Limits{HasNodes: true, Nodes: 1}
			up(h, 10*time.Second)
		}, BlockedNode{Reason: TooSoon, Until: at(20 * time.Second)}},
	} {
		h := newHouse()
		b := &cluster.WorkloadTries{Owner: "web", FailedTries: 2, NextTry: at(time.Minute), UnusedClaims: []string{"c"},
			Retained: "c"}
		h.s.WorkloadTries = map[string]*cluster.WorkloadTries{"web": b}
		c.change(h, b)
		_, blocked := NewEligibility(h.s.Seal(), h.set).MayDisrupt(h.claim, c.reason)
		if c.want.Reason != "" {
			c.want.Claim, c.want.Node = "c", "n"
		}
		if c.want.Reason == "" && blocked != nil || c.want.Reason != "" && (blocked == nil || *blocked != c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, blocked, c.want)
		}
	}
}
