package plan

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// droppedCommands are what a plan has to do without: the departures of which one can't go now, and the moves of which a
// node can't be fenced.
type droppedCommands struct{ departures, moves map[string]bool }

func newDroppedCommands() *droppedCommands {
	return &droppedCommands{departures: make(map[string]bool), moves: make(map[string]bool)}
}

// fence notes that a command does not come about, if it is a fence.
func (dc *droppedCommands) fence(c command.Command) {
	if f, ok := c.(command.Fence); ok {
		dc.moves[f.Move] = true
	}
}

// holdBack notes that a command has to wait. A node that has to is no reason to wait for the others of its departure
// once some have gone ahead: what takes their place is paid for, and the sooner they all go the better.
func (dc *droppedCommands) holdBack(c command.Command, s *cluster.Snapshot) {
	dc.fence(c)
	d, ok := c.(command.DeleteClaim)
	if !ok || d.Departure == "" || liveClaim(s, d.Claim) == nil {
		return
	}
	gone := func(m *cluster.Claim) bool {
		return !m.Deleting.IsZero() || s.InFlight[command.DeleteClaim{Claim: m.Name}.Key()]
	}
	if !slices.ContainsFunc(s.MoveClaims(s.Claim(d.Claim).Move), gone) {
		dc.departures[d.Departure] = true
	}
}

// dropDependents drops what only makes sense together with what is lost: nodes that were to go with others which stay,
// since what takes their place may cost more than they do alone; and the fences of moves that can't begin as a whole,
// with what was to be bought for them.
func (p *Plan) dropDependents(dropped *droppedCommands) {
	delete(dropped.departures, "") // what goes by itself
	delete(dropped.moves, "")
	if len(dropped.departures)+len(dropped.moves) == 0 {
		return
	}
	p.Commands = slices.DeleteFunc(p.Commands, func(c command.Command) bool {
		switch c := c.(type) {
		case command.DeleteClaim:
			return dropped.departures[c.Departure]
		case command.Fence:
			return dropped.moves[c.Move]
		case command.CreateClaim:
			return dropped.moves[c.Replaces]
		}
		return false
	})
}

// dropBeyondBudgets drops the deletions for which the budgets have nothing left any more, in the order of the plan.
// Nodes that go together for each other's sake go all or none.
func (p *Plan) dropBeyondBudgets(s *cluster.Snapshot) {
	together := make(map[string][]command.DeleteClaim)
	for _, c := range p.Commands {
		if d, ok := c.(command.DeleteClaim); ok && d.Departure != "" {
			together[d.Departure] = append(together[d.Departure], d)
		}
	}
	var budgets *disrupt.BudgetRecheck
	allowed, all := make(map[string]bool), len(p.Commands)
	p.Commands = slices.DeleteFunc(p.Commands, func(c command.Command) bool {
		d, ok := c.(command.DeleteClaim)
		if !ok {
			return false
		}
		if budgets == nil {
			budgets = disrupt.NewBudgetRecheck(s)
		}
		if d.Departure == "" {
			return !budgets.Allow([]command.DeleteClaim{d})
		}
		if _, asked := allowed[d.Departure]; !asked {
			allowed[d.Departure] = budgets.Allow(together[d.Departure])
		}
		return !allowed[d.Departure]
	})
	if len(p.Commands) < all {
		p.demand = 0 // the pods of those that stay are in the way of others: whether there is room is asked again
	}
}

// Without is the plan without the commands of these keys, and without what only makes sense together with them.
func (p Plan) Without(keys map[string]bool) Plan {
	lost := newDroppedCommands()
	p.Commands = slices.DeleteFunc(slices.Clone(p.Commands), func(c command.Command) bool {
		if !keys[c.Key()] {
			return false
		}
		lost.fence(c)
		if d, ok := c.(command.DeleteClaim); ok {
			lost.departures[d.Departure] = true
		}
		return true
	})
	p.dropDependents(lost)
	p.demand = 0 // what is left is not what was planned: whether there is room for all is asked again
	p.Begun, p.GivenUp = slices.Clone(p.Begun), slices.Clone(p.GivenUp)
	p.correctMoves()
	return p
}

// dropNeedlessReplacements drops the claims that were to replace nodes which don't go after all.
func (p *Plan) dropNeedlessReplacements(s *cluster.Snapshot) {
	begun := make(map[string]bool)
	for _, c := range p.Commands {
		if f, ok := c.(command.Fence); ok {
			begun[f.Move] = true
		}
	}
	p.Commands = slices.DeleteFunc(p.Commands, func(c command.Command) bool {
		create, ok := c.(command.CreateClaim)
		return ok && create.Replaces != "" && !begun[create.Replaces] && !awaitsReplacement(s, create.Replaces)
	})
}

// correctMoves has the plan tell only of moves that begin or are given up by its commands.
func (p *Plan) correctMoves() {
	fenced, opened := make(map[string]bool), make(map[string]bool)
	for _, c := range p.Commands {
		switch c := c.(type) {
		case command.Fence:
			fenced[c.Move] = true
		case command.Unfence:
			opened[c.Claim] = true
		}
	}
	p.Begun = slices.DeleteFunc(p.Begun, func(m disrupt.Move) bool { return !fenced[m.ID] })
	p.GivenUp = slices.DeleteFunc(p.GivenUp, func(g disrupt.GivenUp) bool {
		return !slices.ContainsFunc(g.Claims, func(name string) bool { return opened[name] })
	})
}

// awaitsReplacement reports whether some node of the move still waits to be replaced.
func awaitsReplacement(s *cluster.Snapshot, move string) bool {
	return slices.ContainsFunc(s.MoveClaims(move), func(c *cluster.Claim) bool { return c.Deleting.IsZero() })
}
