package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
)

// Pods are planned for when waiting for more of their kind is pointless: at once if their owners want no more, after a
// quiet second otherwise, and after ten seconds in any case.
func TestWhenPodsArePlannedFor(t *testing.T) {
	type waiting struct {
		ago   time.Duration
		owner string
	}
	ms := time.Millisecond
	late := time.Duration(-1) // now
	for _, x := range []struct {
		name    string
		pods    []waiting
		planned time.Duration // ago
		owners  map[string]cluster.Owner
		wait    time.Duration // from now; late for not at all
	}{
		{"nobody waits", nil, time.Hour, nil, late},
		{"an owner that wants no more", []waiting{{300 * ms, "a"}}, time.Hour, owners("a", 1), late},
		{"an owner that wants one more", []waiting{{300 * ms, "a"}}, time.Hour, owners("a", 2), 700 * ms},
		{"its pods come one after the other", []waiting{{300 * ms, "a"}, {800 * ms, "a"}, {1200 * ms, "a"}}, time.Hour,
			owners("a", 4), 700 * ms},
		{"for longer than anybody waits", []waiting{{9500 * ms, "a"}, {300 * ms, "a"}}, time.Hour,
			owners("a", 4), 500 * ms},
		{"whichever comes first in the list", []waiting{{300 * ms, "a"}, {9500 * ms, "a"}}, time.Hour,
			owners("a", 4), 500 * ms},
		{"for ten seconds", []waiting{{10 * time.Second, "a"}, {300 * ms, "a"}}, time.Hour, owners("a", 4), late},
		{"quiet for a second", []waiting{{time.Second, "a"}}, time.Hour, owners("a", 2), late},
		{"an owner that says nothing", []waiting{{300 * ms, "a"}}, time.Hour, nil, 700 * ms},
		{"of two owners one wants more", []waiting{{300 * ms, "a"}, {200 * ms, "b"}}, time.Hour,
			owners("a", 1, "b", 2), 800 * ms},
		{"of two owners the first wants more", []waiting{{300 * ms, "a"}, {200 * ms, "b"}}, time.Hour,
			owners("a", 2, "b", 1), 800 * ms},
		{"who was planned for does not count", []waiting{{9500 * ms, "b"}, {300 * ms, "a"}}, 5 * time.Second,
			owners("a", 2, "b", 9), 700 * ms},
		{"who was planned for wants more", []waiting{{9500 * ms, "b"}, {300 * ms, "a"}}, 5 * time.Second,
			owners("a", 1, "b", 9), late},
		{"all were planned for", []waiting{{9500 * ms, "b"}}, 5 * time.Second, owners("b", 9), late},
		{"a pod of nobody", []waiting{{20 * ms, ""}}, time.Hour, nil, 30 * ms},
		{"two pods of nobody", []waiting{{40 * ms, ""}, {20 * ms, ""}}, time.Hour, nil, 30 * ms},
		{"whichever comes first", []waiting{{20 * ms, ""}, {40 * ms, ""}}, time.Hour, nil, 30 * ms},
		{"a pod of nobody after 50 ms", []waiting{{50 * ms, ""}}, time.Hour, nil, late},
		{"another owner grows", []waiting{{300 * ms, "a"}}, time.Hour, growing(100*ms, "a", 1, "b", 3), 150 * ms},
		{"another owner has grown for long", []waiting{{300 * ms, "a"}}, time.Hour, growing(250*ms, "a", 1, "b", 3),
			late},
		{"another owner grows while a pod of nobody waits", []waiting{{20 * ms, ""}}, time.Hour,
			growing(230*ms, "b", 3), 30 * ms},
		{"another owner grows for longer than a pod of nobody waits", []waiting{{20 * ms, ""}}, time.Hour,
			growing(100*ms, "b", 3), 150 * ms},
	} {
		s := newScene()
		s.s.Pods, s.s.PlannedAt, s.s.Owners = nil, s.s.Now.Add(-x.planned), x.owners
		for i, one := range x.pods {
			w := *s.w
			w.UID, w.Name, w.Owner, w.UnschedulableSince = fmt.Sprint("w", i), fmt.Sprint("w", i), one.owner,
				s.s.Now.Add(-one.ago)
			s.s.Pods = append(s.s.Pods, &w)
		}
		for uid, o := range s.s.Owners {
			if o.Since.IsZero() {
				continue
			}
			o.Since = s.s.Now.Add(-time.Duration(o.Since.UnixNano()))
			s.s.Owners[uid] = o
		}
		p := plan.Make(s.s.Seal(), defaultPolicy(), nil, nil)
		if want := len(x.pods) > 0 && x.wait == late; p.Provisioned != want {
			t.Errorf("%s: planned for %t, want %t", x.name, p.Provisioned, want)
		}
		if at := s.s.Now.Add(x.wait); x.wait != late && !p.WakeAt.Equal(at) {
			t.Errorf("%s: looks again in %s, want in %s", x.name, p.WakeAt.Sub(s.s.Now), x.wait)
		}
	}
}

// owners are some, each with how many pods it wants.
func owners(list ...any) map[string]cluster.Owner {
	out := make(map[string]cluster.Owner)
	for i := 0; i < len(list); i += 2 {
		uid := list[i].(string)
		out[uid] = cluster.Owner{UID: uid, Known: true, Desired: list[i+1].(int)}
	}
	return out
}

// growing are owners of which each began to want so many pods that long ago.
func growing(ago time.Duration, list ...any) map[string]cluster.Owner {
	out := owners(list...)
	for uid, o := range out {
		o.Since = time.Unix(0, int64(ago))
		out[uid] = o
	}
	return out
}
