package drift

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/render"
)

// rolling is a pool with a canary: so many nodes have drifted, so many replacements have been well for so long.
func rolling(drifted, proven, watched int) *cluster.Snapshot {
	s := disrupttest.Quiet(0)
	p := s.Pools[0]
	p.Overrides = cluster.DisruptionOverrides{Canary: true, CanaryWatch: 10 * time.Minute}
	add := func(kind string, i int, up time.Duration) *cluster.Claim {
		name := fmt.Sprintf("%s%02d", kind, i)
		s.Nodes = append(s.Nodes, &cluster.Node{Name: name, ProviderID: "cloud://" + name, Ready: true})
		c := &cluster.Claim{Name: name, Pool: "default", ProviderID: "cloud://" + name,
			Created: s.Now.Add(-up - time.Minute),
			Conditions: []cluster.Condition{{Type: cluster.Launched, Status: cluster.True}, {Type: cluster.Initialized,
				Status: cluster.True, Since: s.Now.Add(-up)}}}
		s.Claims = append(s.Claims, c)
		return c
	}
	for i := range drifted {
		c := add("old", i, 48*time.Hour)
		c.DriftedFrom = "ImageDrift"
		c.Conditions = append(c.Conditions, cluster.Condition{Type: cluster.Drifted, Status: cluster.True,
			Since: s.Now.Add(-24 * time.Hour)})
	}
	for i := range proven {
		c := add("proven", i, time.Hour)
		c.Replaces = disrupt.MoveID(command.Drifted, []string{fmt.Sprint(i)})
		c.Conditions = append(c.Conditions, cluster.Condition{Type: cluster.TookOver, Status: cluster.True,
			Since: s.Now.Add(-time.Hour)})
	}
	for i := range watched {
		add("watched", i, time.Minute).Replaces = disrupt.MoveID(command.Drifted, []string{fmt.Sprint("w", i)})
	}
	return s.Seal()
}

func TestCanaryWavesGrow(t *testing.T) {
	for _, c := range []struct{ proven, watched, want int }{
		{0, 0, 1}, {0, 1, 0}, {1, 0, 2}, {1, 1, 1}, {2, 1, 1}, {3, 0, 4}, {3, 4, 0}, {7, 0, 8}, {6, 0, 4},
	} {
		s := rolling(20, c.proven, c.watched)
		if r := NewRollouts(s, disrupt.Settings{}).rolloutOf(s.Pools[0]); r.mayBegin != c.want {
			t.Errorf("%d proven, %d watched: %d more may begin, want %d", c.proven, c.watched, r.mayBegin, c.want)
		}
	}
}

func TestOldReplacementsProveNothing(t *testing.T) {
	s := rolling(5, 3, 0)
	for _, c := range s.Claims {
		if c.Replaces != "" {
			c.Created = s.Now.Add(-25 * time.Hour) // before the drift began
		}
	}
	if r := NewRollouts(s, disrupt.Settings{}).rolloutOf(s.Pools[0]); r.proven != 0 || r.mayBegin != 1 {
		t.Errorf("%d replacements of an earlier drift count, and %d nodes may begin", r.proven, r.mayBegin)
	}
}

func TestDriftPausesAndProbes(t *testing.T) {
	s := rolling(5, 0, 1)
	p, stuck := s.Pools[0], s.Claims[5]
	p.Overrides = cluster.DisruptionOverrides{}
	stuck.Conditions, stuck.Created = nil, s.Now.Add(-time.Hour)
	if r := NewRollouts(s, disrupt.Settings{}).rolloutOf(p); r.paused.IsZero() || r.mayBegin != 1 {
		t.Errorf("a replacement that does not come up: %+v, want a pause with one probe", r)
	}
	s.Claims[0].RestUntil = s.Now.Add(time.Minute)
	if r := NewRollouts(s, disrupt.Settings{}).rolloutOf(p); r.mayBegin != 0 || !r.wakeAt.Equal(s.Claims[0].RestUntil) {
		t.Errorf("while the last probe rests: %+v, want none and to be woken then", r)
	}
	if c := NewRollouts(s, disrupt.Settings{}).DriftCondition(p); c.Status != cluster.False {
		t.Errorf("the pool says %+v", c)
	}
	s.Claims[1].Replaces, s.Claims[1].DriftedFrom = disrupt.MoveID(command.Drifted, []string{"x"}), ""
	s.Claims[1].Created = s.Now.Add(-time.Minute)
	if r := NewRollouts(s, disrupt.Settings{}).rolloutOf(p); !r.paused.IsZero() {
		t.Errorf("a younger one has come up: %q, want no pause", render.Text(r.paused))
	}
	p.RegistrationHealth = cluster.False
	if r := NewRollouts(s, disrupt.Settings{}).rolloutOf(p); r.paused.IsZero() {
		t.Error("launches that don't become nodes don't pause")
	}
}

// The cloud tells drift node by node, so that the first may be replaced and gone before the others are known to have
// drifted. Its replacement is watched all the same.
func TestStaggeredDriftKeepsTheWatch(t *testing.T) {
	s := rolling(4, 0, 1)
	first := s.Claims[4]
	first.Created, first.Conditions[1].Since = s.Now.Add(-8*time.Minute), s.Now.Add(-3*time.Minute)
	for i, c := range s.Claims[:4] {
		c.Conditions[2].Since = s.Now.Add(-5*time.Minute + time.Duration(i)*time.Second)
	}
	first.Conditions = append(first.Conditions, cluster.Condition{Type: cluster.TookOver, Status: cluster.True,
		Since: s.Now.Add(-3 * time.Minute)})
	if r := NewRollouts(s, disrupt.Settings{}).rolloutOf(s.Pools[0]); r.mayBegin != 0 ||
		!r.wakeAt.Equal(s.Now.Add(7*time.Minute)) {
		t.Errorf("the first has been watched for 3 of 10 minutes: %+v, want nobody to begin for 7 more", r)
	}
}

// What is made in place of a pool's node may be another pool's, and is watched for the pool whose node it was.
func TestReplacementsInOtherPoolsAreWatched(t *testing.T) {
	s := rolling(4, 0, 1)
	s.Pools = append(s.Pools, &cluster.Pool{Name: "other", Overrides: s.Pools[0].Overrides})
	old := &cluster.Claim{Name: "gone", Pool: "default"}
	for _, c := range []struct {
		name, replaces       string
		forDefault, forOther int
	}{
		{"it says which pool", MoveID(old), 0, 1},
		{"it is of the other pool's own", MoveID(&cluster.Claim{Name: "gone", Pool: "other"}), 1, 0},
		{"it says nothing", disrupt.MoveID(command.Drifted, []string{"gone"}), 1, 0},
	} {
		s.Claims[4].Pool, s.Claims[4].Replaces = "other", c.replaces
		rollouts := NewRollouts(s.Seal(), disrupt.Settings{})
		if a, b := rollouts.rolloutOf(s.Pools[0]).mayBegin,
			rollouts.rolloutOf(s.Pools[1]).mayBegin; a != c.forDefault || b != c.forOther {
			t.Errorf("%s: %d nodes of the one pool and %d of the other may begin, want %d and %d", c.name, a, b,
				c.forDefault, c.forOther)
		}
	}
}

// If nothing is made in the first node's place, the pool itself says that it is being watched, and for how long.
func TestPoolRemembersTheWatch(t *testing.T) {
	s := rolling(4, 0, 0)
	p := s.Pools[0]
	for _, c := range []struct {
		name  string
		told  cluster.Condition
		left  int
		after cluster.ConditionStatus
	}{
		{"nothing is told yet", cluster.Condition{}, 1, cluster.True},
		{"all is well", cluster.Condition{Status: cluster.True, Since: s.Now.Add(-time.Minute)}, 1, cluster.True},
		{"it is watched", cluster.Condition{Status: cluster.Unknown, Since: s.Now.Add(-9 * time.Minute)}, 0,
			cluster.Unknown},
		{"the watch is over", cluster.Condition{Status: cluster.Unknown, Since: s.Now.Add(-10 * time.Minute)}, 0,
			cluster.True},
	} {
		c.told.Type = cluster.DriftProceeds
		p.Status.Conditions = []cluster.Condition{c.told}
		rollouts := NewRollouts(s, disrupt.Settings{})
		if r, says := rollouts.rolloutOf(p), rollouts.DriftCondition(p); r.mayBegin != c.left ||
			says.Status != c.after {
			t.Errorf("%s: %d may begin, and then it says %s; want %d and %s", c.name, r.mayBegin, says.Status,
				c.left, c.after)
		}
	}
}

// Fences that are being put up count before they show.
func TestFencesInFlightCount(t *testing.T) {
	s := rolling(20, 1, 0)
	s.InFlight = map[string]bool{command.Fence{Node: "old00"}.Key(): true}
	if r := NewRollouts(s, disrupt.Settings{}).rolloutOf(s.Pools[0]); r.mayBegin != 1 {
		t.Errorf("one of two is being fenced: %d may begin, want 1", r.mayBegin)
	}
	s.Pools[0].RegistrationHealth = cluster.False
	if r := NewRollouts(s, disrupt.Settings{}).rolloutOf(s.Pools[0]); !r.probing || r.mayBegin != 0 {
		t.Errorf("the probe is being fenced: %+v, want no other", r)
	}
}

// A replacement is watched from when no pod has to leave the node any more in whose place it was made. The claim says
// when that was.
func TestReplacementsAreWatchedOnceTheyHaveTakenOver(t *testing.T) {
	s := rolling(3, 1, 0)
	made := s.Claims[3]
	made.Conditions = made.Conditions[:2]
	goes := s.Claims[0]
	goes.Move, goes.Deleting = made.Replaces, s.Now
	s.Pods = []*cluster.Pod{{UID: "p", Node: goes.Name, Owner: "rs", Class: &cluster.PodClass{}}}
	left := func() int { return NewRollouts(s.Seal(), disrupt.Settings{}).rolloutOf(s.Pools[0]).mayBegin }
	if taken := NewRollouts(s.Seal(), disrupt.Settings{}).takenOver(); left() != 0 || len(taken) != 0 {
		t.Errorf("its pod has yet to leave: %d may begin, %d have taken over", left(), len(taken))
	}
	s.Pods[0].Deleting = s.Now
	if taken := NewRollouts(s.Seal(), disrupt.Settings{}).takenOver(); left() != 0 || !taken[made] {
		t.Errorf("its pod has left: %d may begin, it has taken over: %t", left(), taken[made])
	}
	s.Claims, s.Pods = s.Claims[1:], nil
	if taken := NewRollouts(s.Seal(), disrupt.Settings{}).takenOver(); left() != 0 || !taken[made] {
		t.Errorf("the node is gone: %d may begin, it has taken over: %t", left(), taken[made])
	}
	made.Conditions = append(made.Conditions, cluster.Condition{Type: cluster.TookOver, Status: cluster.True,
		Since: s.Now.Add(-9 * time.Minute)})
	if taken := NewRollouts(s.Seal(), disrupt.Settings{}).takenOver(); left() != 0 || len(taken) != 0 {
		t.Errorf("it is being watched: %d may begin, %d take over again", left(), len(taken))
	}
	made.Conditions[2].Since = s.Now.Add(-10 * time.Minute)
	if left() != 2 {
		t.Errorf("it has been well for long enough: %d may begin, want 2", left())
	}
}

// Waves grow where nothing is made in place of nodes, too: the pool says how far they have come.
func TestPoolRemembersTheWave(t *testing.T) {
	for _, c := range []struct {
		told    cluster.Condition
		leaving bool
		left    int
		says    string
	}{
		{cluster.Condition{Status: cluster.True, Reason: "DriftProceeds"}, false, 1, "True DriftProceeds"},
		{cluster.Condition{Status: cluster.True, Reason: "DriftProceeds"}, true, 0, "True CanaryLeaves"},
		{cluster.Condition{Status: cluster.True, Reason: "CanaryLeaves"}, true, 0, "True CanaryLeaves"},
		{cluster.Condition{Status: cluster.True, Reason: "CanaryLeaves"}, false, 0, "Unknown CanaryWatched"},
		{cluster.Condition{Status: cluster.Unknown, Reason: "CanaryWatched"}, false, 0, "True Wave2"},
		{cluster.Condition{Status: cluster.True, Reason: "Wave2"}, false, 2, "True Wave2"},
		{cluster.Condition{Status: cluster.True, Reason: "Wave2"}, true, 0, "True Wave2Leaves"},
		{cluster.Condition{Status: cluster.True, Reason: "Wave2Leaves"}, false, 0, "Unknown Wave2Watched"},
		// its watch begins anew
		{cluster.Condition{Status: cluster.Unknown, Reason: "Wave2Watched"}, true, 0, "True Wave2Leaves"},
		{cluster.Condition{Status: cluster.Unknown, Reason: "Wave2Watched"}, false, 0, "True Wave4"},
		{cluster.Condition{Status: cluster.True, Reason: "Wave4"}, false, 4, "True Wave4"},
		{cluster.Condition{Status: cluster.False, Reason: "ReplacementsFail"}, false, 1, "True DriftProceeds"},
		{cluster.Condition{Status: cluster.True, Reason: "Wave-3"}, false, 1, "True DriftProceeds"},
		{cluster.Condition{Status: cluster.True, Reason: "Wave99999999999999999999"}, false, 1, "True DriftProceeds"},
	} {
		s := rolling(8, 0, 0)
		if c.leaving {
			s.Claims[0].Move, s.Claims[0].Deleting = MoveID(s.Claims[0]), s.Now
			s.Pods = []*cluster.Pod{{UID: "p", Node: s.Claims[0].Name, Owner: "rs", Class: &cluster.PodClass{}}}
		}
		c.told.Type, c.told.Since = cluster.DriftProceeds, s.Now.Add(-10*time.Minute)
		s.Pools[0].Status.Conditions = []cluster.Condition{c.told}
		rollouts := NewRollouts(s.Seal(), disrupt.Settings{})
		says := rollouts.DriftCondition(s.Pools[0])
		if r := rollouts.rolloutOf(s.Pools[0]); r.mayBegin != c.left || string(says.Status)+" "+says.Reason != c.says {
			t.Errorf("%s %s, pods leave: %t: %d may begin and it says %s %s, want %d and %s", c.told.Status,
				c.told.Reason, c.leaving, r.mayBegin, says.Status, says.Reason, c.left, c.says)
		}
	}
	s := rolling(0, 0, 0)
	s.Pools[0].Status.Conditions = []cluster.Condition{{Type: cluster.DriftProceeds, Status: cluster.True,
		Reason: "Wave4"}}
	if says := NewRollouts(s, disrupt.Settings{}).DriftCondition(s.Pools[0]); says.Reason != "DriftProceeds" {
		t.Errorf("nothing has drifted any more, and it says %s", says.Reason)
	}
}
