package disrupt_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// Nobody makes a pod anew that nobody owns: it keeps its node from going for money, unless it would not be evicted or
// is no workload.
func TestPodsThatNobodyOwns(t *testing.T) {
	for _, c := range []struct {
		name   string
		reason command.Reason
		change func(*cluster.Pod)
		why    disrupt.BlockReason
	}{
		{"to save money", command.Underutilized, func(*cluster.Pod) {}, disrupt.PodUnowned},
		{"because it is empty", command.Empty, func(*cluster.Pod) {}, disrupt.PodUnowned},
		{"because it has drifted", command.Drifted, func(*cluster.Pod) {}, ""},
		{"it has an owner", command.Underutilized, func(p *cluster.Pod) { p.Owner = "x" }, ""},
		{"it is the kubelet's", command.Underutilized, func(p *cluster.Pod) { p.Mirror = true }, ""},
		{"it is a daemon", command.Underutilized, func(p *cluster.Pod) { p.Daemon = true }, ""},
		{"it is done", command.Underutilized, func(p *cluster.Pod) { p.Finished = true }, ""},
		{"it stays through the drain", command.Underutilized, func(p *cluster.Pod) { p.StaysThroughDrain = true }, ""},
	} {
		h := disrupttest.NewHouse()
		h.Web.Owner = ""
		c.change(h.Web)
		_, blocked := disrupt.NewEligibility(h.S.Seal(), h.Set).MayDisrupt(h.Claim, c.reason)
		if c.why == "" && blocked != nil || c.why != "" &&
			(blocked == nil || *blocked != disrupt.BlockedNode{Claim: "c",
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
		change  func(h *disrupttest.House)
		pods    []string
		evicted int
	}{
		{"both", func(*disrupttest.House) {}, []string{"db", "web"}, 2},
		{"one is a daemon", func(h *disrupttest.House) { h.Db.Daemon = true }, []string{"web"}, 1},
		{"one leaves already", func(h *disrupttest.House) { h.Db.Deleting = h.S.Now }, []string{"web"}, 1},
		{"one is nobody's", func(h *disrupttest.House) { h.Db.Owner = "" }, []string{"web"}, 2},
		{"one does not want to", func(h *disrupttest.House) { h.Db.DoNotDisrupt = true }, []string{"web"}, 2},
		{"one stays through the drain", func(h *disrupttest.House) {
			h.Db.StaysThroughDrain = true
		}, []string{"db", "web"}, 1},
		{"a budget lets it go", func(h *disrupttest.House) { h.Guard("g", "db", 1) }, []string{"db", "web"}, 2},
		{"a budget does not let it go now", func(h *disrupttest.House) {
			h.Guard("g", "db", 0)
		}, []string{"db", "web"}, 2},
		{"a budget never lets it go", func(h *disrupttest.House) {
			h.Guard("g", "db", 0).DesiredHealthy = 3
		}, []string{"web"}, 2},
		{"a budget never lets it go, and it stays through the drain", func(h *disrupttest.House) {
			h.Guard("g", "db", 0).DesiredHealthy = 3
			h.Db.StaysThroughDrain = true
		}, []string{"db", "web"}, 1},
	} {
		h := disrupttest.NewHouse()
		h.Claim.HasTerminationGrace = true // in the end nobody is asked
		c.change(h)
		candidate, blocked := disrupt.NewEligibility(h.S.Seal(), h.Set).MayDisrupt(h.Claim, command.Drifted)
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
	at := func(d time.Duration) time.Time { return disrupttest.NewHouse().S.Now.Add(d) }
	up := func(h *disrupttest.House, ago time.Duration) {
		for i := range h.Claim.Conditions {
			h.Claim.Conditions[i].Since = at(-ago)
		}
		h.Node.Cordoned = true
	}
	u, d := command.Underutilized, command.Drifted
	for _, c := range []struct {
		name   string
		reason command.Reason
		change func(h *disrupttest.House, b *cluster.WorkloadTries)
		want   disrupt.BlockedNode // Why empty: it may go
	}{
		{"it is one of several", u, func(_ *disrupttest.House, b *cluster.WorkloadTries) {
			b.Retained = ""
		}, disrupt.BlockedNode{}},
		{"it shows what is wrong", u, func(*disrupttest.House, *cluster.WorkloadTries) {},
			disrupt.BlockedNode{Reason: disrupt.ShowsCause}},
		{"it shows what is wrong, and has drifted", d, func(*disrupttest.House, *cluster.WorkloadTries) {},
			disrupt.BlockedNode{}},
		{"the next try is due, and there is room for it", u, func(h *disrupttest.House, b *cluster.WorkloadTries) {
			b.NextTry, h.Pool.Limits = h.S.Now, cluster.Limits{HasNodes: true, Nodes: 2}
		}, disrupt.BlockedNode{Reason: disrupt.ShowsCause}},
		{"the next try is due, and the pool has no limits", u, func(h *disrupttest.House, b *cluster.WorkloadTries) {
			b.NextTry = h.S.Now
		}, disrupt.BlockedNode{Reason: disrupt.ShowsCause}},
		{"the next try is due, and there is no room for it", u, func(h *disrupttest.House, b *cluster.WorkloadTries) {
			b.NextTry, h.Pool.Limits = h.S.Now, cluster.Limits{HasNodes: true, Nodes: 1}
		}, disrupt.BlockedNode{}},
		{"the next try is not due, and there is no room for it", u, func(h *disrupttest.House,
			b *cluster.WorkloadTries) {
			h.Pool.Limits = cluster.Limits{HasNodes: true, Nodes: 1}
		}, disrupt.BlockedNode{Reason: disrupt.ShowsCause}},
		{"the limits can't be read", u, func(h *disrupttest.House, b *cluster.WorkloadTries) {
			b.NextTry, h.Pool.Limits = h.S.Now, cluster.Limits{Broken: "cpu"}
		}, disrupt.BlockedNode{Reason: disrupt.ShowsCause}},
		{"its pool is gone", u, func(h *disrupttest.House, b *cluster.WorkloadTries) {
			b.NextTry, h.Claim.Pool = h.S.Now, "gone"
		}, disrupt.BlockedNode{Reason: disrupt.PoolUnknown}},
		{"it has come up just now and is closed", u, func(h *disrupttest.House, b *cluster.WorkloadTries) {
			b.Retained = ""
			up(h, 10*time.Second)
		}, disrupt.BlockedNode{Reason: disrupt.TooSoon, Until: at(20 * time.Second)}},
		{"it has come up just now and is closed, and has drifted", d, func(h *disrupttest.House,
			b *cluster.WorkloadTries) {
			b.Retained = ""
			up(h, 10*time.Second)
		}, disrupt.BlockedNode{}},
		{"it has come up half a minute ago and is closed", u, func(h *disrupttest.House, b *cluster.WorkloadTries) {
			b.Retained = ""
			up(h, 30*time.Second)
		}, disrupt.BlockedNode{}},
		{"it has come up just now and shows what is wrong", u, func(h *disrupttest.House, b *cluster.WorkloadTries) {
			b.NextTry, h.Pool.Limits = h.S.Now, cluster.Limits{HasNodes: true, Nodes: 1}
			up(h, 10*time.Second)
		}, disrupt.BlockedNode{Reason: disrupt.TooSoon, Until: at(20 * time.Second)}},
	} {
		h := disrupttest.NewHouse()
		b := &cluster.WorkloadTries{Owner: "web", FailedTries: 2, NextTry: at(time.Minute), UnusedClaims: []string{"c"},
			Retained: "c"}
		h.S.WorkloadTries = map[string]*cluster.WorkloadTries{"web": b}
		c.change(h, b)
		_, blocked := disrupt.NewEligibility(h.S.Seal(), h.Set).MayDisrupt(h.Claim, c.reason)
		if c.want.Reason != "" {
			c.want.Claim, c.want.Node = "c", "n"
		}
		if c.want.Reason == "" && blocked != nil || c.want.Reason != "" && (blocked == nil || *blocked != c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, blocked, c.want)
		}
	}
}
