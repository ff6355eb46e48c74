package ingest

import (
	"errors"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/inflight"
	"github.com/tenon-sh/tenon/internal/ingest/offerings"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/validate"
)

// clock is a time that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time       { return c.at }
func (c *clock) tick(d time.Duration) { c.at = c.at.Add(d) }
func at(hour, minute int) time.Time   { return time.Date(2026, 11, 15, hour, minute, 0, 0, time.UTC) }
func quantity(s string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse(s)}
}

func newBook() (*Book, *clock) {
	c := &clock{at: at(12, 0)}
	return New(c.now, validate.Labels{}, []cluster.ClassRef{{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"}}), c
}

func claimObject(name, version string) *v1.NodeClaim {
	return &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version,
		Labels: map[string]string{v1.NodePoolLabelKey: "default"}}}
}

func TestCommandIsBusyUntilTheWatchShowsItsWrites(t *testing.T) {
	b, _ := newBook()
	b.SetClaim(claimObject("a", "5"))
	c := command.Register{Claim: "a", Node: "a"}
	busy := func() bool { return b.Snapshot().InFlight[c.Key()] }
	b.Begin(c)
	if !busy() {
		t.Fatal("a command under way is not busy")
	}
	b.Record(command.Outcome{Command: c, At: b.now(), Writes: []command.Write{{Kind: command.KindClaim, Name: "a",
		Version: "9"}}})
	if !busy() {
		t.Fatal("the watch has not shown version 9, yet the command may be begun again")
	}
	b.SetClaim(claimObject("a", "8"))
	if !busy() {
		t.Fatal("version 8 passed for version 9")
	}
	b.SetClaim(claimObject("a", "10"))
	if busy() {
		t.Fatal("the watch has shown a later version, yet the command is still busy")
	}
}

func TestCommandIsNotBusyForeverIfTheWatchIsDown(t *testing.T) {
	b, clock := newBook()
	b.SetClaim(claimObject("a", "5"))
	c := command.Adopt{Claim: "a"}
	b.Begin(c)
	b.Record(command.Outcome{Command: c, At: b.now(), Writes: []command.Write{{Kind: command.KindClaim, Name: "a",
		Version: "9"}}})
	clock.tick(inflight.WatchTimeout + time.Second)
	if b.Snapshot().InFlight[c.Key()] {
		t.Error("a command that the watch never confirmed blocks its successor for good")
	}
}

func TestFailureIsRetriedLaterAndLater(t *testing.T) {
	b, clock := newBook()
	c := command.Terminate{Claim: "a", ProviderID: "kwok://a"}
	var waits []time.Duration
	for range 12 {
		b.Begin(c)
		b.Record(command.Outcome{Command: c, At: b.now(), Err: errors.New("boom")})
		s := b.Snapshot()
		if s.InFlight[c.Key()] {
			t.Fatal("a failed command is still busy")
		}
		waits = append(waits, s.Retry[c.Key()].NotBefore.Sub(clock.at))
	}
	if waits[0] != inflight.FirstRetry || waits[1] != 2*inflight.FirstRetry || waits[11] != inflight.LastRetry {
		t.Errorf("waits %v: want %s, doubling, up to %s", waits, inflight.FirstRetry, inflight.LastRetry)
	}
	b.Record(command.Outcome{Command: c, At: b.now()})
	if _, failed := b.Snapshot().Retry[c.Key()]; failed {
		t.Error("success did not end the waiting")
	}
}

func TestExpectedClaimCountsBeforeTheWatchShowsIt(t *testing.T) {
	b, _ := newBook()
	c := command.CreateClaim{Name: "default-x", Pool: "default", Seats: []cluster.Seat{{Class: "k", Count: 3}}}
	b.Begin(c)
	got := b.Snapshot().Claim("default-x")
	if got == nil || !got.Expected || got.Seats[0].Count != 3 {
		t.Fatalf("the claim that is being created is not in the snapshot: %+v", got)
	}
	b.Record(command.Outcome{Command: c, At: b.now(), Writes: []command.Write{{Kind: command.KindClaim,
		Name: "default-x", Version: "3", Created: true}}})
	if b.Snapshot().Claim("default-x") == nil {
		t.Fatal("the created claim vanished between the answer and the watch")
	}
	b.SetClaim(claimObject("default-x", "3"))
	s := b.Snapshot()
	if got := s.Claim("default-x"); got == nil || got.Expected || len(s.Claims) != 1 || s.InFlight[c.Key()] {
		t.Errorf("after the watch: %+v, %d claims, busy %v", got, len(s.Claims), s.InFlight)
	}
}

func TestGoneInstanceIsRememberedUntilItsObjectsAreGone(t *testing.T) {
	b, _ := newBook()
	claim := claimObject("a", "1")
	claim.Status.ProviderID, claim.UID = "kwok://a", "1"
	b.SetClaim(claim)
	b.Record(command.Outcome{Command: command.Terminate{Claim: "a", UID: "1", ProviderID: "kwok://a"}, At: b.now(),
		InstanceGone: true})
	if s := b.Snapshot(); !s.Claim("a").InstanceGone || !s.InstancesGone["kwok://a"] {
		t.Fatal("that the instance is gone was forgotten")
	}
	namesake := claimObject("a", "2")
	namesake.UID = "2"
	b.SetClaim(namesake)
	if b.Snapshot().Claim("a").InstanceGone {
		t.Error("a new claim of the same name inherits that its instance is gone")
	}
	b.DeleteClaim("a")
	if s := b.Snapshot(); len(s.InstancesGone) != 0 {
		t.Errorf("what is gone for good is still remembered: %v", s.InstancesGone)
	}
}

func TestSnapshotNeverChanges(t *testing.T) {
	b, clock := newBook()
	b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1"},
		Status: corev1.NodeStatus{Allocatable: quantity("4")}})
	b.SetClaim(claimObject("a", "1"))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "p"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: quantity(
			"1")}}}}}
	b.SetPod(pod)
	s := b.Snapshot()
	node, claim, before := *s.Nodes[0], *s.Claims[0], *s.Pods[0]
	clock.tick(time.Minute)
	moved := pod.DeepCopy()
	moved.Spec.NodeName = "n"
	moved.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = apiresource.MustParse("1")
	b.SetPod(moved)
	b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "2"},
		Spec: corev1.NodeSpec{Unschedulable: true}})
	b.SetClaim(claimObject("a", "2"))
	b.Snapshot()
	if !reflect.DeepEqual(*s.Nodes[0], node) || !reflect.DeepEqual(*s.Claims[0], claim) ||
		!reflect.DeepEqual(*s.Pods[0], before) || len(s.PodsOn("n")) != 0 {
		t.Error("a snapshot changed after it was handed out")
	}
}

func TestNewResourceIsMeasuredOnNodesThatWereThereBefore(t *testing.T) {
	b, _ := newBook()
	gpus := corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("8"),
		"nvidia.com/gpu": apiresource.MustParse("2")}
	b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: gpus}})
	b.SetPool(pool("default"))
	b.SetNodeClass(cluster.ClassRef{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
		cluster.NodeClassState{Ready: true})
	b.setCatalog("default", 0, []*cloudprovider.InstanceType{{Name: "g", Capacity: gpus,
		Offerings: []cloudprovider.Offering{{Price: 1, Available: true}}}}, nil)
	if n := b.Snapshot().Names.Len(); n != 4 {
		t.Fatalf("%d resources are numbered although nobody asked for a GPU", n)
	}
	b.SetPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"nvidia.com/gpu": apiresource.MustParse(
			"1")}}}}}})
	s := b.Snapshot()
	dim, ok := s.Names.Lookup("nvidia.com/gpu")
	if !ok || s.Nodes[0].Allocatable[dim] != 2 || s.Pool("default").Catalog.Types[0].Allocatable[dim] != 2 {
		t.Errorf("the GPU was not measured: dimension %d, node %v, catalog %v", dim, s.Nodes[0].Allocatable,
			s.Pool("default").Catalog.Types[0].Allocatable)
	}
}

func TestExhaustedOfferingComesBack(t *testing.T) {
	b, clock := newBook()
	b.SetPool(pool("default"))
	b.SetNodeClass(cluster.ClassRef{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
		cluster.NodeClassState{Ready: true})
	b.setCatalog("default", 0, []*cloudprovider.InstanceType{{Name: "m", Capacity: quantity("4"),
		Offerings: []cloudprovider.Offering{
			{Price: 1, Available: true, Labels: map[string]string{cluster.ZoneLabel: "z1",
				cluster.CapacityTypeLabel: "spot"}},
			{Price: 2, Available: true, Labels: map[string]string{cluster.ZoneLabel: "z1",
				cluster.CapacityTypeLabel: "on-demand"}},
		}}}, nil)
	available := func() int { return b.Snapshot().Pool("default").Catalog.Available().Count() }
	if available() != 2 {
		t.Fatalf("%d offerings are for sale, want 2", available())
	}
	b.Record(command.Outcome{Command: command.LaunchInstance{Claim: "a"}, At: b.now(),
		Unavailable: []command.UnavailableOffering{{Type: "m", Zone: "z1", CapacityType: "spot"}}})
	if available() != 1 {
		t.Fatalf("%d offerings are for sale after one was refused, want 1", available())
	}
	clock.tick(offerings.DefaultBackoff().First + time.Second)
	if available() != 2 {
		t.Errorf("%d offerings are for sale after a while, want 2 again", available())
	}
}

func TestSeenIsWhenThePodBecameUnschedulable(t *testing.T) {
	b, clock := newBook()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	b.SetPod(pod)
	if p := b.Snapshot().Pods[0]; p.SchedulerSeen || p.IsPending() {
		t.Fatal("a pod that kube-scheduler has not looked at counts as pending")
	}
	clock.tick(time.Second)
	judged := pod.DeepCopy()
	judged.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable}}
	b.SetPod(judged)
	first := clock.at
	clock.tick(time.Second)
	b.SetPod(judged)
	if p := b.Snapshot().Pods[0]; !p.IsPending() || !p.UnschedulableSince.Equal(first) {
		t.Errorf("pending %v, seen %s, want %s", p.IsPending(), p.UnschedulableSince, first)
	}
	b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	preempting := judged.DeepCopy()
	preempting.Status.NominatedNodeName = "n"
	b.SetPod(preempting)
	if b.Snapshot().Pods[0].IsPending() {
		t.Error("a pod that preempts others has a place, yet it is pending")
	}
	gated := pod.DeepCopy()
	gated.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonSchedulingGated}}
	b.SetPod(gated)
	if b.Snapshot().Pods[0].IsPending() {
		t.Error("a gated pod is pending")
	}
}

func pool(name string) *v1.NodePool {
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass",
		Name: "default"}
	return p
}

func TestBudgetWindows(t *testing.T) {
	b, clock := newBook()
	p := pool("default")
	schedule := "0 9 * * *"
	p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "0", Schedule: &schedule,
		Duration: &metav1.Duration{Duration: 8 * time.Hour}}, {Nodes: "15%"}}
	b.SetPool(p)
	for _, c := range []struct {
		now     time.Time
		active  bool
		changes time.Time
	}{
		{at(8, 59), false, at(9, 0)}, {at(9, 0), true, at(17, 0)}, {at(16, 59), true, at(17, 0)},
		{at(17, 0), false, at(9, 0).AddDate(0, 0, 1)},
	} {
		clock.at = c.now
		got := b.Snapshot().Pool("default").Budgets[0]
		if got.Active != c.active || !got.ChangesAt.Equal(c.changes) {
			t.Errorf("at %s: active %v until %s, want %v until %s", c.now, got.Active, got.ChangesAt,
				c.active, c.changes)
		}
	}
	if got := b.Snapshot().Pool("default").Budgets[1]; !got.Active || !got.Percent || got.Allows(10) != 2 {
		t.Errorf("15%% of 10 nodes: %+v allows %d, want 2", got, got.Allows(10))
	}
}

func TestPoolConversion(t *testing.T) {
	b, _ := newBook()
	p := pool("default")
	p.Spec.Limits = corev1.ResourceList{"cpu": apiresource.MustParse("1000"), "nodes": apiresource.MustParse("7")}
	p.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
		{Key: "failure-domain.beta.kubernetes.io/zone", Operator: "In", Values: []string{"a"}}}
	b.SetPool(p)
	got := b.Snapshot().Pool("default")
	if got.Limits.Amount[resource.CPU] != 1000000 || !got.Limits.HasNodes || got.Limits.Nodes != 7 {
		t.Errorf("limits %+v", got.Limits)
	}
	if _, found := got.Template.Requirements.Get(cluster.ZoneLabel); !found {
		t.Errorf("the old zone label was not understood: %s", got.Template.Requirements)
	}
	if got.IsUsable() || got.NodeClass.Reason != "NodeClassNotFound" ||
		got.NodeClass.Message !=
			`KWOKNodeClass "default" was not found; create it or correct spec.template.spec.nodeClassRef.name` {
		t.Errorf("a pool without its NodeClass: usable %v, %+v", got.IsUsable(), got.NodeClass)
	}
	p.Spec.Template.Spec.NodeClassRef.Kind = "" // it could not be read
	b.SetPool(p)
	const fix = "spec.template.spec.nodeClassRef does not say of which group and kind the NodeClass is; correct it " +
		"to KWOKNodeClass.karpenter.kwok.sh"
	if got := b.Snapshot().Pool("default"); got.NodeClass.Reason != "NodeClassNotSupported" ||
		got.NodeClass.Message != fix {
		t.Errorf("a reference that can't be read: %+v", got.NodeClass)
	}
}

func TestPoolIsHeldWhenRefusalsTeachNothing(t *testing.T) {
	b, clock := newBook()
	b.SetPool(pool("default"))
	b.SetClaim(claimObject("a", "1"))
	launch := command.LaunchInstance{Claim: "a"}
	held := func() time.Duration {
		p := b.Snapshot().Pool("default")
		if !p.InBackoff {
			return 0
		}
		return p.BackoffUntil.Sub(clock.at)
	}
	spot := command.UnavailableOffering{Type: "m", Zone: "z", CapacityType: "spot"}
	b.Record(command.Outcome{Command: launch, At: b.now(), Refused: true,
		Unavailable: []command.UnavailableOffering{spot}})
	if held() != 0 {
		t.Error("the pool is held although the next plan can avoid what was refused")
	}
	b.Record(command.Outcome{Command: launch, At: b.now(), Refused: true,
		Unavailable: []command.UnavailableOffering{spot}})
	if held() != 0 {
		t.Error("the pool is held because another launch met the same shortage")
	}
	for range 10 {
		b.Record(command.Outcome{Command: launch, At: b.now(), Refused: true})
		if held() != offerings.FirstLaunchBackoff {
			t.Errorf("held for %s after a refusal that taught nothing, want %s: those that fail together count once",
				held(), offerings.FirstLaunchBackoff)
		}
	}
	clock.tick(offerings.FirstLaunchBackoff)
	if held() != 0 {
		t.Error("the pool is held for longer than was said")
	}
	b.Record(command.Outcome{Command: launch, At: b.now(), Refused: true,
		Refusal: command.Refusal{Message: "InvalidAMIID.NotFound"}})
	if held() != 2*offerings.FirstLaunchBackoff ||
		b.Snapshot().Pool("default").BackoffCause != "InvalidAMIID.NotFound" {
		t.Errorf("held for %s after the second, want %s; told %q", held(), 2*offerings.FirstLaunchBackoff,
			b.Snapshot().Pool("default").BackoffCause)
	}
	clock.tick(2 * offerings.FirstLaunchBackoff)
	b.Record(command.Outcome{Command: launch, At: b.now(), Refused: true})
	b.Record(command.Outcome{Command: launch, At: b.now()})
	if held() != 0 {
		t.Error("a launch that went well did not free the pool")
	}
}

func TestCreatedClaimOutlivesASlowWatch(t *testing.T) {
	b, clock := newBook()
	c := command.CreateClaim{Name: "default-x", Pool: "default"}
	b.Begin(c)
	b.Record(command.Outcome{Command: c, At: b.now(), Writes: []command.Write{{Kind: command.KindClaim,
		Name: "default-x", Version: "3", Created: true}}})
	clock.tick(time.Minute)
	if b.Snapshot().Claim("default-x") == nil {
		t.Error("a claim that was created is forgotten while the watch is slow: its pods would get a second node")
	}
}
