package quarantine

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

func left(l *List, now time.Time) cluster.Quarantine {
	q, _ := l.Now(now)
	return q
}

func TestQuarantineIsBounded(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	b := New()
	for i := range Most + 10 {
		now = now.Add(time.Microsecond)
		b.Add(cluster.Quarantine{Classes: map[string]cluster.Failure{fmt.Sprint(i): {}},
			Claims: map[string]cluster.Failure{fmt.Sprint(i): {}}}, now)
	}
	b.Add(cluster.Quarantine{Parts: map[cluster.Part]cluster.Failure{cluster.Searching: {}}}, now)
	q := left(&b, now)
	bounded := func(n int) bool { return Most*9/10 <= n && n <= Most }
	if !bounded(len(q.Classes)) || !bounded(len(q.Claims)) || !q.LeavesOut(cluster.Searching) {
		t.Errorf("%d classes and %d claims are left out", len(q.Classes), len(q.Claims))
	}
	if _, kept := q.Classes["9"]; kept {
		t.Error("the oldest is kept")
	}
}

// What says itself that it is over is taken out, and no more is remembered of what never was in.
func TestWhatIsOverIsNotRemembered(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	b := New()
	put := func(key string, until time.Time) {
		b.Add(cluster.Quarantine{Classes: map[string]cluster.Failure{key: {Until: until}}}, now)
	}
	put("doubtful", now.Add(time.Minute))
	put("doubtful", now)
	put("never left out", now)
	if q := left(&b, now); len(q.Classes) != 0 || len(b.classes) != 1 {
		t.Errorf("%d are left out, %d remembered", len(q.Classes), len(b.classes))
	}
}
