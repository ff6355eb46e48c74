package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestPodsGoWhereTheyWerePlanned gives the cluster Deployments of different shapes that fill nodes together. Left alone,
// kube-scheduler puts them so that some are left over and need nodes of their own; told where they belong, they need the nodes
// that were planned. Those that are bound begin before their node is ready. (A simulated machine is open to kube-scheduler for a
// moment before its kubelet says that it boots, so that some pods may be elsewhere.)
func TestPodsGoWhereTheyWerePlanned(t *testing.T) {
	for _, mode := range []string{"nominate", "bind", "event"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			boot := "0" // nominations are for kube-scheduler, which does not look at a node that boots
			if mode == "bind" {
				boot = "6"
			}
			pods := w.createShapes(boot)
			w.eventually(func() string { return w.judged(pods) })
			_, err := buildOnce()
			w.must(err)
			began := time.Now()
			c := w.run("--placement", mode)
			w.eventually(w.allRunning(pods))
			took := time.Since(began)
			w.eventually(w.tally)
			made := strings.Count(c.log.String(), creation)
			if mode == "nominate" && made > plannedShapes+2 {
				t.Errorf("%d nodes were made where %d were planned", made, plannedShapes)
			}
			w.eventually(w.unready)
			early := w.early()
			if mode == "bind" && early < pods/2 {
				t.Errorf("only %d of %d pods were begun before their node was ready", early, pods)
			}
			t.Logf("placement=%s: %d pods on %d nodes, all running %s after the start of the controller, %s after the first node came; %d were begun before their node was ready",
				mode, pods, made, took.Round(10*time.Millisecond), w.lag(), early)
		})
	}
}

// plannedShapes is how many nodes the pods of createShapes fill.
const plannedShapes = 15

// createShapes makes Deployments of which three pods, one of each, fill a machine.
func (w *world) createShapes(boot string) (pods int) {
	w.create(nodeClass("default"), nodePool("default", func(p *v1.NodePool) {
		p.Spec.Template.Labels = map[string]string{"lab.tenon.sh/boot-seconds": boot}
		p.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
			{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"m6i.2xlarge"}}}
	}))
	for _, shape := range []struct{ name, cpu string }{{"large", "4"}, {"middle", "2"}, {"small", "1"}} {
		w.create(w.deployment(shape.name, 15, shape.cpu))
		pods += 15
	}
	return pods
}

// unready names a node that is not ready yet.
func (w *world) unready() string {
	for _, n := range w.nodes() {
		if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			return n.Name + " is not ready"
		}
	}
	return ""
}

// early counts the pods that a kubelet took on before its node was ready.
func (w *world) early() (pods int) {
	ready := map[string]metav1.Time{}
	for _, n := range w.nodes() {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				ready[n.Name] = c.LastTransitionTime
			}
		}
	}
	for _, p := range w.pods() {
		if at := ready[p.Spec.NodeName]; p.Status.StartTime.Before(&at) {
			pods++
		}
	}
	return pods
}

// lag is the time from the first node's coming to the last pod's start.
func (w *world) lag() time.Duration {
	var first, last metav1.Time
	for _, n := range w.nodes() {
		if first.IsZero() || n.CreationTimestamp.Before(&first) {
			first = n.CreationTimestamp
		}
	}
	for _, p := range w.pods() {
		if p.Status.StartTime != nil && last.Before(p.Status.StartTime) {
			last = *p.Status.StartTime
		}
	}
	return last.Sub(first.Time)
}
