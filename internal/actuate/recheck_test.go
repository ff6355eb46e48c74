package actuate

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tenon-sh/tenon/internal/command"
)

func podOn(node, name string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
}

func nodeOf(name, providerID string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-node"},
		Spec: corev1.NodeSpec{ProviderID: providerID}}
}

// An instance is ended when its node has no pods but those that need not leave; that is asked of the API server.
func TestEndLooksForPodsThatTheCacheLacks(t *testing.T) {
	unseen := func(what string) string {
		return "instance %ID is not ended yet: " + what + ", and the watch of pods has not shown it yet"
	}
	for name, x := range map[string]struct {
		pod     *corev1.Pod
		drained bool
		err     string
	}{
		"nobody is there":         {pod: podOn("other", "p", corev1.PodRunning), drained: true},
		"a pod that stays":        {pod: podOn("n", "stays", corev1.PodRunning), drained: true},
		"a pod that has ended":    {pod: podOn("n", "p", corev1.PodSucceeded), drained: true},
		"a pod, and no time left": {pod: podOn("n", "p", corev1.PodRunning)},
		"a pod on its other node": {pod: podOn("twin", "p", corev1.PodRunning), drained: true,
			err: unseen("pod default/p is on node twin")},
		"a pod that nobody knew of": {pod: podOn("n", "p", corev1.PodRunning), drained: true,
			err: unseen("pod default/p is on node n")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, interceptor.Funcs{}, ours("a"), x.pod)
			if out := s.do(command.LaunchInstance{Claim: "a", UID: "uid-1"}); out.Err != nil {
				t.Fatal(out.Err)
			}
			id := s.claim("a").Status.ProviderID
			out := s.do(command.Terminate{
				Claim: "a", UID: "uid-1", Node: "n", ProviderID: id,
				Drained: x.drained, StayingPods: []string{"uid-stays"}, DuplicateNodes: []string{"twin"},
			})
			s.wantEnd(out, id, x.err)
		})
	}
}

// wantEnd checks whether the instance was ended, or why not; %ID stands for its id.
func (s *actorWorld) wantEnd(out command.Outcome, id, failure string) {
	s.Helper()
	if failure == "" {
		if out.Err != nil || s.running() != 0 {
			s.Errorf("outcome %+v, and %d instances run", out, s.running())
		}
		return
	}
	if want := strings.ReplaceAll(failure, "%ID", id); out.Err == nil || out.Err.Error() != want || s.running() != 1 {
		s.Errorf("the error is %v, want %s; %d instances run", out.Err, want, s.running())
	}
}

// A claim whose node we don't know of keeps its instance, and itself, if the API server does know of the node.
func TestMissingNodeIsLookedForLive(t *testing.T) {
	for name, x := range map[string]struct {
		node       func(id string) *corev1.Node
		end, begin string
	}{
		"there": {func(id string) *corev1.Node { return nodeOf("n", id) },
			"instance %ID is not ended yet: node n is there, and the watch of nodes has not shown it yet",
			"deleting NodeClaim a: node n is there, and the watch of nodes has not shown it yet"},
		"gone":            {node: func(string) *corev1.Node { return nodeOf("other", "x") }},
		"another machine": {node: func(string) *corev1.Node { return nodeOf("n", "x") }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, interceptor.Funcs{}, ours("a"))
			if out := s.do(command.LaunchInstance{Claim: "a", UID: "uid-1"}); out.Err != nil {
				t.Fatal(out.Err)
			}
			id := s.claim("a").Status.ProviderID
			if err := s.api.Create(t.Context(), x.node(id)); err != nil {
				t.Fatal(err)
			}
			out := s.do(command.DeleteClaim{Claim: "a", UID: "uid-1", Missing: "n", ProviderID: id})
			if deleted := s.claim("a").DeletionTimestamp != nil; deleted != (x.begin == "") ||
				(out.Err == nil) != (x.begin == "") || out.Err != nil && out.Err.Error() != x.begin {
				t.Errorf("deleted: %v, error %v, want %q", deleted, out.Err, x.begin)
			}
			s.wantEnd(s.do(command.Terminate{Claim: "a", UID: "uid-1", ProviderID: id, Missing: "n"}), id, x.end)
		})
	}
}

// Nothing is ended as long as the API server does not answer.
func TestNothingIsEndedUnlooked(t *testing.T) {
	away := errors.New("away")
	s := newStage(t, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return away },
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.Node); ok {
				return away
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}, ours("a"))
	if out := s.do(command.LaunchInstance{Claim: "a", UID: "uid-1"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	id := s.claim("a").Status.ProviderID
	for _, c := range []command.Terminate{{Node: "n", Drained: true}, {Missing: "n"}} {
		c.Claim, c.UID, c.ProviderID = "a", "uid-1", id
		if out := s.do(c); !errors.Is(out.Err, away) || s.running() != 1 {
			t.Errorf("outcome %+v, and %d instances run", out, s.running())
		}
	}
	if out := s.do(command.DeleteClaim{Claim: "a", UID: "uid-1", Missing: "n"}); !errors.Is(out.Err, away) ||
		s.claim("a").DeletionTimestamp != nil {
		t.Errorf("outcome %+v", out)
	}
	// Whether a claim accounts for an orphan, or for the machine of a node, can't be asked either.
	if out := s.do(command.Terminate{UID: "uid-1", ProviderID: id}); !errors.Is(out.Err, away) || s.running() != 1 {
		t.Errorf("outcome %+v, and %d instances run", out, s.running())
	}
	if out := s.do(command.DeleteNode{Node: "n", UID: "n", ProviderID: id}); !errors.Is(out.Err, away) {
		t.Errorf("outcome %+v", out)
	}
}

// running counts the instances that nobody has ended.
func (s *actorWorld) running() int {
	s.Helper()
	list, err := s.actor.Cloud.List(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	n := 0
	for _, i := range list {
		if !i.Terminating {
			n++
		}
	}
	return n
}
