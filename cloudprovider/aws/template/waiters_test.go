package template

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
	"golang.org/x/time/rate"

	"github.com/tenon-sh/tenon/cloudprovider"
)

// twoTemplates are wanted by all the launches of one pool.
func twoTemplates() map[string]*Template {
	return map[string]*Template{"a": {Name: "a", Tags: map[string]string{}},
		"b": {Name: "b", Tags: map[string]string{}}}
}

// takeTurn has somebody else take the turn.
func takeTurn(ts *Store) { _ = ts.queue.Wait(context.Background(), time.Now()) }

// wantAll has many launches want the same templates at the same time, and returns what each is told.
func wantAll(ctx context.Context, ts *Store, count int) []error {
	out := make([]error, count)
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() { out[i] = ts.Ensure(ctx, twoTemplates()) })
	}
	all.Wait()
	return out
}

// TestRefusedTemplates: what EC2 says to the one who creates a template is told to all who wait for it, and nobody asks
// again.
func TestRefusedTemplates(t *testing.T) {
	slow := func(context.Context) error { time.Sleep(10 * time.Millisecond); return nil }
	deny := func(context.Context) error {
		return &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateLaunchTemplate",
			Err: &smithy.GenericAPIError{Code: "UnauthorizedOperation", Message: "no"}}
	}
	for name, api := range map[string]*maker{"looking": {look: deny}, "creating": {look: slow, create: deny}} {
		synctest.Test(t, func(t *testing.T) {
			ts := NewStore(api, time.Now)
			for _, err := range wantAll(t.Context(), ts, 400) {
				if cloudprovider.IsQueued(err) || !cloudprovider.IsUnauthorized(err) {
					t.Fatalf("%s: a launch is told %v", name, err)
				}
			}
			if name == "creating" && (api.looks != 1 || len(api.made) != 2) {
				t.Errorf("EC2 was asked %d times for templates and %d times for a new one, want 1 and 2", api.looks,
					len(api.made))
			}
			// It is asked anew by those who come later.
			api.look, api.create = nil, nil
			if err := ts.Ensure(t.Context(), twoTemplates()); err != nil {
				t.Errorf("%s: after the refusal: %v", name, err)
			}
		})
	}
}

// TestOneOfTwoTemplates: who needs only the template that was made is not told of the other.
func TestOneOfTwoTemplates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := NewStore(&maker{}, time.Now)
		mine, _ := ts.divide(twoTemplates())
		var waits sync.WaitGroup
		told := map[string]error{}
		var mu sync.Mutex
		for name, one := range twoTemplates() {
			waits.Go(func() {
				err := ts.Ensure(t.Context(), map[string]*Template{name: one})
				mu.Lock()
				defer mu.Unlock()
				told[name] = err
			})
		}
		synctest.Wait()
		ts.noteExisting("a")
		ts.release(t.Context(), mine, []error{nil, errors.New("b is refused")})
		waits.Wait()
		if told["a"] != nil || told["b"] == nil {
			t.Errorf("those who wait are told %v", told)
		}
	})
}

// TestMakerWhoGivesUp: that somebody stops waiting is no answer for the others, who make what is missing themselves.
func TestMakerWhoGivesUp(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, api := range map[string]*maker{"looking": {look: hang}, "creating": {create: hang}} {
		synctest.Test(t, func(t *testing.T) {
			ts := NewStore(api, time.Now)
			first, giveUp := context.WithCancel(t.Context())
			var all sync.WaitGroup
			all.Go(func() {
				if err := ts.Ensure(first, twoTemplates()); !errors.Is(err, context.Canceled) {
					t.Errorf("%s: who gave up is told %v", name, err)
				}
			})
			synctest.Wait()
			for range 20 {
				all.Go(func() {
					if err := ts.Ensure(t.Context(), twoTemplates()); err != nil {
						t.Errorf("%s: who waited is told %v", name, err)
					}
				})
			}
			synctest.Wait()
			api.mu.Lock()
			api.look, api.create, api.made = nil, nil, nil
			api.mu.Unlock()
			giveUp()
			all.Wait()
			if len(api.made) != 2 {
				t.Errorf("%s: %d templates were created, want 2", name, len(api.made))
			}
		})
	}
}

// TestMakerWhoIsLate: neither is that somebody has not had a turn in the time that was left.
func TestMakerWhoIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &maker{}
		ts := NewStore(api, time.Now)
		takeTurn(ts)
		first, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			if err := ts.Ensure(first, twoTemplates()); !cloudprovider.IsQueued(err) {
				t.Errorf("who was late is told %v", err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if err := ts.Ensure(t.Context(), twoTemplates()); err != nil {
				t.Errorf("who had more time is told %v", err)
			}
		})
		time.Sleep(10 * time.Second)
		ts.queue.Next()
		all.Wait()
		if len(api.made) != 2 {
			t.Errorf("%d templates were created, want 2", len(api.made))
		}
	})
}

// TestNoAnswerIsNoQueue: while EC2 does not answer nobody waits for a turn, and nobody is told so.
func TestNoAnswerIsNoQueue(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, api := range map[string]*maker{"looking": {look: hang}, "creating": {create: hang}} {
		synctest.Test(t, func(t *testing.T) {
			for _, err := range wantAll(t.Context(), NewStore(api, time.Now), 50) {
				if cloudprovider.IsThrottled(err) || !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("%s: a launch is told %v", name, err)
				}
			}
		})
	}
}

// TestWaitingForATurnTogether: who waits for a template whose maker has had no turn keeps the place in the line like
// the maker.
func TestWaitingForATurnTogether(t *testing.T) {
	for name, busy := range map[string]func(*Store){
		"the turn": takeTurn,
		"the bucket": func(ts *Store) {
			ts.limiter = rate.NewLimiter(rate.Every(time.Hour), 1)
			ts.limiter.Allow()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := &maker{}
			ts := NewStore(api, time.Now)
			busy(ts)
			for _, err := range wantAll(t.Context(), ts, 50) {
				if !cloudprovider.IsQueued(err) || !strings.Contains(err.Error(), "2 are waited for") {
					t.Fatalf("%s: a launch is told %v", name, err)
				}
			}
			if len(api.made) != 0 {
				t.Errorf("%s: %v were created out of turn", name, api.made)
			}
		})
	}
}

// TestForemost: that a template has had no turn is told only if nothing else is wrong.
func TestForemost(t *testing.T) {
	late, bad := error(&cloudprovider.ThrottledError{Queued: true, Cause: context.DeadlineExceeded}),
		errors.New("refused")
	for _, tc := range []struct {
		list []error
		want error
	}{{nil, nil}, {[]error{nil, nil}, nil}, {[]error{nil, late, nil}, late}, {[]error{late, bad, late}, bad},
		{[]error{bad, late}, bad}} {
		if got := mainFailure(tc.list); got != tc.want {
			t.Errorf("of %v is told %v", tc.list, got)
		}
	}
}
