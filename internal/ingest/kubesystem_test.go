package ingest

import (
	"errors"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/render"
)

// kube-system says which cluster it is, and when a person has said that orphans may be ended. Other namespaces say
// nothing of the kind.
func TestWhatTheSystemNamespaceSays(t *testing.T) {
	b, _ := newBook()
	say := func(name, value string) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "cluster-uid"}}
		if value != "" {
			ns.Annotations = map[string]string{cluster.EndOrphansAnnotation: value}
		}
		b.SetNamespace(ns)
	}
	said := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	for _, x := range []struct {
		name, value string
		want        time.Time
		note        string
	}{
		{"default", "2026-11-16T12:00:00Z", time.Time{}, ""},
		{"kube-system", "", time.Time{}, ""},
		{"kube-system", "2026-11-16T12:00:00Z", said, ""},
		{"kube-system", "2026-11-16T13:00:00+01:00", said, ""},
		{"kube-system", "yes", time.Time{},
			`Annotation tenon.sh/end-orphans is "yes" and is ignored; it must be the time at which it is written, ` +
				`such as 2030-01-31T12:00:00Z`},
		{"kube-system", "", time.Time{}, ""},
	} {
		say(x.name, x.value)
		s := b.Snapshot()
		note := ""
		for _, n := range s.Notes {
			note = render.Text(n.Text)
		}
		if !s.EndOrphans.Equal(x.want) || note != x.note {
			t.Errorf("%s with %q: %v and %q, want %v and %q", x.name, x.value, s.EndOrphans, note, x.want, x.note)
		}
		if want := map[string]string{"kube-system": "cluster-uid"}[x.name]; s.Cluster != want {
			t.Errorf("%s: the cluster is %q, want %q", x.name, s.Cluster, want)
		}
	}
}

// What the cloud can't prove to be ours is known as such.
func TestCensusTellsWhatIsUnproven(t *testing.T) {
	b, _ := newBook()
	b.SetInventory(time.Unix(1, 0), []*cloudprovider.Instance{{ProviderID: "b"}, {ProviderID: "a", Unproven: true}})
	if got := b.Snapshot().Inventory.Instances; !got[0].Unproven || got[1].Unproven {
		t.Errorf("%+v", got)
	}
}

// It is remembered for an hour which instances were ended because nobody claimed them: those that the cloud was asked
// to end, whatever it answered, but not those that were gone already, and not those that were one too many for a claim
// that is there.
func TestEndsOfOrphansAreRemembered(t *testing.T) {
	b, clock := newBook()
	b.SetClaim(&v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "there", UID: "there"}})
	began := clock.at
	for _, o := range []command.Outcome{
		{Command: command.Terminate{UID: "u1", ProviderID: "ended"}, RetryAfter: time.Second},
		{Command: command.Terminate{UID: "u2", ProviderID: "unsure"}, Err: errors.New("no answer")},
		{Command: command.Terminate{Node: "n", ProviderID: "with a node"}, RetryAfter: time.Second},
		{Command: command.Terminate{UID: "u3", ProviderID: "gone"}, InstanceGone: true},
		{Command: command.Terminate{UID: "there", ProviderID: "one too many"}, RetryAfter: time.Second},
		{Command: command.Terminate{Claim: "c", UID: "u4", ProviderID: "a claim's"}, RetryAfter: time.Second},
	} {
		o.At = began
		b.Record(o)
	}
	clock.at = clock.at.Add(time.Minute)
	b.Record(command.Outcome{Command: command.Terminate{UID: "u1", ProviderID: "ended"}, At: clock.at,
		InstanceGone: true})
	want := map[string]time.Time{"ended": began, "unsure": began, "with a node": began}
	if got := b.Snapshot().OrphansEnded; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	clock.at = clock.at.Add(time.Hour - time.Minute)
	if got := b.Snapshot().OrphansEnded; len(got) != 0 {
		t.Errorf("an hour later: %v", got)
	}
}
