package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// autoMode refers to the NodeClass of EKS Auto Mode, which brings NodePools of its own to a cluster.
func autoMode() *v1.NodeClassReference {
	return &v1.NodeClassReference{Group: "eks.amazonaws.com", Kind: "NodeClass", Name: "default"}
}

// theirPool is a NodePool of another controller.
func theirPool(name string, change ...func(*v1.NodePool)) *v1.NodePool {
	return nodePool(name, append(change, func(p *v1.NodePool) { p.Spec.Template.Spec.NodeClassRef = autoMode() })...)
}

// theirClaim is a NodeClaim of another controller. If it were ours much would have to be done about it: its hash is of
// another version and its life is over.
func theirClaim(name string) *v1.NodeClaim {
	c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1.TerminationFinalizer},
		Labels:      map[string]string{v1.NodePoolLabelKey: "auto"},
		Annotations: map[string]string{v1.NodePoolHashAnnotationKey: "17", v1.NodePoolHashVersionAnnotationKey: "v2"}}}
	c.Spec.NodeClassRef = autoMode()
	c.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelOSStable,
		Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}}}
	c.Spec.ExpireAfter = v1.NillableDuration{Duration: new(time.Second)}
	return c
}

// theirNode is a node of another controller that carries nothing.
func theirNode(name string) *corev1.Node {
	room := corev1.ResourceList{"cpu": apiresource.MustParse("10"), "memory": apiresource.MustParse("64Gi"),
		"pods": apiresource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1.TerminationFinalizer},
			Labels: map[string]string{
				"kwok.x-k8s.io/node": "fake", v1.NodePoolLabelKey: "auto", "eks.amazonaws.com/nodeclass": "default",
				v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true"}},
		Spec:   corev1.NodeSpec{ProviderID: "aws:///us-west-2a/" + name},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
}

// createTheirs makes two pools of another controller, one of them static, four NodeClaims (one with a node, one
// without, one that is being deleted, one that a person made), and two nodes, one of which is being deleted.
func (w *world) createTheirs() {
	w.Helper()
	w.create(theirPool("auto"), theirPool("auto-static", func(p *v1.NodePool) { p.Spec.Replicas = new(int64(2)) }))
	standing, leaving, alone := theirClaim("auto-standing"), theirClaim("auto-leaving"), theirClaim("auto-alone")
	alone.Labels = nil
	w.create(standing, theirClaim("auto-new"), leaving, alone, theirNode("auto-node"), theirNode("auto-node-leaving"))
	standing.Status.ProviderID, standing.Status.NodeName = "aws:///us-west-2a/auto-node", "auto-node"
	for _, kind := range []string{v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized} {
		standing.Status.Conditions = append(standing.Status.Conditions, metav1.Condition{Type: kind,
			Status: metav1.ConditionTrue,
			Reason: kind, LastTransitionTime: metav1.Now()})
	}
	w.must(w.c.Status().Update(w.ctx, standing))
	w.must(w.c.Delete(w.ctx, leaving))
	w.must(w.c.Delete(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "auto-node-leaving"}}))
	w.eventually(func() string {
		for _, n := range w.nodes() {
			if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}) || len(n.Spec.Taints) > 0 { // the taint goes a little later
				return n.Name + " is not ready"
			}
		}
		return ""
	})
}

// theirs lists the NodePools and NodeClaims of the other controller with their versions, and its nodes with all that a
// controller writes: Kubernetes writes the rest.
func (w *world) theirs() []string {
	var pools v1.NodePoolList
	w.must(w.c.List(w.ctx, &pools))
	var out []string
	for _, p := range pools.Items {
		if strings.HasPrefix(p.Name, "auto") {
			out = append(out, fmt.Sprintf("NodePool %s %s %v %v", p.Name, p.ResourceVersion, p.Annotations, p.Status))
		}
	}
	for _, c := range w.claims() {
		if strings.HasPrefix(c.Name, "auto") {
			out = append(out, fmt.Sprintf("NodeClaim %s %s %v %v", c.Name, c.ResourceVersion, c.Finalizers, c.Status))
		}
	}
	for _, n := range w.nodes() {
		if strings.HasPrefix(n.Name, "auto") {
			maps.DeleteFunc(n.Annotations, func(key, _ string) bool {
				return strings.HasPrefix(key, "node.alpha.kubernetes.io/")
			})
			out = append(out, fmt.Sprintf("Node %s %v %v %v %v %v", n.Name, n.Labels, n.Annotations, n.Finalizers,
				n.Spec, n.DeletionTimestamp))
		}
		for _, f := range n.ManagedFields {
			if strings.HasPrefix(n.Name, "auto") && f.Manager == "tenon" {
				out = append(out, fmt.Sprintf("Node %s was written to by Tenon", n.Name))
			}
		}
	}
	return out
}

// ourClaims says whether there are so many NodeClaims of ours.
func (w *world) ourClaims(n int) func() string {
	return func() string {
		ours := slices.DeleteFunc(w.claims(), func(c v1.NodeClaim) bool { return strings.HasPrefix(c.Name, "auto") })
		if len(ours) != n {
			return fmt.Sprintf("%d NodeClaims of ours, want %d", len(ours), n)
		}
		return ""
	}
}

// TestWhatBelongsToAnotherControllerIsLeftAlone has two controllers in one cluster: we make and take away nodes beside
// the objects of another, whose nodes are room for pods and nothing more. Nothing of them is written.
func TestWhatBelongsToAnotherControllerIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.createTheirs()
	w.create(nodeClass("default"), nodePool("default", onDemand("16")))
	before := w.theirs()
	c := w.run("--feature-gates", "StaticCapacity=true,NodeRepair=true")
	web := w.deployment("web", 3, "9")
	w.create(web)
	w.eventually(w.allRunning(3))
	w.eventually(w.ourClaims(2)) // their node has room for one
	w.eventually(c.logged(`"NodePool":"auto-static"`))
	lost := w.pod("lost", "1", func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{v1.NodePoolLabelKey: "auto-static"}
	})
	w.create(lost)
	w.eventually(w.hears("FailedScheduling", "lost", "2 more NodePools belong to other controllers"))
	w.must(w.c.Delete(w.ctx, web, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	w.slowly(w.ourClaims(0)) // whoever has taken both away has had the time to do something else, too
	if after := w.theirs(); !slices.Equal(before, after) {
		t.Errorf("what belongs to another controller was\n%s\nand is\n%s", strings.Join(before, "\n"),
			strings.Join(after, "\n"))
	}
	var events corev1.EventList
	w.must(w.c.List(w.ctx, &events))
	for _, e := range events.Items {
		if e.ReportingController == "karpenter" && strings.HasPrefix(e.InvolvedObject.Name, "auto") {
			t.Errorf("an event about %s %s: %s %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
	if n := strings.Count(c.log.String(), "this NodePool belongs to another controller"); n != 2 {
		t.Errorf("the log says so %d times, want once for each of the two pools", n)
	}
}
