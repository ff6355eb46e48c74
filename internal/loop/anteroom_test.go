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
func admitted(t *testing.T, line []*caller) int {
	t.Helper()
	count := 0
	for i, c := range line {
		select {
		case <-c.open:
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
	a := &anteroom{}
	var line []*caller
	for range 5 * clerks {
		line = append(line, a.enter(now))
	}
	check := func(what string, want int) {
		t.Helper()
		if got := admitted(t, line); got != want {
			t.Errorf("%s: %d notes were let in, want %d", what, got, want)
		}
	}
	check("nobody else is there", clerks)
	a.act(2, now)
	for range clerks - shyClerks {
		a.leave(now)
	}
	check("acts have come", clerks)
	a.leave(now)
	check("and few are left", clerks+1)
	a.act(-1, now)
	check("one act is done", clerks+1)
	a.act(-1, now)
	check("all are done", clerks+1+clerks-shyClerks)
	a.act(1, now)
	a.leave(now.Add(courtesy - time.Millisecond))
	check("another comes", 2*clerks+1-shyClerks)
	a.remind(now.Add(courtesy))
	check("they have waited for long enough", 2*clerks+2-shyClerks)
}

// What is to be done does not wait behind what is to be written down, however much that is.
func TestActsOvertakeNotes(t *testing.T) {
	book := ingest.New(time.Now, validate.Labels{}, nil)
	a := &actor{began: make(chan command.Command, 1000), end: make(chan error)}
	l := &Loop{World: book, Actor: a, Observer: silent{done: make(chan command.Outcome, 1000)},
		crew: newCrew(), notes: &anteroom{}}
	ctx, stop := context.WithCancel(t.Context())
	defer func() { stop(); l.acts.Wait() }()
	s := &cluster.Snapshot{}
	for i := range 500 {
		l.act(ctx, s, command.SetClaim{Claim: fmt.Sprint(i)})
	}
	for range clerks {
		next(t, a.began, "a note")
	}
	for i := range 50 {
		l.act(ctx, s, command.Fence{Node: fmt.Sprint(i)})
	}
	for range 50 {
		if c := next(t, a.began, "a fence"); command.IsNote(c) {
			t.Fatalf("%s was begun before the fences", c.Key())
		}
	}
}
