package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/fake"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// actorWorld is an actor on a faked API server and cloud, so that faults can be put in between.
type actorWorld struct {
	*testing.T
	actor *Actor
	api   client.Client
	cloud *fake.Cloud
}

// kinds are what the API server knows. Registering them takes a while, and nobody changes them.
var kinds = sync.OnceValues(func() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
})

func newStage(t *testing.T, faults interceptor.Funcs, objects ...client.Object) *actorWorld {
	t.Helper()
	scheme, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	api := clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}).
		WithStatusSubresource(&v1.NodeClaim{}, &v1.NodePool{}).WithInterceptorFuncs(faults).Build()
	cloud := fake.NewCloud()
	names := &resource.Names{}
	return &actorWorld{T: t, api: api, cloud: cloud, actor: &Actor{
		Objects: Objects{Client: api, Live: api}, Cloud: fake.New(cloud), Now: time.Now, Names: func() *resource.Names {
			return names
		},
	}}
}

func (s *actorWorld) do(c command.Command) command.Outcome { return s.actor.Do(s.Context(), c) }

func (s *actorWorld) claim(name string) *v1.NodeClaim {
	s.Helper()
	claim := &v1.NodeClaim{}
	if err := s.api.Get(s.Context(), client.ObjectKey{Name: name}, claim); err != nil {
		s.Fatal(err)
	}
	return claim
}

func (s *actorWorld) instances() int {
	s.Helper()
	list, err := s.actor.Cloud.List(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return len(list)
}

func ours(name string) *v1.NodeClaim {
	return &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1", Finalizers: []string{v1.TerminationFinalizer},
			Labels: map[string]string{v1.NodePoolLabelKey: "default"}},
		Spec: v1.NodeClaimSpec{
			NodeClassRef: &v1.NodeClassReference{Group: "fake.tenon.sh", Kind: "FakeNodeClass", Name: "default"},
			Taints:       []v1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}},
		},
	}
}

func TestCreateClaimTwiceIsOnce(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	c := command.CreateClaim{
		Name: "default-x", Pool: "default", PoolUID: "p",
		Labels: cluster.LabelsOf(map[string]string{v1.NodePoolLabelKey: "default", v1.NodeRegisteredLabelKey: "true"}),
		Template: cluster.Template{ExpireAfter: "Never", NodeClass: cluster.ClassRef{Group: "g", Kind: "K",
			Name: "n"}},
		Requirements: require.Set{}.With("zone", require.Only("a", "b")).WithMin("zone", 2),
		Requests:     resource.Vector{resource.CPU: 1500, resource.Pods: 2},
		Seats:        []cluster.Seat{{Class: "k", Count: 2}},
	}
	for range 2 {
		out := s.do(c)
		if out.Err != nil || len(out.Writes) != 1 || !out.Writes[0].Created {
			t.Fatalf("outcome %+v", out)
		}
	}
	claim := s.claim("default-x")
	cpu := claim.Spec.Resources.Requests[corev1.ResourceCPU]
	if cpu.String() != "1500m" || claim.Spec.ExpireAfter.String() != "Never" ||
		*claim.Spec.Requirements[0].MinValues != 2 ||
		claim.Annotations[cluster.SeatsAnnotation] != "k:2" || claim.OwnerReferences[0].Name != "default" {
		t.Errorf("the claim is %+v", claim)
	}
	if claim.Labels[v1.NodeRegisteredLabelKey] != "" {
		t.Error("a claim without a node is labelled as registered")
	}
	if !slices.Contains(claim.Finalizers, v1.TerminationFinalizer) {
		t.Error("the claim can vanish behind our back")
	}
}

func TestCreateClaimWaitsForANamesakeToGo(t *testing.T) {
	gone := ours("default-x")
	now := metav1.Now()
	gone.DeletionTimestamp = &now
	s := newStage(t, interceptor.Funcs{}, gone)
	out := s.do(command.CreateClaim{Name: "default-x", Template: cluster.Template{ExpireAfter: "Never"}})
	if out.Err == nil || out.Err.Error() != "creating NodeClaim default-x: a claim of the same name is still being "+
		"deleted" {
		t.Errorf("outcome %v", out.Err)
	}
}

func TestLaunchWritesDownWhatItGot(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"))
	if out := s.do(command.LaunchInstance{Claim: "a"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	claim := s.claim("a")
	if claim.Status.ProviderID == "" || claim.Labels[corev1.LabelInstanceTypeStable] == "" ||
		claim.Status.Allocatable.Cpu().IsZero() ||
		!meta.IsStatusConditionTrue(claim.Status.Conditions, v1.ConditionTypeLaunched) {
		t.Errorf("labels %v, status %+v", claim.Labels, claim.Status)
	}
	if meta.IsStatusConditionTrue(claim.Status.Conditions, v1.ConditionTypeReady) {
		t.Error("the claim is Ready before its node is there")
	}
}

// guessing is a cloud that does not know its prices.
type guessing struct{ cloudprovider.Instances }

func (g guessing) Create(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	i, err := g.Instances.Create(ctx, claim)
	if err == nil {
		i.Type, i.Price, i.PriceEstimated = "m9.large", 0.125, true
	}
	return i, err
}

func TestAnEstimatedPriceIsTold(t *testing.T) {
	for _, estimated := range []bool{false, true} {
		s := newStage(t, interceptor.Funcs{}, ours("a"))
		want := ""
		if estimated {
			s.actor.Cloud = guessing{s.actor.Cloud}
			want = "nobody has told the price of m9.large; it is estimated at $0.1250 an hour from what other " +
				"instance types cost"
		}
		if out := s.do(command.LaunchInstance{Claim: "a"}); out.Err != nil {
			t.Fatal(out.Err)
		}
		c := meta.FindStatusCondition(s.claim("a").Status.Conditions, v1.ConditionTypeLaunched)
		if c == nil || c.Status != metav1.ConditionTrue || c.Message != want {
			t.Errorf("Launched is %+v, want the message %q", c, want)
		}
	}
}

// stamping is a cloud that wants to find something on the claim later.
type stamping struct{ cloudprovider.Instances }

func (s stamping) Create(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	i, err := s.Instances.Create(ctx, claim)
	if err == nil {
		i.Annotations = map[string]string{"example.com/version": "7"}
	}
	return i, err
}

func TestLaunchKeepsTheProvidersAnnotations(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"))
	s.actor.Cloud = stamping{s.actor.Cloud}
	if out := s.do(command.LaunchInstance{Claim: "a"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	if got := s.claim("a").Annotations["example.com/version"]; got != "7" {
		t.Errorf("the claim's annotation is %q", got)
	}
}

// TestLaunchedClaimHasItsLabels fails the write of the labels: the claim must not count as Launched, or nobody would
// write them.
func TestLaunchedClaimHasItsLabels(t *testing.T) {
	lost := true
	s := newStage(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object,
		p client.Patch, opts ...client.PatchOption) error {
		if lost {
			return errors.New("the connection was reset")
		}
		return c.Patch(ctx, obj, p, opts...)
	}}, ours("a"))
	if out := s.do(command.LaunchInstance{Claim: "a"}); out.Err == nil {
		t.Fatal("the lost write is no error")
	}
	if claim := s.claim("a"); meta.IsStatusConditionTrue(claim.Status.Conditions, v1.ConditionTypeLaunched) {
		t.Error("the claim is Launched and has no labels")
	}
	lost = false
	if out := s.do(command.LaunchInstance{Claim: "a"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	if claim := s.claim("a"); claim.Labels[corev1.LabelInstanceTypeStable] == "" ||
		!meta.IsStatusConditionTrue(claim.Status.Conditions, v1.ConditionTypeLaunched) {
		t.Errorf("after another try: labels %v, status %+v", claim.Labels, claim.Status)
	}
}

// TestLaunchWhoseAnswerIsLost fails every status write after the instance was started: the next try finds the instance.
func TestLaunchWhoseAnswerIsLost(t *testing.T) {
	lost := true
	s := newStage(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string,
		obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		if lost {
			return errors.New("the connection was reset")
		}
		return c.SubResource(sub).Patch(ctx, obj, p, opts...)
	}}, ours("a"))
	if out := s.do(command.LaunchInstance{Claim: "a"}); out.Err == nil {
		t.Fatal("the lost write is no error")
	}
	lost = false
	if out := s.do(command.LaunchInstance{Claim: "a"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	if n := s.instances(); n != 1 {
		t.Errorf("%d instances run, want 1", n)
	}
}

func TestRefusedLaunchIsACondition(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"))
	types, err := fake.New(s.cloud).InstanceTypes(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range types {
		for _, o := range kind.Offerings {
			s.cloud.Exhaust(cloudprovider.OfferingRef{Type: kind.Name, Zone: o.Labels[corev1.LabelTopologyZone],
				CapacityType: o.Labels[v1.CapacityTypeLabelKey]})
		}
	}
	out := s.do(command.LaunchInstance{Claim: "a"})
	if out.Err != nil || len(out.Unavailable) == 0 {
		t.Fatalf("outcome %+v", out)
	}
	c := meta.FindStatusCondition(s.claim("a").Status.Conditions, v1.ConditionTypeLaunched)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != string(command.InsufficientCapacity) {
		t.Fatalf("condition %+v", c)
	}
	if out.Refusal != (command.Refusal{Reason: command.InsufficientCapacity, Message: c.Message}) {
		t.Errorf("the outcome says %+v, the claim %s", out.Refusal, c.Message)
	}
}

// passing is a cloud that could not sell everything on the way to an instance.
type passing struct{ cloudprovider.Instances }

func (p passing) Create(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	i, err := p.Instances.Create(ctx, claim)
	if err == nil {
		i.Refused = []cloudprovider.OfferingRef{{Type: "m", Zone: "z", CapacityType: "spot", Within: "group-1",
			Why: "Full: free some"}}
	}
	return i, err
}

func TestRefusalsOnTheWayAreTold(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"))
	s.actor.Cloud = passing{s.actor.Cloud}
	out := s.do(command.LaunchInstance{Claim: "a"})
	want := []command.UnavailableOffering{{Type: "m", Zone: "z", CapacityType: "spot", Within: "group-1",
		Advice: "Full: free some"}}
	if out.Err != nil || out.Refused || !slices.Equal(out.Unavailable, want) {
		t.Errorf("outcome %+v", out)
	}
}

func TestNodeClassThatIsNotReadyIsACondition(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"))
	s.cloud.BlockNodeClass("default", "no subnets")
	if out := s.do(command.LaunchInstance{Claim: "a"}); out.Err != nil || out.Refusal.Reason != command.ClassNotReady {
		t.Fatalf("outcome %+v", out)
	}
	c := meta.FindStatusCondition(s.claim("a").Status.Conditions, v1.ConditionTypeLaunched)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != string(command.ClassNotReady) ||
		c.Message != `NodeClass "default" is not ready: no subnets` {
		t.Errorf("condition %+v", c)
	}
}

func TestRegisterOpensTheNode(t *testing.T) {
	claim := ours("a")
	claim.Annotations = map[string]string{"owner": "me", cluster.SeatsAnnotation: "k:1"}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{v1.UnregisteredNoExecuteTaint()}}}
	conflicts := 1
	s := newStage(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object,
		p client.Patch, opts ...client.PatchOption) error {
		if _, isNode := obj.(*corev1.Node); isNode && conflicts > 0 {
			conflicts--
			return apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "a",
				errors.New("the kubelet was faster"))
		}
		return c.Patch(ctx, obj, p, opts...)
	}}, claim, node)
	out := s.do(command.Register{Claim: "a", Node: "a"})
	if out.Err != nil || len(out.Writes) != 2 {
		t.Fatalf("outcome %+v", out)
	}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: "a"}, node); err != nil {
		t.Fatal(err)
	}
	if len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != "dedicated" ||
		node.Labels[v1.NodeRegisteredLabelKey] != "true" ||
		node.Annotations["owner"] != "me" || node.Annotations[cluster.SeatsAnnotation] != "" ||
		!slices.Contains(node.Finalizers, v1.TerminationFinalizer) || node.OwnerReferences[0].Name != "a" {
		t.Errorf("the node is %+v", node)
	}
	if got := s.claim("a"); got.Status.NodeName != "a" || !meta.IsStatusConditionTrue(got.Status.Conditions,
		v1.ConditionTypeRegistered) {
		t.Errorf("the claim's status is %+v", got.Status)
	}
}

// TestTerminateFindsAnInstanceNobodyWroteDown is the crash between the launch and its record: the claim has no
// providerID, and the instance must not be forgotten.
func TestTerminateFindsAnInstanceNobodyWroteDown(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"))
	if _, err := s.actor.Cloud.Create(t.Context(), s.claim("a")); err != nil {
		t.Fatal(err)
	}
	out := s.do(command.Terminate{Claim: "a"})
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	if !out.InstanceGone {
		if out.RetryAfter == 0 {
			t.Fatal("the instance is still ending, but nobody will ask again")
		}
		out = s.do(command.Terminate{Claim: "a"})
	}
	if !out.InstanceGone || s.instances() != 0 {
		t.Errorf("gone %v, %d instances run", out.InstanceGone, s.instances())
	}
}

func TestReleaseLetsBothGo(t *testing.T) {
	claim, now := ours("a"), metav1.Now()
	claim.DeletionTimestamp = &now
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "n-1",
		Finalizers: []string{v1.TerminationFinalizer}}}
	s := newStage(t, interceptor.Funcs{}, claim, node)
	for range 2 { // the second finds nothing left to do
		if out := s.do(command.Release{Claim: "a", UID: "uid-1", Node: "a", NodeUID: "n-1"}); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	for _, obj := range []client.Object{&v1.NodeClaim{}, &corev1.Node{}} {
		if err := s.api.Get(t.Context(), client.ObjectKey{Name: "a"}, obj); !apierrors.IsNotFound(err) {
			t.Errorf("%T is still there: %v", obj, err)
		}
	}
}

func TestReleaseSparesANamesake(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "new",
		Finalizers: []string{v1.TerminationFinalizer}}}
	s := newStage(t, interceptor.Funcs{}, ours("a"), node)
	if out := s.do(command.Release{Claim: "a", UID: "old-claim", Node: "a", NodeUID: "old"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: "a"}, node); err != nil || len(node.Finalizers) != 1 ||
		node.DeletionTimestamp != nil {
		t.Errorf("another machine of the same name was released: %v %+v", err, node.ObjectMeta)
	}
	if len(s.claim("a").Finalizers) != 1 {
		t.Error("another claim of the same name was released")
	}
}

// TestCreateWhoseAnswerIsLost creates the claim and loses the answer twice: it says that it is not sure, and the same
// claim is found when it is asked for again.
func TestCreateWhoseAnswerIsLost(t *testing.T) {
	lost := 2
	s := newStage(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object,
		opts ...client.CreateOption) error {
		err := c.Create(ctx, obj, opts...)
		if lost > 0 {
			lost--
			return errors.New("the connection was reset")
		}
		return err
	}})
	create := command.CreateClaim{Name: "default-x", Template: cluster.Template{ExpireAfter: "Never"}}
	for range 2 {
		if out := s.do(create); out.Err == nil || !out.Unsure {
			t.Fatalf("outcome %+v, want one that is not sure", out)
		}
	}
	if out := s.do(create); out.Err != nil || out.Unsure || len(out.Writes) != 1 {
		t.Fatalf("outcome %+v", out)
	}
	var list v1.NodeClaimList
	if err := s.api.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
		t.Errorf("%d claims, %v", len(list.Items), err)
	}
}

func TestCreateThatIsRefusedIsReported(t *testing.T) {
	s := newStage(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object,
		...client.CreateOption) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "NodeClaim"}, "default-x", nil)
	}})
	if out := s.do(command.CreateClaim{Name: "default-x",
		Template: cluster.Template{ExpireAfter: "Never"}}); !apierrors.IsInvalid(out.Err) || out.Unsure {
		t.Errorf("outcome %v, want the refusal", out.Err)
	}
}

// TestLaunchForAClaimThatIsGone is a claim removed by force in the middle of its launch: the instance goes too.
func TestLaunchForAClaimThatIsGone(t *testing.T) {
	s := newStage(t, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch,
		...client.PatchOption) error {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "nodeclaims"}, "a")
	}}, ours("a"))
	if out := s.do(command.LaunchInstance{Claim: "a"}); out.Err != nil {
		t.Fatal(out.Err)
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
}

func TestRefusedEvictionIsTriedAgain(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}}
	s := newStage(t, interceptor.Funcs{SubResourceCreate: func(context.Context, client.Client, string, client.Object,
		client.Object, ...client.SubResourceCreateOption) error {
		return apierrors.NewTooManyRequests("a disruption budget forbids it", 1)
	}}, pod)
	if out := s.do(command.Evict{Pod: "ns/p", UID: "u", Namespace: "ns", Name: "p"}); out.Err == nil {
		t.Error("a refused eviction counts as done")
	}
}

func TestUnfenceUndoesFence(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	s := newStage(t, interceptor.Funcs{}, ours("a"), node)
	look := func() {
		if err := s.api.Get(t.Context(), client.ObjectKey{Name: "a"}, node); err != nil {
			t.Fatal(err)
		}
	}
	if out := s.do(command.Fence{Claim: "a", Node: "a", Reason: command.Empty}); out.Err != nil {
		t.Fatal(out.Err)
	}
	look()
	if len(node.Spec.Taints) != 1 || node.Labels[excludeFromBalancers] == "" ||
		!meta.IsStatusConditionTrue(s.claim("a").Status.Conditions, v1.ConditionTypeDisruptionReason) {
		t.Fatalf("fenced node %+v, claim %+v", node, s.claim("a").Status)
	}
	if out := s.do(command.Unfence{Claim: "a", Node: "a"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	look()
	if len(node.Spec.Taints) != 0 || node.Labels[excludeFromBalancers] != "" ||
		meta.FindStatusCondition(s.claim("a").Status.Conditions, v1.ConditionTypeDisruptionReason) != nil {
		t.Errorf("opened node %+v, claim %+v", node, s.claim("a").Status)
	}
}

// TestNodePatchSparesOthersWork changes the node between our reading and our writing: a label stays, and a taint that
// somebody else put on is not overwritten.
func TestNodePatchSparesOthersWork(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "n", Labels: map[string]string{"mine": "1"}}}
	meddled := false
	s := newStage(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object,
		p client.Patch, opts ...client.PatchOption) error {
		if !meddled {
			meddled = true
			other := &corev1.Node{}
			if err := c.Get(ctx, client.ObjectKey{Name: "a"}, other); err != nil {
				return err
			}
			other.Labels["theirs"] = "2"
			other.Spec.Taints = []corev1.Taint{{Key: "theirs", Effect: corev1.TaintEffectNoExecute}}
			if err := c.Update(ctx, other); err != nil {
				return err
			}
			// What a real API server answers to a patch whose test fails.
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, "a", nil)
		}
		return c.Patch(ctx, obj, p, opts...)
	}}, ours("a"), node)
	if out := s.do(command.Fence{Claim: "a", Node: "a", Reason: command.Requested}); out.Err != nil {
		t.Fatal(out.Err)
	}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: "a"}, node); err != nil {
		t.Fatal(err)
	}
	if len(node.Spec.Taints) != 2 || node.Labels["mine"] != "1" || node.Labels["theirs"] != "2" {
		t.Errorf("labels %v, taints %v", node.Labels, node.Spec.Taints)
	}
}

func TestNodePatchStepsAreGuarded(t *testing.T) {
	before := []string{"a"}
	for _, c := range []struct {
		name  string
		steps []operation
		want  string
	}{
		{"same list", listSteps("/x", before, []string{"a"}), ""},
		{"longer list", listSteps("/x", before, []string{"a", "b"}), "test /x [a];add /x [a b];"},
		{"new list", listSteps("/x", nil, []string{"b"}), "test /x <nil>;add /x [b];"},
		{"emptied list", listSteps("/x", before, nil), "test /x [a];remove /x <nil>;"},
		{"map", mapSteps("/m", map[string]string{"k": "1", "gone": "2"}, map[string]string{"k": "1", "a/b~c": "3"}),
			"add /m/a~1b~0c 3;remove /m/gone <nil>;"},
		{"new map", mapSteps("/m", nil, map[string]string{"k": "1"}), "test /m <nil>;add /m map[k:1];"},
	} {
		got := ""
		for _, s := range c.steps {
			got += fmt.Sprintf("%s %s %v;", s.Op, s.Path, s.Value)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
