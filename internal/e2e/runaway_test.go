package e2e

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// go test ./internal/e2e -run 'TestRunaway$' -agent cordon -agent.minutes 10 -v
var (
	agentFlag = flag.String("agent", "taint", "what the agent of TestRunaway does to new nodes: taint, cordon, "+
		"relabel, "+
		"shrink, evict or delete; several with commas, each to pools of its own")
	agentMinutes = flag.Float64("agent.minutes", 40.0/60, "how long the agent of TestRunaway does its work")
)

// TestRunaway has an agent taint every new node, for pools of every kind: unused nodes stay within the bound of
// docs/concepts/bounds.md, it is said what keeps the pods away, another workload is not held up, and the pods run once
// the taint is gone. With -agent it does something else to the nodes.
func TestRunaway(t *testing.T) {
	runaway(t, strings.Split(*agentFlag, ","), time.Duration(*agentMinutes*float64(time.Minute)))
}

// TestRunawayOfCordons is the same with an agent that cordons and drains, for a short while.
func TestRunawayOfCordons(t *testing.T) { runaway(t, []string{"cordon"}, 15*time.Second) }

// suffering are the pools that each kind of agent gets: what they buy, and when they let nodes go.
func suffering() map[string]func(*v1.NodePool) {
	const under, balanced = v1.ConsolidationPolicyWhenEmptyOrUnderutilized, v1.ConsolidationPolicyBalanced
	const empty, spot, demand = v1.ConsolidationPolicyWhenEmpty, v1.CapacityTypeSpot, v1.CapacityTypeOnDemand
	return map[string]func(*v1.NodePool){
		"spot-empty":      func(p *v1.NodePool) { terms(p, spot, empty, "0s") },
		"spot-under":      func(p *v1.NodePool) { terms(p, spot, under, "30s") },
		"spot-balanced":   func(p *v1.NodePool) { terms(p, spot, balanced, "0s") },
		"demand-under":    func(p *v1.NodePool) { terms(p, demand, under, "0s") },
		"demand-never":    func(p *v1.NodePool) { terms(p, demand, empty, "Never") },
		"demand-balanced": func(p *v1.NodePool) { terms(p, demand, balanced, "30s") },
	}
}

// runaway lets agents of some kinds do their work for a while.
func runaway(t *testing.T, kinds []string, long time.Duration) {
	w := newWorld(t)
	w.create(nodeClass("default"))
	pools := map[string]agentKind{}
	for _, name := range kinds {
		kind, ok := agentKinds()[name]
		if !ok {
			t.Fatalf("-agent %s: there is none; there are %q", name, slices.Sorted(maps.Keys(agentKinds())))
		}
		w.suffer(name, kind, pools)
	}
	agent := w.startAgent(pools)
	began := time.Now()
	w.run()
	for name := range pools {
		w.eventually(func() string {
			w.allBounded(agent, began)
			return w.held(agent, name)
		})
	}
	for _, name := range kinds {
		w.create(w.calm(name))
	}
	w.eventually(w.calmRun(2 * len(kinds)))
	t.Logf("all pods are held, the calm ones run after %s", time.Since(began).Round(time.Second))
	for done := false; !done; {
		done = time.Since(began) >= long
		w.allBounded(agent, began)
		time.Sleep(time.Second) // the agent does its work for a given time; nothing is waited for
	}

	agent.end()
	w.must(agent.err)
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		total, most, acts := agent.figures(name)
		t.Logf("%s: %d claims in %s, at most %d at a time; the agent acted %d times", name, total,
			time.Since(began).Round(time.Second), most, acts)
	}
	w.recover(pools, len(kinds))
}

// suffer makes the pools for a kind of agent, each with a workload of one pod, and a pool of their own for calm pods
// that the agent would keep away.
func (w *world) suffer(name string, kind agentKind, pools map[string]agentKind) {
	w.Helper()
	team := func(p *v1.NodePool) { p.Spec.Template.Labels = map[string]string{teamLabel: "blue"} }
	for terms, change := range suffering() {
		pool := name + "-" + terms
		pools[pool] = kind
		d := w.deployment(pool, 1, "1")
		d.Spec.Template.Spec.NodeSelector = map[string]string{v1.NodePoolLabelKey: pool, teamLabel: "blue"}
		w.create(nodePool(pool, change, team), d)
	}
	if kind.apart {
		w.create(nodePool(name + "-calm"))
	}
}

// calm makes pods that the agent does no harm: another workload, which is not held up.
func (w *world) calm(kind string) client.Object {
	d := w.deployment("calm-"+kind, 2, "1")
	pool := kind + "-demand-never"
	if agentKinds()[kind].apart {
		pool = kind + "-calm"
	}
	d.Spec.Template.Spec.NodeSelector = map[string]string{v1.NodePoolLabelKey: pool}
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: agentTaint, Operator: corev1.TolerationOpExists}}
	return d
}

// calmRun says what keeps n calm pods from running.
func (w *world) calmRun(n int) func() string {
	return func() string {
		running := 0
		for _, p := range w.pods() {
			if strings.HasPrefix(p.Labels["app"], "calm-") && p.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running != n {
			return fmt.Sprintf("%d of %d calm pods run", running, n)
		}
		return ""
	}
}

// recover is what a person does once the agent is gone, and waits until all pods run.
func (w *world) recover(pools map[string]agentKind, kinds int) {
	w.Helper()
	w.eventually(w.restored(pools)) // the node that has stayed shows it
	// Less time than until the next try that the bound allows: it is the node that makes the pods run.
	patience := 45 * time.Second
	for name, kind := range pools {
		if kind.deletes { // no node is left that could show it; any change of the pool brings the next try
			w.change(name, budgets("90%"))
			patience = 90 * time.Second
		}
	}
	w.within(patience, w.allRunning(2*kinds+len(pools)))
}

func terms(p *v1.NodePool, capacity string, policy v1.ConsolidationPolicy, after string) {
	p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements,
		v1.NodeSelectorRequirementWithMinValues{
			Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{capacity}})
	p.Spec.Disruption.ConsolidationPolicy = policy
	p.Spec.Disruption.ConsolidateAfter = v1.NeverDuration()
	if d, err := time.ParseDuration(after); err == nil {
		p.Spec.Disruption.ConsolidateAfter = v1.NillableDuration{Duration: &d, Raw: after}
	}
}

// triesWithin is how many claims a workload of one pod may have had in a time: the first, one at once, and then those
// that are 30 s, 1 min, 2 min, 4 min and from then on 5 min apart.
func triesWithin(d time.Duration) int {
	n, wait := 2, 30*time.Second
	for d >= wait {
		d -= wait
		wait = min(2*wait, 5*time.Minute)
		n++
	}
	return n
}

func (w *world) allBounded(a *agent, began time.Time) {
	w.Helper()
	for name := range a.kinds {
		w.bounded(a, name, began)
	}
}

// bounded fails the test if a workload of one pod has more nodes than it may have.
func (w *world) bounded(a *agent, pool string, began time.Time) {
	w.Helper()
	const atATime = 1 + 2
	others := 0
	if strings.HasSuffix(pool, "-demand-never") && !a.kinds[pool].apart { // the calm pods have nodes there, too
		others = 2
	}
	total, most, _ := a.figures(pool)
	if may := triesWithin(time.Since(began)) + others; most > atATime+others || total > may {
		w.Fatalf("%s: %d claims within %s and %d at a time; at most %d and %d may be",
			pool, total, time.Since(began).Round(time.Second), most, may, atATime+others)
	}
}

// held says what is missing: the agent has acted, a pod of the Deployment is told what keeps it away, and the pool says
// so, too.
func (w *world) held(a *agent, name string) string {
	if _, _, acts := a.figures(name); acts == 0 {
		return "the agent has done nothing to " + name
	}
	says := a.kinds[name].says
	if len(says) == 0 {
		return ""
	}
	for _, text := range says {
		if trouble := w.condition(name, "tenon.sh/NodesUsable", text); trouble != "" {
			return trouble
		}
	}
	for _, p := range w.pods() {
		if p.Labels["app"] != name {
			continue
		}
		for _, m := range w.messages("FailedScheduling", p.Name) {
			if containsAll(m, says) && strings.Contains(m, "failed since") {
				return ""
			}
		}
	}
	return fmt.Sprintf("no pod of %s is told what keeps it away: %q", name, says)
}
