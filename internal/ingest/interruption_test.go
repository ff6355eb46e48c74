package ingest

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/render"
)

// spotClaim is a claim that has become a spot instance of type m in zone z.
func spotClaim(version, interruption string) *v1.NodeClaim {
	return with(claimObject("a", version), func(c *v1.NodeClaim) {
		c.UID = "uid-a"
		c.Labels[cluster.InstanceTypeLabel], c.Labels[cluster.ZoneLabel], c.Labels[cluster.CapacityTypeLabel] = "m",
			"z", "spot"
		c.Status.Conditions = []metav1.Condition{{Type: v1.ConditionTypeLaunched, Status: "True"}}
		if interruption != "" {
			c.Annotations = map[string]string{cloudprovider.InterruptionAnnotation: interruption}
		}
	})
}

// What the cloud wants for somebody else is not bought again for a while; hearing of it twice makes no difference.
func TestInterruptedOfferingIsShut(t *testing.T) {
	for text, want := range map[string]string{
		"SpotInterruption 2026-03-01T12:00:00Z": "n", "RebalanceRecommendation": "n", "ReservationInterruption": "n",
		"InstanceUnhealthy force": "m n", "InstanceStopping 2026-03-01T12:00:00Z": "m n", "ScheduledChange " +
			"2026-03-01T12:00:00Z": "m n",
	} {
		b, clock := market()
		b.SetClaim(spotClaim("1", ""))
		if got := sale(b); got != "m n" {
			t.Fatalf("for sale before: %s", got)
		}
		if got := moved(b, func() { b.SetClaim(spotClaim("2", text)) }); !strings.Contains(got, "supply") {
			t.Errorf("%s: %q moved", text, got)
		}
		if got := sale(b); got != want {
			t.Errorf("for sale after %s: %s, want %s", text, got, want)
		}
		clock.tick(31 * time.Second)
		b.SetClaim(spotClaim("3", text+" ")) // the same again
		if got := sale(b); strings.ReplaceAll(got, "?", "") != "m n" {
			t.Errorf("for sale half a minute after %s: %s", text, got)
		}
	}
}

// A reservation that is taken back says nothing about others of the same type in the same zone.
func TestInterruptedReservationIsShut(t *testing.T) {
	const label = "cloud.example/reservation"
	b, _ := bookWithPools("default")
	var offerings []cloudprovider.Offering
	for _, id := range []string{"r1", "r2"} {
		offerings = append(offerings, cloudprovider.Offering{Available: true, ReservationID: id, ReservationCapacity: 9,
			Labels: map[string]string{cluster.ZoneLabel: "z", cluster.CapacityTypeLabel: "reserved", label: id}})
	}
	b.setCatalog("default", 0, []*cloudprovider.InstanceType{{Name: "m", Offerings: offerings,
		Capacity: corev1.ResourceList{"cpu": apiresource.MustParse("4"), "memory": apiresource.MustParse("8Gi"),
			"pods": apiresource.MustParse("110")}}}, nil)
	reserved := func(version, interruption string) *v1.NodeClaim {
		return with(spotClaim(version, interruption), func(c *v1.NodeClaim) {
			c.Labels[cluster.CapacityTypeLabel], c.Labels[label] = "reserved", "r1"
		})
	}
	open := func() (out string) {
		for _, o := range b.Snapshot().Pool("default").Catalog.Offerings {
			if o.Available {
				out += o.Reservation
			}
		}
		return out
	}
	b.SetClaim(reserved("1", ""))
	if got := open(); got != "r1r2" {
		t.Fatalf("for sale before: %s", got)
	}
	b.SetClaim(reserved("2", "ReservationInterruption 2026-03-01T12:00:00Z"))
	if got := open(); got != "r2" {
		t.Errorf("for sale after: %s", got)
	}
}

func TestInterruptionIsRead(t *testing.T) {
	b, _ := newBook()
	b.SetClaim(spotClaim("1", "Preempted 2026-03-01T12:00:00Z force"))
	want := cluster.Interruption{Kind: "Preempted", Deadline: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Force: true}
	if got := b.Snapshot().Claim("a").Interruption; got != want {
		t.Errorf("got %+v", got)
	}
	b.SetClaim(spotClaim("2", "Preempted tomorrow"))
	s := b.Snapshot()
	if s.Claim("a").IsInterrupted() || len(s.Notes) != 1 || s.Notes[0].Reason != "InvalidInterruption" ||
		!s.Notes[0].Warning || render.Text(
		s.Notes[0].Text) != `annotation tenon.sh/interruption is ignored: reading an `+
		`interruption: "tomorrow" is neither a time such as 2026-01-31T12:00:00Z nor the word force` {
		t.Errorf("%+v, notes %v", s.Claim("a").Interruption, s.Notes)
	}
	b.SetClaim(spotClaim("3", ""))
	if s := b.Snapshot(); s.Claim("a").IsInterrupted() || len(s.Notes) > 0 {
		t.Errorf("%+v, notes %v", s.Claim("a").Interruption, s.Notes)
	}
}
