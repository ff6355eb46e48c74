package ratelimit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
)

// TestNobodyNeedsNoTurn: a call whose callers have all given up takes nobody's turn.
func TestNobodyNeedsNoTurn(t *testing.T) {
	now := time.Unix(1000, 0)
	s := NewFleet(func() time.Time { return now })
	for range FleetBurst {
		if err := s.Admit(t.Context(), func() int { return 0 }); !errors.Is(err, batch.ErrNobody) {
			t.Fatalf("who is nobody got %v", err)
		}
	}
	if left := s.tokens.TokensAt(now); left != FleetBurst {
		t.Errorf("%v turns are left of %d", left, FleetBurst)
	}
}

// TestTurnstile lets a burst through, then the fullest first, and nobody while EC2 wants to be left alone.
func TestTurnstile(t *testing.T) {
	now := time.Unix(1000, 0)
	s := NewFleet(func() time.Time { return now })
	for range FleetBurst {
		if err := s.Pass(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	few, many := s.join(func() int { return 2 }, false), s.join(func() int { return 30 }, false)
	through := func(w *fleetWaiter) bool {
		select {
		case <-w.through:
			return true
		default:
			return false
		}
	}
	if s.serve(); through(few) || through(many) {
		t.Fatal("somebody got through after the burst")
	}
	now = now.Add(fleetInterval)
	if s.serve(); through(few) || !through(many) {
		t.Error("those who wait for many don't go first")
	}
	s.Slower()
	now = now.Add(firstPause - time.Millisecond)
	if s.serve(); through(few) {
		t.Error("somebody got through although EC2 has asked us to slow down")
	}
	now = now.Add(time.Millisecond)
	if s.serve(); !through(few) {
		t.Error("nobody gets through after the pause")
	}
	s.Slower()
	if wait := s.pausedUntil.Sub(now); wait != 2*firstPause {
		t.Errorf("the second pause is %s", wait)
	}
	now = now.Add(time.Minute)
	s.NoteTaken()
	if s.Slower(); s.pausedUntil.Sub(now) != firstPause {
		t.Errorf("after a call that went well the pause is %s", s.pausedUntil.Sub(now))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Pass(gone, 1); !errors.Is(err, context.Canceled) || len(s.waiting) != 0 {
		t.Errorf("who gives up is still in the line: %v, %d", err, len(s.waiting))
	}
}

// TestNobodyWaitsForEver has one claim of a rare kind wait among many of others.
func TestNobodyWaitsForEver(t *testing.T) {
	now := time.Unix(1000, 0)
	s := NewFleet(func() time.Time { return now })
	s.tokens.AllowN(now, FleetBurst)
	lone := s.join(func() int { return 1 }, true)
	for step := 0; ; step++ {
		s.join(func() int { return 100 }, true)
		now = now.Add(fleetInterval)
		s.serve()
		select {
		case <-lone.through:
			return
		default:
		}
		if now.Sub(lone.since) > longestWait+time.Second {
			t.Fatal("it waits for ever")
		}
	}
}

// TestFewAreHeldBack has a rush go on: who waits for few lets those for many go first, but not for long.
func TestFewAreHeldBack(t *testing.T) {
	gone := func(w *fleetWaiter) bool {
		select {
		case <-w.through:
			return true
		default:
			return false
		}
	}
	for _, tc := range []struct {
		name        string
		calls, size int
		open        bool
		every       time.Duration // how often a call for many goes on
		want        time.Duration
	}{
		{"no rush", streakCalls - 1, 1, true, time.Second, 0},
		{"a rush", streakCalls, 1, true, time.Second, longestHoldBack},
		{"a rush that is over", streakCalls, 1, true, 0, fewClaimsWait},
		{"it is for many itself", streakCalls, fewClaims, true, time.Second, 0},
		{"nobody can join it", streakCalls, 1, false, time.Second, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			began := time.Unix(1000, 0)
			now := began
			s := NewFleet(func() time.Time { return now })
			for range tc.calls {
				s.join(func() int { return fewClaims }, true)
			}
			s.serve()
			w := s.join(func() int { return tc.size }, tc.open)
			for s.serve(); !gone(w); s.serve() {
				if now = now.Add(100 * time.Millisecond); now.Sub(began) > time.Minute {
					t.Fatal("it waits for ever")
				}
				if tc.every > 0 && now.Sub(began)%tc.every == 0 {
					s.join(func() int { return fewClaims }, true)
				}
			}
			if waited := now.Sub(began); waited != tc.want {
				t.Errorf("it waited %s, want %s", waited, tc.want)
			}
		})
	}
}

// TestTurnsGivenBackDontAddToTheBurst: after a rest as many go at once as ever, however many turns were given back.
func TestTurnsGivenBackDontAddToTheBurst(t *testing.T) {
	now := time.Unix(1000, 0)
	s := NewFleet(func() time.Time { return now })
	one := func() int { return 1 }
	for range 3 {
		w := s.join(one, false)
		if s.serve(); !errors.Is(s.leave(w, context.Canceled), context.Canceled) {
			t.Fatal("who leaves is not told why")
		}
	}
	now = now.Add(FleetBurst * fleetInterval)
	waiting := make([]*fleetWaiter, 2*FleetBurst)
	for i := range waiting {
		waiting[i] = s.join(func() int { return fewClaims }, false)
	}
	s.serve()
	through := 0
	for _, w := range waiting {
		select {
		case <-w.through:
			through++
		default:
		}
	}
	if through != FleetBurst {
		t.Errorf("%d go at once after three have given their turns back, want %d", through, FleetBurst)
	}
}
