package plan

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// losses are what a plan has to do without: the parties of nodes of which one can't go now, and the moves of which a node can't be
// fenced.
type losses struct{ parties, moves map[string]bool }

func newLosses() *losses {
	return &losses{parties: make(map[string]bool), moves: make(map[string]bool)}
}

// fence notes that a command does not come about, if it is a fence.
func (l *losses) fence(c command.Command) {
	if f, ok := c.(command.Fence); ok {
		l.moves[f.Move] = true
	}
}

// holdBack notes that a command has to wait. A node that has to is no reason to wait for the others of its party once some have
// gone ahead: what takes their place is paid for, and the sooner they all go the better.
func (l *losses) holdBack(c command.Command, s *cluster.Snapshot) {
	l.fence(c)
	d, ok := c.(command.DeleteClaim)
	if !ok || d.Party == "" || alive(s, d.Claim) == nil {
		return
	}
	gone := func(m *cluster.Claim) bool {
		return !m.Deleting.IsZero() || s.Busy[command.DeleteClaim{Claim: m.Name}.Key()]
	}
	if !slices.ContainsFunc(s.Members(s.Claim(d.Claim).Move), gone) {
		l.parties[d.Party] = true
	}
}

// dropParts drops what only makes sense together with what is lost: nodes that were to go with others which stay, since what takes their
// place may cost more than they do alone; and the fences of moves that can't begin as a whole, with what was to be bought for
// them.
func (p *Plan) dropParts(l *losses) {
	delete(l.parties, "") // what goes by itself
	delete(l.moves, "")
	if len(l.parties)+len(l.moves) == 0 {
		return
	}
	p.Commands = slices.DeleteFunc(p.Commands, func(c command.Command) bool {
		switch c := c.(type) {
		case command.DeleteClaim:
			return l.parties[c.Party]
		case command.Fence:
			return l.moves[c.Move]
		case command.CreateClaim:
			return l.moves[c.Replaces]
		}
		return false
	})
}

// Without is the plan without the commands of these keys, and without what only makes sense together with them.
func (p Plan) Without(keys map[string]bool) Plan {
	lost := newLosses()
	p.Commands = slices.DeleteFunc(slices.Clone(p.Commands), func(c command.Command) bool {
		if !keys[c.Key()] {
			return false
		}
		lost.fence(c)
		if d, ok := c.(command.DeleteClaim); ok {
			lost.parties[d.Party] = true
		}
		return true
	})
	p.dropParts(lost)
	p.demand = 0 // what is left is not what was planned: whether there is room for all is asked again
	p.Begun, p.GivenUp = slices.Clone(p.Begun), slices.Clone(p.GivenUp)
	p.correct()
	return p
}

// dropLonely drops the claims that were to replace nodes which don't go after all.
func (p *Plan) dropLonely(s *cluster.Snapshot) {
	begun := make(map[string]bool)
	for _, c := range p.Commands {
		if f, ok := c.(command.Fence); ok {
			begun[f.Move] = true
		}
	}
	p.Commands = slices.DeleteFunc(p.Commands, func(c command.Command) bool {
		create, ok := c.(command.CreateClaim)
		return ok && create.Replaces != "" && !begun[create.Replaces] && !awaited(s, create.Replaces)
	})
}

// correct has the plan tell only of moves that begin or are given up by its commands.
func (p *Plan) correct() {
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

// awaited reports whether some node of the move still waits to be replaced.
func awaited(s *cluster.Snapshot, move string) bool {
	return slices.ContainsFunc(s.Members(move), func(c *cluster.Claim) bool { return c.Deleting.IsZero() })
}
