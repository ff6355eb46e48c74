package search_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// drawTown makes a small cluster after a scale-down, with budgets, PDBs, pods that are not to be disturbed, limits and
// daemons, and settings to search it with.
func drawTown(r *rand.Rand) (*town, disrupt.Settings) {
	catalog := region(r, 1+r.IntN(6), []int64{1, 2, 4, 8}[:2+r.IntN(3)])
	pools := threePools(catalog)[:1+r.IntN(3)]
	for _, p := range pools {
		drawPool(r, p)
	}
	w := newTown(catalog, pools...)
	if r.IntN(2) == 0 {
		w.daemons = []*cluster.Daemon{agent(int64(50 + r.IntN(150)))}
	}
	w.populate(r, 4+r.IntN(60))
	w.shrink(r, 0.1*float64(r.IntN(5)), 0.5+0.1*float64(r.IntN(6)))
	if r.IntN(2) == 0 {
		w.sweep()
	}
	w.drawCare(r)
	return w, disrupt.Settings{
		MinSaving: []float64{0, 0.01, 0.05, 0.2}[r.IntN(4)], MinSavingPerPod: []float64{0, 0.0001, 0.01}[r.IntN(3)],
		SpotToSpot: r.IntN(3) > 0, SpotTypes: []int{0, 3, 15}[r.IntN(3)], SpotRisk: []float64{0, 0.05}[r.IntN(2)],
		BalancedK: []float64{0, 1, 4}[r.IntN(3)],
	}
}

func agent(milli int64) *cluster.Daemon {
	return &cluster.Daemon{UID: "ds", Namespace: "kube-system", Name: "agent", Class: &cluster.PodClass{Key: "agent",
		Terms: []require.Set{nil}, Tolerations: []cluster.Toleration{{Exists: true}},
		Requests: resource.Vector{resource.CPU: milli, resource.Memory: 256 << 20, resource.Pods: 1}}}
}

func drawPool(r *rand.Rand, p *cluster.Pool) {
	p.Budgets = []cluster.Budget{{Nodes: 100, Percent: true, Active: true}}
	switch r.IntN(4) {
	case 0:
		p.Budgets = []cluster.Budget{{Nodes: 1 + r.IntN(60), Percent: true, Active: true}}
	case 1:
		p.Budgets = []cluster.Budget{{Nodes: r.IntN(4), Active: true}, {Nodes: 1, Active: true,
			Reasons: []string{"Drifted"}}}
	}
	p.Policy = []cluster.Policy{cluster.WhenEmptyOrUnderutilized, cluster.WhenEmptyOrUnderutilized,
		cluster.WhenEmptyOrUnderutilized,
		cluster.Balanced, cluster.WhenEmpty}[r.IntN(5)]
	p.Weight = int32(r.IntN(2) * 10)
	if r.IntN(5) == 0 {
		p.Limits.Set[resource.CPU], p.Limits.Amount[resource.CPU] = true, int64(8000+r.IntN(60000))
	}
	if r.IntN(6) == 0 {
		p.Template.Requirements = p.Template.Requirements.WithMin(cluster.InstanceTypeLabel, 2)
	}
}

// drawCare protects some pods and nodes.
func (w *town) drawCare(r *rand.Rand) {
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		p := *w.pods[uid]
		switch {
		case p.Daemon:
			continue
		case r.IntN(40) == 0:
			p.DoNotDisrupt = true
		case r.IntN(10) == 0:
			p.EvictionCost = float64(r.IntN(12) - 2)
		case r.IntN(30) == 0 && len(p.Class.Rules) == 0: // nobody makes it anew, so that counts would change
			p.Owner = ""
		}
		w.pods[uid] = &p
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		if r.IntN(20) == 0 {
			n := *w.nodes[name]
			n.DoNotDisrupt, n.Ready = r.IntN(2) == 0, r.IntN(2) == 0
			w.nodes[name] = &n
		}
	}
	for n := range r.IntN(4) {
		w.guards = append(w.guards, &cluster.PDB{Namespace: "default", Name: fmt.Sprint("guard", n), Allowed: r.IntN(2),
			Healthy: 5, DesiredHealthy: 2, Expected: 5,
			Selector: cluster.Selector{Namespaces: []string{"default"}, Labels: require.Set{}.With("app",
				require.Only(fmt.Sprintf("app-%05d", r.IntN(6))))}})
	}
}
