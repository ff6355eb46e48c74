package actuate

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tenon-sh/tenon/internal/command"
)

func waitingPod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-web"}}
	for _, f := range change {
		f(p)
	}
	return p
}

func (s *actorWorld) pod() *corev1.Pod {
	s.Helper()
	p := &corev1.Pod{}
	if err := s.api.Get(s.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, p); err != nil {
		s.Fatal(err)
	}
	return p
}

func nomination(uid, node string) command.Nominate {
	return command.Nominate{Pod: "default/web", UID: uid, Namespace: "default", Name: "web", Node: node}
}

func TestNominationIsWrittenAndTakenBack(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, waitingPod())
	out := s.do(nomination("uid-web", "n1"))
	if got := s.pod().Status.NominatedNodeName; got != "n1" || out.Err != nil {
		t.Fatalf("nominated for %q (%v), want n1", got, out.Err)
	}
	if want := (command.Write{Kind: command.KindPod, Name: "uid-web", Nominated: true,
		Node: "n1"}); len(out.Writes) != 1 || out.Writes[0] != want {
		t.Errorf("wrote %+v, want %+v", out.Writes, want)
	}
	if out := s.do(nomination("uid-web", "")); out.Err != nil || s.pod().Status.NominatedNodeName != "" {
		t.Errorf("the nomination is still %q (%v)", s.pod().Status.NominatedNodeName, out.Err)
	}
}

func TestNominationSparesNamesakesAndBoundPods(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, waitingPod(func(p *corev1.Pod) { p.UID = "another" }))
	s.do(nomination("uid-web", "n1"))
	if got := s.pod().Status.NominatedNodeName; got != "" {
		t.Errorf("a namesake was nominated for %s", got)
	}
	s = newStage(t, interceptor.Funcs{}, waitingPod(func(p *corev1.Pod) { p.Spec.NodeName = "n2" }))
	s.do(nomination("uid-web", "n1"))
	if got := s.pod().Status.NominatedNodeName; got != "" {
		t.Errorf("a bound pod was nominated for %s", got)
	}
	if out := newStage(t, interceptor.Funcs{}).do(nomination("uid-web", "n1")); out.Err != nil {
		t.Errorf("a pod that is gone is no error, it is %v", out.Err)
	}
}

func TestBindingNamesPodAndNode(t *testing.T) {
	var bound *corev1.Binding
	refuse := errors.New("no")
	var answer error
	s := newStage(t, interceptor.Funcs{SubResourceCreate: func(_ context.Context, _ client.Client, sub string, obj,
		body client.Object, _ ...client.SubResourceCreateOption) error {
		if sub != "binding" || obj.GetName() != "web" {
			t.Errorf("created %s of %s", sub, obj.GetName())
		}
		bound = body.(*corev1.Binding)
		return answer
	}}, waitingPod())
	c := command.Bind{Pod: "default/web", UID: "uid-web", Namespace: "default", Name: "web", Node: "n1"}
	if out := s.do(c); out.Err != nil || bound.Target.Name != "n1" || bound.UID != "uid-web" || len(out.Writes) != 1 ||
		!out.Writes[0].Bound {
		t.Errorf("bound %+v, wrote %+v (%v)", bound, out.Writes, out.Err)
	}
	if answer = refuse; !errors.Is(s.do(c).Err, refuse) {
		t.Error("a refusal was swallowed")
	}
}
