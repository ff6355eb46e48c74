package ingest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/offerings"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
)

func spotOf(kind, zone string) command.UnavailableOffering {
	return command.UnavailableOffering{Type: kind, Zone: zone, CapacityType: "spot"}
}

// market is a book with a pool that buys types m and n, spot in zone z.
func market() (*Book, *clock) {
	b, clock := bookWithPools("default")
	b.setCatalog("default", 0, marketTypes(), nil)
	return b, clock
}

func marketTypes() []*cloudprovider.InstanceType {
	var types []*cloudprovider.InstanceType
	for i, name := range []string{"m", "n"} {
		types = append(types, &cloudprovider.InstanceType{
			Name: name, Capacity: corev1.ResourceList{"cpu": apiresource.MustParse("4"),
				"memory": apiresource.MustParse("8Gi"), "pods": apiresource.MustParse("110")},
			Offerings: []cloudprovider.Offering{{Price: float64(1 + i), Available: true,
				Labels: map[string]string{cluster.ZoneLabel: "z", cluster.CapacityTypeLabel: "spot"}}},
		})
	}
	return types
}

// sale lists what the pool can buy; what is being probed has a question mark.
func sale(b *Book) string {
	var out []string
	c := b.Snapshot().Pool("default").Catalog
	for _, o := range c.Offerings {
		if o.Available {
			out = append(out, c.Types[o.Type].Name+map[bool]string{true: "?"}[o.Probing])
		}
	}
	return strings.Join(out, " ")
}

func TestTrialEndsWithALaunch(t *testing.T) {
	b, clock := market()
	claim := claimObject("a", "1")
	b.SetClaim(claim)
	launch := command.LaunchInstance{Claim: "a"}
	b.Record(command.Outcome{Command: launch, At: b.now(), Refused: true,
		Unavailable: []command.UnavailableOffering{spotOf("m", "z")}})
	if got := sale(b); got != "n" {
		t.Fatalf("for sale after the refusal: %s", got)
	}
	clock.tick(31 * time.Second)
	if got := sale(b); got != "m? n" {
		t.Fatalf("for sale after the wait: %s", got)
	}
	launched := with(claimObject("a", "2"), func(c *v1.NodeClaim) {
		c.Labels[cluster.InstanceTypeLabel], c.Labels[cluster.ZoneLabel], c.Labels[cluster.CapacityTypeLabel] = "m",
			"z", "spot"
	})
	b.SetClaim(launched)
	if got := sale(b); got != "m? n" {
		t.Fatalf("for sale once labels are there but no word of a launch: %s", got)
	}
	launched = launched.DeepCopy()
	launched.ResourceVersion = "3"
	launched.Status.Conditions = []metav1.Condition{{Type: v1.ConditionTypeLaunched, Status: "True",
		LastTransitionTime: metav1.Time{Time: clock.at}}}
	if got := moved(b, func() { b.SetClaim(launched) }); got != "supply help" {
		t.Errorf("a trial that went well: %q moved", got)
	}
	if got := sale(b); got != "m n" {
		t.Errorf("for sale after a launch: %s", got)
	}
}

func TestLaunchBeforeTheRefusalForgivesNothing(t *testing.T) {
	b, clock := market()
	early := clock.at
	clock.tick(time.Second)
	b.Record(command.Outcome{Command: command.LaunchInstance{Claim: "x"}, At: b.now(), Refused: true,
		Unavailable: []command.UnavailableOffering{spotOf("m", "z")}})
	b.SetClaim(with(claimObject("a", "2"), func(c *v1.NodeClaim) {
		c.Labels[cluster.InstanceTypeLabel], c.Labels[cluster.ZoneLabel], c.Labels[cluster.CapacityTypeLabel] = "m",
			"z", "spot"
		c.Status.Conditions = []metav1.Condition{{Type: v1.ConditionTypeLaunched, Status: "True",
			LastTransitionTime: metav1.Time{Time: early}}}
	}))
	if got := sale(b); got != "n" {
		t.Errorf("for sale: %s", got)
	}
}

func TestRefusedLaunchSetsItsPodsFreeAtOnce(t *testing.T) {
	b, clock := market()
	b.SetPod(with(judgedPod("a"), func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": apiresource.MustParse("1")}},
		}}
	}))
	policy := plan.Policy{BatchIdle: time.Second, BatchMax: 10 * time.Second}
	clock.tick(time.Minute)
	creates := func() (out []command.CreateClaim) {
		p := plan.Make(b.Snapshot(), policy, nil, nil)
		for _, c := range p.Commands {
			if create, ok := c.(command.CreateClaim); ok {
				out = append(out, create)
			}
		}
		return out
	}
	first := creates()
	if len(first) != 1 {
		t.Fatalf("%d claims for one pod", len(first))
	}
	b.SetClaim(with(claimObject(first[0].Name, "5"), func(c *v1.NodeClaim) {
		c.UID, c.Finalizers = "u", []string{v1.TerminationFinalizer}
		c.Annotations = map[string]string{cluster.SeatsAnnotation: cluster.FormatSeats(first[0].Seats)}
		c.Spec.NodeClassRef = pool("default").Spec.Template.Spec.NodeClassRef
		c.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{{Key: cluster.InstanceTypeLabel, Operator: "In",
			Values: []string{"m", "n"}}}
		c.CreationTimestamp = metav1.Time{Time: clock.at}
	}))
	if again := creates(); len(again) != 0 {
		t.Fatalf("the pod has a node coming, yet %d more are asked for", len(again))
	}
	launch := command.LaunchInstance{Claim: first[0].Name, UID: "u"}
	b.Begin(launch)
	said := command.Refusal{Reason: command.InsufficientCapacity, Message: "there is no m in z"}
	b.Record(command.Outcome{
		Command: launch, At: b.now(), Refused: true, Refusal: said,
		Unavailable: []command.UnavailableOffering{spotOf("m", "z")},
		Writes:      []command.Write{{Kind: command.KindClaim, Name: first[0].Name, Version: "6"}},
	})
	if told := b.Snapshot().Claim(first[0].Name).Condition(cluster.Launched); told.Status != cluster.False ||
		told.Reason != string(said.Reason) || told.Message != said.Message {
		t.Errorf("the refused claim says %+v", told)
	}
	next := creates()
	if len(next) != 1 || len(next[0].Pods) != 1 {
		t.Fatalf("the pod of a refused claim is not planned for in the next snapshot: %d claims", len(next))
	}
	if kinds := fmt.Sprint(next[0].Requirements); strings.Contains(kinds, "m") && !strings.Contains(kinds, "n") {
		t.Errorf("what was refused is asked for again: %s", kinds)
	}
	b.DeleteClaim(first[0].Name)
	if b.launches.WasRefused(&cluster.Claim{UID: "u"}) {
		t.Error("a refusal outlives its claim")
	}
}

// TestAPodIsToldWhatTheCloudAsksFor: where more is wrong than that too many want the same, the pod's sentence says what
// to do.
func TestAPodIsToldWhatTheCloudAsksFor(t *testing.T) {
	const full, quota, role = "Full: free some addresses", "Quota: ask for more", "Role: create it"
	spot := func(kind, why string) command.UnavailableOffering {
		e := spotOf(kind, "z")
		e.Advice = why
		return e
	}
	for _, tc := range []struct {
		name    string
		refused []command.UnavailableOffering
		want    string
	}{
		{"sold out", []command.UnavailableOffering{spot("m", ""), spot("n", "")}, "none of the 2 instance types has " +
			"capacity right now"},
		{"one reason for all", []command.UnavailableOffering{spot("m", full), spot("n", full)},
			"none of the 2 instance types has capacity right now (" + full + ")"},
		{"for some", []command.UnavailableOffering{spot("m", ""), spot("n", full)}, "none of the 2 instance types " +
			"has capacity right now (" + full + ")"},
		{"two reasons", []command.UnavailableOffering{spot("m", quota), spot("n", full)}, "none of the 2 instance " +
			"types has capacity right now (" + full + "; " + quota + ")"},
		{"it is the same offering", []command.UnavailableOffering{spot("m", full), spot("m", quota), spot("n", full)},
			"none of the 2 instance types has capacity right now (" + full + ")"},
		{"everything", []command.UnavailableOffering{{CapacityType: "spot", Advice: role}}, "none of the 2 instance " +
			"types has capacity right now (" + role + ")"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, clock := market()
			b.SetPod(judgedPod("a"))
			clock.tick(time.Minute)
			b.Record(command.Outcome{Command: command.LaunchInstance{Claim: "x"}, At: b.now(), Refused: true,
				Unavailable: tc.refused})
			p := plan.Make(b.Snapshot(), plan.Policy{BatchIdle: time.Second, BatchMax: 10 * time.Second}, nil, nil)
			if len(p.Placement.Unplaced) != 1 {
				t.Fatalf("%d pods without a place", len(p.Placement.Unplaced))
			}
			if got := render.Unplaced(&p.Placement.Unplaced[0]); !strings.HasSuffix(got, ": "+tc.want) {
				t.Errorf("the pod is told %q", got)
			}
		})
	}
	// Of a type that can be bought nothing is told, and a reason that no longer holds is forgotten.
	b, clock := market()
	refuse := func(why string) {
		b.Record(command.Outcome{Command: command.LaunchInstance{Claim: "x"}, At: b.now(), Refused: true,
			Unavailable: []command.UnavailableOffering{spot("m", why)}})
	}
	refuse(full)
	clock.tick(31 * time.Second)
	b.Snapshot()
	refuse("")
	for _, o := range b.Snapshot().Pool("default").Catalog.Offerings {
		if o.Advice != "" {
			t.Errorf("the offering says %q after a refusal without a reason", o.Advice)
		}
	}
}

func TestPoolIsHeldWhenLaunchesFail(t *testing.T) {
	b, clock := newBook()
	b.SetPool(pool("default"))
	b.SetPool(pool("other"))
	b.SetClaim(claimObject("a", "1"))
	launch := command.LaunchInstance{Claim: "a"}
	fail := func() {
		b.Record(command.Outcome{Command: launch, At: b.now(), Err: errors.New("not authorized: no key")})
	}
	held := func() time.Duration {
		p := b.Snapshot().Pool("default")
		if !p.InBackoff {
			return 0
		}
		if p.BackoffCause != "not authorized: no key" {
			t.Errorf("held for %q", p.BackoffCause)
		}
		return p.BackoffUntil.Sub(clock.at)
	}
	fail()
	fail()
	if held() != 0 {
		t.Error("held after two failures")
	}
	fail()
	if held() != offerings.FirstLaunchBackoff {
		t.Errorf("held for %s after three failures, want %s", held(), offerings.FirstLaunchBackoff)
	}
	fail()
	if held() != offerings.FirstLaunchBackoff {
		t.Errorf("held for %s because launches failed together, want %s", held(), offerings.FirstLaunchBackoff)
	}
	if b.Snapshot().Pool("other").InBackoff {
		t.Error("the other pool is held, too")
	}
	clock.tick(offerings.FirstLaunchBackoff)
	if held() != 0 || !b.Snapshot().Pool("default").Probing {
		t.Error("after as long as was said the pool is not on trial")
	}
	fail()
	if held() != 2*offerings.FirstLaunchBackoff {
		t.Errorf("held for %s after the next failure, want %s", held(), 2*offerings.FirstLaunchBackoff)
	}
	b.Record(command.Outcome{Command: launch, At: b.now()})
	for range 2 * offerings.ErrorsToBackOff { // whoever waits for a turn has not failed
		err := fmt.Errorf("launching: %w", &cloudprovider.ThrottledError{Queued: true,
			Cause: errors.New("many are before you")})
		b.Record(command.Outcome{Command: launch, At: b.now(), Err: err})
	}
	fail()
	fail()
	if held() != 0 || b.Snapshot().Pool("default").Probing {
		t.Error("a launch that went well did not start the count anew")
	}
}

// TestHowFarAShortageReaches refuses offerings in wider and narrower terms than one type in one zone.
func TestHowFarAShortageReaches(t *testing.T) {
	for _, tc := range []struct {
		name    string
		refused command.UnavailableOffering
		want    string
	}{
		{"everything on these terms", command.UnavailableOffering{CapacityType: "spot"}, ""},
		{"everything on other terms", command.UnavailableOffering{CapacityType: "on-demand"}, "m n"},
		{"a type everywhere", command.UnavailableOffering{Type: "m", CapacityType: "spot"}, "n"},
		{"a zone", command.UnavailableOffering{Zone: "z", CapacityType: "spot"}, ""},
		{"within a group that m is sold in", command.UnavailableOffering{CapacityType: "spot", Within: "group-1"}, "n"},
		{"one type within that group", command.UnavailableOffering{Type: "m", Zone: "z", CapacityType: "spot",
			Within: "group-1"}, "n"},
		{"within another", command.UnavailableOffering{Type: "m", Zone: "z", CapacityType: "spot", Within: "group-2"},
			"m n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, clock := market()
			types := marketTypes()
			grouped := *types[0]
			grouped.Labels = map[string][]string{"group": {"group-1"}}
			b.setCatalog("default", 0, []*cloudprovider.InstanceType{&grouped, types[1]}, nil)
			b.Record(command.Outcome{Command: command.LaunchInstance{Claim: "x"}, At: b.now(),
				Unavailable: []command.UnavailableOffering{tc.refused}})
			if got := sale(b); got != tc.want {
				t.Errorf("for sale: %q, want %q", got, tc.want)
			}
			refused := b.Unavailable()
			for _, o := range []cloudprovider.OfferingRef{{Type: "m", Zone: "z", CapacityType: "spot",
				Within: "group-1"}, {Type: "n", Zone: "z", CapacityType: "spot"}} {
				if refused(o) == strings.Contains(tc.want, o.Type) {
					t.Errorf("a provider that asks hears that %s is refused: %v", o.Type, refused(o))
				}
			}
			clock.tick(31 * time.Second)
			b.SetClaim(with(claimObject("a", "2"), func(c *v1.NodeClaim) {
				c.Labels[cluster.InstanceTypeLabel], c.Labels[cluster.ZoneLabel] = "m", "z"
				c.Labels[cluster.CapacityTypeLabel], c.Labels["group"] = "spot", "group-1"
				c.Status.Conditions = []metav1.Condition{{Type: v1.ConditionTypeLaunched, Status: "True",
					LastTransitionTime: metav1.Time{Time: clock.at}}}
			}))
			if got := sale(b); tc.want != "m n" && got != "m n" {
				t.Errorf("for sale once m was sold again: %q", got)
			}
		})
	}
}
