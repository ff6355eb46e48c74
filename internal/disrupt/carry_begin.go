package disrupt

import (
	"fmt"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// begin begins the moves that a search has found, as far as they still hold beside those under way and the budgets allow them.
// Where the search has put the pods is proof enough if these places are still free; otherwise they are placed once more. Each
// move is verified again when its nodes are fenced.
func (d *desk) begin(found *Proposal) {
	if found == nil {
		return
	}
	if d.fencing { // others are about to begin, and nobody can tell yet what room they need
		for i := range found.Moves {
			d.pass(&found.Moves[i], BeingDisrupted)
		}
		return
	}
	before := len(d.Begun)
	if t := d.sift(found.Moves); len(t.fresh) > 0 {
		d.beginAll(d.weigh(t, t.fresh), before)
	}
}

// trial is moves that were found and that only a placement can tell about.
type trial struct {
	fresh    []*group
	proposed map[*group]*Move
	// room is what others have taken.
	room *room
}

// sift begins the moves of which it is certain that they hold, passes those that may not begin, and returns the others.
func (d *desk) sift(moves []Move) *trial {
	p := d.newProof()
	t := &trial{proposed: make(map[*group]*Move), room: p.room}
	for i := range moves {
		m := &moves[i]
		candidates, why := d.stillThere(m, p.promised)
		if why == "" {
			why = d.reserve(m, candidates)
		}
		if why != "" {
			d.pass(m, why)
			continue
		}
		g := &group{id: m.ID, reason: m.Reason, nodes: candidates}
		if bins, ok := p.holds(m, candidates); ok {
			d.fence(g)
			d.Begun[len(d.Begun)-1] = *m
			for i := range bins {
				d.Wanted = append(d.Wanted, Wanted{Bin: bins[i], Replaces: g.id, Reason: g.reason})
			}
			continue
		}
		t.proposed[g] = m
		t.fresh = append(t.fresh, g)
	}
	return t
}

// ruling is what becomes of moves that share new nodes. stay is why they may not begin, nil if they may.
type ruling struct {
	*bundle
	moves []*Move
	stay  *Stay
}

// weigh places the pods of some moves of the trial together and says which of the moves may begin.
func (d *desk) weigh(t *trial, groups []*group) []ruling {
	var before, memo verified
	d.place(groups, d.alive(), t.room, &before, &memo)
	var out []ruling
	for _, b := range d.bundlesOf(groups) {
		v := ruling{bundle: b}
		for _, g := range b.groups {
			v.moves = append(v.moves, t.proposed[g])
		}
		v.stay = d.refuse(&v, memo.answer.Bins)
		out = append(out, v)
	}
	return out
}

// beginAll begins the moves that may. If some of what was found begins, which is what was begun after the first so many, the others
// are looked at again once that is done: all were placed together.
func (d *desk) beginAll(list []ruling, first int) {
	for _, v := range list {
		if v.stay != nil {
			continue
		}
		for i, g := range v.groups {
			d.fence(g)
			d.Begun[len(d.Begun)-1] = *v.moves[i]
		}
	}
	for _, v := range list {
		if v.stay == nil {
			continue
		}
		if len(d.Begun) > first {
			v.stay = &Stay{Why: OthersFirst}
		}
		for i, g := range v.groups {
			d.refused(v.moves[i], v.stay)
			for j := range g.nodes {
				d.ledger.Give(g.nodes[j].Claim.Pool, 1)
				delete(d.gone, g.nodes[j].Node.Name)
			}
		}
	}
}

// pass tells that a move which was found is not begun.
func (d *desk) pass(m *Move, why Why) {
	d.Passed = append(d.Passed, GivenUp{ID: m.ID, Reason: m.Reason, Claims: m.Claims, Why: why})
}

// refused is pass with what a placement has come to.
func (d *desk) refused(m *Move, stay *Stay) {
	d.pass(m, stay.Why)
	last := &d.Passed[len(d.Passed)-1]
	last.Saving, last.Sure, last.Needed = stay.Saving, stay.Sure, stay.Needed
}

// alive are the moves that go on.
func (d *desk) alive() []*group {
	return slices.DeleteFunc(slices.Clone(d.groups), func(g *group) bool { return g.over != "" })
}

// leastPart is how much of what a search has promised must be left for a move to begin that takes more new nodes than that.
const leastPart = 0.5

// refuse says why moves that share new nodes may not begin: if they don't pay, or not about as much as was found.
func (d *desk) refuse(v *ruling, made []schedule.Bin) *Stay {
	var candidates []Candidate
	most, promised := 0, 0.0
	for i, g := range v.groups {
		m := v.moves[i]
		most, promised = most+len(m.Bins), promised+m.Before-m.After
		candidates = append(candidates, g.nodes...)
		for _, st := range g.seats {
			if st.rank == none {
				return &Stay{Why: PodsStranded, Pod: st.pod.ID()}
			}
		}
	}
	bins := make([]schedule.Bin, len(v.bins))
	for i, n := range v.bins {
		bins[i] = made[n]
	}
	a, stay := AppraiseClosely(d.set, candidates, bins)
	if stay != nil {
		return stay
	}
	whole, known := d.whole(v.bundle, candidates)
	stay = &Stay{Saving: a.Saving(), Sure: a.Before - a.Worst, Needed: a.Needed}
	switch {
	case !known:
		stay.Why = PriceUnknown
	case whole.short(d.set, a.Worst) != "": // an earlier try has left nodes that nobody uses
		stay.Why = whole.short(d.set, a.Worst)
		stay.Saving = whole.saving() - a.After
		stay.Sure = whole.saving() - a.Worst
	case len(bins) > most && a.Saving() < leastPart*promised:
		stay.Why, stay.Needed = SavesTooLittle, leastPart*promised
	case d.unbalanced(candidates, a.Saving()):
		return d.totals.Approves(d.set, candidates, a.Saving())
	default:
		return nil
	}
	return stay
}

// stillThere finds the nodes of a move; why says why one of them may no longer go. To those that are promised go the pods of nodes
// that are on their way out or about to be: whoever took such a node away, too, would leave them with nowhere to go.
func (d *desk) stillThere(m *Move, promised map[string]bool) (candidates []Candidate, why Why) {
	for _, name := range m.Claims {
		c := d.s.Claim(name)
		if c == nil {
			return nil, NotInitialized
		}
		candidate, stay := d.judge.MayGo(c, m.Reason)
		switch {
		case stay != nil:
			return nil, stay.Why
		case d.gone[candidate.Node.Name]:
			return nil, BeingDisrupted
		case d.needed[candidate.Node.Name] || promised[candidate.Node.Name]:
			return nil, PodsExpected
		case d.s.Now.Before(d.s.Retry[command.Fence{Node: candidate.Node.Name}.Key()].NotBefore):
			return nil, MoveFailedLately // its fence did not go up
		case candidate.Pool.Deleting:
			return nil, PoolUnknown
		}
		candidates = append(candidates, candidate)
	}
	if len(candidates) == 0 {
		return nil, NotInitialized
	}
	return candidates, ""
}

// reserve takes the nodes of a move from their budgets; why says why not, if there is nothing left or one is only to be told
// of.
func (d *desk) reserve(m *Move, candidates []Candidate) (why Why) {
	if !d.ledger.TakeAll(candidates, m.Reason) {
		return BudgetBlocks
	}
	if slices.ContainsFunc(candidates, func(c Candidate) bool { return c.Pool.Care.DryRun }) {
		d.would(*m, candidates)
		return DryRun
	}
	for i := range candidates {
		d.gone[candidates[i].Node.Name] = true
	}
	return ""
}

// hoursPerMonth is how prices per hour become prices per month.
const hoursPerMonth = 730

// would tells what a dry run keeps from being done.
func (r *Result) would(m Move, candidates []Candidate) {
	r.Would = append(r.Would, m)
	what := ""
	switch {
	case m.Reason == command.Underutilized && len(m.Bins) == 0:
		what = "its pods fit on nodes that are there"
	case m.Reason == command.Underutilized && len(m.Bins) == 1:
		what = "one cheaper node would take its pods"
	case m.Reason == command.Underutilized:
		what = fmt.Sprintf("%d cheaper nodes would take its pods", len(m.Bins))
	case m.Reason == command.Drifted:
		what = "it is no longer what its NodePool and NodeClass ask for"
	case m.Reason == command.Expired:
		what = "it comes to the end of its expireAfter"
	case m.Reason == command.Unhealthy:
		what = "it is unhealthy"
	}
	if len(candidates) > 1 {
		what += fmt.Sprintf(", together with %d other nodes", len(candidates)-1)
	}
	text := fmt.Sprintf("Dry run: would disrupt the node (%s: %s); %d pods would move", m.Reason, what, m.Evicted)
	if m.Reason == command.Underutilized {
		text += fmt.Sprintf(" and $%.2f a month be saved", (m.Before-m.After)*hoursPerMonth)
	}
	for i := range candidates {
		r.Notes = append(r.Notes, dryRunNotes(&candidates[i], text)...)
	}
}

func dryRunNotes(c *Candidate, text string) []cluster.Note {
	return []cluster.Note{c.Node.Note(string(DryRun), text), c.Claim.Note(string(DryRun), text)}
}

// enter lines a node up to be replaced whatever it costs, if its pool's budgets allow it. It is fenced once it is known that
// its pods have somewhere to go.
func (d *desk) enter(c Candidate, reason command.Reason) bool {
	g := &group{id: MoveID(reason, []string{Identity(c.Claim)}), reason: reason, nodes: []Candidate{c}, static: c.Pool.Static}
	if reason == command.Drifted {
		g.id = driftID(c.Claim)
	}
	if !d.ledger.Take(c.Claim.Pool, reason, 1) {
		return false
	}
	if c.Pool.Care.DryRun {
		d.would(g.move(), g.nodes)
		return true
	}
	g.taken, d.gone[c.Node.Name] = true, true
	d.groups = append(d.groups, g)
	return true
}
