package hostile

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// ByAdmins are objects that only people and programs with rights on the whole cluster can write, and budgets beside
// many pods. A script that runs wild makes such things. Requirements, budgets and labels of a NodePool are as many as
// its schema allows.
func ByAdmins() []Case {
	pool := func(name string, set func(*v1.NodePool)) Case {
		p := Pool(name)
		set(p)
		return Case{name, []client.Object{p}}
	}
	machine := func(name string, set func(*corev1.Node, *v1.NodeClaim)) Case {
		n, c := Machine(name)
		set(n, c)
		return Case{name, []client.Object{c, n}}
	}
	var pools []client.Object
	for i := range 250 {
		pools = append(pools, Pool(text("pool-", i)))
	}
	return []Case{
		{"pools", pools},
		pool("pool-values", func(p *v1.NodePool) { p.Spec.Template.Spec.Requirements = requirements(1, 10_000) }),
		pool("pool-requirements", func(p *v1.NodePool) { p.Spec.Template.Spec.Requirements = requirements(100, 100) }),
		pool("pool-taints", func(p *v1.NodePool) { p.Spec.Template.Spec.Taints = someTaints(10_000) }),
		pool("pool-startup-taints", func(p *v1.NodePool) { p.Spec.Template.Spec.StartupTaints = someTaints(10_000) }),
		pool("pool-budgets", func(p *v1.NodePool) {
			for range 50 {
				p.Spec.Disruption.Budgets = append(p.Spec.Disruption.Budgets, v1.Budget{Nodes: "10%"})
			}
		}),
		machine("node-taints", func(n *corev1.Node, _ *v1.NodeClaim) {
			n.Spec.Taints = v1.CoreTaints(someTaints(10_000))
		}),
		machine("node-labels", func(n *corev1.Node, _ *v1.NodeClaim) { label(n, 10_000) }),
		machine("claim-taints", func(_ *corev1.Node, c *v1.NodeClaim) { c.Spec.Taints = someTaints(10_000) }),
		machine("claim-labels", func(_ *corev1.Node, c *v1.NodeClaim) { label(c, 10_000) }),
		machine("claim-requirements", func(_ *corev1.Node, c *v1.NodeClaim) {
			c.Spec.Requirements = requirements(100, 100)
		}),
		{"budgets-and-pods", Budgets(2000, 10_000)},
	}
}

// Pool is a NodePool of the tests' NodeClass.
func Pool(name string) *v1.NodePool {
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass",
		Name: "default"}
	return p
}

func requirements(n, values int) []v1.NodeSelectorRequirementWithMinValues {
	out := make([]v1.NodeSelectorRequirementWithMinValues, n)
	for i := range out {
		out[i].Key, out[i].Operator = text("example.com/key-", i), corev1.NodeSelectorOpIn
		for k := range values {
			out[i].Values = append(out[i].Values, text("value-", k))
		}
	}
	return out
}

func someTaints(n int) []v1.Taint {
	out := make([]v1.Taint, n)
	for i := range out {
		out[i] = v1.Taint{Key: text("example.com/taint-", i), Value: "yes", Effect: corev1.TaintEffectNoSchedule}
	}
	return out
}

func label(o client.Object, n int) {
	labels := o.GetLabels()
	for i := range n {
		labels[text("example.com/label-", i)] = "yes"
	}
	o.SetLabels(labels)
}

// Machine is a node that is up, and its claim.
func Machine(name string) (*corev1.Node, *v1.NodeClaim) {
	labels := func() map[string]string {
		return map[string]string{v1.NodePoolLabelKey: "default", corev1.LabelInstanceTypeStable: "c-4x-amd64-linux",
			corev1.LabelTopologyZone: "test-zone-a",
			v1.CapacityTypeLabelKey:  v1.CapacityTypeOnDemand, corev1.LabelArchStable: "amd64",
			corev1.LabelOSStable: "linux", corev1.LabelHostname: name}
	}
	room := corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("4"),
		corev1.ResourceMemory: apiresource.MustParse("8Gi"), corev1.ResourcePods: apiresource.MustParse("110")}
	c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels(),
		Finalizers: []string{v1.TerminationFinalizer}}}
	c.Spec.NodeClassRef = Pool("").Spec.Template.Spec.NodeClassRef
	c.Status.ProviderID, c.Status.NodeName, c.Status.Capacity, c.Status.Allocatable = "kwok://"+name, name, room, room
	for _, kind := range []string{v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized} {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), Labels: labels(),
		Finalizers: []string{v1.TerminationFinalizer}}}
	n.Spec.ProviderID = c.Status.ProviderID
	n.Status.Capacity, n.Status.Allocatable = room, room
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n, c
}

// Budgets are PodDisruptionBudgets, and pods of one namespace that run: each budget selects a few of them by a label.
func Budgets(budgets, pods int) []client.Object {
	out := []client.Object{}
	nodes := pods/100 + 1
	for i := range nodes {
		n, c := Machine(text("host-", i))
		out = append(out, c, n)
	}
	for i := range budgets {
		b := Budget(0)
		b.Name, b.UID = text("budget-", i), types.UID(text("budget-", i))
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i)}}
		out = append(out, b)
	}
	for i := range pods {
		p := Pod(text("guarded-", i))
		p.UID, p.Labels = types.UID(p.Name), map[string]string{"app": fmt.Sprint(i % budgets)}
		p.Spec.NodeName, p.Status.Phase, p.Status.Conditions = text("host-", i%nodes), corev1.PodRunning, nil
		out = append(out, p)
	}
	return out
}
