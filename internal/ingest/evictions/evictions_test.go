package evictions

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// A replica that starts beside very many young pods of one owner is not held up by them: each is counted once, and they
// are brought into order once. The watch shows them in any order.
func TestVeryManyEvictionsAreSupposed(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	b := New(now)
	const pods = 150_000
	for i := range pods {
		age := time.Duration(1+i*7919%pods) * time.Hour / (pods + 2)
		p := &cluster.Pod{UID: fmt.Sprint(i), Owner: "default/rs", Created: now.Add(-age)}
		b.Assume(p, time.Time{})
		b.Assume(p, time.Time{})
	}
	check := func(count int) {
		t.Helper()
		b.Forget(now)
		counts, drop := b.Now()
		if got := counts["default/rs"]; got < count-1 || got > count+1 {
			t.Errorf("%d evictions are supposed, expected %d", got, count)
		}
		if drop["default/rs"].Before(now) {
			t.Errorf("the first ceases to count at %v, and it is %v", drop["default/rs"], now)
		}
	}
	check(pods)
	now = now.Add(30 * time.Minute)
	check(pods / 2)
	now = now.Add(30 * time.Minute)
	b.Forget(now)
	if counts, _ := b.Now(); len(counts) != 0 {
		t.Errorf("%d owners are remembered after an hour", len(counts))
	}
}
