package execute

import (
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// input is what a plan of the fleet's moves is made of.
func input(f *disrupttest.Fleet) Input {
	return Input{Budgets: f.O.Budgets, Placement: f.O.Placement, Commands: f.O.Commands, Proposal: f.O.Proposal,
		Repair: f.O.Repair, Static: f.O.Static}
}

// inputAfter is the same where something was verified before.
func inputAfter(f *disrupttest.Fleet, memo *destination.Memo) Input {
	in := input(f)
	in.LastMemo = memo
	return in
}

// carry takes the fleet's moves a step further and tells in short what becomes of them.
func carry(f *disrupttest.Fleet) string {
	r, _ := Moves(f.S.Seal(), f.Set, input(f))
	return disrupttest.Outcome(&r)
}
