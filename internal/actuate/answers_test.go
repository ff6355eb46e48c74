package actuate

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

var (
	things   = schema.GroupResource{Resource: "things"}
	gone     = apierrors.NewNotFound(things, "a")
	conflict = apierrors.NewConflict(things, "a", errors.New("somebody was faster"))
)

func code(status int) error {
	return apierrors.NewGenericServerResponse(status, "post", things, "a", "", 0, true)
}

// What is gone by now, or another's by now, needs nothing any more; what the API server refuses for another reason is
// told.
func TestWhoComesTooLateHasNothingToDo(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil)
	forbidden := apierrors.NewForbidden(things, "a", errors.New("RBAC"))
	var answer error
	faults := interceptor.Funcs{
		SubResourceCreate: func(context.Context, client.Client, string, client.Object, client.Object,
			...client.SubResourceCreateOption) error {
			return answer
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch,
			...client.SubResourcePatchOption) error {
			return answer
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return answer },
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n",
		Finalizers: []string{v1.TerminationFinalizer, "example.com/other"}}}
	pod := command.Write{Kind: command.KindPod, Name: "u"}
	bound, nominated := pod, pod
	bound.Bound, bound.Node, nominated.Nominated, nominated.Node = true, "n", true, "n"
	for _, x := range []struct {
		c     command.Command
		late  []error
		wrote command.Write
	}{
		{command.Bind{UID: "u", Name: "p", Node: "n"}, []error{gone, conflict}, bound},
		{command.Nominate{UID: "u", Name: "p", Node: "n"}, []error{gone, invalid}, nominated},
		{command.Evict{UID: "u", Name: "p"}, []error{gone, conflict}, pod},
		{command.Evict{UID: "u", Name: "p", Delete: true}, []error{gone, conflict}, pod},
		{command.DeleteClaim{Claim: "a", UID: "u"}, []error{gone, conflict}, command.Write{Kind: command.KindClaim,
			Name: "a"}},
		{command.DeleteNode{Node: "n", UID: "n"}, []error{gone, conflict}, command.Write{Kind: command.KindNode,
			Name: "n"}},
		{command.Release{Node: "n", NodeUID: "n"}, []error{gone, conflict}, command.Write{Kind: command.KindNode,
			Name: "n", Gone: true}},
	} {
		for _, answer = range append(x.late, nil) {
			out := newStage(t, faults, node.DeepCopy()).do(x.c)
			if out.Err != nil || !slices.Equal(out.Writes, []command.Write{x.wrote}) {
				t.Errorf("%T answered with %v: %v, wrote %+v, want %+v", x.c, answer, out.Err, out.Writes, x.wrote)
			}
		}
		for _, answer = range []error{forbidden, code(http.StatusInternalServerError)} {
			out := newStage(t, faults, node.DeepCopy()).do(x.c)
			if !errors.Is(out.Err, answer) || len(out.Writes) != 0 || out.Refused {
				t.Errorf("%T answered with %v: %+v", x.c, answer, out)
			}
		}
	}
}

// A pod whose node is out of time is not asked but deleted: that the API server is busy is no refusal by a budget.
func TestBusyServerIsNoRefusal(t *testing.T) {
	s := newStage(t, interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object,
		...client.DeleteOption) error {
		return code(http.StatusTooManyRequests)
	}})
	if out := s.do(command.Evict{Pod: "ns/p", UID: "u", Name: "p", Delete: true}); !apierrors.IsTooManyRequests(
		out.Err) || out.Refused {
		t.Errorf("outcome %+v", out)
	}
}

// Whether a claim was created is open after some answers: then it must be asked for again under the same name.
func TestCreateIsUnsureUnlessTheServerSaidNo(t *testing.T) {
	for _, x := range []struct {
		answer error
		unsure bool
	}{
		{code(http.StatusBadRequest), false}, {code(http.StatusForbidden), false},
		{code(http.StatusUnprocessableEntity), false}, {code(499), false},
		{code(http.StatusRequestTimeout), true}, {code(http.StatusTooManyRequests), true},
		{code(http.StatusInternalServerError), true}, {code(http.StatusGatewayTimeout), true}, {code(399), true},
		{errAway, true},
	} {
		s := newStage(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object,
			...client.CreateOption) error {
			return x.answer
		}})
		if out := s.do(command.CreateClaim{Name: "a", Template: cluster.Template{ExpireAfter: "Never"}}); !errors.Is(
			out.Err, x.answer) || out.Unsure != x.unsure {
			t.Errorf("%v: outcome %+v, want unsure %t", x.answer, out, x.unsure)
		}
	}
	leaving, now := ours("a"), metav1.Now()
	leaving.DeletionTimestamp = &now
	if out := newStage(t, interceptor.Funcs{}, leaving).do(command.CreateClaim{Name: "a",
		Template: cluster.Template{ExpireAfter: "Never"}}); !errors.Is(out.Err, errStillDeleting) || out.Unsure {
		t.Errorf("a namesake that is leaving: %+v", out)
	}
}

// A command about what is gone is done, and has written nothing.
func TestCommandsAboutWhatIsGone(t *testing.T) {
	for _, c := range []command.Command{
		command.Adopt{Claim: "a"}, command.LaunchInstance{Claim: "a"}, command.Register{Claim: "a", Node: "a"},
		command.Open{Claim: "a", Node: "a"},
		command.Initialize{Claim: "a", Node: "a"}, command.Unfence{Claim: "a", Node: "a"},
		command.Terminate{Claim: "a"}, command.Terminate{UID: "u", ProviderID: "fake://u"},
		command.SetPool{Pool: "a"}, command.SetClaim{Claim: "a", LastPodEvent: deadline, Deadline: deadline},
		command.WritePoolHash{Pool: "a"}, command.WriteClaimHash{Claim: "a"},
		command.Fence{Claim: "a", Node: "a", Reason: command.Drifted}, command.Fence{Claim: "a", Node: "a",
			Reason: command.Drifted, Move: "m"},
	} {
		out := newStage(t, interceptor.Funcs{}).do(c)
		if _, asked := c.(command.Terminate); out.Err != nil || len(out.Writes) != 0 || out.InstanceGone != asked ||
			out.RetryAfter != 0 {
			t.Errorf("%+v: outcome %+v", c, out)
		}
	}
	if out := newStage(t, interceptor.Funcs{}).do(nil); out.Err == nil ||
		out.Err.Error() != "no way to carry out <nil>" {
		t.Errorf("no command at all: %v", out.Err)
	}
}

// One who comes second reads what is there past the cache and tries again, five times in all and with a breath in
// between.
func TestConflictsAreReadAgainLive(t *testing.T) {
	behind, live := 0, 0
	var breaths []time.Duration
	s := newStage(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			opts ...client.GetOption) error {
			behind++
			return c.Get(ctx, key, obj, opts...)
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return conflict
		},
	}, ours("a"))
	s.actor.Live = newStage(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch,
		key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		live++
		return c.Get(ctx, key, obj, opts...)
	}}, ours("a")).api
	s.actor.Wait = func(_ context.Context, d time.Duration) error {
		breaths = append(breaths, d)
		return nil
	}
	c := command.WriteClaimHash{Claim: "a", UID: "uid-1", Hash: "1", Version: "v3"}
	out := s.do(c)
	if want := slices.Repeat([]time.Duration{10 * time.Millisecond}, 4); !apierrors.IsConflict(out.Err) ||
		behind != 1 || live != 4 || !slices.Equal(breaths, want) {
		t.Errorf("%v after %d reads of the cache, %d live and waits of %v; want 1, 4 and %v", out.Err, behind, live,
			breaths, want)
	}
	behind, live = 0, 0
	// the program is being stopped
	s.actor.Wait = func(context.Context, time.Duration) error { return context.Canceled }
	if out := s.do(c); !apierrors.IsConflict(out.Err) || behind != 1 || live != 0 {
		t.Errorf("%v after %d reads of the cache and %d live; want 1 and 0", out.Err, behind, live)
	}
	s.actor.Wait = nil // the real clock, and a program that is stopped already
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	behind = 0
	if out := s.actor.Do(ctx, c); !apierrors.IsConflict(out.Err) || live != 0 {
		t.Errorf("%v after %d reads of the cache and %d live", out.Err, behind, live)
	}
}

// What the cache has may be old in more than its version. What an edit found there is forgotten when it is read again.
func TestReleaseForgetsWhatTheCacheSaid(t *testing.T) {
	claim, now := ours("a"), metav1.Now()
	claim.DeletionTimestamp, claim.Status.ProviderID = &now, "fake://new"
	old := true
	s := newStage(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey,
		obj client.Object, opts ...client.GetOption) error {
		err := c.Get(ctx, key, obj, opts...)
		if claim, ok := obj.(*v1.NodeClaim); ok && old {
			old, claim.Status.ProviderID, claim.ResourceVersion = false, "fake://old", "1"
		}
		return err
	}}, claim)
	if out := s.do(command.Release{Claim: "a", UID: "uid-1", ProviderID: "fake://new"}); out.Err != nil || old {
		t.Errorf("outcome %+v", out)
	}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: "a"}, claim); !apierrors.IsNotFound(err) {
		t.Errorf("the claim is still there (%v)", err)
	}
}

// stuck is a cloud in which an end fails in a way of its own.
type stuck struct {
	cloudprovider.Instances
	answer error
}

func (c stuck) Delete(context.Context, string, cloudprovider.Owner) error { return c.answer }

// A claim may vanish while its instance is being launched. That the instance could not be ended is told; if it went by
// itself, all is well.
func TestInstanceForNobodyThatIsNotEnded(t *testing.T) {
	for _, x := range []struct{ answer, want error }{{errAway, errAway},
		{&cloudprovider.NotFoundError{ProviderID: "fake://uid-1"}, nil}} {
		s := newStage(t, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch,
			...client.PatchOption) error {
			return gone
		}}, ours("a"))
		s.actor.Cloud = stuck{s.actor.Cloud, x.answer}
		if out := s.do(command.LaunchInstance{Claim: "a"}); !errors.Is(out.Err, x.want) {
			t.Errorf("%v, want %v", out.Err, x.want)
		}
	}
}

// A node may name a machine that can't be ended right now: only one that is somebody else's is let be.
func TestMachineOfANodeThatCannotBeEnded(t *testing.T) {
	for _, x := range []struct {
		answer error
		gone   bool
	}{{errAway, false}, {&cloudprovider.NotFoundError{ProviderID: "fake://uid-1"}, true}} {
		s := newStage(t, interceptor.Funcs{})
		if _, err := s.actor.Cloud.Create(t.Context(), ours("a")); err != nil {
			t.Fatal(err)
		}
		s.actor.Cloud = stuck{s.actor.Cloud, x.answer}
		out := s.do(command.Terminate{Node: "n", ProviderID: "fake://uid-1"})
		if out.InstanceGone != x.gone || out.RetryAfter != 0 || errors.Is(out.Err, errAway) == x.gone {
			t.Errorf("%v: outcome %+v", x.answer, out)
		}
	}
}
