package drift

import (
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/render"
)

// again is a pool whose nodes have drifted, with a replacement that was made for the nth time and has been up for a
// while.
func again(n int, up time.Duration, drifted bool) (*cluster.Snapshot, *cluster.Claim) {
	s := rolling(5, 0, 1)
	p, c := s.Pools[0], s.Claims[5]
	p.Overrides, p.Generation, p.NodeClass.Generation = cluster.DisruptionOverrides{}, 3, 7
	c.DriftReplacement = cluster.DriftReplacement{DriftedInRow: n, PoolGeneration: 3, ClassGeneration: 7}
	c.Created, c.Conditions[1].Since = s.Now.Add(-up-time.Minute), s.Now.Add(-up)
	if drifted {
		c.DriftedFrom = "ImageDrift"
		c.Conditions = append(c.Conditions, cluster.Condition{Type: cluster.Drifted, Status: cluster.True,
			Since: s.Now.Add(-time.Second)})
	}
	return s, c
}

func TestReplacementsThatDriftPauseTheRoll(t *testing.T) {
	for _, x := range []struct {
		name    string
		n       int
		up      time.Duration
		drifted bool
		change  func(p *cluster.Pool, c *cluster.Claim)
		again   bool
		left    int
		wake    time.Duration
	}{
		{"the first drifts", 0, time.Second, true, nil, true, 1, 0},
		{"the second drifts", 1, time.Second, true, nil, true, 0, 5*time.Minute - time.Minute - time.Second},
		{"the third drifts", 2, time.Second, true, nil, true, 0, 10*time.Minute - time.Minute - time.Second},
		{"the tenth drifts", 9, time.Second, true, nil, true, 0, time.Hour - time.Minute - time.Second},
		{"the third drifts after a while", 2, 9 * time.Minute, true, nil, true, 1, 0},
		{"the second drifts, and has been up for a while", 1, 4*time.Minute + time.Second, true, nil, true, 1, 0},
		{"the first drifts a minute after it is up", 0, time.Minute, true, nil, true, 1, 0},
		{"the second drifts, which has taken long to come up", 1, time.Minute, true,
			func(_ *cluster.Pool, c *cluster.Claim) {
				c.Created = c.Created.Add(-3 * time.Minute)
			}, true, 1, 0},
		{"the pool has changed", 2, time.Second, true, func(p *cluster.Pool, _ *cluster.Claim) {
			p.Generation++
		}, false, 6, 0},
		{"the class has changed", 2, time.Second, true, func(p *cluster.Pool, _ *cluster.Claim) {
			p.NodeClass.Generation++
		}, false, 6, 0},
		{"it drifts after hours", 2, 3 * time.Hour, true, nil, false, 6, 0},
		{"no mark", 0, time.Second, true, func(_ *cluster.Pool, c *cluster.Claim) {
			c.DriftReplacement = cluster.DriftReplacement{}
		}, false, 6, 0},
		{"a first one does not drift", 0, time.Second, false, nil, false, 6, 0},
		{"a second one is watched", 1, time.Second, false, nil, true, 0, cluster.ProbeWatch - time.Second},
		{"a second one has been watched", 1, cluster.ProbeWatch, false, nil, false, 6, 0},
	} {
		s, c := again(x.n, x.up, x.drifted)
		if x.change != nil {
			x.change(s.Pools[0], c)
		}
		r := NewRollouts(s, disrupt.Settings{}).rolloutOf(s.Pools[0])
		if r.replacementsDrift != x.again || r.mayBegin != x.left {
			t.Errorf("%s: again %t, %d may begin, want %t, %d", x.name, r.replacementsDrift, r.mayBegin,
				x.again, x.left)
		}
		if x.wake > 0 && !r.wakeAt.Equal(s.Now.Add(x.wake)) {
			t.Errorf("%s: it looks again in %s, want %s", x.name, r.wakeAt.Sub(s.Now), x.wake)
		}
		described := NewRollouts(s, disrupt.Settings{}).DriftCondition(s.Pools[0])
		if x.again && (described.Status != cluster.False || described.Reason != "ReplacementsDrift" ||
			!strings.Contains(render.Text(described.Text), "drifted itself")) {
			t.Errorf("%s: the pool says %+v", x.name, described)
		}
	}
}

// What is made in another pool in place of a drifted node is watched there: it says nothing about this pool's template.
func TestReplacementsOfOtherPoolsAreWatchedThere(t *testing.T) {
	s, c := again(1, time.Second, false)
	other := *s.Pools[0]
	other.Name = "other"
	s.Pools = append(s.Pools, &other)
	c.Replaces = MoveID(&cluster.Claim{Name: "gone", Pool: "default"})
	for pool, want := range map[string]bool{"default": true, "other": false} {
		c.Pool = pool
		if r := NewRollouts(s.Seal(), disrupt.Settings{}).rolloutOf(s.Pools[0]); r.replacementsDrift != want {
			t.Errorf("one of pool %s: it is watched %t, want %t", pool, r.replacementsDrift, want)
		}
	}
}

// One that was made later and does not drift shows that the others only missed the last change.
func TestALaterReplacementEndsThePause(t *testing.T) {
	s, _ := again(0, 20*time.Minute, true)
	s.Claims[5].Conditions[2].Since = s.Now.Add(-10 * time.Minute)
	if r := NewRollouts(s, disrupt.Settings{}).rolloutOf(s.Pools[0]); !r.replacementsDrift {
		t.Fatal("it does not pause")
	}
	later := *s.Claims[5]
	later.Name, later.Created, later.DriftedFrom = "later", s.Now.Add(-5*time.Minute), ""
	later.Conditions = []cluster.Condition{{Type: cluster.Launched, Status: cluster.True}, {Type: cluster.Initialized,
		Status: cluster.True, Since: s.Now.Add(-4 * time.Minute)}}
	s.Claims = append(s.Claims, &later)
	s.Claims[5].Conditions[2].Since = s.Now.Add(-6 * time.Minute)
	if r := NewRollouts(s.Seal(), disrupt.Settings{}).rolloutOf(s.Pools[0]); r.replacementsDrift {
		t.Errorf("it still pauses: %+v", r)
	}
}

func TestDriftMarks(t *testing.T) {
	for text, want := range map[string]cluster.DriftReplacement{"": {}, "2 3 7": {DriftedInRow: 2, PoolGeneration: 3,
		ClassGeneration: 7}, "99999 1 1": {DriftedInRow: 1000, PoolGeneration: 1, ClassGeneration: 1}} {
		if got, err := cluster.ParseDriftReplacement(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"2", "a 1 1", "-1 1 1", "1 1"} {
		if got, err := cluster.ParseDriftReplacement(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
	if m := (cluster.DriftReplacement{DriftedInRow: 4, PoolGeneration: 5,
		ClassGeneration: 6}); cluster.FormatDriftReplacement(m) != "4 5 6" {
		t.Errorf("%+v is written as %q", m, cluster.FormatDriftReplacement(m))
	}
}

// A probe replaces the node that has been drifted for longest, which mostly is none that was a replacement itself. Its
// replacement goes on with the pool's count all the same, also while the one that drifted is being deleted.
func TestTheCountIsThePools(t *testing.T) {
	s, c := again(2, time.Second, true)
	if m := s.DriftReplacementFor(s.Pools[0]); m != (cluster.DriftReplacement{DriftedInRow: 3, PoolGeneration: 3,
		ClassGeneration: 7}) {
		t.Errorf("what is made in place of any drifted node says %+v, want 3 in a row", m)
	}
	older := *c
	older.Name, older.Created, older.DriftReplacement.DriftedInRow = "older", c.Created.Add(-time.Hour/2), 2
	s.Claims = append(s.Claims, &older)
	s.Seal()
	if last, n := s.DriftedAgain(s.Pools[0]); last == nil || last.Name != c.Name || n != 3 {
		t.Errorf("the last one is %+v, %d in a row, want %s, 3", last, n, c.Name)
	}
	c.Deleting = s.Now
	if m := s.DriftReplacementFor(s.Pools[0]); m.DriftedInRow != 3 {
		t.Errorf("while it is being deleted %+v, want 3 in a row", m)
	}
	s.Pools[0].Generation++
	if m := s.DriftReplacementFor(s.Pools[0]); m != (cluster.DriftReplacement{PoolGeneration: 4, ClassGeneration: 7}) {
		t.Errorf("after a change of the pool %+v, want none in a row", m)
	}
}
