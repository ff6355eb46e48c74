package execute_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/disrupt/empty"
	"github.com/tenon-sh/tenon/internal/disrupt/execute"
	"github.com/tenon-sh/tenon/internal/disrupt/repair"
	"github.com/tenon-sh/tenon/internal/disrupt/search"
	"github.com/tenon-sh/tenon/internal/disrupt/static"
	"github.com/tenon-sh/tenon/internal/render"
)

// done tells in short what one part of a plan makes of the cluster.
func done(f *disrupttest.Fleet, part string) string {
	s := f.S.Seal()
	var r disrupt.Result
	switch part {
	case "moves":
		r, _ = execute.Moves(s, f.Set, execute.InputOf(f))
	case "interrupted":
		r, _, _ = execute.Interrupt(s, f.Set, execute.InputOf(f), false)
	case "interrupted, while pods are counted":
		r, _, _ = execute.Interrupt(s, f.Set, execute.InputOf(f), true)
	case "start":
		r = execute.StartRequired(s, f.Set, execute.InputOf(f))
	case "sick":
		r = repair.EndUnhealthy(s, f.O.Repair)
	case "empty":
		r = empty.Remove(s, disrupt.NewBudgetTracker(s), empty.Demand{}, f.Set)
	case "static":
		r = static.KeepReplicas(s, f.Set.Schedule)
	}
	out := []string{disrupttest.Outcome(&r)}
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, c := range r.Commands {
		switch c := c.(type) {
		case command.DeleteClaim:
			say("%s goes: %s", c.Claim, render.Text(c.Text))
			if !c.Deadline.IsZero() {
				say("in %s", c.Deadline.Sub(f.Now))
			}
		case command.Unfence:
			if c.ForSaving {
				say("%s may still go because it has to", c.Claim)
			}
		}
	}
	for i := range r.Replacements {
		pods := disrupttest.Names(r.Replacements[i].Bin.Pods)
		slices.Sort(pods)
		say("new %s for %s", strings.Join(r.Replacements[i].Bin.Types, "|"), strings.Join(pods, "+"))
		for _, seat := range r.Replacements[i].Bin.Seats {
			say("kept for %s: %d", seat.Class, seat.Count)
		}
	}
	for _, n := range r.Notes {
		say("tell %s %s: %s", n.Kind, n.Name, render.Text(n.Text))
	}
	if !r.WakeAt.IsZero() {
		say("look again in %s", r.WakeAt.Sub(f.Now))
	}
	return strings.Join(slices.DeleteFunc(out, func(s string) bool { return s == "" }), "; ")
}

func tells(t *testing.T, part string, cases []tellsOf) {
	t.Helper()
	for _, c := range cases {
		if got := done(disrupttest.MovingFleet(c.cluster, search.Find), part); got != c.want {
			t.Errorf("%s (%s):\n%s, want\n%s", c.name, c.cluster, got, c.want)
		}
	}
}

// tellsOf is a cluster as MovingFleet reads it, and what a part of the plan makes of it as told says.
type tellsOf struct{ name, cluster, want string }
