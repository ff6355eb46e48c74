package actuate

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

var deadline = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func (s *actorWorld) deadline(name string) string {
	return s.claim(name).Annotations[v1.NodeClaimTerminationTimestampAnnotationKey]
}

// A deadline is written once; only an earlier one replaces it.
func TestDeadlineIsWritten(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"))
	for _, x := range []struct {
		at   time.Time
		want string
	}{{deadline, "2026-11-15T12:00:00Z"}, {deadline.Add(time.Hour), "2026-11-15T12:00:00Z"}, {deadline.Add(-time.Hour),
		"2026-11-15T11:00:00Z"}} {
		out := s.do(command.SetClaim{Claim: "a", Deadline: x.at,
			Conditions: []command.Condition{{Type: v1.ConditionTypeDrained, Status: cluster.Unknown,
				Reason: "Draining"}}})
		if out.Err != nil || len(out.Writes) != 2 {
			t.Fatalf("outcome %+v", out)
		}
		if got := s.deadline("a"); got != x.want {
			t.Errorf("after %s: %q, want %q", x.at, got, x.want)
		}
	}
	if c := meta.FindStatusCondition(s.claim("a").Status.Conditions, v1.ConditionTypeDrained); c == nil ||
		c.Reason != "Draining" {
		t.Errorf("condition %+v", c)
	}
}

// A claim that is deleted with a deadline carries it from the first moment; a namesake gets none.
func TestDeletionWritesItsDeadlineFirst(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"))
	if out := s.do(command.DeleteClaim{Claim: "a", UID: "another", Deadline: deadline}); out.Err != nil ||
		s.deadline("a") != "" {
		t.Fatalf("outcome %+v, deadline %q", out, s.deadline("a"))
	}
	if out := s.do(command.DeleteClaim{Claim: "a", UID: "uid-1", Deadline: deadline}); out.Err != nil {
		t.Fatal(out.Err)
	}
	if got := s.claim("a"); got.DeletionTimestamp == nil || s.deadline("a") != "2026-11-15T12:00:00Z" {
		t.Errorf("the claim is %+v", got.ObjectMeta)
	}
}

func TestDeleteNodeSparesANamesake(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "n"}}
	checked := 0
	s := newStage(t, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, obj client.Object,
		opts ...client.DeleteOption) error {
		var o client.DeleteOptions
		o.ApplyOptions(opts)
		if o.Preconditions == nil || o.Preconditions.UID == nil || *o.Preconditions.UID != "n" {
			checked++
			return apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "a", errors.New("another machine"))
		}
		return c.Delete(ctx, obj, opts...)
	}}, node)
	if out := s.do(command.DeleteNode{Node: "a", UID: "old"}); out.Err != nil || checked != 1 {
		t.Fatalf("outcome %+v", out)
	}
	out := s.do(command.DeleteNode{Node: "a", UID: "n"})
	if out.Err != nil || len(out.Writes) != 1 || out.Writes[0].Kind != command.KindNode {
		t.Fatalf("outcome %+v", out)
	}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: "a"}, node); !apierrors.IsNotFound(err) {
		t.Errorf("the node is still there: %v", err)
	}
}

// What comes back from an eviction tells a refusal from a failure.
func TestAnswersToEvictions(t *testing.T) {
	leaving := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p",
		errors.New("the namespace is being terminated"))
	leaving.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, x := range []struct {
		name            string
		answer          error
		failed, refused bool
	}{
		{"done", nil, false, false},
		{"the pod is gone", apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p"), false, false},
		{"it is another pod", apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", errors.New("uid")),
			false, false},
		{"a budget forbids it", apierrors.NewTooManyRequests("no", 0), true, true},
		{"its namespace is on its way out", leaving, true, true},
		{"we may not", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("RBAC")),
			true, false},
		{"the server has failed", apierrors.NewGenericServerResponse(http.StatusInternalServerError, "create",
			schema.GroupResource{}, "p", "", 0, true), true, false},
	} {
		s := newStage(t, interceptor.Funcs{SubResourceCreate: func(context.Context, client.Client, string,
			client.Object, client.Object, ...client.SubResourceCreateOption) error {
			return x.answer
		}})
		if out := s.do(command.Evict{Pod: "ns/p", UID: "u", Namespace: "ns",
			Name: "p"}); (out.Err != nil) != x.failed || out.Refused != x.refused {
			t.Errorf("%s: outcome %+v", x.name, out)
		}
	}
}

// A second try at registering a node does not bring back a startup taint that has been taken off since the first.
func TestStartupTaintsArePutOnOnce(t *testing.T) {
	claim := ours("a")
	claim.Spec.StartupTaints = []v1.Taint{{Key: "boot", Effect: corev1.TaintEffectNoSchedule}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{v1.UnregisteredNoExecuteTaint()}}}
	s := newStage(t, interceptor.Funcs{}, claim, node)
	for i, want := range []int{2, 1} {
		if out := s.do(command.Register{Claim: "a", Node: "a"}); out.Err != nil {
			t.Fatal(out.Err)
		}
		if err := s.api.Get(t.Context(), client.ObjectKey{Name: "a"}, node); err != nil ||
			len(node.Spec.Taints) != want {
			t.Fatalf("try %d: %v, taints %v, want %d", i, err, node.Spec.Taints, want)
		}
		removeTaint(node, corev1.Taint{Key: "boot", Effect: corev1.TaintEffectNoSchedule})
		if err := s.api.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDoNotSyncTaints(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a",
		Labels: map[string]string{v1.NodeDoNotSyncTaintsLabelKey: "true"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{v1.UnregisteredNoExecuteTaint()}}}
	claim := ours("a") // its agent has taken the startup taint off before the node was registered
	claim.Spec.StartupTaints = []v1.Taint{{Key: "boot", Effect: corev1.TaintEffectNoSchedule}}
	s := newStage(t, interceptor.Funcs{}, claim, node)
	if out := s.do(command.Register{Claim: "a", Node: "a"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: "a"}, node); err != nil || len(node.Spec.Taints) != 0 {
		t.Errorf("%v, taints %v, want none", err, node.Spec.Taints)
	}
}

// What was found wrong is not overwritten by what goes without saying.
func TestFalseConditionsStand(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	if out := s.do(command.LaunchInstance{Claim: "a"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	wrong := []command.Condition{{Type: v1.ConditionTypeConsistentStateFound, Status: cluster.False, Reason: "X"},
		{Type: v1.ConditionTypeVolumesDetached, Status: cluster.False, Reason: "X"}}
	id := s.claim("a").Status.ProviderID
	for _, c := range []command.Command{command.SetClaim{Claim: "a", Conditions: wrong}, command.Initialize{Claim: "a",
		Node: "a"}, command.Terminate{Claim: "a", UID: "uid-1", ProviderID: id}} {
		if out := s.do(c); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	conditions := s.claim("a").Status.Conditions
	for _, c := range wrong {
		if !meta.IsStatusConditionFalse(conditions, c.Type) {
			t.Errorf("%s is no longer False", c.Type)
		}
	}
	for _, kind := range []string{v1.ConditionTypeInitialized, v1.ConditionTypeDrained,
		v1.ConditionTypeInstanceTerminating} {
		if !meta.IsStatusConditionTrue(conditions, kind) {
			t.Errorf("%s is not True", kind)
		}
	}
}

// Asking whether the instance is gone costs a call to the cloud and no write.
func TestAskingAgainWritesNothing(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"))
	if out := s.do(command.LaunchInstance{Claim: "a"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	c := command.Terminate{Claim: "a", UID: "uid-1", ProviderID: s.claim("a").Status.ProviderID}
	if out := s.do(c); out.Err != nil || out.InstanceGone || len(out.Writes) != 1 {
		t.Fatalf("first: %+v", out)
	}
	before := s.claim("a").ResourceVersion
	if out := s.do(c); out.Err != nil || len(out.Writes) != 0 || s.claim("a").ResourceVersion != before {
		t.Errorf("then: %+v", out)
	}
}

// An instance that nobody claims is ended for the claim that it was launched for.
func TestTerminateAnOrphan(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	instance, err := s.actor.Cloud.Create(t.Context(), ours("a"))
	if err != nil {
		t.Fatal(err)
	}
	c := command.Terminate{UID: instance.ClaimUID, ProviderID: instance.ProviderID}
	out := s.do(c)
	for tries := 0; out.Err == nil && !out.InstanceGone && out.RetryAfter > 0 && tries < 5; tries++ {
		out = s.do(c)
	}
	if out.Err != nil || !out.InstanceGone || s.instances() != 0 {
		t.Errorf("outcome %+v, %d instances run", out, s.instances())
	}
}

// Another replica may have launched an instance after we were told that there was none: the claim must not go before
// it.
func TestReleaseSparesAClaimThatGotAnInstance(t *testing.T) {
	claim, now := ours("a"), metav1.Now()
	claim.DeletionTimestamp, claim.Status.ProviderID = &now, "cloud://new"
	s := newStage(t, interceptor.Funcs{}, claim)
	if out := s.do(command.Release{Claim: "a", UID: "uid-1"}); out.Err == nil || len(s.claim("a").Finalizers) != 1 {
		t.Errorf("outcome %+v", out)
	}
	if out := s.do(command.Release{Claim: "a", UID: "uid-1", ProviderID: "cloud://new"}); out.Err != nil {
		t.Error(out.Err)
	}
}

// A claim is removed by force in the middle of its launch and another of the same name made: the instance is not its.
func TestLaunchIsNotWrittenToANamesake(t *testing.T) {
	next := ours("a")
	next.UID = "uid-2"
	var swapped atomic.Bool
	s := newStage(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			opts ...client.GetOption) error {
			if err := c.Get(ctx, key, obj, opts...); err != nil {
				return err
			}
			if claim, ok := obj.(*v1.NodeClaim); swapped.Swap(true) && ok {
				claim.UID = next.UID
			}
			return nil
		},
	}, ours("a"))
	out := s.do(command.LaunchInstance{Claim: "a", UID: "uid-1"})
	if out.Err != nil || len(out.Writes) != 0 {
		t.Fatalf("outcome %+v", out)
	}
	if claim := s.claim("a"); claim.Status.ProviderID != "" {
		t.Errorf("the namesake got %s", claim.Status.ProviderID)
	}
	list, err := s.actor.Cloud.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if !i.Terminating {
			t.Errorf("instance %s runs on for nobody", i.ProviderID)
		}
	}
	if out := s.do(command.LaunchInstance{Claim: "a", UID: "uid-1"}); out.Err != nil || s.instances() > len(list) {
		t.Errorf("launched for a claim that is gone: %+v", out)
	}
}

// A patch that is pinned names the object that it is for.
func TestPinnedPatchNamesItsObject(t *testing.T) {
	base := ours("a")
	after := base.DeepCopy()
	after.Labels["k"] = "v"
	for _, x := range []struct {
		obj  *v1.NodeClaim
		want string
	}{{after, `{"metadata":{"labels":{"k":"v"},"uid":"uid-1"}}`}, {base, `{"metadata":{"uid":"uid-1"}}`}} {
		if data, err := (uidPatch{base}).Data(x.obj); err != nil || string(data) != x.want {
			t.Errorf("%s (%v), want %s", data, err, x.want)
		}
	}
}

// deaf is a cloud that fails every launch.
type deaf struct {
	cloudprovider.Instances
	err error
}

func (d deaf) Create(context.Context, *v1.NodeClaim) (*cloudprovider.Instance, error) {
	return nil, d.err
}

// What may go well later is tried again, and the claim says what holds it up.
func TestLaunchThatMayGoWellLater(t *testing.T) {
	for reason, err := range map[string]error{
		"Throttled":    &cloudprovider.ThrottledError{Cause: errors.New("slow down")},
		"Unauthorized": &cloudprovider.UnauthorizedError{Cause: errors.New("who are you")},
		"LaunchFailed": errors.New("the network is down"),
	} {
		s := newStage(t, interceptor.Funcs{}, ours("a"))
		s.actor.Cloud = deaf{err: err}
		if out := s.do(command.LaunchInstance{Claim: "a"}); out.Err == nil || out.Refused {
			t.Errorf("%s: outcome %+v", reason, out)
		}
		c := meta.FindStatusCondition(s.claim("a").Status.Conditions, v1.ConditionTypeLaunched)
		if c == nil || c.Status != metav1.ConditionUnknown || c.Reason != reason || c.Message != err.Error() {
			t.Errorf("%s: condition %+v", reason, c)
		}
	}
}
