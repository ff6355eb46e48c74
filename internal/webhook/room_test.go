package webhook

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestRoom: requests wait as long as others have all turns, one that gives up holds nothing, and one too many is
// refused.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(3, 2)
		first, err := r.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		second, err := r.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := r.enter(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("there was room for more than there is: %v", err)
		}
		came := make(chan error, 1)
		go func() {
			_, err := r.enter(t.Context())
			came <- err
		}()
		synctest.Wait()
		select {
		case err := <-came:
			t.Fatalf("a third turn of two was given: %v", err)
		default:
		}
		if _, err := r.enter(t.Context()); !errors.Is(err, errFull) {
			t.Errorf("a fourth place of three was given: %v", err)
		}
		first()
		if err := <-came; err != nil {
			t.Error(err)
		}
		second()
		if len(r.turns) != 1 || len(r.places) != 1 {
			t.Errorf("%d turns and %d places are taken, want one of each", len(r.turns), len(r.places))
		}
	})
}

// TestPurse: of two that need more than there is together, one waits before both have half of it, and goes on when the
// other has ended. One that gives up holds nothing.
func TestPurse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPurse(4, 2)
		one, two := &stake{}, &stake{}
		for _, s := range []*stake{one, two} {
			if err := p.join(s, 3); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.join(&stake{}, 1); !errors.Is(err, errFull) {
			t.Errorf("a third of two came in: %v", err)
		}
		take := func(ctx context.Context, s *stake, want error) {
			t.Helper()
			if err := p.take(ctx, s); !errors.Is(err, want) {
				t.Errorf("taking a piece: %v, want %v", err, want)
			}
		}
		take(t.Context(), one, nil)
		take(t.Context(), one, nil)
		take(t.Context(), two, nil)
		ended, end := context.WithCancel(t.Context())
		end()
		take(ended, two, context.Canceled)
		done := make(chan struct{})
		go func() {
			take(t.Context(), two, nil)
			close(done)
		}()
		synctest.Wait()
		if two.held != 1 || p.free != 1 {
			t.Errorf("the second has %d pieces and %d are free, want one and one", two.held, p.free)
		}
		take(t.Context(), one, nil)
		p.leave(one)
		<-done
		take(t.Context(), two, nil)
		p.leave(two)
		if p.free != 4 || len(p.stakes) > 0 {
			t.Errorf("in the end %d of 4 are free, and %d are there", p.free, len(p.stakes))
		}
	})
}
