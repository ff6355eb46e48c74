package disrupt

import (
	"slices"
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

// next is another claim that was made for the same move, to which no pod goes before the first.
func (f *fleet) next(made *cluster.Claim) *cluster.Claim {
	c := f.replaced(made.Replaces, "next", "small")
	c.Created = made.Created
	return c
}

// without has a claim go, and leaves its node.
func (f *fleet) without(c *cluster.Claim) {
	f.s.Claims = slices.DeleteFunc(f.s.Claims, func(x *cluster.Claim) bool { return x == c })
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
		{"it has rested from moves that save money", 10 * time.Minute, func(f *fleet, _ *cluster.Claim) {
			f.rested(true, 0)
		}, late, ""},
		{"it has rested an hour ago", 10 * time.Minute, func(f *fleet, _ *cluster.Claim) {
			f.rested(false, longestRest)
		}, "", ""},
		{"it has rested more than an hour ago", 10 * time.Minute, func(f *fleet, _ *cluster.Claim) {
			f.rested(false, longestRest+time.Second)
		},
			late, late},
		{"it has rested from moves that save money more than an hour ago", 10 * time.Minute,
			func(f *fleet, _ *cluster.Claim) {
				f.rested(true, longestRest+time.Second)
			}, late, late},
		{"it has rested, almost twice the time is over", 20*time.Minute - time.Second,
			func(f *fleet, _ *cluster.Claim) {
				f.rested(false, 0)
			}, "", ""},
		{"it has rested, twice the time is over", 20 * time.Minute, func(f *fleet, _ *cluster.Claim) {
			f.rested(false, 0)
		}, late, late},
		{"it has rested, and the replacement is not launched", 10 * time.Minute, func(f *fleet, made *cluster.Claim) {
			f.rested(false, 0)
			unlaunched(made)
		}, late, late},
		{"it has rested, and another replacement is not launched", 10 * time.Minute,
			func(f *fleet, made *cluster.Claim) {
				f.rested(false, 0)
				more := f.replaced(made.Replaces, "more", "small")
				more.Created = made.Created
				unlaunched(more)
			}, late, late},
		{"it has rested, and another replacement, to which nobody goes, is not launched", 10 * time.Minute,
			func(f *fleet, made *cluster.Claim) {
				f.rested(false, 0)
				unlaunched(f.next(made))
			}, late, late},
		{"it has rested, and another replacement that is not launched is being removed", 10 * time.Minute,
			func(f *fleet, made *cluster.Claim) {
				f.rested(false, 0)
				more := f.next(made)
				unlaunched(more)
				more.Deleting = f.now
			}, "", ""},
		{"it has rested, and another replacement, of an earlier try, is not launched", 10 * time.Minute,
			func(f *fleet, made *cluster.Claim) {
				f.rested(false, 0)
				more := f.next(made)
				unlaunched(more)
				more.Created = f.now.Add(-time.Hour)
			}, "", ""},
		{"it has rested, and the replacement of another move is not launched", 10 * time.Minute,
			func(f *fleet, _ *cluster.Claim) {
				f.rested(false, 0)
				f.drifted("n3")
				unlaunched(f.replaced(f.fenced(command.Drifted, "n3"), "other", "large"))
			}, "", ""},
		{"it has rested, and what was made for another move is for its pods, too", 10 * time.Minute,
			func(f *fleet, made *cluster.Claim) {
				f.rested(false, 0)
				f.without(made)
				f.drifted("n3")
				f.host("new").Deleting, f.pod("new3").Class.Requests[0] = f.now, 1000
				notUp(f.replaced(f.fenced(command.Drifted, "n3"), "other", "large"))
			}, "", late},
		{"it has rested, and there is room meanwhile on a node of others", 10 * time.Minute,
			func(f *fleet, _ *cluster.Claim) {
				f.rested(false, 0)
				f.without(f.node("n4", "large"))
				f.host("n4").Ours = false
			}, "", ""},
		{"it has rested, and its pods, which have room, may not leave", 10 * time.Minute,
			func(f *fleet, made *cluster.Claim) {
				f.rested(false, 0)
				f.without(made)
				f.host("new").Deleting = f.now
				f.node("n4", "large")
				f.guard(0, 1, 2)
			}, late, late},
		{"it has rested, and its pods, which have room where an earlier try has left some, may not leave",
			10 * time.Minute, func(f *fleet, made *cluster.Claim) {
				f.rested(false, 0)
				made.Created, made.Conditions = f.now.Add(-time.Hour), f.claim("n2").Conditions
				f.guard(0, 1, 2)
			}, late, late},
		{"it has rested, and the replacement is of an earlier try", 10 * time.Minute,
			func(f *fleet, made *cluster.Claim) {
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
		{"it has rested, and has not gone although the replacement is up", 21 * time.Minute,
			func(f *fleet, made *cluster.Claim) {
				f.rested(false, 0)
				f.say("new", cluster.Initialized, "", f.now)
			}, "unfence/n1: NotDeleted, rests; give up n1: NotDeleted", "unfence/n1: NotDeleted, rests; give up n1: " +
				"NotDeleted"},
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

// What is made in place of a node of a static pool is awaited whatever room that node's pods have.
func TestHowLongAStaticPoolWaits(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{20*time.Minute - time.Second, ""}, {20 * time.Minute, "unfence/n1: ReplacementsLate, rests; give up n1: " +
		"ReplacementsLate"}} {
		f := staticFleet(3)
		f.o.Static = true
		f.drifted("n1")
		notUp(f.replaced(f.fenced(command.Drifted, "n1"), "new", "small"))
		f.run("more", "n1", 4)
		f.run("new2", "n2", 4)
		f.run("new3", "n3", 4)
		f.later(c.after)
		f.rested(false, 0)
		if got := f.carry(); got != c.want {
			t.Errorf("after %s: %q, want %q", c.after, got, c.want)
		}
	}
}

// A replacement is awaited for longer if it was launched and the move that it was made for has been tried before, not
// if another has.
func TestWhichReplacementsAreAwaitedForLonger(t *testing.T) {
	cases := []struct {
		name   string
		change func(f *fleet)
		want   string
	}{
		{"it is of another move, whose node goes already", func(f *fleet) {
			f.drifted("n2")
			notUp(f.replaced(f.fenced(command.Drifted, "n2"), "new", "large"))
			f.claim("n2").Deleting, f.s.Pods = f.now, slices.DeleteFunc(f.s.Pods, func(p *cluster.Pod) bool {
				return p.Node == "n2"
			})
			c := f.claim("n2").Conditions
			c[len(c)-1].Since, f.claim("new").Created = f.now.Add(-15*time.Minute), f.now.Add(-15*time.Minute)
		}, "want $1"},
		{"it is not launched", func(f *fleet) {
			f.replaced(f.claim("n1").Move, "new", "large").Conditions = nil
			f.later(10*time.Minute + 10*time.Second)
			f.drifted("n2")
			f.fenced(command.Drifted, "n2")
		}, "give up n1: ReplacementsLate; unfence/n1: ReplacementsLate, rests; want $2"},
		{"it is launched", func(f *fleet) {
			notUp(f.replaced(f.claim("n1").Move, "new", "large"))
			f.later(10*time.Minute + 10*time.Second)
			f.drifted("n2")
			f.fenced(command.Drifted, "n2")
		}, ""},
	}
	for _, c := range cases {
		f := newFleet()
		f.run("new3", "n3", 4)
		f.drifted("n1")
		f.fenced(command.Drifted, "n1")
		c.change(f)
		f.rested(false, 0)
		if got := sorted(f.carry()); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A move is looked at again when its first time is over, even if it may wait for longer: what it waits for may be
// another by then.
func TestMovesThatWaitLongerAreLookedAtMeanwhile(t *testing.T) {
	f := newFleet()
	f.drifted("n1")
	notUp(f.replaced(f.fenced(command.Drifted, "n1"), "new", "small"))
	f.rested(false, 0)
	if r, _ := Execute(f.s.Seal(), f.set, f.o); r.WakeAt.Sub(f.now) != 9*time.Minute {
		t.Errorf("a minute after it began the move is looked at again in %s, want 9m", r.WakeAt.Sub(f.now))
	}
}
