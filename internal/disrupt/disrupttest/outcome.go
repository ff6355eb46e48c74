package disrupttest

import (
	"fmt"
	"strings"

	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// Outcome tells a result in short.
func Outcome(r *disrupt.Result) string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, c := range r.Commands {
		switch c := c.(type) {
		case command.Unfence:
			rest := ""
			if c.Rests > 0 {
				rest = ", rests"
			}
			say("%s: %s%s", c.Key(), c.BlockReason, rest)
		default:
			say("%s", c.Key())
		}
	}
	for i := range r.Begun {
		say("begin %s $%g", strings.Join(r.Begun[i].Claims, "+"), r.Begun[i].Before-r.Begun[i].After)
	}
	for i := range r.Replacements {
		say("want $%g", r.Replacements[i].Bin.Price)
	}
	for i := range r.DryRuns {
		say("would %s", strings.Join(r.DryRuns[i].Claims, "+"))
	}
	for i := range r.GivenUp {
		say("give up %s: %s", strings.Join(r.GivenUp[i].Claims, "+"), r.GivenUp[i].BlockReason)
	}
	for i := range r.NotBegun {
		say("pass %s: %s", strings.Join(r.NotBegun[i].Claims, "+"), r.NotBegun[i].BlockReason)
	}
	if r.PlanSoon {
		say("eager")
	}
	return strings.Join(out, "; ")
}

// Keys are the keys of all commands.
func Keys(r disrupt.Result) string {
	out := ""
	for _, c := range r.Commands {
		out += c.Key() + " "
	}
	return out
}
