package e2e

import (
	"flag"
	"fmt"
	"math/rand"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
)

// go test ./internal/e2e -run Chaos -timeout 60m -chaos.kills=100 -chaos.seed=7 -v
var (
	chaosKills = flag.Int("chaos.kills", 30, "how many times the chaos test kills the controller")
	chaosSeed  = flag.Int64("chaos.seed", 1, "seed of the moments that the chaos tests choose")
)

const (
	// chaosPatience bounds a wait for calm; it is long because nothing here is about speed.
	chaosPatience = 4 * time.Minute
	// chaosNews is how often a long wait says what it waits for.
	chaosNews = 15 * time.Second
	// guardedPods have a disruption budget: so many of them must always be ready.
	guardedPods  = 60
	guardedFloor = 54
)

// chaos is a world in which things are broken at random moments.
type chaos struct {
	*world
	random *rand.Rand
	budget *budgetWatch
	// ends sees each instance that comes and ends.
	ends  *endJudge
	began time.Time
	mu    sync.Mutex
	kept  []*controller
}

// newChaos makes a world with a pool of small machines, so that there are many of them.
func newChaos(t *testing.T) *chaos {
	t.Helper()
	t.Logf("seed %d (repeat with -chaos.seed=%d)", *chaosSeed, *chaosSeed)
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default", func(p *v1.NodePool) {
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements,
			v1.NodeSelectorRequirementWithMinValues{
				Key: kwokv1alpha1.InstanceCPULabelKey, Operator: v1.NodeSelectorOpLte, Values: []string{"8"}})
	}))
	c := newEndJudge(w)
	t.Cleanup(func() {
		if t.Failed() { // it may be why the test has failed before it is asked
			t.Logf("the judge of ends says: %q", c.verdict())
		}
	})
	return &chaos{world: w, random: rand.New(rand.NewSource(*chaosSeed)), ends: c, began: time.Now()}
}

// say tells where a long test is.
func (c *chaos) say(what string) {
	c.Helper()
	c.Logf("%.1f s: %s", time.Since(c.began).Seconds(), what)
}

// workloads creates the pods with a disruption budget, of which the watch of the budget takes note, and so many free
// ones.
func (c *chaos) workloads(free int32) {
	c.Helper()
	floor := intstr.FromInt32(guardedFloor)
	c.create(c.deployment("guarded", guardedPods, "1"), c.deployment("free", free, "1"), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.lab.Namespace(), Name: "guarded"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &floor, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}},
		},
	})
	c.budget = newBudgetWatch(c.world, "guarded")
}

// quick gives flags with which a controller that lives for a second comes to a decision in that time.
func quick(more ...string) []string {
	return append([]string{"--batch-idle-duration=100ms", "--batch-max-duration=500ms"}, more...)
}

// leased gives those of a replica that must be elected.
func leased() []string { return quick("--disable-leader-election=false") }

// moment is a random time up to the given one.
func (c *chaos) moment(most time.Duration) time.Duration {
	return time.Duration(c.random.Int63n(int64(most)))
}

// await lets a random time pass: it is the chaos itself, nothing waits for it.
func (c *chaos) await(most time.Duration) { <-time.After(c.moment(most)) }

// scale sets the number of a deployment's pods, however often the API server has to be asked.
func (c *chaos) scale(name string, n int32) {
	c.Helper()
	c.settle(func() string {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.lab.Namespace(), Name: name}}
		patch := client.RawPatch(client.Merge.Type(), fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n))
		return words(c.c.Patch(c.ctx, d, patch))
	})
}

func words(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// settle waits until a check has nothing to say. Unlike eventually it is for checks that bear an API server's absence.
func (c *chaos) settle(check func() string) {
	c.Helper()
	deadline, tell := time.Now().Add(chaosPatience), time.Now().Add(chaosNews)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		trouble := check()
		switch now := time.Now(); {
		case trouble == "":
			return
		case now.After(deadline):
			c.Fatalf("after %s still: %s", chaosPatience, trouble)
		case now.After(tell):
			c.say("waiting: " + trouble)
			tell = now.Add(chaosNews)
		}
	}
}

// calm says what is missing until the pods run and every instance has one claim and one node.
func (c *chaos) calm(pods int) func() string {
	return func() string {
		var list corev1.PodList
		if err := c.c.List(c.ctx, &list, client.InNamespace(c.lab.Namespace())); err != nil {
			return err.Error()
		}
		running := 0
		for i := range list.Items {
			if p := &list.Items[i]; p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				running++
			}
		}
		if running != pods || len(list.Items) != pods {
			return fmt.Sprintf("%d of %d pods run, %d are there", running, pods, len(list.Items))
		}
		b, err := c.countIDs()
		if err != nil {
			return err.Error()
		}
		return b.trouble()
	}
}

// empty says what is left of nodes, claims and instances.
func (c *chaos) empty() string {
	b, err := c.countIDs()
	if err != nil {
		return err.Error()
	}
	if n := len(b.nodes) + len(b.claims) + len(b.instances); n > 0 {
		return fmt.Sprintf("%d nodes, %d claims and %d instances are left", len(b.nodes), len(b.claims),
			len(b.instances))
	}
	return ""
}

// drain deletes some of the claims, as a person would, so that their pods are evicted and come back elsewhere. The
// first of them has pods of the disruption budget, if any has: those pods are on a few nodes together, and random
// numbers might miss them all.
func (c *chaos) drain(count int) {
	c.Helper()
	c.settle(func() string {
		var list v1.NodeClaimList
		if err := c.c.List(c.ctx, &list); err != nil {
			return err.Error()
		}
		var pods corev1.PodList
		guarded := client.MatchingLabels{"app": "guarded"}
		if err := c.c.List(c.ctx, &pods, client.InNamespace(c.lab.Namespace()), guarded); err != nil {
			return err.Error()
		}
		c.random.Shuffle(len(list.Items), func(i, j int) {
			list.Items[i], list.Items[j] = list.Items[j], list.Items[i]
		})
		hasOne := func(claim v1.NodeClaim) bool { return hosts(&claim, pods.Items) }
		if i := slices.IndexFunc(list.Items, hasOne); i > 0 {
			list.Items[0], list.Items[i] = list.Items[i], list.Items[0]
		}
		for i := range list.Items[:min(count, len(list.Items))] {
			if err := client.IgnoreNotFound(c.c.Delete(c.ctx, &list.Items[i])); err != nil {
				return err.Error()
			}
		}
		return ""
	})
}

// hosts tells whether the claim's node has one of the pods.
func hosts(claim *v1.NodeClaim, pods []corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool {
		return p.Spec.NodeName != "" && p.Spec.NodeName == claim.Status.NodeName
	})
}

// forgive makes the disruption budget forget evictions that were granted and then cut short, because whoever asked was
// killed. Kubernetes takes them as under way and allows fewer others for two minutes; the test does not wait for that.
// It is called while no controller runs, so nothing that is really under way is forgotten.
func (c *chaos) forgive() {
	c.Helper()
	c.settle(func() string {
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: c.lab.Namespace(),
			Name: "guarded"}}
		return words(c.c.Status().Patch(c.ctx, budget, client.RawPatch(client.Merge.Type(),
			[]byte(`{"status":{"disruptedPods":null}}`))))
	})
}

// finish takes all pods away, waits until nothing is left, and asks how each instance has ended.
func (c *chaos) finish() {
	c.Helper()
	c.settle(c.budget.ready)
	c.budget.judge()
	c.scale("free", 0)
	c.scale("guarded", 0)
	c.settle(c.emptied)
	c.settle(func() string { return words(client.IgnoreNotFound(c.c.Delete(c.ctx, nodePool("default")))) })
	c.settle(c.empty)
	c.judgeEnds()
	c.say("nothing is left")
}
