package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// drawDrain makes nodes that are all to go, pods of a few kinds on them, and budgets for some of the kinds.
func drawDrain(t *rapid.T) *world {
	w := newWorld()
	kind := cluster.Type{Name: "big"}
	kind.Capacity[resource.CPU], kind.Capacity[resource.Memory], kind.Capacity[resource.Pods] = 1<<20, 1<<40, 1<<20
	kind.Allocatable = kind.Capacity
	w.types = []cluster.Type{kind}
	w.offer(cluster.Labels{}.With(cluster.InstanceTypeLabel, "big"), map[string]float64{"on-demand": 1}, []string{"a"})
	w.pools["pool0"] = &cluster.Pool{Name: "pool0", UID: "p0", ConsolidateAfter: cluster.NillableDuration{Never: true},
		NodeClass: cluster.NodeClassState{Ready: true}}
	w.old = []shape{{}}
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		w.drawNode(t, i)
	}
	clear(w.pods)
	names := slices.Sorted(maps.Keys(w.nodes))
	for _, name := range names {
		w.nodes[name].Ready = true
		w.claims[name].Deleting = w.now
		if rapid.IntRange(0, 2).Draw(t, "bounded") == 0 {
			w.claims[name].Deadline = w.now.Add(time.Duration(rapid.IntRange(10, 20).Draw(t, "hours")) * time.Hour)
		}
	}
	w.nodes["home"] = &cluster.Node{Name: "home", UID: "home", Ready: true, Allocatable: kind.Allocatable}
	for i := range rapid.IntRange(1, 4).Draw(t, "apps") {
		app := fmt.Sprint("app", i)
		n := rapid.IntRange(1, 12).Draw(t, "pods")
		for j := range n {
			w.addPod(cluster.Pod{Name: fmt.Sprintf("%s-%02d", app, j), Class: w.class(app, shape{}), Owner: "rs-" + app,
				Labels: cluster.Labels{}.With("app", app),
				Node:   rapid.SampledFrom(append(names, "home")).Draw(t, "where"), Ready: rapid.IntRange(0, 5).Draw(t,
					"ready") > 0, Started: w.now})
		}
		for k := range rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(t, "budgets") {
			g := &cluster.PDB{Namespace: "default", Name: fmt.Sprint(app, "-", k), Expected: n,
				DesiredHealthy:  rapid.IntRange(0, n).Draw(t, "wanted"),
				AllowsUnhealthy: rapid.IntRange(0, 3).Draw(t, "frees") == 0,
				Selector: cluster.Selector{Namespaces: []string{"default"}, Labels: require.Set{}.With("app",
					require.Only(app))}}
			w.guards[g.Name] = g
		}
	}
	return w
}

// server answers evictions as the API server does, the slow way: whoever counts pods has counted at the beginning of
// the round, and every eviction that uses up a budget is taken off.
type server struct {
	w       *world
	healthy map[*cluster.PDB]int
	spent   map[*cluster.PDB]int
}

func newServer(w *world) server {
	x := server{w, map[*cluster.PDB]int{}, map[*cluster.PDB]int{}}
	for _, g := range w.guards {
		for _, q := range w.pods {
			if g.Selects(q) && q.Ready {
				x.healthy[g]++
			}
		}
	}
	return x
}

// refusal is why the pod may not go now; empty if it may.
func (x server) refusal(p *cluster.Pod) (reason string, from *cluster.PDB) {
	var mine []*cluster.PDB
	for _, name := range slices.Sorted(maps.Keys(x.w.guards)) {
		if x.w.guards[name].Selects(p) {
			mine = append(mine, x.w.guards[name])
		}
	}
	if len(mine) == 0 {
		return "", nil
	}
	g := mine[0]
	switch {
	case len(mine) > 1:
		return "two budgets", nil
	case !p.Ready && (g.AllowsUnhealthy || g.DesiredHealthy > 0 && x.healthy[g] >= g.DesiredHealthy):
		return "", nil
	case x.healthy[g]-g.DesiredHealthy-x.spent[g] < 1:
		return fmt.Sprintf("%d healthy, %d wanted, %d gone", x.healthy[g], g.DesiredHealthy, x.spent[g]), nil
	}
	return "", g
}

// evict lets the pod go, if it may.
func (x server) evict(p *cluster.Pod) (refused string) {
	reason, from := x.refusal(p)
	if reason == "" {
		delete(x.w.pods, p.UID)
		x.spent[from]++
	}
	return reason
}

// No eviction is asked for that a budget refuses, none is left out that it would grant, and the nodes are emptied in as
// few rounds as the tightest budget allows, if every pod comes back at once.
func TestBudgetsOfPodsAreUsedWell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawDrain(t)
		bound := rounds(w)
		for round := 0; ; round++ {
			s, api := w.snapshot(nil), newServer(w)
			p := plan.Make(s, defaultPolicy(), nil, nil)
			var gone []*cluster.Pod
			fenced := false
			for _, c := range p.Commands {
				switch c := c.(type) {
				case command.Fence:
					w.do(c)
					fenced = true
				case command.Evict:
					pod := w.pods[c.UID]
					if no := api.evict(pod); no != "" {
						t.Fatalf("round %d: %s is asked to go, and %s", round, c.Name, no)
					}
					gone = append(gone, pod)
				}
			}
			if fenced {
				round--
				continue
			}
			for _, pod := range s.Pods {
				if there := w.pods[pod.UID]; there != nil && there.Node != "home" {
					if no, _ := api.refusal(there); no == "" {
						t.Fatalf("round %d: %s could have gone and was not asked", round, pod.Name)
					}
				}
			}
			if len(gone) == 0 {
				return
			}
			if round >= bound {
				t.Fatalf("round %d, and pods still leave; %d would do", round, bound)
			}
			for _, pod := range gone {
				again := *pod
				again.Node, again.Ready = "home", true
				w.pods[again.UID] = &again
			}
		}
	})
}

// rounds is in how many rounds every pod that may ever leave can have left: as many as the tightest budget takes. Pods
// that are not ready when it begins may have to wait for others to be replaced.
func rounds(w *world) int {
	most := 0
	for _, g := range w.guards {
		leave, healthy, sick := 0, 0, 0
		for _, p := range w.pods {
			if !g.Selects(p) {
				continue
			}
			if p.Node != "home" {
				leave++
			}
			if p.Ready {
				healthy++
			} else {
				sick++
			}
		}
		if allowed := healthy - g.DesiredHealthy; allowed > 0 {
			most = max(most, (leave+allowed-1)/allowed)
		} else {
			most = max(most, leave)
		}
	}
	return most + 1
}

// Within one plan the node that must be gone first comes first, then the one that is the nearest to being empty.
func TestAllowanceEmptiesOneNodeAfterTheOther(t *testing.T) {
	w := newWorld()
	n := &storyRunner{t: t, w: w, policy: defaultPolicy()}
	for _, line := range []string{
		"type big cpu=64 memory=64Gi price=1", "pool default", "node a pool=default type=big", "node b pool=default " +
			"type=big", "node c pool=default type=big",
		"pods web n=4 cpu=1 node=a ready", "pods web n=2 cpu=1 node=b ready", "pods web n=3 cpu=1 node=c ready",
		"guard web app=web wanted=6 expected=9",
		"delete claim a", "delete claim b", "delete claim c", "plan", "act",
	} {
		n.tell(line)
	}
	asked := func() map[string]int {
		out := make(map[string]int)
		p := plan.Make(w.snapshot(nil), n.policy, nil, nil)
		for _, c := range p.Commands {
			if e, ok := c.(command.Evict); ok {
				out[e.Node]++
			}
		}
		return out
	}
	if got := asked(); got["b"] != 2 || got["c"] != 1 || got["a"] != 0 {
		t.Errorf("evictions by node: %v, want b emptied, then c begun", got)
	}
	w.claims["a"].Deadline = w.now.Add(time.Hour)
	if got := asked(); got["a"] != 3 || len(got) != 1 {
		t.Errorf("evictions by node: %v, want those of a, which must be gone first", got)
	}
}
