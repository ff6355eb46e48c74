package batch_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
)

// clocked notes when the batches of each key are handed on.
type clocked struct {
	mu sync.Mutex
	at map[string][]time.Time
}

func (c *clocked) do(_ context.Context, key string, list []int) []batch.Answer[int] {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at[key] = append(c.at[key], time.Now())
	return make([]batch.Answer[int], len(list))
}

// TestOthersStillCome has requests of two kinds come one after the other: as long as any come, none are handed on.
func TestOthersStillCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clocked{at: map[string][]time.Time{}}
		g := batch.New(windows(batch.Window{Idle: 100 * time.Millisecond, Max: time.Second, Items: 100}),
			time.Minute, c.do)
		began := time.Now()
		var group sync.WaitGroup
		for n, key := range []string{"a", "b", "a", "b"} {
			group.Go(func() {
				time.Sleep(time.Duration(n) * 80 * time.Millisecond)
				if _, err := g.Ask(t.Context(), key, n); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		for _, key := range []string{"a", "b"} {
			if len(c.at[key]) != 1 || c.at[key][0].Sub(began) != 340*time.Millisecond {
				t.Errorf("%s is handed on at %v, want once after 340 ms", key, c.at[key])
			}
		}
	})
}

// TestWhile keeps a batch open for others who are said to be about to come: until they are, or for Max.
func TestWhile(t *testing.T) {
	for _, tc := range []struct {
		name string
		more func(size int, passed time.Duration) bool
		want time.Duration
	}{
		{"nobody is about to come", func(int, time.Duration) bool { return false }, 100 * time.Millisecond},
		{"somebody is, for a while", func(_ int, passed time.Duration) bool {
			return passed < 250*time.Millisecond
		}, 300 * time.Millisecond},
		{"somebody is for ever", func(int, time.Duration) bool { return true }, time.Second},
		{"enough are there", func(size int, _ time.Duration) bool { return size < 3 }, 100 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &clocked{at: map[string][]time.Time{}}
				began := time.Now()
				g := batch.New(windows(batch.Window{Idle: 100 * time.Millisecond, Max: time.Second, Items: 100}),
					time.Minute, c.do).
					While(func(size int) bool { return tc.more(size, time.Since(began)) })
				var group sync.WaitGroup
				for n := range 3 {
					group.Go(func() {
						if _, err := g.Ask(t.Context(), "a", n); err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
				if len(c.at["a"]) != 1 || c.at["a"][0].Sub(began) != tc.want {
					t.Errorf("handed on at %v after %v, want once after %s", c.at["a"], began, tc.want)
				}
			})
		})
	}
}
