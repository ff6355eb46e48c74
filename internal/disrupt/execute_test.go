package disrupt

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

func TestMoveIDsTellTheirReason(t *testing.T) {
	for _, reason := range append(BudgetReasons(), command.Expired) {
		id := MoveID(reason, []string{"b", "a"})
		if got := MoveReason(id); got != reason {
			t.Errorf("%s says %q", id, got)
		}
		if other := MoveID(reason, []string{"a", "b"}); other != id {
			t.Errorf("the order of the nodes changes the name: %s and %s", id, other)
		}
		if other := MoveID(reason, []string{"ab"}); other == id {
			t.Errorf("other nodes have the same name %s", id)
		}
	}
	if got := MoveReason("somebody-elses"); got != "" {
		t.Errorf("a foreign name says %q", got)
	}
}

// Names of claims come back; the moves of two claims are different ones all the same.
func TestMovesOfNamesakesDiffer(t *testing.T) {
	a, b := &cluster.Claim{Name: "n", UID: "1", Pool: "default"}, &cluster.Claim{Name: "n", UID: "2", Pool: "default"}
	if driftMoveID(a) == driftMoveID(b) {
		t.Errorf("two claims of one name drift in one move: %s", driftMoveID(a))
	}
	var ids []string
	for _, c := range []*cluster.Claim{a, b} {
		s := quiet(1)
		c.ProviderID, c.Conditions = s.Claims[0].ProviderID, s.Claims[0].Conditions
		s.Claims[0] = c
		s.Nodes[0].Name = "n"
		x := newExecutor(s.Seal(), Settings{}, ExecuteInput{})
		x.queueRequired(Candidate{Claim: c, Node: s.Nodes[0], Pool: s.Pools[0]}, command.Expired)
		x.queueRepair(c, s.Nodes[0], s.Pools[0])
		for _, m := range x.moves {
			ids = append(ids, m.id)
		}
	}
	if len(ids) != 4 || ids[0] == ids[2] || ids[1] == ids[3] {
		t.Errorf("the moves of two claims of one name are %v", ids)
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

// A node that pods needed whenever it was fenced rests for minutes at most.
func TestRestsOfNeededNodesAreShort(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	c := &cluster.Claim{}
	var waits []time.Duration
	for range 6 {
		until, rests := savingRestOf(c, now)
		waits = append(waits, until.Sub(now))
		c.SavingRestUntil, c.SavingRests = until, rests
		now = until
	}
	if got, want := fmt.Sprint(waits), "[1m0s 2m0s 4m0s 8m0s 10m0s 10m0s]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestSoftEndsAreSpread(t *testing.T) {
	p := &cluster.Pool{Overrides: cluster.DisruptionOverrides{SoftExpiry: 4 * time.Hour}}
	born := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	quarters := make(map[int]int)
	for i := range 300 {
		c := &cluster.Claim{UID: fmt.Sprint("uid", i), Created: born,
			ExpireAfter: cluster.NillableDuration{For: 24 * time.Hour}}
		at, soft := softExpiryTime(p, c)
		before := born.Add(24 * time.Hour).Sub(at)
		if !soft || before > 4*time.Hour || before < time.Hour {
			t.Fatalf("%s ends %s before its hard end", c.UID, before)
		}
		if again, _ := softExpiryTime(p, c); !again.Equal(at) {
			t.Fatalf("%s ends at %s and at %s", c.UID, at, again)
		}
		quarters[int(before/time.Hour)]++
	}
	for hour := 1; hour < 4; hour++ {
		if quarters[hour] < 70 {
			t.Errorf("only %d of 300 nodes end in hour %d before the hard end: %v", quarters[hour], hour, quarters)
		}
	}
	for _, c := range []*cluster.Claim{{ExpireAfter: cluster.NillableDuration{Never: true}}, {}} {
		if _, soft := softExpiryTime(p, c); soft {
			t.Errorf("a node that never expires ends softly: %+v", c.ExpireAfter)
		}
	}
}
