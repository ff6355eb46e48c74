package ingest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/tries"
)

// says is what kube-scheduler says of a pod that it finds no place for.
func says(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for i := range p.Status.Conditions {
			if p.Status.Conditions[i].Type == corev1.PodScheduled {
				p.Status.Conditions[i].Message = message
			}
		}
	}
}

// wrote is that a manager wrote some fields of a node.
func wrote(manager, fields string) metav1.ManagedFieldsEntry {
	now := metav1.NewTime(at(12, 0))
	return metav1.ManagedFieldsEntry{Manager: manager, Time: &now, FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestWhoKeepsPodsAwayIsNamed(t *testing.T) {
	gold := func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{"tier": "gold"}
		asksFor("1")(p)
	}
	goldNode := func(n *corev1.Node) { n.Labels = map[string]string{"tier": "gold"} }
	kubelet := wrote("kubelet", `{"f:metadata":{"f:labels":{".":{},"f:kubernetes.io/arch":{}}},`+
		`"f:status":{"f:allocatable":{".":{},"f:memory":{}}}}`)
	for _, c := range []struct {
		what   string
		change func(*corev1.Node)
		kind   cluster.CauseKind
		by     string
	}{
		{"a label that changed", func(n *corev1.Node) {
			n.Labels["tier"] = "tin"
			n.ManagedFields = []metav1.ManagedFieldsEntry{kubelet,
				wrote("kubectl-label", `{"f:metadata":{"f:labels":{"f:tier":{}}}}`)}
		}, cluster.CauseLabel, "kubectl-label"},
		{"a label that was taken away", func(n *corev1.Node) {
			delete(n.Labels, "tier")
			n.ManagedFields = []metav1.ManagedFieldsEntry{kubelet}
		}, cluster.CauseLabel, ""},
		{"allocatable that shrank", func(n *corev1.Node) {
			n.Status.Allocatable[corev1.ResourceCPU] = quantity("0")[corev1.ResourceCPU]
			n.ManagedFields = []metav1.ManagedFieldsEntry{kubelet,
				wrote("cpu-taker", `{"f:status":{"f:allocatable":{"f:cpu":{}}}}`)}
		}, cluster.CauseShrunk, "cpu-taker"},
		{"fields that can't be read", func(n *corev1.Node) {
			n.Labels["tier"] = "tin"
			n.ManagedFields = []metav1.ManagedFieldsEntry{wrote("odd", `{"f:metadata":{"f:labels":[`)}
		}, cluster.CauseLabel, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := newLab(t)
			l.waits("p", "rs", gold)
			l.made("n", "p", 1, func(c *v1.NodeClaim) {
				c.Labels["tier"] = "gold"
				c.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: quantity("64")[corev1.ResourceCPU]}
			})
			l.node("n", goldNode)
			l.expect("a node that takes the pod", "none")
			l.node("n", goldNode, c.change)
			b := l.expect(c.what, "1 tries, 0 coming, standing [n], "+string(c.kind))
			if got := b.Failures[0].Cause.By; got != c.by {
				t.Errorf("it was written by %q, want %q", got, c.by)
			}
		})
	}
}

// A pod that says why it has to end is asked, before it is gone.
func TestWhyPodsHadToLeaveIsNamed(t *testing.T) {
	l := newLab(t)
	l.firstTryFailed("p1")
	l.goodTry("n2", "p1", 2)
	l.expect("a pod runs", "1 tries, 1 coming, standing [n1], Taint")
	ending := func(p *corev1.Pod) {
		started := metav1.NewTime(l.c.now())
		p.Spec.NodeName, p.Status.Phase, p.Status.StartTime = "n2", corev1.PodRunning, &started
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason:  "PreemptionByScheduler",
			Message: "default-scheduler: preempting to accommodate a higher priority pod"}}
		p.ManagedFields = []metav1.ManagedFieldsEntry{
			wrote("kubelet", `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{}}}}`),
			wrote("kube-scheduler", `{"f:status":{"f:conditions":{"k:{\"type\":\"DisruptionTarget\"}":{}}}}`)}
		for range 2 { // it may come by more than once
			if _, err := decode.Strip(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.waits("p1", "rs", ending)
	l.b.DeletePod(judgedPod("p1"))
	l.waits("p2", "rs")
	b := l.expect("it had to leave", "2 tries, 0 coming, standing [n1 n2], PodsEvicted")
	want := cluster.Cause{Kind: cluster.CauseEvicted, By: "kube-scheduler",
		Message: "PreemptionByScheduler: default-scheduler: preempting to accommodate a higher priority pod"}
	if got := b.Failures[0].Cause; got.By != want.By || got.Message != want.Message {
		t.Errorf("the cause is %+v, want %+v", got, want)
	}
}

// What nothing else explains, kube-scheduler does: once it has looked at each pod that waits since the node opened.
func TestTheSchedulersOwnWordsAreTheCauseWhereNothingElseIs(t *testing.T) {
	l := newLab(t)
	l.waits("p1", "rs", says("0/1 nodes are available."))
	l.waits("p2", "rs", says("0/1 nodes are available."))
	l.made("n1", "p1", 1)
	l.node("n1")
	l.c.tick(10 * time.Minute)
	l.expect("it has not looked since the node opened", "none")
	message := "0/2 nodes are available: 2 node(s) had no free ring."
	l.waits("p1", "rs", says(message+" preemption: 0/2 nodes are available: 2 No preemption victims found for "+
		"incoming pod."))
	l.c.tick(time.Minute)
	l.expect("it has not looked at the second", "none")
	l.waits("p2", "rs", says(message))
	l.c.tick(tries.MessageSettled - time.Second)
	l.expect("it may be about to put it there", "none")
	l.c.tick(time.Second)
	b := l.expect("it has looked at both", "1 tries, 0 coming, standing [n1], RefusedByScheduler")
	if got := b.Failures[0].Cause.Message; got != message || b.Retained != "n1" {
		t.Errorf("the cause is %q, want %q; the witness is %q", got, message, b.Retained)
	}
	l.runs("p1", "rs", "n1", corev1.PodRunning)
	l.b.DeletePod(judgedPod("p2"))
	l.expect("it has changed its mind", "1 tries, 0 coming, standing [], RefusedByScheduler")
	l.c.tick(cluster.ProvenAfter)
	l.expect("and it was right", "none")
}

// The kubelet's own pods may take a port on each new node, of which no plan can know.
func TestAPortThatIsTakenIsNamed(t *testing.T) {
	l := newLab(t)
	ports := func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Name: "main", Ports: []corev1.ContainerPort{{HostPort: 8080,
			ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}}}
	}
	l.waits("p1", "rs", ports)
	l.made("n1", "p1", 1)
	l.node("n1")
	l.expect("the port is free", "none")
	l.b.SetPod(with(judgedPod("static"), func(p *corev1.Pod) {
		ports(p)
		p.Annotations = map[string]string{mirrorAnnotation: "x"}
		p.Spec.NodeName, p.Status.Conditions, p.Status.Phase = "n1", nil, corev1.PodRunning
	}))
	b := l.expect("the port is taken", "1 tries, 0 coming, standing [n1], PortTaken")
	if got := b.Failures[0].Cause; got.Resource != "8080/TCP" || got.TakenBy != "default/static" {
		t.Errorf("the cause is %+v", got)
	}
}
