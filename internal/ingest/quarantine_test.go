package ingest

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/validate"
)

func TestQuarantineEndsAndGrows(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	b := New(func() time.Time { return now }, validate.Labels{}, nil)
	fails := func() { b.Quarantine(cluster.Quarantine{Classes: map[string]cluster.Failure{"c": {Message: "boom"}}}) }
	before := b.Rev()
	fails()
	select {
	case <-b.Changed():
	default:
		t.Error("nobody is woken")
	}
	s := b.Snapshot()
	if f := s.Quarantine.Classes["c"]; f.Message != "boom" || !f.Since.Equal(now) ||
		f.Until.Sub(now) != firstQuarantine {
		t.Errorf("the class is left out as %+v", f)
	}
	if s.DemandRev <= before || s.SupplyRev <= before || s.RoomRev <= before {
		t.Error("a placement from before would be taken over")
	}
	now = now.Add(firstQuarantine)
	if s := b.Snapshot(); s.Quarantine.Any() || s.DemandRev != s.Rev {
		t.Errorf("after its time: %+v, the demand has changed at %d of %d", s.Quarantine, s.DemandRev, s.Rev)
	}
	rev := b.Rev()
	if b.Snapshot(); b.Rev() != rev {
		t.Error("its end is noted again and again")
	}
	for _, want := range []time.Duration{2 * firstQuarantine, 4 * firstQuarantine, 8 * firstQuarantine} {
		fails()
		if got := b.Snapshot().Quarantine.Classes["c"].Until.Sub(now); got != want {
			t.Errorf("failing again: left out for %v, want %v", got, want)
		}
	}
	for range 10 {
		fails()
	}
	if got := b.Snapshot().Quarantine.Until().Sub(now); got != lastQuarantine {
		t.Errorf("at most %v, got %v", lastQuarantine, got)
	}
	now = now.Add(lastQuarantine + failuresKept)
	b.Snapshot()
	b.Snapshot()
	if len(b.quarantined.classes) != 0 {
		t.Error("it is remembered for ever")
	}
	fails()
	if got := b.Snapshot().Quarantine.Until().Sub(now); got != firstQuarantine {
		t.Errorf("after a day without a failure: left out for %v", got)
	}
}

func TestQuarantineIsBounded(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	b := New(func() time.Time { return now }, validate.Labels{}, nil)
	for i := range mostQuarantined + 10 {
		now = now.Add(time.Microsecond)
		b.Quarantine(cluster.Quarantine{Classes: map[string]cluster.Failure{fmt.Sprint(i): {}},
			Claims: map[string]cluster.Failure{fmt.Sprint(i): {}}})
	}
	b.Quarantine(cluster.Quarantine{Parts: map[cluster.Part]cluster.Failure{cluster.Searching: {}}})
	q := b.Snapshot().Quarantine
	bounded := func(n int) bool { return mostQuarantined*9/10 <= n && n <= mostQuarantined }
	if !bounded(len(q.Classes)) || !bounded(len(q.Claims)) || !q.LeavesOut(cluster.Searching) {
		t.Errorf("%d classes and %d claims are left out", len(q.Classes), len(q.Claims))
	}
	if _, kept := q.Classes["9"]; kept {
		t.Error("the oldest is kept")
	}
}

// What is told apart in time is let in again at once. A class that fails only with another is tried again sooner.
func TestQuarantineIsTakenBack(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	b := New(func() time.Time { return now }, validate.Labels{}, nil)
	put := func(key string, f cluster.Failure) {
		one := func() map[string]cluster.Failure { return map[string]cluster.Failure{key: f} }
		b.Quarantine(cluster.Quarantine{Classes: one(), SearchClasses: one(), SearchClaims: one()})
	}
	put("doubtful", cluster.Failure{Group: 3, Until: now.Add(time.Minute)})
	put("half", cluster.Failure{PairedWith: "other"})
	q := b.Snapshot().Quarantine
	for _, of := range []map[string]cluster.Failure{q.Classes, q.SearchClasses, q.SearchClaims} {
		if of["doubtful"].Group != 3 || of["half"].Until.Sub(now) != firstPairQuarantine {
			t.Errorf("left out: %+v", of)
		}
	}
	before := b.Snapshot().DemandRev
	put("doubtful", cluster.Failure{Until: now})
	put("never left out", cluster.Failure{Until: now})
	s := b.Snapshot()
	q = s.Quarantine
	if len(q.Classes) != 1 || len(q.SearchClasses) != 1 || len(q.SearchClaims) != 1 || s.DemandRev <= before {
		t.Errorf("left out: %+v", q)
	}
	if len(b.quarantined.classes) != 2 {
		t.Errorf("%d are remembered", len(b.quarantined.classes))
	}
	for range 10 {
		put("half", cluster.Failure{PairedWith: "other"})
	}
	if got := b.Snapshot().Quarantine.Classes["half"].Until.Sub(now); got != lastPairQuarantine {
		t.Errorf("after failing again and again: %v", got)
	}
}
