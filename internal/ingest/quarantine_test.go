package ingest

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/quarantine"
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
		f.Until.Sub(now) != quarantine.First {
		t.Errorf("the class is left out as %+v", f)
	}
	if s.DemandRev <= before || s.SupplyRev <= before || s.RoomRev <= before {
		t.Error("a placement from before would be taken over")
	}
	now = now.Add(quarantine.First)
	if s := b.Snapshot(); s.Quarantine.Any() || s.DemandRev != s.Rev {
		t.Errorf("after its time: %+v, the demand has changed at %d of %d", s.Quarantine, s.DemandRev, s.Rev)
	}
	rev := b.Rev()
	if b.Snapshot(); b.Rev() != rev {
		t.Error("its end is noted again and again")
	}
	for _, want := range []time.Duration{2 * quarantine.First, 4 * quarantine.First, 8 * quarantine.First} {
		fails()
		if got := b.Snapshot().Quarantine.Classes["c"].Until.Sub(now); got != want {
			t.Errorf("failing again: left out for %v, want %v", got, want)
		}
	}
	for range 10 {
		fails()
	}
	if got := b.Snapshot().Quarantine.Until().Sub(now); got != quarantine.Last {
		t.Errorf("at most %v, got %v", quarantine.Last, got)
	}
	now = now.Add(quarantine.Last + quarantine.Kept)
	b.Snapshot()
	b.Snapshot()
	fails()
	if got := b.Snapshot().Quarantine.Until().Sub(now); got != quarantine.First {
		t.Errorf("after a day without a failure: left out for %v", got)
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
		if of["doubtful"].Group != 3 || of["half"].Until.Sub(now) != quarantine.FirstPair {
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
	for range 10 {
		put("half", cluster.Failure{PairedWith: "other"})
	}
	if got := b.Snapshot().Quarantine.Classes["half"].Until.Sub(now); got != quarantine.LastPair {
		t.Errorf("after failing again and again: %v", got)
	}
}
