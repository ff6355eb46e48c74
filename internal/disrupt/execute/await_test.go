package execute

import (
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// rested says that n1 has rested, from moves that save money or from all, and until how long before its move began.
func rested(f *disrupttest.Fleet, saving bool, ago time.Duration) {
	c := f.Claim("n1")
	until := c.Condition(cluster.DisruptionReason).Since.Add(-ago)
	if saving {
		c.SavingRestUntil, c.SavingRests = until, 1
	} else {
		c.RestUntil, c.Rests = until, 1
	}
}

// later has d pass since the move of n1 began: all that was done for it was done as much earlier.
func later(f *disrupttest.Fleet, d time.Duration) {
	f.Begins(d)
	for _, c := range f.S.Claims {
		if c.Replaces != "" {
			c.Created = f.Now.Add(10*time.Second - d)
		}
	}
}

// nextMade is another claim that was made for the same move, to which no pod goes before the first.
func nextMade(f *disrupttest.Fleet, made *cluster.Claim) *cluster.Claim {
	c := f.Replaced(made.Replaces, "next", "small")
	c.Created = made.Created
	return c
}

// withoutClaim has a claim go, and leaves its node.
func withoutClaim(f *disrupttest.Fleet, c *cluster.Claim) {
	f.S.Claims = slices.DeleteFunc(f.S.Claims, func(x *cluster.Claim) bool { return x == c })
}

// How long a move waits: n1 has drifted, or is to go to save money, and its replacement is on its way.
func TestHowLongAMoveWaits(t *testing.T) {
	late := "unfence/n1: ReplacementsLate, rests; give up n1: ReplacementsLate"
	unlaunched := func(c *cluster.Claim) { c.Conditions = nil }
	cases := []struct {
		name   string
		after  time.Duration
		change func(f *disrupttest.Fleet, made *cluster.Claim)
		// due and saving are what becomes of the move if it has to be, and if it is to save money.
		due, saving string
	}{
		{"the first try", 10*time.Minute - time.Second, func(*disrupttest.Fleet, *cluster.Claim) {}, "", ""},
		{"the first try, the time is over", 10 * time.Minute, func(*disrupttest.Fleet, *cluster.Claim) {}, late, late},
		{"it has rested", 10 * time.Minute, func(f *disrupttest.Fleet, _ *cluster.Claim) {
			rested(f, false, 0)
		}, "", ""},
		{"it has rested from moves that save money", 10 * time.Minute, func(f *disrupttest.Fleet, _ *cluster.Claim) {
			rested(f, true, 0)
		}, late, ""},
		{"it has rested an hour ago", 10 * time.Minute, func(f *disrupttest.Fleet, _ *cluster.Claim) {
			rested(f, false, disrupt.LongestRest)
		}, "", ""},
		{"it has rested more than an hour ago", 10 * time.Minute, func(f *disrupttest.Fleet, _ *cluster.Claim) {
			rested(f, false, disrupt.LongestRest+time.Second)
		},
			late, late},
		{"it has rested from moves that save money more than an hour ago", 10 * time.Minute,
			func(f *disrupttest.Fleet, _ *cluster.Claim) {
				rested(f, true, disrupt.LongestRest+time.Second)
			}, late, late},
		{"it has rested, almost twice the time is over", 20*time.Minute - time.Second,
			func(f *disrupttest.Fleet, _ *cluster.Claim) {
				rested(f, false, 0)
			}, "", ""},
		{"it has rested, twice the time is over", 20 * time.Minute, func(f *disrupttest.Fleet, _ *cluster.Claim) {
			rested(f, false, 0)
		}, late, late},
		{"it has rested, and the replacement is not launched", 10 * time.Minute, func(f *disrupttest.Fleet,
			made *cluster.Claim) {
			rested(f, false, 0)
			unlaunched(made)
		}, late, late},
		{"it has rested, and another replacement is not launched", 10 * time.Minute,
			func(f *disrupttest.Fleet, made *cluster.Claim) {
				rested(f, false, 0)
				more := f.Replaced(made.Replaces, "more", "small")
				more.Created = made.Created
				unlaunched(more)
			}, late, late},
		{"it has rested, and another replacement, to which nobody goes, is not launched", 10 * time.Minute,
			func(f *disrupttest.Fleet, made *cluster.Claim) {
				rested(f, false, 0)
				unlaunched(nextMade(f, made))
			}, late, late},
		{"it has rested, and another replacement that is not launched is being removed", 10 * time.Minute,
			func(f *disrupttest.Fleet, made *cluster.Claim) {
				rested(f, false, 0)
				more := nextMade(f, made)
				unlaunched(more)
				more.Deleting = f.Now
			}, "", ""},
		{"it has rested, and another replacement, of an earlier try, is not launched", 10 * time.Minute,
			func(f *disrupttest.Fleet, made *cluster.Claim) {
				rested(f, false, 0)
				more := nextMade(f, made)
				unlaunched(more)
				more.Created = f.Now.Add(-time.Hour)
			}, "", ""},
		{"it has rested, and the replacement of another move is not launched", 10 * time.Minute,
			func(f *disrupttest.Fleet, _ *cluster.Claim) {
				rested(f, false, 0)
				f.Drifted("n3")
				unlaunched(f.Replaced(f.Fenced(command.Drifted, "n3"), "other", "large"))
			}, "", ""},
		{"it has rested, and what was made for another move is for its pods, too", 10 * time.Minute,
			func(f *disrupttest.Fleet, made *cluster.Claim) {
				rested(f, false, 0)
				withoutClaim(f, made)
				f.Drifted("n3")
				f.Host("new").Deleting, f.Pod("new3").Class.Requests[0] = f.Now, 1000
				disrupttest.NotUp(f.Replaced(f.Fenced(command.Drifted, "n3"), "other", "large"))
			}, "", late},
		{"it has rested, and there is room meanwhile on a node of others", 10 * time.Minute,
			func(f *disrupttest.Fleet, _ *cluster.Claim) {
				rested(f, false, 0)
				withoutClaim(f, f.Node("n4", "large"))
				f.Host("n4").Ours = false
			}, "", ""},
		{"it has rested, and its pods, which have room, may not leave", 10 * time.Minute,
			func(f *disrupttest.Fleet, made *cluster.Claim) {
				rested(f, false, 0)
				withoutClaim(f, made)
				f.Host("new").Deleting = f.Now
				f.Node("n4", "large")
				f.Guard(0, 1, 2)
			}, late, late},
		{"it has rested, and its pods, which have room where an earlier try has left some, may not leave",
			10 * time.Minute, func(f *disrupttest.Fleet, made *cluster.Claim) {
				rested(f, false, 0)
				made.Created, made.Conditions = f.Now.Add(-time.Hour), f.Claim("n2").Conditions
				f.Guard(0, 1, 2)
			}, late, late},
		{"it has rested, and the replacement is of an earlier try", 10 * time.Minute,
			func(f *disrupttest.Fleet, made *cluster.Claim) {
				rested(f, false, 0)
				made.Created = made.Created.Add(-time.Minute)
			}, late, late},
		{"it has rested, and the replacement is being removed", 10 * time.Minute, func(f *disrupttest.Fleet,
			made *cluster.Claim) {
			rested(f, false, 0)
			made.Deleting = f.Now
		}, late, late},
		{"it has rested, and the replacement is up", 19 * time.Minute, func(f *disrupttest.Fleet, made *cluster.Claim) {
			rested(f, false, 0)
			f.Say("new", cluster.Initialized, "", f.Now)
		}, "delete/n1", "delete/n1"},
		{"it has rested, and has not gone although the replacement is up", 21 * time.Minute,
			func(f *disrupttest.Fleet, made *cluster.Claim) {
				rested(f, false, 0)
				f.Say("new", cluster.Initialized, "", f.Now)
			}, "unfence/n1: NotDeleted, rests; give up n1: NotDeleted", "unfence/n1: NotDeleted, rests; give up n1: " +
				"NotDeleted"},
	}
	for _, c := range cases {
		for reason, want := range map[command.Reason]string{command.Drifted: c.due, command.Underutilized: c.saving} {
			f := disrupttest.NewFleet()
			f.Drifted("n1")
			made := f.Replaced(f.Fenced(reason, "n1"), "new", "small")
			disrupttest.NotUp(made)
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 4)
			later(f, c.after)
			rested(f, false, 2*disrupt.LongestRest)
			c.change(f, made)
			if got := carry(f); got != want {
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
		f := disrupttest.StaticFleet(3)
		f.O.Static = true
		f.Drifted("n1")
		disrupttest.NotUp(f.Replaced(f.Fenced(command.Drifted, "n1"), "new", "small"))
		f.Run("more", "n1", 4)
		f.Run("new2", "n2", 4)
		f.Run("new3", "n3", 4)
		later(f, c.after)
		rested(f, false, 0)
		if got := carry(f); got != c.want {
			t.Errorf("after %s: %q, want %q", c.after, got, c.want)
		}
	}
}

// A replacement is awaited for longer if it was launched and the move that it was made for has been tried before, not
// if another has.
func TestWhichReplacementsAreAwaitedForLonger(t *testing.T) {
	cases := []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   string
	}{
		{"it is of another move, whose node goes already", func(f *disrupttest.Fleet) {
			f.Drifted("n2")
			disrupttest.NotUp(f.Replaced(f.Fenced(command.Drifted, "n2"), "new", "large"))
			f.Claim("n2").Deleting, f.S.Pods = f.Now, slices.DeleteFunc(f.S.Pods, func(p *cluster.Pod) bool {
				return p.Node == "n2"
			})
			c := f.Claim("n2").Conditions
			c[len(c)-1].Since, f.Claim("new").Created = f.Now.Add(-15*time.Minute), f.Now.Add(-15*time.Minute)
		}, "want $1"},
		{"it is not launched", func(f *disrupttest.Fleet) {
			f.Replaced(f.Claim("n1").Move, "new", "large").Conditions = nil
			later(f, 10*time.Minute+10*time.Second)
			f.Drifted("n2")
			f.Fenced(command.Drifted, "n2")
		}, "give up n1: ReplacementsLate; unfence/n1: ReplacementsLate, rests; want $2"},
		{"it is launched", func(f *disrupttest.Fleet) {
			disrupttest.NotUp(f.Replaced(f.Claim("n1").Move, "new", "large"))
			later(f, 10*time.Minute+10*time.Second)
			f.Drifted("n2")
			f.Fenced(command.Drifted, "n2")
		}, ""},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		f.Run("new3", "n3", 4)
		f.Drifted("n1")
		f.Fenced(command.Drifted, "n1")
		c.change(f)
		rested(f, false, 0)
		if got := sorted(carry(f)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A move is looked at again when its first time is over, even if it may wait for longer: what it waits for may be
// another by then.
func TestMovesThatWaitLongerAreLookedAtMeanwhile(t *testing.T) {
	f := disrupttest.NewFleet()
	f.Drifted("n1")
	disrupttest.NotUp(f.Replaced(f.Fenced(command.Drifted, "n1"), "new", "small"))
	rested(f, false, 0)
	if r, _ := Moves(f.S.Seal(), f.Set, input(f)); r.WakeAt.Sub(f.Now) != 9*time.Minute {
		t.Errorf("a minute after it began the move is looked at again in %s, want 9m", r.WakeAt.Sub(f.Now))
	}
}
