package replay

import (
	"fmt"
	"runtime/debug"

	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
)

// Answer is what the planner says to a case.
type Answer struct {
	Plan     plan.Plan
	Proposal disrupt.Proposal
	// Panic is what it failed with, and Stack is where; both are empty if it did not.
	Panic, Stack string
}

// Run asks the planner again.
func (c *Case) Run() (out Answer) {
	defer func() {
		if r := recover(); r != nil {
			out.Panic, out.Stack = fmt.Sprint(r), string(debug.Stack())
		}
	}()
	switch c.Step {
	case Search:
		out.Proposal = plan.Search(c.Snapshot, c.Policy)
	default:
		out.Plan = plan.Make(c.Snapshot, c.Policy, nil, c.Found)
		if c.Newer != nil {
			out.Plan = plan.Check(out.Plan, c.Newer)
		}
	}
	return out
}
