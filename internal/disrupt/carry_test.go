package disrupt

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

func TestMoveIDsTellTheirReason(t *testing.T) {
	for _, reason := range append(Budgeted(), command.Expired) {
		id := MoveID(reason, []string{"b", "a"})
		if got := ReasonOf(id); got != reason {
			t.Errorf("%s says %q", id, got)
		}
		if other := MoveID(reason, []string{"a", "b"}); other != id {
			t.Errorf("the order of the nodes changes the name: %s and %s", id, other)
		}
		if other := MoveID(reason, []string{"ab"}); other == id {
			t.Errorf("other nodes have the same name %s", id)
		}
	}
	if got := ReasonOf("somebody-elses"); got != "" {
		t.Errorf("a foreign name says %q", got)
	}
}

func TestRestsGrowAndAreForgotten(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	c := &cluster.Claim{}
	var waits []time.Duration
	for range 8 {
		until, rests := restOf(c, now)
		waits = append(waits, until.Sub(now))
		c.RestUntil, c.Rests = until, rests
		now = until.Add(time.Minute)
	}
	want := "[1m0s 2m0s 4m0s 8m0s 16m0s 32m0s 1h0m0s 1h0m0s]"
	if got := fmt.Sprint(waits); got != want {
		t.Errorf("a node that fails again and again rests for %s, want %s", got, want)
	}
	now = now.Add(2 * time.Hour)
	if until, rests := restOf(c, now); rests != 1 || until.Sub(now) != time.Minute {
		t.Errorf("after hours of peace it rests for %s as if for the %d. time", until.Sub(now), rests)
	}
}

func TestSoftEndsAreSpread(t *testing.T) {
	p := &cluster.Pool{Care: cluster.Care{SoftExpiry: 4 * time.Hour}}
	born := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	quarters := make(map[int]int)
	for i := range 300 {
		c := &cluster.Claim{UID: fmt.Sprint("uid", i), Created: born, Expire: cluster.Wait{For: 24 * time.Hour}}
		at, soft := softEnd(p, c)
		before := born.Add(24 * time.Hour).Sub(at)
		if !soft || before > 4*time.Hour || before < time.Hour {
			t.Fatalf("%s ends %s before its hard end", c.UID, before)
		}
		if again, _ := softEnd(p, c); !again.Equal(at) {
			t.Fatalf("%s ends at %s and at %s", c.UID, at, again)
		}
		quarters[int(before/time.Hour)]++
	}
	for hour := 1; hour < 4; hour++ {
		if quarters[hour] < 70 {
			t.Errorf("only %d of 300 nodes end in hour %d before the hard end: %v", quarters[hour], hour, quarters)
		}
	}
	for _, c := range []*cluster.Claim{{Expire: cluster.Wait{Never: true}}, {}} {
		if _, soft := softEnd(p, c); soft {
			t.Errorf("a node that never expires ends softly: %+v", c.Expire)
		}
	}
}

// rolling is a pool with a canary: so many nodes have drifted, so many replacements have been well for so long.
func rolling(drifted, proven, watched int) *cluster.Snapshot {
	s := quiet(0)
	p := s.Pools[0]
	p.Care = cluster.Care{Canary: true, Watch: 10 * time.Minute}
	add := func(kind string, i int, up time.Duration) *cluster.Claim {
		name := fmt.Sprintf("%s%02d", kind, i)
		s.Nodes = append(s.Nodes, &cluster.Node{Name: name, ProviderID: "cloud://" + name, Ready: true})
		c := &cluster.Claim{Name: name, Pool: "default", ProviderID: "cloud://" + name, Created: s.Now.Add(-up - time.Minute),
			Conditions: []cluster.Condition{{Type: cluster.Launched, Status: cluster.True}, {Type: cluster.Initialized, Status: cluster.True, Since: s.Now.Add(-up)}}}
		s.Claims = append(s.Claims, c)
		return c
	}
	for i := range drifted {
		c := add("old", i, 48*time.Hour)
		c.DriftedFrom = "ImageDrift"
		c.Conditions = append(c.Conditions, cluster.Condition{Type: cluster.Drifted, Status: cluster.True, Since: s.Now.Add(-24 * time.Hour)})
	}
	for i := range proven {
		add("proven", i, time.Hour).Replaces = MoveID(command.Drifted, []string{fmt.Sprint(i)})
	}
	for i := range watched {
		add("watched", i, time.Minute).Replaces = MoveID(command.Drifted, []string{fmt.Sprint("w", i)})
	}
	return s.Seal()
}

func TestCanaryWavesGrow(t *testing.T) {
	for _, c := range []struct{ proven, watched, want int }{
		{0, 0, 1}, {0, 1, 0}, {1, 0, 2}, {1, 1, 1}, {2, 1, 1}, {3, 0, 4}, {3, 4, 0}, {7, 0, 8}, {6, 0, 4},
	} {
		s := rolling(20, c.proven, c.watched)
		if r := newRollout(s, Settings{}, s.Pools[0]); r.left != c.want {
			t.Errorf("%d proven, %d watched: %d more may begin, want %d", c.proven, c.watched, r.left, c.want)
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
	if r := newRollout(s, Settings{}, s.Pools[0]); r.proven != 0 || r.left != 1 {
		t.Errorf("%d replacements of an earlier drift count, and %d nodes may begin", r.proven, r.left)
	}
}

func TestDriftPausesAndProbes(t *testing.T) {
	s := rolling(5, 0, 1)
	p, stuck := s.Pools[0], s.Claims[5]
	p.Care = cluster.Care{}
	stuck.Conditions, stuck.Created = nil, s.Now.Add(-time.Hour)
	if r := newRollout(s, Settings{}, p); r.why == "" || r.left != 1 {
		t.Errorf("a replacement that does not come up: %+v, want a pause with one probe", r)
	}
	s.Claims[0].RestUntil = s.Now.Add(time.Minute)
	if r := newRollout(s, Settings{}, p); r.left != 0 || !r.wake.Equal(s.Claims[0].RestUntil) {
		t.Errorf("while the last probe rests: %+v, want none and to be woken then", r)
	}
	if c := DriftProceeds(s, Settings{}, p); c.Status != cluster.False {
		t.Errorf("the pool says %+v", c)
	}
	s.Claims[1].Replaces, s.Claims[1].DriftedFrom = MoveID(command.Drifted, []string{"x"}), ""
	s.Claims[1].Created = s.Now.Add(-time.Minute)
	if r := newRollout(s, Settings{}, p); r.why != "" {
		t.Errorf("a younger one has come up: %q, want no pause", r.why)
	}
	p.Registering = cluster.False
	if r := newRollout(s, Settings{}, p); r.why == "" {
		t.Error("launches that don't become nodes don't pause")
	}
}
