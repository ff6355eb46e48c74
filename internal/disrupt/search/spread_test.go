package search_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// spreadTown is a spot pool of many types with minValues, and one workload that is spread over zones. It is scaled up
// and down.
func spreadTown(r *rand.Rand) *town {
	catalog := region(r, 9+r.IntN(6), []int64{2, 4, 8, 16})
	pool := threePools(catalog)[0]
	pool.Template.Requirements = pool.Template.Requirements.With(cluster.CapacityTypeLabel,
		require.Only("spot")).WithMin(cluster.InstanceTypeLabel, 2)
	w := newTown(catalog, pool)
	if r.IntN(2) == 0 {
		w.daemons = []*cluster.Daemon{agent(int64(50 + r.IntN(150)))}
	}
	labels := cluster.LabelsOf(map[string]string{"app": "web"})
	class := &cluster.PodClass{Key: "web", Terms: []require.Set{nil},
		Rules: []*cluster.Rule{{Key: "web", TopologyKey: cluster.ZoneLabel, MaxSkew: 1,
			Selectors: []cluster.Selector{{Namespaces: []string{"default"}, Labels: require.Set{}.With("app",
				require.Only("web"))}}}}}
	milli := int64(100 * (2 + r.IntN(9)))
	class.Requests = resource.Vector{resource.CPU: milli, resource.Memory: milli * int64(1+r.IntN(4)) << 20,
		resource.Pods: 1}
	born := 0
	for _, n := range []int{12, 30, 60, 20} {
		w.scale(r, n, func() *cluster.Pod {
			born++
			id := fmt.Sprintf("web-%04d", born)
			return &cluster.Pod{UID: id, Name: id, Namespace: "default", Class: class, Labels: labels, Owner: "rs-web",
				EvictionCost: 1}
		})
		if r.IntN(2) == 0 { // it had time to settle
			w.rest(spreadSettings())
		}
	}
	return w
}

// scale makes pods, for which nodes are bought, or takes some away.
func (w *town) scale(r *rand.Rand, n int, born func() *cluster.Pod) {
	var uids []string
	for uid, p := range w.pods {
		if !p.Daemon {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	r.Shuffle(len(uids), func(i, j int) { uids[i], uids[j] = uids[j], uids[i] })
	for _, uid := range uids[min(n, len(uids)):] {
		delete(w.pods, uid)
	}
	w.sweep()
	s := w.snapshot()
	for range n - len(uids) {
		p := born()
		p.Unschedulable = true
		s.Pods = append(s.Pods, p)
	}
	slices.SortFunc(s.Pods, func(a, b *cluster.Pod) int { return strings.Compare(a.UID, b.UID) })
	placed := schedule.Place(s.Seal().SchedulerView(), schedule.Settings{})
	w.settle(placed.Bins, placed.Assigned)
}

func spreadSettings() disrupt.Settings {
	return disrupt.Settings{MinSaving: 0.05, MinSavingPerPod: 0.0001, SpotToSpot: true, SpotTypes: 15}
}

// rest carries out what is found until nothing is.
func (w *town) rest(set disrupt.Settings) (last disrupt.Proposal) {
	for range 50 {
		if last, _ = w.round(set, nil); len(last.Moves) == 0 {
			return last
		}
	}
	return last
}

// A spot pool with minValues and a workload that is spread over zones, after it was scaled up and down, comes to rest
// near what it would cost if it were packed anew. What keeps it from that is the rule about spot nodes in place of spot
// nodes, mostly; each node says so.
func TestSpreadWorkloadComesToRestNearTheBest(t *testing.T) {
	// The mean of these draws was 1.005 and the worst 1.040 when the bounds were set.
	const towns, farthest = 16, 1.06
	var ratios []float64
	mean := 0.0
	for seed := range uint64(towns) {
		w := spreadTown(rand.New(rand.NewPCG(seed, 17)))
		last := w.rest(spreadSettings())
		for i := range last.Blocked {
			inspectFigures(t, &last.Blocked[i])
		}
		fresh := schedule.Place(w.afresh().SchedulerView(), schedule.Settings{})
		ratios = append(ratios, w.cost()/fresh.Price)
		mean += ratios[len(ratios)-1] / towns
	}
	slices.Sort(ratios)
	t.Logf("settled cost by packing anew: mean %.3f, median %.3f, 90 %% below %.3f, worst %.3f", mean, ratios[towns/2],
		ratios[towns*9/10], ratios[towns-1])
	if mean > 1.03 || ratios[towns/2] > 1.01 {
		t.Errorf("the search settles too far above the best: %.3f", ratios)
	}
	if ratios[towns-1] > farthest {
		t.Errorf("the worst of %d settles at %.3f times the best, want at most %.2f", towns, ratios[towns-1], farthest)
	}
}
