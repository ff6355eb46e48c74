package disrupt

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// rested says that n1 has rested, from moves that save money or from all, and until how long before its move began.
func (f *fleet) rested(saving bool, ago time.Duration) {
	c := f.claim("n1")
	until := c.Condition(cluster.DisruptionReason).Since.Add(-ago)
	if saving {
		c.SavingRestUntil, c.SavingRests = until, 1
	} else {
		c.RestUntil, c.Rests = until, 1
	}
}

// later has d pass since the move of n1 began: all that was done for it was done as much earlier.
func (f *fleet) later(d time.Duration) {
	f.begins(d)
	for _, c := range f.s.Claims {
		if c.Replaces != "" {
			c.Created = f.now.Add(10*time.Second - d)
		}
	}
}

// How long a move waits: n1 has drifted, or is to go to save money, and its replacement is on its way.
func TestHowLongAMoveWaits(t *testing.T) {
	late := "unfence/n1: ReplacementsLate, rests; give up n1: ReplacementsLate"
	unlaunched := func(c *cluster.Claim) { c.Conditions = nil }
	cases := []struct {
		name   string
		after  time.Duration
		change func(f *fleet, made *cluster.Claim)
		// due and saving are what becomes of the move if it has to be, and if it is to save money.
		due, saving string
	}{
		{"the first try", 10*time.Minute - time.Second, func(*fleet, *cluster.Claim) {}, "", ""},
		{"the first try, the time is over", 10 * time.Minute, func(*fleet, *cluster.Claim) {}, late, late},
		{"it has rested", 10 * time.Minute, func(f *fleet, _ *cluster.Claim) { f.rested(false, 0) }, "", ""},
		{"it has rested from moves that save money", 10 * time.Minute, func(f *fleet, _ *cluster.Claim) { f.rested(true, 0) }, late, ""},
		{"it has rested an hour ago", 10 * time.Minute, func(f *fleet, _ *cluster.Claim) { f.rested(false, longestRest) }, "", ""},
		{"it has rested more than an hour ago", 10 * time.Minute, func(f *fleet, _ *cluster.Claim) { f.rested(false, longestRest+time.Second) },
			late, late},
		{"it has rested, almost twice the time is over", 20*time.Minute - time.Second, func(f *fleet, _ *cluster.Claim) { f.rested(false, 0) }, "", ""},
		{"it has rested, twice the time is over", 20 * time.Minute, func(f *fleet, _ *cluster.Claim) { f.rested(false, 0) }, late, late},
		{"it has rested, and the replacement is not launched", 10 * time.Minute, func(f *fleet, made *cluster.Claim) {
			f.rested(false, 0)
			unlaunched(made)
		}, late, late},
		{"it has rested, and another replacement is not launched", 10 * time.Minute, func(f *fleet, made *cluster.Claim) {
			f.rested(false, 0)
			more := f.replaced(made.Replaces, "more", "small")
			more.Created = made.Created
			unlaunched(more)
		}, late, late},
		{"it has rested, and the replacement is of an earlier try", 10 * time.Minute, func(f *fleet, made *cluster.Claim) {
			f.rested(false, 0)
			made.Created = made.Created.Add(-time.Minute)
		}, late, late},
		{"it has rested, and the replacement is being removed", 10 * time.Minute, func(f *fleet, made *cluster.Claim) {
			f.rested(false, 0)
			made.Deleting = f.now
		}, late, late},
		{"it has rested, and the replacement is up", 19 * time.Minute, func(f *fleet, made *cluster.Claim) {
			f.rested(false, 0)
			f.say("new", cluster.Initialized, "", f.now)
		}, "delete/n1", "delete/n1"},
		{"it has rested, and has not gone although the replacement is up", 21 * time.Minute, func(f *fleet, made *cluster.Claim) {
			f.rested(false, 0)
			f.say("new", cluster.Initialized, "", f.now)
		}, "unfence/n1: NotDeleted, rests; give up n1: NotDeleted", "unfence/n1: NotDeleted, rests; give up n1: NotDeleted"},
	}
	for _, c := range cases {
		for reason, want := range map[command.Reason]string{command.Drifted: c.due, command.Underutilized: c.saving} {
			f := newFleet()
			f.drifted("n1")
			made := f.replaced(f.fenced(reason, "n1"), "new", "small")
			notUp(made)
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 4)
			f.later(c.after)
			f.rested(false, 2*longestRest)
			c.change(f, made)
			if got := f.carry(); got != want {
				t.Errorf("%s, %s: %q, want %q", c.name, reason, got, want)
			}
		}
	}
}
