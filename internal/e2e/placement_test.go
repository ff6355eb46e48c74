package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestPodsGoWhereTheyWerePlanned gives the cluster Deployments of different shapes that fill nodes together. Left
// alone, kube-scheduler puts them so that some are left over and need nodes of their own; told where they belong, they
// need the nodes that were planned, and each is on its own. Those that are bound begin before their node is ready.
//
// The machines of a slow pool boot for six seconds and are then ready all at the same moment: kube-scheduler, which
// forgets what a pod was told as soon as it tries the pod in vain, has never more reason to try them all. It may do so
// for reasons of its own between the telling and the opening, and then a pod loses its place to another: of that the
// test allows a little. How many nodes hold exactly what was planned for them is told.
func TestPodsGoWhereTheyWerePlanned(t *testing.T) {
	t.Parallel()
	for _, try := range []struct {
		mode, boot string
		strict     bool // pods are where they were planned
		early      bool // and begun before their node was ready
	}{
		{"nominate", "0", true, false},
		{"nominate", "6", true, false},
		{"bind", "6", true, true},
		{"event", "0", false, false}, // kube-scheduler does as it likes
	} {
		t.Run(try.mode+" after "+try.boot+" s", func(t *testing.T) {
			w := newWorld(t)
			pods := w.createShapes(try.boot)
			w.pending(pods)
			_, err := buildOnce()
			w.must(err)
			began := time.Now()
			c := w.run("--placement", try.mode)
			w.eventually(w.allRunning(pods))
			took := time.Since(began)
			w.eventually(w.tally)
			w.eventually(w.unready)
			made, early, wrong := strings.Count(c.log.String(), creation), w.early(), w.missed()
			if try.strict && made > plannedShapes+2 {
				t.Errorf("%d nodes were made where %d were planned, and on these nodes are others than were "+
					"planned:\n%s", made, plannedShapes, strings.Join(wrong, "\n"))
			}
			if try.early && early < pods*9/10 {
				t.Errorf("only %d of %d pods were begun before their node was ready", early, pods)
			}
			t.Logf("placement=%s boot=%ss: %d pods on %d nodes (%d hold others than planned), all running %s after "+
				"the start of the controller, %s after the first node came; %d were begun before their node was ready",
				try.mode, try.boot, pods, made, len(wrong), took.Round(10*time.Millisecond), w.lag(), early)
		})
	}
}

// missed names the nodes that do not hold one pod of each shape, which is the only way to have all of them on so few.
func (w *world) missed() (out []string) {
	there := map[string][]string{}
	for _, p := range w.pods() {
		there[p.Spec.NodeName] = append(there[p.Spec.NodeName], p.Labels["app"])
	}
	for node, shapes := range there {
		slices.Sort(shapes)
		if !slices.Equal(shapes, []string{"large", "middle", "small"}) {
			out = append(out, fmt.Sprintf("%s has %v", node, shapes))
		}
	}
	return out
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
