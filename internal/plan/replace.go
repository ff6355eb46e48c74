package plan

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// createReplacements asks for the nodes that moves need. A move whose pods are held gets all of its nodes or none: its
// pods stay where they are until all are up, so that the one node of a try would tell nothing, and the others would
// never be made.
func (p *Plan) createReplacements(s *cluster.Snapshot, wanted []disrupt.ReplacementRequest) {
	nameTaken, probed := make(map[string]bool), make(map[string]bool)
	for _, c := range p.Commands {
		if create, ok := c.(command.CreateClaim); ok {
			nameTaken[create.Name], probed[create.Pool] = true, true
		}
	}
	admitted := p.admitMoves(wanted)
	for i := range wanted {
		if wanted[i].Reason != command.Interrupted && admitted[i] == nil {
			continue
		}
		w := cmp.Or(admitted[i], &wanted[i])
		if pool := w.Bin.Pool; pool.Probing { // one finds out, be it for a pod or for a move
			if probed[pool.Name] || schedule.HasUnlaunchedClaim(s, pool) {
				continue
			}
			probed[pool.Name] = true
		}
		if w.Reason == command.Interrupted && !p.claimAdmission.admit(w.Bin.Pods) { // its pods leave in any case
			continue
		}
		c := claimOf(s, &w.Bin)
		if c.Name = w.Name; c.Name == "" {
			c.Name = claimName(&w.Bin, w.Replaces, func(name string) bool {
				return nameTaken[name] || s.Claim(name) != nil
			})
		}
		nameTaken[c.Name] = true
		c.Replaces, c.Reason, c.Slot = w.Replaces, w.Reason, w.Slot
		if w.Reason == command.Drifted {
			c.DriftReplacement = s.DriftReplacementFor(w.Bin.Pool)
		}
		p.Commands = append(p.Commands, c)
	}
}

// admitMoves says which of the nodes may be made, those for interrupted nodes aside: nil for one that may not. It is each move that gets all that it
// needs or nothing, and a node that several need is made for the first that does: what the others lack is no reason to keep this one waiting.
// Moves that save money and share new nodes count as one.
func (p *Plan) admitMoves(wanted []disrupt.ReplacementRequest) []*disrupt.ReplacementRequest {
	out := make([]*disrupt.ReplacementRequest, len(wanted))
	moves, needs := needsOfMoves(wanted)
	for _, move := range moves {
		var pods [][]*cluster.Pod
		for _, i := range needs[move] {
			if out[i] == nil { // what is made for another move is there for this one, too
				pods = append(pods, wanted[i].Bin.Pods)
			}
		}
		if !p.claimAdmission.admitAll(pods) {
			continue
		}
		for _, i := range needs[move] {
			if out[i] != nil {
				continue
			}
			out[i] = &wanted[i]
			if wanted[i].LinkID() != move {
				w := wanted[i].For(move)
				out[i] = &w
			}
		}
	}
	return out
}

// needsOfMoves says which of the nodes each move needs, by the number of the request. The moves are in the order in which they are named.
func needsOfMoves(wanted []disrupt.ReplacementRequest) (moves []string, needs map[string][]int) {
	needs = make(map[string][]int)
	for i := range wanted {
		w := &wanted[i]
		if w.Reason == command.Interrupted {
			continue
		}
		for _, move := range append([]string{w.LinkID()}, w.SharedWith...) {
			if needs[move] == nil {
				moves = append(moves, move)
			}
			needs[move] = append(needs[move], i)
		}
	}
	return moves, needs
}

// keepLimits lets only one kind of need draw on a pool's limits in one plan: pods without a place first, then moves,
// each of them for what it was placed by. What was placed apart has not seen what the others take.
func (p *Plan) keepLimits(s *cluster.Snapshot) {
	first := make(map[string]string)
	p.Commands = slices.DeleteFunc(p.Commands, func(c command.Command) bool {
		create, ok := c.(command.CreateClaim)
		if !ok {
			return false
		}
		pool := s.Pool(create.Pool)
		if pool == nil || !pool.Limits.Any() {
			return false
		}
		need := needKey(&create)
		if first[pool.Name] == "" {
			first[pool.Name] = need
		}
		return first[pool.Name] != need
	})
}

// needKey says by which placement of a plan a claim was found.
func needKey(c *command.CreateClaim) string {
	switch {
	case c.Reason == command.Interrupted: // for a node that is drained already it replaces nobody
		return "interruptions"
	case c.Replaces == "":
		return "pods"
	case c.Reason == command.Underutilized:
		return "saving"
	}
	return "moves"
}
