package loop

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/validate"
)

// admitted counts who has been let in, which must be the first in the line.
func admitted(t *testing.T, line []*queuedStatus) int {
	t.Helper()
	count := 0
	for i, queued := range line {
		select {
		case <-queued.ready:
			if count != i {
				t.Fatalf("number %d was let in before number %d", i, count)
			}
			count++
		default:
		}
	}
	return count
}

func TestNotesGiveWayToActs(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	q := &statusQueue{}
	var line []*queuedStatus
	for range 5 * statusWorkers {
		line = append(line, q.join(now))
	}
	check := func(what string, want int) {
		t.Helper()
		if got := admitted(t, line); got != want {
			t.Errorf("%s: %d notes were let in, want %d", what, got, want)
		}
	}
	check("nobody else is there", statusWorkers)
	q.noteActive(2, now)
	for range statusWorkers - fewStatusWorkers {
		q.leave(now)
	}
	check("acts have come", statusWorkers)
	q.leave(now)
	check("and few are left", statusWorkers+1)
	q.noteActive(-1, now)
	check("one act is done", statusWorkers+1)
	q.noteActive(-1, now)
	check("all are done", statusWorkers+1+statusWorkers-fewStatusWorkers)
	q.noteActive(1, now)
	q.leave(now.Add(longestStatusWait - time.Millisecond))
	check("another comes", 2*statusWorkers+1-fewStatusWorkers)
	q.admitOverdue(now.Add(longestStatusWait))
	check("they have waited for long enough", 2*statusWorkers+2-fewStatusWorkers)
}

// What is to be done does not wait behind what is to be written down, however much that is.
func TestActsOvertakeNotes(t *testing.T) {
	book := ingest.New(time.Now, validate.Labels{}, nil)
	a := &actor{began: make(chan command.Command, 1000), end: make(chan error)}
	l := &Loop{World: book, Actor: a, Observer: silent{done: make(chan command.Outcome, 1000)},
		pools: newWorkerPools(), statusQueue: &statusQueue{}}
	ctx, stop := context.WithCancel(t.Context())
	defer func() { stop(); l.running.Wait() }()
	s := &cluster.Snapshot{}
	for i := range 500 {
		l.start(ctx, s, command.SetClaim{Claim: fmt.Sprint(i)})
	}
	for range statusWorkers {
		next(t, a.began, "a note")
	}
	for i := range 50 {
		l.start(ctx, s, command.Fence{Node: fmt.Sprint(i)})
	}
	for range 50 {
		if c := next(t, a.began, "a fence"); command.IsStatusUpdate(c) {
			t.Fatalf("%s was begun before the fences", c.Key())
		}
	}
}
