package ingest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// staticLab is a book with a static pool.
type staticLab struct {
	*testing.T
	b    *Book
	c    *clock
	made int
}

func newStaticLab(t *testing.T) *staticLab {
	b, c := newBook()
	l := &staticLab{T: t, b: b, c: c}
	l.pool(1)
	return l
}

func (l *staticLab) pool(generation int64) {
	three := int64(3)
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "static", UID: "pool", Generation: generation}}
	p.Spec.Replicas = &three
	l.b.SetPool(p)
}

// claim is one of the pool's for a slot, made now.
func (l *staticLab) claim(slot, try int, change ...func(*v1.NodeClaim)) *v1.NodeClaim {
	l.made++
	c := launchedClaim(fmt.Sprint("c", l.made), "", metav1.ConditionTrue)
	c.UID, c.CreationTimestamp = types.UID(c.Name), metav1.NewTime(l.c.now())
	c.Labels[v1.NodePoolLabelKey] = "static"
	c.Annotations[cluster.SlotAnnotation] = cluster.FormatSlot(cluster.Slot{Number: slot, Try: try})
	for _, f := range change {
		f(c)
	}
	l.b.SetClaim(c)
	return c
}

func (l *staticLab) ends(c *v1.NodeClaim, change ...func(*v1.NodeClaim)) {
	c = c.DeepCopy()
	now := metav1.NewTime(l.c.now())
	c.DeletionTimestamp = &now
	for _, f := range change {
		f(c)
	}
	l.b.SetClaim(c)
}

// lost tells what the pool knows of its slots: number, tries, when the next may be made, who ended the last.
func (l *staticLab) lost() string {
	var out []string
	for _, x := range l.b.Snapshot().Pools[0].LostSlots {
		text := fmt.Sprintf("%d: %d tries, next in %s", x.Number, x.Tries, x.Next.Sub(l.c.now()))
		if x.EndedBy != "" {
			text += ", " + x.EndedBy
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func (l *staticLab) want(what, want string) {
	l.Helper()
	if got := l.lost(); got != want {
		l.Errorf("%s: %q, want %q", what, got, want)
	}
}

func as(reason string) func(*v1.NodeClaim) {
	return func(c *v1.NodeClaim) { c.Status.Conditions = append(c.Status.Conditions, disruptedAs(reason)) }
}

func TestSlotsCountNodesThatEndTooSoon(t *testing.T) {
	l := newStaticLab(t)
	c := l.claim(1, 1)
	l.want("it is there", "")
	l.c.tick(10 * time.Second)
	l.ends(c)
	l.want("it ends", "1: 1 tries, next in -10s")
	l.b.DeleteClaim(c.Name)
	l.want("it is gone", "1: 1 tries, next in -10s")
	c = l.claim(1, 2)
	l.b.DeleteClaim(c.Name)
	l.want("the second is gone at once", "1: 2 tries, next in 30s")
	l.c.tick(time.Minute)
	c = l.claim(1, 3)
	l.c.tick(20 * time.Second)
	l.ends(c)
	l.want("the third ends", "1: 3 tries, next in 40s")
	for i, wait := range []time.Duration{2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		l.c.tick(5 * time.Minute)
		tries := i + 4
		l.ends(l.claim(1, tries))
		l.want("one more", fmt.Sprintf("1: %d tries, next in %s", tries, wait))
	}
	l.c.tick(5 * time.Minute)
	c = l.claim(1, 8)
	l.c.tick(cluster.ShortLife - time.Second)
	l.want("it lives", "1: 7 tries, next in -4m59s")
	l.c.tick(time.Second)
	l.want("it has lived for long enough", "")
	l.ends(c)
	l.want("it ends after that", "")
}

// TestTwoClaimsOfOneSlot: somebody has copied the annotation. The newer one tells when the slot is over, in whatever
// order they are looked at.
func TestTwoClaimsOfOneSlot(t *testing.T) {
	l := newStaticLab(t)
	l.ends(l.claim(1, 1))
	l.claim(1, 2)
	l.c.tick(3 * time.Minute)
	newer := l.claim(1, 2)
	for range 20 {
		lost := l.b.Snapshot().Pools[0].LostSlots
		if want := newer.CreationTimestamp.Add(cluster.ShortLife); len(lost) != 1 || !lost[0].ProvenAt.Equal(want) {
			t.Fatalf("the slot is over at %+v, want %s", lost, want)
		}
		l.pool(int64(l.made)) // a change, so that the snapshot is a new one
		l.made++
	}
}

func TestWhichEndsOfStaticNodesCount(t *testing.T) {
	expires := func(c *v1.NodeClaim) { c.Spec.ExpireAfter = v1.DurationOf(5 * time.Second) }
	for _, x := range []struct {
		name       string
		made, ends []func(*v1.NodeClaim)
		want       string
	}{
		{"somebody deletes it", nil, nil, "0: 1 tries, next in -5s"},
		{"it expires", []func(*v1.NodeClaim){expires}, []func(*v1.NodeClaim){expires, as("Expired")},
			"0: 1 tries, next in -5s, an expireAfter of 5s"},
		{"it is sick", nil, []func(*v1.NodeClaim){as("Unhealthy")}, "0: 1 tries, next in -5s, Unhealthy"},
		{"it is not wanted", nil, []func(*v1.NodeClaim){as("ScaledDown")}, ""},
		{"it has drifted", nil, []func(*v1.NodeClaim){as("Drifted")}, ""},
		{"it was refused", []func(*v1.NodeClaim){refused}, []func(*v1.NodeClaim){refused}, ""},
	} {
		l := newStaticLab(t)
		c := l.claim(0, 1, x.made...)
		l.c.tick(5 * time.Second)
		l.ends(c, x.ends...)
		l.want(x.name, x.want)
	}
}

func refused(c *v1.NodeClaim) {
	c.Status.ProviderID = ""
	for i := range c.Status.Conditions {
		if c.Status.Conditions[i].Type == v1.ConditionTypeLaunched {
			c.Status.Conditions[i].Status = metav1.ConditionFalse
		}
	}
}

// The claims say which try they are, so that a controller that starts goes on counting.
func TestSlotsAreRecalledFromClaims(t *testing.T) {
	l := newStaticLab(t)
	l.claim(2, 6)
	l.want("the sixth is there", "2: 5 tries, next in 4m0s")
	for text, want := range map[string]cluster.Slot{"": {}, "2=6": {Number: 2, Try: 6}, "2=9999999": {Number: 2,
		Try: 1000}} {
		if got, err := cluster.ParseSlot(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"2", "2=0", "-1=2", "a=1", "1=b", "=", "1=1=1"} {
		if got, err := cluster.ParseSlot(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// A change of the pool may be the cure; a pool that is gone, or asks for no number any more, needs no count; nor does
// one from an hour ago.
func TestWhatEndsTheWaitOfASlot(t *testing.T) {
	for _, x := range []struct {
		name string
		do   func(l *staticLab)
		want string
	}{
		{"nothing", func(*staticLab) {}, "0: 6 tries, next in 4m0s"},
		{"the pool changes", func(l *staticLab) { l.pool(2) }, "0: 6 tries, next in 0s"},
		{"an hour passes", func(l *staticLab) { l.c.tick(time.Hour) }, ""},
		{"the pool is made anew", func(l *staticLab) { l.b.DeletePool("static"); l.pool(1) }, ""},
		{"the pool is not static any more", func(l *staticLab) {
			l.b.SetPool(&v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "static", UID: "pool", Generation: 1}})
		}, ""},
	} {
		l := newStaticLab(t)
		l.ends(l.claim(0, 6))
		l.c.tick(time.Minute)
		x.do(l)
		l.want(x.name, x.want)
	}
}
