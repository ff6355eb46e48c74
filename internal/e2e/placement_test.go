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
	"github.com/tenon-sh/tenon/internal/cluster"
)

// TestPodsGoWhereTheyWerePlanned gives the cluster Deployments of different shapes that fill nodes together. Left alone,
// kube-scheduler puts them so that some are left over and need nodes of their own; told where they belong, they need just
// the nodes that were planned, and every node carries what it was made for.
func TestPodsGoWhereTheyWerePlanned(t *testing.T) {
	for _, mode := range []string{"nominate", "bind", "event"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			pods := w.createShapes()
			w.eventually(func() string { return w.judged(pods) })
			_, err := buildOnce()
			w.must(err)
			began := time.Now()
			c := w.run("--placement", mode)
			w.eventually(w.allRunning(pods))
			took := time.Since(began)
			w.eventually(w.tally)
			made := strings.Count(c.log.String(), creation)
			if mode != "event" {
				if n := strings.Count(c.log.String(), planning); n != 1 {
					t.Errorf("the nodes were planned in %d goes, want one:\n%s", n, planned(c))
				}
				w.eventually(w.seated)
			}
			w.eventually(w.unready)
			early := w.early()
			if (early == pods) != (mode == "bind") {
				t.Errorf("%d of %d pods were begun before their node was ready", early, pods)
			}
			t.Logf("placement=%s: %d pods on %d nodes, all running %s after the start of the controller, %s after the first node came; %d were begun before their node was ready",
				mode, pods, made, took.Round(10*time.Millisecond), w.lag(), early)
		})
	}
}

// createShapes makes Deployments of which three pods, one of each, fill a machine.
func (w *world) createShapes() (pods int) {
	w.create(nodeClass("default"), nodePool("default", func(p *v1.NodePool) {
		p.Spec.Template.Labels = map[string]string{"lab.tenon.sh/boot-seconds": "6"}
		p.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
			{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"m6i.2xlarge"}}}
	}))
	for _, shape := range []struct{ name, cpu string }{{"large", "4"}, {"middle", "2"}, {"small", "1"}} {
		w.create(w.deployment(shape.name, 15, shape.cpu))
		pods += 15
	}
	return pods
}

// seated says which node carries something else than its claim has seats for.
func (w *world) seated() string {
	on := map[string]map[string]int{}
	for _, p := range w.pods() {
		if on[p.Spec.NodeName] == nil {
			on[p.Spec.NodeName] = map[string]int{}
		}
		on[p.Spec.NodeName][p.Labels["app"]]++
	}
	// A seat is named by a hash of what the pods ask for; that there is one of each kind is enough to tell.
	for _, claim := range w.claims() {
		seats, err := cluster.ParseSeats(claim.Annotations[cluster.SeatsAnnotation])
		w.must(err)
		var have, want []int
		for _, n := range on[claim.Status.NodeName] {
			have = append(have, n)
		}
		for _, s := range seats {
			want = append(want, s.Count)
		}
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			return fmt.Sprintf("node %s was made for %v and carries %v", claim.Status.NodeName, claim.Annotations[cluster.SeatsAnnotation], on[claim.Status.NodeName])
		}
	}
	return ""
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
