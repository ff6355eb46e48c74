package ingest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

func nominatedPod(uid, node string) *corev1.Pod {
	return with(judgedPod(uid), func(p *corev1.Pod) { p.Status.NominatedNodeName = node })
}

// launchedClaim is one whose node has joined, with these seats; initialized says how far it has come.
func launchedClaim(name, seats string, initialized metav1.ConditionStatus) *v1.NodeClaim {
	c := claimObject(name, "1")
	c.Status.ProviderID = "kwok://" + name
	c.Annotations = map[string]string{cluster.SeatsAnnotation: seats}
	c.Status.Conditions = []metav1.Condition{
		{Type: v1.ConditionTypeLaunched, Status: metav1.ConditionTrue}, {Type: v1.ConditionTypeInitialized,
			Status: initialized}}
	return c
}

func machine(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: "kwok://" + name}}
}

func TestWhoseNominationItIs(t *testing.T) {
	b, _ := newBook()
	b.SetPod(judgedPod("other"))
	class := onlyPod(b).Class.Key
	for _, c := range []struct {
		what    string
		node    *corev1.Node
		claim   *v1.NodeClaim
		signed  bool
		pending bool
	}{
		{"the node is not there", nil, nil, false, true},
		{"a node that is none of ours", machine("n"), nil, false, false},
		{"a node none of ours, but our name is under it", machine("n"), nil, true, true},
		{"a node that is coming", machine("n"), launchedClaim("n", "", "Unknown"), false, true},
		{"a node that is there, made for such pods", machine("n"), launchedClaim("n", class+":1", "True"), false, true},
		{"a node that is there, made for others", machine("n"), launchedClaim("n", "0000:1", "True"), false, false},
	} {
		b, _ := newBook()
		if c.node != nil {
			b.SetNode(c.node)
		}
		if c.claim != nil {
			b.SetClaim(c.claim)
		}
		pod := nominatedPod("a", "n")
		if c.signed {
			pod.ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: "kube-scheduler", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{}}}`)},
				{Manager: "tenon", Subresource: "status",
					FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:nominatedNodeName":{}}}`)}}
		}
		for range 2 { // a cache may hand out what it has stripped before
			if _, err := decode.Strip(pod); err != nil {
				t.Fatal(err)
			}
		}
		b.SetPod(pod)
		if p := onlyPod(b); p.IsPending() != c.pending || p.Nominated != "n" ||
			p.IsPending() == p.UnschedulableSince.IsZero() {
			t.Errorf("%s: pending %v, nominated to %q, seen %s", c.what, p.IsPending(), p.Nominated,
				p.UnschedulableSince)
		}
	}
}

func TestNominationIsJudgedAgain(t *testing.T) {
	b, _ := newBook()
	for _, c := range []struct {
		what    string
		change  func()
		pending bool
		moved   string
	}{
		{"before the node is there", func() { b.SetPod(nominatedPod("a", "n")) }, true, "demand"},
		{"the claim comes", func() { b.SetClaim(launchedClaim("n", "", "Unknown")) }, true, "supply"},
		{"the node comes", func() { b.SetNode(machine("n")) }, true, "supply help"},
		{"it is ready, and was not made for the pod", func() {
			b.SetClaim(launchedClaim("n", "", "True"))
		}, false, "demand supply help"},
		{"it is no longer", func() { b.SetClaim(launchedClaim("n", "", "Unknown")) }, true, "demand supply help"},
		{"the claim goes", func() { b.DeleteClaim("n") }, false, "demand supply help"},
		{"the node goes", func() { b.DeleteNode("n") }, true, "demand supply help"},
		{"another node is named", func() { b.SetPod(nominatedPod("a", "m")) }, true, "rev"},
		{"none is named", func() { b.SetPod(judgedPod("a")) }, true, "rev"},
		{"it is bound", func() { b.SetPod(placedPod("a", "m")) }, false, "demand supply"},
	} {
		if got := moved(b, c.change); got != c.moved {
			t.Errorf("%s: %q moved, want %q", c.what, got, c.moved)
		}
		if p := onlyPod(b); p.IsPending() != c.pending {
			t.Errorf("%s: pending %v", c.what, p.IsPending())
		}
	}
	if len(b.nominees) != 0 {
		t.Errorf("nominations are kept: %v", b.nominees)
	}
	b.SetPod(nominatedPod("b", "n"))
	b.DeletePod(nominatedPod("b", "n"))
	if len(b.nominees) != 0 {
		t.Errorf("the nomination of a pod that is gone is kept: %v", b.nominees)
	}
}
