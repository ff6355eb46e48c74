package actuate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/resource"
)

// These tests hold what mutants of the code got away with in all other tests.

// node reads a node.
func (s *actorWorld) node(name string) *corev1.Node {
	s.Helper()
	node := &corev1.Node{}
	if err := s.api.Get(s.Context(), client.ObjectKey{Name: name}, node); err != nil {
		s.Fatal(err)
	}
	return node
}

func TestCreatedClaimHasAllOfItsTemplate(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	c := command.CreateClaim{
		Name: "x", Pool: "default", PoolUID: "p", Relaxed: true,
		Labels: cluster.LabelsOf(map[string]string{v1.NodePoolLabelKey: "default", v1.NodeInitializedLabelKey: "true"}),
		Template: cluster.Template{ExpireAfter: "2h0m0s", HasTerminationGrace: true, TerminationGrace: time.Minute,
			Taints:        []cluster.Taint{{Key: "a", Value: "b", Effect: cluster.NoSchedule}},
			StartupTaints: []cluster.Taint{{Key: "c", Effect: cluster.NoExecute}}},
		Requests: resource.Vector{resource.CPU: 100},
	}
	if out := s.do(c); out.Err != nil {
		t.Fatal(out.Err)
	}
	claim := s.claim("x")
	if !slices.Equal(claim.Spec.Taints, []v1.Taint{{Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule}}) ||
		!slices.Equal(claim.Spec.StartupTaints, []v1.Taint{{Key: "c", Effect: corev1.TaintEffectNoExecute}}) {
		t.Errorf("taints %+v and %+v", claim.Spec.Taints, claim.Spec.StartupTaints)
	}
	if claim.Spec.ExpireAfter.Duration == nil || *claim.Spec.ExpireAfter.Duration != 2*time.Hour {
		t.Errorf("it expires after %v", claim.Spec.ExpireAfter)
	}
	if g := claim.Spec.TerminationGracePeriod; g == nil || g.Duration != time.Minute {
		t.Errorf("its grace period is %v", g)
	}
	if claim.Labels[v1.NodeInitializedLabelKey] != "" {
		t.Error("a claim without a node is labelled as initialized")
	}
	if claim.Annotations[v1.NodeClaimMinValuesRelaxedAnnotationKey] != "true" {
		t.Error("that minValues were relaxed is not told")
	}
	if got := claim.Spec.Resources.Requests; len(got) != 1 || got.Cpu().MilliValue() != 100 {
		t.Errorf("it asks for %v", got)
	}
	c.Name, c.Relaxed, c.Template.HasTerminationGrace = "y", false, false
	if out := s.do(c); out.Err != nil {
		t.Fatal(out.Err)
	}
	if claim := s.claim("y"); claim.Spec.TerminationGracePeriod != nil ||
		claim.Annotations[v1.NodeClaimMinValuesRelaxedAnnotationKey] != "" {
		t.Errorf("what was not asked for: %+v", claim)
	}
}

func TestRegisteredNodeIsItsClaims(t *testing.T) {
	claim := ours("x")
	claim.Labels["team"] = "blue"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n-uid",
		Labels: map[string]string{"kubelet": "said"}}}
	s := newStage(t, interceptor.Funcs{}, claim, node)
	for range 2 { // asking again changes nothing
		out := s.do(command.Register{Claim: "x", Node: "n"})
		if out.Err != nil || len(out.Writes) == 0 {
			t.Fatalf("outcome %+v", out)
		}
	}
	got := s.node("n")
	if got.Labels["team"] != "blue" || got.Labels["kubelet"] != "said" ||
		got.Labels[v1.NodeClassLabelKey("fake.tenon.sh", "FakeNodeClass")] != "default" {
		t.Errorf("labels %v", got.Labels)
	}
	if len(got.OwnerReferences) != 1 || got.OwnerReferences[0].UID != "uid-1" || !slices.Equal(got.Finalizers,
		[]string{v1.TerminationFinalizer}) {
		t.Errorf("owners %+v, finalizers %v", got.OwnerReferences, got.Finalizers)
	}
	if c := meta.FindStatusCondition(s.claim("x").Status.Conditions, v1.ConditionTypeInitialized); c == nil ||
		c.Status != metav1.ConditionUnknown {
		t.Errorf("Initialized is %+v", c)
	}
	out := s.do(command.Initialize{Claim: "x", Node: "n"})
	if out.Err != nil || len(out.Writes) != 2 {
		t.Fatalf("outcome %+v", out)
	}
	if s.node("n").Labels[v1.NodeInitializedLabelKey] != "true" {
		t.Error("the node is not labelled as initialized")
	}
	now := s.claim("x")
	for _, kind := range []string{v1.ConditionTypeInitialized, v1.ConditionTypeConsistentStateFound} {
		if !meta.IsStatusConditionTrue(now.Status.Conditions, kind) {
			t.Errorf("%s is not True", kind)
		}
	}
	if out := s.do(command.Register{Claim: "x", Node: "n"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	if !meta.IsStatusConditionTrue(s.claim("x").Status.Conditions, v1.ConditionTypeInitialized) {
		t.Error("a node that registers once more is no longer initialized")
	}
}

// A node of the same name may be another machine by the time that a patch arrives: the patch says whom it is for.
func TestNodePatchSparesANamesake(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "new"}}
	s := newStage(t, interceptor.Funcs{}, node)
	base := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "old"}}
	next := base.DeepCopy()
	next.Labels = map[string]string{"a": "b"}
	if err := s.actor.patchNode(s.Context(), base, next); err == nil {
		t.Error("a patch for another node is taken")
	}
	if got := s.node("n"); got.Labels["a"] != "" {
		t.Error("the namesake has got it")
	}
	var sent string
	spy := newStage(t, interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, obj client.Object,
		patch client.Patch, _ ...client.PatchOption) error {
		data, err := patch.Data(obj)
		sent = string(data)
		return err
	}}, node)
	if err := spy.actor.patchNode(spy.Context(), base, next); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(sent, `[{"op":"test","path":"/metadata/uid","value":"old"}`) {
		t.Errorf("the patch is %s", sent)
	}
}

// What has been written is reported: until the watch shows it, nobody asks again.
func TestReleaseReportsItsWrites(t *testing.T) {
	claim, node := ours("x"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n-uid",
		Finalizers: []string{v1.TerminationFinalizer}}}
	at := metav1.Now()
	claim.DeletionTimestamp, claim.Finalizers = &at, append(claim.Finalizers, "example.com/other")
	s := newStage(t, interceptor.Funcs{}, claim, node)
	out := s.do(command.Release{Claim: "x", UID: "uid-1", Node: "n", NodeUID: "n-uid"})
	want := []command.Write{{Kind: command.KindNode, Name: "n", Gone: true}, {Kind: command.KindClaim, Name: "x",
		Gone: true}}
	if out.Err != nil || !slices.Equal(out.Writes, want) {
		t.Fatalf("outcome %+v, want the writes %+v", out, want)
	}
	if got := s.claim("x").Finalizers; !slices.Equal(got, []string{"example.com/other"}) {
		t.Errorf("the claim's finalizers are %v", got)
	}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); !apierrors.IsNotFound(err) {
		t.Errorf("the node is still there (%v)", err)
	}
}

// A fault on the way to the API server is reported, so that the command is tried again.
func TestFaultsAreReported(t *testing.T) {
	broken := errors.New("the API server is away")
	fail := interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return broken
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch,
			...client.SubResourcePatchOption) error {
			return broken
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return broken },
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n-uid",
		Finalizers: []string{v1.TerminationFinalizer}, Annotations: map[string]string{cluster.KeptForAnnotation: "m"}},
		Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{v1.DisruptedNoScheduleTaint()}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p-uid"}}
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "pool"}}
	for _, c := range []command.Command{
		command.Register{Claim: "x", Node: "n"}, command.Initialize{Claim: "x", Node: "n"}, command.Open{Claim: "x",
			Node: "n"},
		command.Fence{Claim: "x", UID: "uid-1", Node: "n", Reason: command.Empty}, command.Unfence{Claim: "x",
			UID: "uid-1", Node: "n"},
		command.Release{Claim: "x", UID: "uid-1", Node: "n", NodeUID: "n-uid"}, command.DeleteClaim{Claim: "x",
			UID: "uid-1", Reason: command.Empty},
		command.DeleteNode{Node: "n", UID: "n-uid"}, command.Nominate{Pod: "ns/p", UID: "p-uid", Namespace: "ns",
			Name: "p", Node: "n"},
		command.WritePoolHash{Pool: "default", UID: "pool", Hash: "1", Version: "v"}, command.WriteClaimHash{Claim: "x",
			UID: "uid-1", Hash: "1", Version: "v"},
		command.SetClaim{Claim: "x", Conditions: []command.Condition{{Type: "T", Status: cluster.True}}},
	} {
		s := newStage(t, fail, ours("x"), node.DeepCopy(), pod.DeepCopy(), pool.DeepCopy())
		if out := s.do(c); out.Err == nil {
			t.Errorf("%s: the fault is not reported", c.Key())
		}
	}
}

// Refusals are what the API server says of the object itself; everything else may go well another time.
func TestWhatIsARefusal(t *testing.T) {
	status := func(code int32) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: metav1.StatusReasonUnknown}}
	}
	for code, want := range map[int32]bool{399: false, 400: true, 422: true, 499: true, 500: false, 501: false} {
		if got := isRefusal(status(code)); got != want {
			t.Errorf("%d is a refusal: %v, want %v", code, got, want)
		}
	}
	if isRefusal(errors.New("no answer")) || isRefusal(apierrors.NewTooManyRequests("later", 1)) ||
		isRefusal(apierrors.NewTimeoutError("slow", 1)) {
		t.Error("what may go well another time is taken for a refusal")
	}
}

// silent is a cloud that gives no answer to some questions.
type silent struct {
	cloudprovider.Instances
	deletes, lists error
}

func (c silent) Delete(ctx context.Context, id string, owner cloudprovider.Owner) error {
	if c.deletes != nil {
		return c.deletes
	}
	return c.Instances.Delete(ctx, id, owner)
}

func (c silent) List(ctx context.Context) ([]*cloudprovider.Instance, error) {
	if c.lists != nil {
		return nil, c.lists
	}
	return c.Instances.List(ctx)
}

// No answer is not the answer that there is nothing: an instance that may run is neither gone nor forgotten.
func TestACloudThatIsSilentHasEndedNothing(t *testing.T) {
	away := errors.New("no answer")
	for name, x := range map[string]struct {
		cloud   silent
		command command.Terminate
	}{
		"the end of an instance": {silent{deletes: away}, command.Terminate{Claim: "x", UID: "uid-1",
			ProviderID: "fake:///1"}},
		"the end of an orphan": {silent{deletes: away}, command.Terminate{UID: "uid-1", ProviderID: "fake://uid-1"}},
		"the list":             {silent{lists: away}, command.Terminate{Claim: "x", UID: "uid-1"}},
	} {
		s := newStage(t, interceptor.Funcs{}, ours("x"))
		if x.command.Claim == "" { // whose claim is gone
			s = newStage(t, interceptor.Funcs{})
			if _, err := s.actor.Cloud.Create(t.Context(), ours("x")); err != nil {
				t.Fatal(err)
			}
		}
		x.cloud.Instances = s.actor.Cloud
		s.actor.Cloud = x.cloud
		if out := s.do(x.command); !errors.Is(out.Err, away) || out.InstanceGone {
			t.Errorf("%s: outcome %+v", name, out)
		}
	}
}

func TestAdoptionPutsTheFinalizerOn(t *testing.T) {
	free, leaving := ours("x"), ours("y")
	free.Finalizers, leaving.Finalizers = []string{"example.com/other"}, []string{"example.com/other"}
	at := metav1.Now()
	leaving.DeletionTimestamp, leaving.UID = &at, "uid-2"
	s := newStage(t, interceptor.Funcs{}, free, leaving)
	for range 2 {
		if out := s.do(command.Adopt{Claim: "x"}); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	if got := s.claim("x").Finalizers; !slices.Equal(got, []string{"example.com/other", v1.TerminationFinalizer}) {
		t.Errorf("finalizers %v", got)
	}
	if out := s.do(command.Adopt{Claim: "y"}); out.Err != nil || slices.Contains(s.claim("y").Finalizers,
		v1.TerminationFinalizer) {
		t.Errorf("a claim on its way out is adopted: %+v", out)
	}
}

func TestPoolTellsItsStatus(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "pool"}})
	status := command.PoolStatus{Nodes: 3, ClassGeneration: 7, Resources: resource.Vector{resource.CPU: 2500},
		Conditions: []command.Condition{{Type: "Ready", Status: cluster.True, Reason: "Ready"}}}
	out := s.do(command.SetPool{Pool: "default", Status: status})
	if out.Err != nil || len(out.Writes) != 1 || out.Writes[0].Kind != command.KindPool || out.Writes[0].Version == "" {
		t.Fatalf("outcome %+v", out)
	}
	pool := &v1.NodePool{}
	if err := s.api.Get(s.Context(), client.ObjectKey{Name: "default"}, pool); err != nil {
		t.Fatal(err)
	}
	nodes := pool.Status.Resources["nodes"]
	if pool.Status.NodeClassObservedGeneration != 7 || nodes.Value() != 3 ||
		pool.Status.Resources.Cpu().MilliValue() != 2500 || !meta.IsStatusConditionTrue(pool.Status.Conditions,
		"Ready") {
		t.Errorf("the status is %+v", pool.Status)
	}
	if out := s.do(command.SetPool{Pool: "gone", Status: status}); out.Err != nil {
		t.Errorf("a pool that is gone: %v", out.Err)
	}
}

// A claim is Ready when all that counts is True, and says what is not.
func TestReadyFollowsTheOtherConditions(t *testing.T) {
	claim := ours("x")
	ready := func() *metav1.Condition {
		return meta.FindStatusCondition(claim.Status.Conditions, v1.ConditionTypeReady)
	}
	claim.Generation = 4
	setCondition(claim, isTrue(v1.ConditionTypeLaunched, "L"))
	if c := ready(); c == nil || c.Status != metav1.ConditionUnknown || c.ObservedGeneration != 4 {
		t.Fatalf("launched only: %+v", c)
	}
	setCondition(claim, isTrue(v1.ConditionTypeRegistered, "R"))
	setCondition(claim, isTrue(v1.ConditionTypeInitialized, "I"))
	if c := ready(); c.Status != metav1.ConditionTrue {
		t.Fatalf("all True: %+v", c)
	}
	setCondition(claim, cluster.Condition{Type: v1.ConditionTypeRegistered, Status: cluster.False, Reason: "Lost"})
	if c := ready(); c.Status != metav1.ConditionFalse {
		t.Fatalf("one False: %+v", c)
	}
}
