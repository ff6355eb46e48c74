package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
)

// drained has both nodes of a pool drained, n with two pods and m with three. They are of one budget, which allows one
// of them to leave.
func drained() (*scene, *cluster.Claim, *cluster.PDB) {
	x := newScene()
	d := x.second()
	for _, c := range []*cluster.Claim{x.claim, d} {
		c.Finalized, c.Deleting = true, x.s.Now.Add(-time.Minute)
	}
	for _, n := range []*cluster.Node{x.s.Nodes[0], x.s.Nodes[2]} {
		n.Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
	}
	x.s.Pods = nil
	for _, name := range []string{"n1", "n2", "m1", "m2", "m3"} {
		p := *x.p
		p.UID, p.Name, p.Node = name, name, name[:1]
		x.s.Pods = append(x.s.Pods, &p)
	}
	slices.SortFunc(x.s.Pods, func(a, b *cluster.Pod) int { return strings.Compare(a.UID, b.UID) })
	g := &cluster.PDB{Namespace: "shop", Name: "web", Allowed: 1, Healthy: 5, DesiredHealthy: 4, Expected: 5,
		Selector: cluster.Selector{Namespaces: []string{"shop"}}}
	x.s.PDBs = []*cluster.PDB{g}
	return x, d, g
}

// some changes pods, by name.
func (x *scene) some(change func(*cluster.Pod), names ...string) {
	for _, p := range x.s.Pods {
		if slices.Contains(names, p.Name) {
			change(p)
		}
	}
}

// asked are the pods that a plan asks to leave, and what it tells about the others.
func asked(x *scene) (pods []string, notes []cluster.Note) {
	p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil)
	for _, c := range p.Commands {
		if e, ok := c.(command.Evict); ok && !x.s.InFlight[c.Key()] {
			pods = append(pods, e.Name)
		}
	}
	for _, n := range p.Notes {
		if n.Reason == "FailedDraining" {
			notes = append(notes, n)
		}
	}
	return pods, notes
}

// The allowance of a budget goes to the node that must be gone first, then to the one that is the nearest to being
// empty. Who leaves already, and who stays through the drain, is no reason to wait.
func TestWhoseEvictionsComeFirst(t *testing.T) {
	hour := func(x *scene, n time.Duration) time.Time { return x.s.Now.Add(n * time.Hour) }
	for _, c := range []struct {
		name   string
		change func(x *scene, d *cluster.Claim)
		want   string
	}{
		{"the emptier node", func(*scene, *cluster.Claim) {}, "n1"},
		{"only the other must be gone", func(x *scene, d *cluster.Claim) { d.Deadline = hour(x, 1) }, "m1"},
		{"only this one must be gone", func(x *scene, _ *cluster.Claim) {
			x.claim.Deadline = hour(x, 1)
			x.some(func(p *cluster.Pod) { p.Mirror = true }, "m1", "m2")
		}, "n1"},
		{"the other must be gone first", func(x *scene, d *cluster.Claim) {
			x.claim.Deadline, d.Deadline = hour(x, 2), hour(x, 1)
		}, "m1"},
		{"this one must be gone first", func(x *scene, d *cluster.Claim) {
			x.claim.Deadline, d.Deadline = hour(x, 1), hour(x, 2)
			x.some(func(p *cluster.Pod) { p.Mirror = true }, "m1", "m2")
		}, "n1"},
		{"both must be gone at the same time", func(x *scene, d *cluster.Claim) {
			x.claim.Deadline, d.Deadline = hour(x, 1), hour(x, 1)
		}, "n1"},
		{"two pods leave already", func(x *scene, _ *cluster.Claim) {
			x.some(func(p *cluster.Pod) { p.Deleting = x.s.Now }, "m1", "m2")
		}, "m3"},
		{"two pods are the kubelet's", func(x *scene, _ *cluster.Claim) {
			x.some(func(p *cluster.Pod) { p.Mirror = true }, "m1", "m2")
		}, "m3"},
		{"two pods stay", func(x *scene, _ *cluster.Claim) {
			x.some(func(p *cluster.Pod) { p.StaysThroughDrain = true }, "m1", "m2")
		}, "m3"},
	} {
		x, d, _ := drained()
		c.change(x, d)
		if got, _ := asked(x); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %v leave, want %s", c.name, got, c.want)
		}
	}
}

// How many pods a budget lets go now, by what is under way, what waits for another try and what it says of itself.
func TestWhoABudgetLetsGo(t *testing.T) {
	pending := func(p *cluster.Pod) { p.Phase = "Pending" }
	unready := func(p *cluster.Pod) { p.Ready = false }
	all := []string{"n1", "n2", "m1", "m2", "m3"}
	uncounted := func(x *scene, g *cluster.PDB) { g.Allowed, g.Healthy, g.DesiredHealthy, g.Expected = 0, 0, 0, 0 }
	for _, c := range []struct {
		name   string
		change func(x *scene, g *cluster.PDB)
		want   []string
		why    string // of the first node that is kept
	}{
		{"one", func(*scene, *cluster.PDB) {}, []string{"n1"}, "Pod shop/n2 can't be evicted: disruption budget " +
			"shop/web does not allow it now"},
		{"two", func(_ *scene, g *cluster.PDB) {
			g.Allowed = 2
		}, []string{"n1", "n2"}, "Pod shop/m1 can't be evicted: disruption budget shop/web does not allow it now"},
		{"all", func(_ *scene, g *cluster.PDB) { g.Allowed = 5 }, all, ""},
		{"one is under way", func(x *scene, _ *cluster.PDB) {
			x.s.InFlight["evict/n2"] = true
		}, nil, "Pod shop/n1 can't be evicted: disruption budget shop/web does not allow it now"},
		{"one that has not begun is under way", func(x *scene, _ *cluster.PDB) {
			x.s.InFlight["evict/n2"] = true
			x.some(pending, "n2")
		}, []string{"n1"}, "Pod shop/m1 can't be evicted: disruption budget shop/web does not allow it now"},
		{"one that is not ready is under way", func(x *scene, _ *cluster.PDB) {
			x.s.InFlight["evict/n2"] = true
			x.some(unready, "n2")
		}, []string{"n1"}, "Pod shop/m1 can't be evicted: disruption budget shop/web does not allow it now"},
		{"one waits for another try", func(x *scene, _ *cluster.PDB) {
			x.s.Retry["evict/n1"] = cluster.Retry{NotBefore: x.s.Now.Add(time.Second)}
		}, []string{"n2"}, "Pod shop/m1 can't be evicted: disruption budget shop/web does not allow it now"},
		{"one has waited for another try", func(x *scene, _ *cluster.PDB) {
			x.s.Retry["evict/n1"] = cluster.Retry{NotBefore: x.s.Now}
		}, []string{"n1"}, "Pod shop/n2 can't be evicted: disruption budget shop/web does not allow it now"},
		{"who has not begun is no loss", func(x *scene, _ *cluster.PDB) { x.some(pending, all...) }, all, ""},
		{"who is not ready is no loss", func(x *scene, _ *cluster.PDB) { x.some(unready, all...) }, all, ""},
		{"nobody, ever", func(_ *scene, g *cluster.PDB) {
			g.Allowed, g.DesiredHealthy = 0, 5
		}, nil, "Pod shop/n1 can't be evicted: disruption budget shop/web never allows it, " +
			"since it wants all of its pods"},
		{"two budgets", func(x *scene, g *cluster.PDB) {
			h := *g
			h.Name = "also"
			x.s.PDBs = append(x.s.PDBs, &h)
		}, nil,
			"Pod shop/n1 can't be evicted: more than one disruption budget selects it (shop/web and shop/also), " +
				"which Kubernetes refuses to evict"},
		{"nobody has counted yet", uncounted, []string{"n1"}, "Pod shop/n2 can't be evicted: disruption budget " +
			"shop/web does not allow it now"},
		{"nobody has counted yet, and one is asked already", func(x *scene, g *cluster.PDB) {
			uncounted(x, g)
			x.s.InFlight["evict/n2"] = true
		}, nil, "Pod shop/n1 can't be evicted: disruption budget shop/web does not allow it now"},
		{"some are healthy and none is allowed", func(x *scene, g *cluster.PDB) {
			uncounted(x, g)
			g.Healthy = 1
		}, nil, "Pod shop/n1 can't be evicted: disruption budget shop/web does not allow it now"},
		{"some are wanted and none is allowed", func(x *scene, g *cluster.PDB) {
			uncounted(x, g)
			g.DesiredHealthy = 1
		}, nil, "Pod shop/n1 can't be evicted: disruption budget shop/web never allows it, " +
			"since it wants all of its pods"},
		{"one is allowed, and nothing else is known", func(x *scene, g *cluster.PDB) {
			uncounted(x, g)
			g.Allowed = 1
		}, []string{"n1"}, "Pod shop/n2 can't be evicted: disruption budget shop/web does not allow it now"},
		{"some are expected and none is allowed", func(x *scene, g *cluster.PDB) {
			uncounted(x, g)
			g.Expected = 1
		}, nil, "Pod shop/n1 can't be evicted: disruption budget shop/web does not allow it now"},
	} {
		x, _, g := drained()
		c.change(x, g)
		got, notes := asked(x)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v leave, want %v", c.name, got, c.want)
		}
		if len(notes) == 0 && c.why == "" {
			continue
		}
		if len(notes) == 0 || render.Text(notes[0].Text) != c.why || !notes[0].Warning {
			t.Errorf("%s: told %+v, want first %q", c.name, notes, c.why)
		}
		nominated := make(map[string]bool)
		for _, n := range notes {
			if nominated[n.Name] {
				t.Errorf("%s: told twice about %s", c.name, n.Name)
			}
			nominated[n.Name] = true
		}
	}
}

// Who is not asked any more but told goes, whatever a budget says.
func TestLastCallHeedsNoBudget(t *testing.T) {
	x, d, g := drained()
	g.Allowed = 0
	d.Deadline = x.s.Now // the time of m is up
	p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil)
	var nominated []string
	for _, c := range p.Commands {
		if e, ok := c.(command.Evict); ok {
			nominated = append(nominated, fmt.Sprintf("%s %t", e.Name, e.Delete))
		}
	}
	if want := []string{"m1 true", "m2 true", "m3 true"}; !slices.Equal(nominated, want) {
		t.Errorf("%v, want %v", nominated, want)
	}
}
