package e2e

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// runawayFor is how long TestRunaway lets the agent do its work; ten minutes are worth it once in a while.
var runawayFor = flag.Duration("runaway", 40*time.Second, "how long TestRunaway lets an agent taint nodes")

// agentTaint is what the agent puts on nodes.
const agentTaint = "agent.example/quarantine"

// taintAgent puts a NoExecute taint on every node as soon as it sees it, as a program would that nobody has declared. It also counts the
// claims that it sees, by pool.
type taintAgent struct {
	w    *world
	stop context.CancelFunc
	done chan struct{}

	mu   sync.Mutex
	seen map[string]map[types.UID]bool
	most map[string]int
	err  error
}

func (w *world) startAgent() *taintAgent {
	ctx, stop := context.WithCancel(w.ctx)
	a := &taintAgent{w: w, stop: stop, done: make(chan struct{}), seen: make(map[string]map[types.UID]bool), most: make(map[string]int)}
	go func() {
		defer close(a.done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := a.look(ctx); err != nil && ctx.Err() == nil {
					a.err = err
				}
			}
		}
	}()
	w.Cleanup(a.end)
	return a
}

// end stops the agent; what it has done stays.
func (a *taintAgent) end() {
	a.stop()
	<-a.done
}

func (a *taintAgent) look(ctx context.Context) error {
	var nodes corev1.NodeList
	var claims v1.NodeClaimList
	if err := a.w.c.List(ctx, &nodes); err != nil {
		return err
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if n.DeletionTimestamp != nil || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == agentTaint }) {
			continue
		}
		before := n.DeepCopy()
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: agentTaint, Value: "yes", Effect: corev1.TaintEffectNoExecute})
		err := a.w.c.Patch(ctx, n, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner("quarantine-agent"))
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	if err := a.w.c.List(ctx, &claims); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	count := make(map[string]int)
	for i := range claims.Items {
		c := &claims.Items[i]
		pool := c.Labels[v1.NodePoolLabelKey]
		if a.seen[pool] == nil {
			a.seen[pool] = make(map[types.UID]bool)
		}
		a.seen[pool][c.UID] = true
		count[pool]++
		a.most[pool] = max(a.most[pool], count[pool])
	}
	return nil
}

// figures are how many claims of a pool there have been, and the most at a time.
func (a *taintAgent) figures(pool string) (total, most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.seen[pool]), a.most[pool]
}

// triesWithin is how many claims a workload of one pod may have had in a time: the first, one at once, and then those that are 30 s, 1 min,
// 2 min, 4 min and from then on 5 min apart.
func triesWithin(d time.Duration) int {
	n, wait := 2, 30*time.Second
	for d >= wait {
		d -= wait
		wait = min(2*wait, 5*time.Minute)
		n++
	}
	return n
}

// TestRunaway has an agent taint every new node, for pools of every kind: nodes in vain stay within the bound of docs/concepts/bounds.md, it
// is said what keeps the pods away, another workload is not held up, and the pods run once the taint is gone.
//
//	go test ./internal/e2e -run TestRunaway -runaway 10m
func TestRunaway(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"))
	pools := map[string]func(*v1.NodePool){
		"spot-empty": func(p *v1.NodePool) { terms(p, v1.CapacityTypeSpot, v1.ConsolidationPolicyWhenEmpty, "0s") },
		"spot-under": func(p *v1.NodePool) {
			terms(p, v1.CapacityTypeSpot, v1.ConsolidationPolicyWhenEmptyOrUnderutilized, "30s")
		},
		"demand-under": func(p *v1.NodePool) {
			terms(p, v1.CapacityTypeOnDemand, v1.ConsolidationPolicyWhenEmptyOrUnderutilized, "0s")
		},
		"demand-never": func(p *v1.NodePool) { terms(p, v1.CapacityTypeOnDemand, v1.ConsolidationPolicyWhenEmpty, "Never") },
	}
	for name, change := range pools {
		w.create(nodePool(name, change))
		d := w.deployment(name, 1, "1")
		d.Spec.Template.Spec.NodeSelector = map[string]string{v1.NodePoolLabelKey: name}
		w.create(d)
	}
	calm := w.deployment("calm", 2, "1")
	calm.Spec.Template.Spec.NodeSelector = map[string]string{v1.NodePoolLabelKey: "demand-never"}
	calm.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: agentTaint, Operator: corev1.TolerationOpExists}}
	agent := w.startAgent()
	began := time.Now()
	w.run()
	for name := range pools {
		w.eventually(func() string { return w.held(name) })
	}
	w.create(calm)
	w.eventually(w.allRunning(2))
	for time.Since(began) < *runawayFor {
		for name := range pools {
			w.bounded(agent, name, began)
		}
		time.Sleep(time.Second) // the agent does its work for a given time; nothing is waited for
	}

	agent.end()
	w.must(agent.err)
	for name := range pools {
		total, most := agent.figures(name)
		t.Logf("%s: %d claims in %s, at most %d at a time", name, total, time.Since(began).Round(time.Second), most)
	}
	w.eventually(w.untainted) // a person removes the taint; the node that has stayed shows it
	// Less time than until the next try that the bound allows: it is the node that makes the pods run.
	w.within(45*time.Second, w.allRunning(2+len(pools)))
}

// untainted takes the agent's taint off all nodes. It says which node somebody else has changed at the same time: the
// next look settles that, and brings back no taint that was taken away meanwhile.
func (w *world) untainted() string {
	byAgent := func(t corev1.Taint) bool { return t.Key == agentTaint }
	for _, n := range w.nodes() {
		if !slices.ContainsFunc(n.Spec.Taints, byAgent) {
			continue
		}
		before := n.DeepCopy()
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, byAgent)
		err := w.c.Patch(w.ctx, &n, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			return err.Error()
		}
		w.must(client.IgnoreNotFound(err))
	}
	return ""
}

func terms(p *v1.NodePool, capacity string, policy v1.ConsolidationPolicy, after string) {
	p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, v1.NodeSelectorRequirementWithMinValues{
		Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{capacity}})
	p.Spec.Disruption.ConsolidationPolicy = policy
	p.Spec.Disruption.ConsolidateAfter = v1.NeverDuration()
	if d, err := time.ParseDuration(after); err == nil {
		p.Spec.Disruption.ConsolidateAfter = v1.NillableDuration{Duration: &d, Raw: after}
	}
}

// bounded fails the test if a workload of one pod has more nodes than it may have.
func (w *world) bounded(a *taintAgent, pool string, began time.Time) {
	w.Helper()
	const atATime = 1 + 2
	others := 0
	if pool == "demand-never" { // the calm pods have nodes there, too
		others = 2
	}
	total, most := a.figures(pool)
	if may := triesWithin(time.Since(began)) + others; most > atATime+others || total > may {
		w.Fatalf("%s: %d claims within %s and %d at a time; at most %d and %d may be", pool, total, time.Since(began).Round(time.Second), most, may, atATime+others)
	}
}

// held says what is missing: a pod of the Deployment is told what keeps it away, and the pool says so, too.
func (w *world) held(name string) string {
	if trouble := w.condition(name, "tenon.sh/NodesUsable", agentTaint+"=yes:NoExecute"); trouble != "" {
		return trouble
	}
	for _, p := range w.pods() {
		if p.Labels["app"] != name {
			continue
		}
		for _, m := range w.messages("FailedScheduling", p.Name) {
			if strings.Contains(m, agentTaint+"=yes:NoExecute") && strings.Contains(m, `"quarantine-agent"`) && strings.Contains(m, "failed since") {
				return ""
			}
		}
	}
	return fmt.Sprintf("no pod of %s is told who keeps it away", name)
}
