package actuate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// A claim says all that its node was planned with: for whom it is made, how many values each key must keep, how much
// room the pods need.
func TestClaimIsWrittenAsItWasPlanned(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	gpu, _ := s.actor.Names().Index("example.com/gpu")
	disks, _ := s.actor.Names().Index(resource.AttachPrefix + "disks.example.com")
	requests := resource.Vector{resource.CPU: 1500, resource.Memory: 1 << 30}
	requests[gpu], requests[disks] = 2, 3
	above, _ := require.Make(require.Gt, []string{"2"})
	below, _ := require.Make(require.Lt, []string{"9"})
	out := s.do(command.CreateClaim{
		Name: "a", Template: cluster.Template{ExpireAfter: "Never"}, Requests: requests,
		Requirements: require.Set{}.With("cores", above.And(below)).WithMin("cores", 3).With("arch",
			require.Only("x")).WithMin("arch", 1).With("zone", require.Only("z")),
		MadeFor:          []cluster.MadeFor{{Owner: "rs-1", Try: 2}},
		Slot:             cluster.Slot{Number: 4, Try: 3},
		DriftReplacement: cluster.DriftReplacement{DriftedInRow: 2, PoolGeneration: 5, ClassGeneration: 7},
	})
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	claim := s.claim("a")
	if got := claim.Annotations[cluster.DriftAnnotation]; got != "2 5 7" {
		t.Errorf("the claim says that it replaces a drifted node %q", got)
	}
	if got := claim.Annotations[cluster.SlotAnnotation]; got != "4=3" {
		t.Errorf("the claim says that it fills the slot %q", got)
	}
	if got := claim.Annotations[cluster.MadeForAnnotation]; got != "rs-1=2" {
		t.Errorf("made for %q, want rs-1=2", got)
	}
	want := map[corev1.ResourceName]string{"cpu": "1500m", "memory": "1Gi", "example.com/gpu": "2"}
	got := map[corev1.ResourceName]string{}
	for name, q := range claim.Spec.Resources.Requests {
		got[name] = q.String()
	}
	if !maps.Equal(got, want) {
		t.Errorf("requests %v, want %v", got, want)
	}
	var mins []int
	for _, r := range claim.Spec.Requirements {
		if r.MinValues == nil {
			mins = append(mins, -1)
		} else {
			mins = append(mins, *r.MinValues)
		}
	}
	if want := []int{1, 3, -1, -1}; !slices.Equal(mins, want) { // told once for a key, and of zone not at all
		t.Errorf("the minValues of %+v are %v, want %v", claim.Spec.Requirements, mins, want)
	}
	if out := s.do(command.CreateClaim{Name: "b", Template: cluster.Template{ExpireAfter: "Never"}}); out.Err != nil {
		t.Fatal(out.Err)
	}
	if _, told := s.claim("b").Annotations[cluster.MadeForAnnotation]; told {
		t.Error("a claim that is made for nobody says for whom it is made")
	}
}

// A lifetime that can't be read is told, and no claim is made: it would live for ever.
func TestClaimWithALifetimeThatCannotBeRead(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	if out := s.do(command.CreateClaim{Name: "a", Template: cluster.Template{ExpireAfter: "soon"}}); out.Err == nil ||
		out.Unsure {
		t.Errorf("outcome %+v", out)
	}
	list := &v1.NodeClaimList{}
	if err := s.api.List(t.Context(), list); err != nil || len(list.Items) != 0 {
		t.Errorf("%d claims (%v), want none", len(list.Items), err)
	}
}

// Every condition names its reason, as the API demands, and the generation that it is about. What a launch does not
// know yet is Unknown, and a launch that is repeated takes nothing back.
func TestConditionsOfALaunch(t *testing.T) {
	claim := ours("a")
	claim.Generation, claim.Labels = 7, nil
	s := newStage(t, interceptor.Funcs{}, claim, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	launch := command.LaunchInstance{Claim: "a", UID: "uid-1"}
	if out := s.do(launch); out.Err != nil {
		t.Fatal(out.Err)
	}
	if got := s.claim("a"); got.Labels[corev1.LabelInstanceTypeStable] == "" {
		t.Errorf("labels %v", got.Labels)
	}
	for _, kind := range []string{v1.ConditionTypeRegistered, v1.ConditionTypeInitialized} {
		if c := meta.FindStatusCondition(s.claim("a").Status.Conditions, kind); c == nil ||
			c.Status != metav1.ConditionUnknown || c.Reason != "NodeNotFound" {
			t.Errorf("%s is %+v", kind, c)
		}
	}
	for _, c := range []command.Command{command.Register{Claim: "a", Node: "a"}, command.Initialize{Claim: "a",
		Node: "a"}, launch,
		command.Fence{Claim: "a", Node: "a", Reason: command.Empty}, command.Terminate{Claim: "a", UID: "uid-1",
			ProviderID: s.claim("a").Status.ProviderID}} {
		if out := s.do(c); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	conditions := s.claim("a").Status.Conditions
	for _, kind := range []string{v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized,
		v1.ConditionTypeReady, v1.ConditionTypeConsolidatable,
		v1.ConditionTypeConsistentStateFound, v1.ConditionTypeDrained, v1.ConditionTypeVolumesDetached,
		v1.ConditionTypeInstanceTerminating} {
		if !meta.IsStatusConditionTrue(conditions, kind) {
			t.Errorf("%s is not True", kind)
		}
	}
	for _, c := range conditions {
		if c.Reason == "" || c.ObservedGeneration != 7 {
			t.Errorf("condition %+v", c)
		}
	}
}

// The cloud wants to find something on a claim that has annotations of its own: they stay.
func TestLaunchKeepsTheClaimsAnnotations(t *testing.T) {
	claim := ours("a")
	claim.Annotations = map[string]string{"owner": "me"}
	s := newStage(t, interceptor.Funcs{}, claim)
	s.actor.Cloud = stamping{s.actor.Cloud}
	if out := s.do(command.LaunchInstance{Claim: "a"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	if got, want := s.claim("a").Annotations, map[string]string{"owner": "me",
		"example.com/version": "7"}; !maps.Equal(got, want) {
		t.Errorf("annotations %v, want %v", got, want)
	}
}

// A launch that was refused says what it wrote, so that the same claim is not asked for before the watch has shown it.
func TestRefusedLaunchSaysWhatItWrote(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"))
	s.cloud.BlockNodeClass("default", "no subnets")
	out := s.do(command.LaunchInstance{Claim: "a"})
	if want := []command.Write{{Kind: command.KindClaim, Name: "a",
		Version: s.claim("a").ResourceVersion}}; out.Err != nil || !out.Refused || !slices.Equal(out.Writes, want) {
		t.Errorf("outcome %+v, want the writes %+v", out, want)
	}
}

// A claim that lost one condition after the other says of the worst why it is not Ready; a condition that is taken off
// is gone.
func TestReadyNamesWhatHasFailed(t *testing.T) {
	claim := ours("a")
	setCondition(claim, cluster.Condition{Type: v1.ConditionTypeInitialized, Status: cluster.False, Reason: "Timeout"})
	ready := meta.FindStatusCondition(claim.Status.Conditions, v1.ConditionTypeReady)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Message != "Initialized is False" {
		// of the others nothing is known
		t.Errorf("Ready is %+v", ready)
	}
	setCondition(claim, cluster.Condition{Type: v1.ConditionTypeInitialized, Status: cluster.Absent})
	if c := meta.FindStatusCondition(claim.Status.Conditions, v1.ConditionTypeInitialized); c != nil {
		t.Errorf("a condition that was taken off is %+v", c)
	}
}

// The time of the last pod event is written; where nothing is to be written but a deadline, the status is not touched.
func TestLastPodEventAndDeadline(t *testing.T) {
	touched := 0
	s := newStage(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string,
		obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		touched++
		return c.SubResource(sub).Patch(ctx, obj, p, opts...)
	}}, ours("a"))
	event := deadline.Add(-time.Hour)
	if out := s.do(command.SetClaim{Claim: "a", LastPodEvent: event}); out.Err != nil || len(out.Writes) != 1 ||
		!s.claim("a").Status.LastPodEventTime.Time.Equal(event) {
		t.Errorf("outcome %+v, the last pod event was at %s", out, s.claim("a").Status.LastPodEventTime)
	}
	touched = 0
	if out := s.do(command.SetClaim{Claim: "a", Deadline: deadline}); out.Err != nil || len(out.Writes) != 1 ||
		touched != 0 {
		t.Errorf("outcome %+v after %d writes of the status", out, touched)
	}
	cond := []command.Condition{{Type: v1.ConditionTypeDrained, Status: cluster.True, Reason: "Drained"}}
	if out := s.do(command.SetClaim{Claim: "a", Conditions: cond}); out.Err != nil ||
		!s.claim("a").Status.LastPodEventTime.Time.Equal(event) {
		t.Errorf("outcome %+v, the last pod event was at %s", out, s.claim("a").Status.LastPodEventTime)
	}
}

// A pool's status takes conditions off that hold no more, and keeps the others.
func TestPoolConditionsComeAndGo(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "p"}})
	status := command.PoolStatus{Nodes: 3, Conditions: []command.Condition{{Type: "Held", Status: cluster.True,
		Reason: "Held"}}}
	for range 2 {
		if out := s.do(command.SetPool{Pool: "default", Status: status}); out.Err != nil {
			t.Fatal(out.Err)
		}
		status.Conditions = []command.Condition{{Type: "Held", Status: cluster.Absent},
			{Type: "Ready", Status: cluster.True, Reason: "Ready"}}
	}
	pool := &v1.NodePool{}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: "default"}, pool); err != nil {
		t.Fatal(err)
	}
	if got := pool.Status.Conditions; len(got) != 1 || got[0].Type != "Ready" || pool.Status.Nodes != 3 {
		t.Errorf("%d nodes, conditions %+v; want 3 and Ready", pool.Status.Nodes, got)
	}
}

// A fence and its end name each write: the move, the reason, the taint, and back. Of a namesake nothing is written.
func TestFenceNamesItsWrites(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	fence := s.do(command.Fence{Claim: "a", UID: "uid-1", Node: "a", Reason: command.Drifted, Move: "m"})
	unfence := s.do(command.Unfence{Claim: "a", UID: "uid-1", Node: "a"})
	claim, node := command.Write{Kind: command.KindClaim, Name: "a"}, command.Write{Kind: command.KindNode, Name: "a"}
	if got, want := written(fence), []command.Write{claim, claim, node}; fence.Err != nil || !slices.Equal(got, want) {
		t.Errorf("the fence (%v) wrote %+v, want %+v", fence.Err, got, want)
	}
	if got, want := written(unfence), []command.Write{node, claim, claim}; unfence.Err != nil ||
		!slices.Equal(got, want) {
		t.Errorf("its end (%v) wrote %+v, want %+v", unfence.Err, got, want)
	}
	if out := s.do(command.WriteClaimHash{Claim: "a", UID: "other", Hash: "1", Version: "v3"}); out.Err != nil ||
		len(out.Writes) != 0 {
		t.Errorf("a namesake: %+v", out)
	}
}

// A pod that has failed is over, like one that has succeeded: its node is drained.
func TestFailedPodsAreOver(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"), podOn("n", "p", corev1.PodFailed))
	if out := s.do(command.LaunchInstance{Claim: "a", UID: "uid-1"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	id := s.claim("a").Status.ProviderID
	s.wantEnd(s.do(command.Terminate{Claim: "a", UID: "uid-1", Node: "n", ProviderID: id, Drained: true}), id, "")
}

// Single keys are set and removed, whatever value they have; where nothing changes nothing is written.
func TestNodePatchWritesWhatChanged(t *testing.T) {
	for name, x := range map[string]struct {
		steps []operation
		want  []operation
	}{
		"none before and after": {mapSteps("/m", nil, nil), nil},
		"emptied by hand":       {mapSteps("/m", nil, map[string]string{}), nil},
		"another value": {mapSteps("/m", map[string]string{"k": "1"}, map[string]string{"k": "2"}),
			[]operation{{"add", "/m/k", "2"}}},
		"a key without a value": {mapSteps("/m", map[string]string{"j": "1"}, map[string]string{"j": "1", "k": ""}),
			[]operation{{"add", "/m/k", ""}}},
		"an empty list": {listSteps("/x", nil, []string{}), nil},
	} {
		if !slices.Equal(x.steps, x.want) {
			t.Errorf("%s: %+v, want %+v", name, x.steps, x.want)
		}
	}
}

// An object that has no UID yet can't be pinned to one; one that can't be written down is told of.
func TestPatchOfWhatCannotBePinned(t *testing.T) {
	base := ours("a")
	base.UID = ""
	after := base.DeepCopy()
	after.Labels["k"] = "v"
	if data, err := (uidPatch{base}).Data(after); err != nil || string(data) != `{"metadata":{"labels":{"k":"v"}}}` {
		t.Errorf("%s (%v)", data, err)
	}
	if data, err := (uidPatch{ours("a")}).Data(unwritable{ours("a")}); !errors.Is(err, errAway) || data != nil {
		t.Errorf("%s (%v), want %v", data, err, errAway)
	}
}

// unwritable is an object that can't be written as JSON.
type unwritable struct{ *v1.NodeClaim }

func (unwritable) MarshalJSON() ([]byte, error) { return nil, errAway }

// A pool that is meant whatever its UID is stamped.
func TestStampOfAnyPool(t *testing.T) {
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "p"}}
	s := newStage(t, interceptor.Funcs{}, pool)
	if out := s.do(command.WritePoolHash{Pool: "default", Hash: "12", Version: "v3"}); out.Err != nil {
		t.Fatal(out.Err)
	}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: "default"}, pool); err != nil ||
		pool.Annotations[v1.NodePoolHashAnnotationKey] != "12" {
		t.Errorf("annotations %v (%v)", pool.Annotations, err)
	}
}

// nameless is a cloud whose instances say the name of their claim, and not its UID.
type nameless struct{ cloudprovider.Instances }

func (c nameless) Get(ctx context.Context, id string) (*cloudprovider.Instance, error) {
	i, err := c.Instances.Get(ctx, id)
	if err == nil {
		i.ClaimUID = ""
	}
	return i, err
}

func (c nameless) Delete(ctx context.Context, id string, owner cloudprovider.Owner) error {
	return c.Instances.Delete(ctx, id, cloudprovider.Owner{ClaimName: owner.ClaimName, ClaimUID: "uid-1"})
}

// An instance that only names its claim is that claim's for as long as one of the name is there.
func TestOrphanThatOnlyNamesItsClaim(t *testing.T) {
	for live, want := range map[string]string{"a": "instance fake://uid-1 is left alone: NodeClaim a (UID uid-7) " +
		"accounts for it", "b": ""} {
		s := newStage(t, interceptor.Funcs{}, with(live, "uid-7", ""))
		if _, err := s.actor.Cloud.Create(t.Context(), ours("a")); err != nil {
			t.Fatal(err)
		}
		s.actor.Cloud = nameless{s.actor.Cloud}
		s.wantEnd(s.do(command.Terminate{ProviderID: "fake://uid-1"}), "fake://uid-1", want)
	}
}

func (c nameless) List(ctx context.Context) ([]*cloudprovider.Instance, error) {
	list, err := c.Instances.List(ctx)
	for _, i := range list {
		i.ClaimUID = ""
	}
	return list, err
}

// A claim that is gone, and of which nobody knows the UID, has no instance to end: what is nobody's is not its.
func TestClaimThatIsGoneEndsNothing(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	if _, err := s.actor.Cloud.Create(t.Context(), ours("a")); err != nil {
		t.Fatal(err)
	}
	s.actor.Cloud = nameless{s.actor.Cloud}
	for _, id := range []string{"", "fake://uid-1"} {
		if out := s.do(command.Terminate{Claim: "a", ProviderID: id}); out.Err != nil || !out.InstanceGone ||
			s.running() != 1 {
			t.Errorf("outcome %+v, and %d instances run", out, s.running())
		}
	}
}

// double is a cloud that runs two instances for a claim, of which one is gone already.
type double struct{ cloudprovider.Instances }

func (double) List(context.Context) ([]*cloudprovider.Instance, error) {
	return []*cloudprovider.Instance{{ProviderID: "one", ClaimUID: "uid-1"}, {ProviderID: "two", ClaimUID: "uid-1"},
		{ProviderID: "other", ClaimUID: "uid-2"}}, nil
}

func (double) Delete(_ context.Context, id string, _ cloudprovider.Owner) error {
	switch id {
	case "one":
		return nil
	case "two":
		return &cloudprovider.NotFoundError{ProviderID: id}
	}
	return errors.New("asked to end another claim's instance")
}

// A claim of two instances is done when both are gone; until then they are asked about again, a second later.
func TestClaimWithTwoInstancesWaitsForBoth(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, ours("a"))
	s.actor.Cloud = double{}
	if out := s.do(command.Terminate{Claim: "a", UID: "uid-1"}); out.Err != nil || out.InstanceGone ||
		out.RetryAfter != time.Second {
		t.Errorf("outcome %+v", out)
	}
}

// A claim that nobody needs any more is not made, but looked for: an older try may have made it.
func TestClaimIsLookedForWhenNobodyNeedsIt(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	c := command.CreateClaim{Name: "a", Template: cluster.Template{ExpireAfter: "Never"}, ConfirmOnly: true}
	if out := s.do(c); out.Err != nil || !out.InstanceGone || out.Unsure || len(out.Writes) != 0 {
		t.Errorf("no claim is there: %+v", out)
	}
	made := c
	made.ConfirmOnly = false
	if out := s.do(made); out.Err != nil {
		t.Fatal(out.Err)
	}
	if out := s.do(c); out.Err != nil || out.InstanceGone || len(out.Writes) != 1 || !out.Writes[0].Created ||
		out.Writes[0].Name != "a" {
		t.Errorf("the claim is there: %+v", out)
	}
	s = newStage(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object,
		...client.GetOption) error {
		return errors.New("no answer")
	}})
	if out := s.do(c); out.Err == nil || !out.Unsure || out.InstanceGone {
		t.Errorf("nobody answers: %+v", out)
	}
}
