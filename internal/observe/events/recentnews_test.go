package events

import (
	"fmt"
	"testing"
	"time"
)

func TestMemoryIsBounded(t *testing.T) {
	now := time.Now()
	news := NewNews(func() time.Time { return now })
	const each = 3000
	for period := range 5 {
		for i := range each {
			if uid := fmt.Sprint(period, "/", i); !news.Learn(uid, 1) || news.Learn(uid, 1) || !news.Learn(uid, 2) ||
				!news.knows(uid, 1) {
				t.Fatalf("%s: not learned exactly once", uid)
			}
		}
		if size := len(news.current) + len(news.previous); size > 2*2*each {
			t.Fatalf("%d pieces of news are kept after period %d", size, period)
		}
		now = now.Add(RepeatAfter)
		if news.knows(fmt.Sprint(period, "/", 0), 1) {
			t.Fatal("still known when it may be told again")
		}
	}
}
