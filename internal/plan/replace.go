package plan

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/market"
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
	for _, w := range p.admitMoves(s, wanted, probed) {
		if w == nil {
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

// moveNeed is the nodes that a move needs, by the number of the request.
type moveNeed struct {
	move     string
	requests []int
}

// admitMoves says which of the nodes are made now: nil for one that is not. It is each move that gets all that it needs
// or nothing, and a node that several need is made for the first that does: what the others lack is no reason to keep
// this one waiting. Only what is made counts as tried. probed are the pools in which a node is being made already.
func (p *Plan) admitMoves(
	s *cluster.Snapshot, wanted []disrupt.ReplacementRequest, probed map[string]bool,
) []*disrupt.ReplacementRequest {
	out := make([]*disrupt.ReplacementRequest, len(wanted))
	mustWait := func(i int) bool { // on trial one node finds out, be it for a pod or for a move
		pool := wanted[i].Bin.Pool
		return pool.Probing && (probed[pool.Name] || market.HasUnlaunchedClaim(s, pool))
	}
	for _, need := range needsOfMoves(wanted) {
		// What is made for another move is there for this one, too.
		missing := slices.DeleteFunc(need.requests, func(i int) bool { return out[i] != nil })
		pods := make([][]*cluster.Pod, len(missing))
		for at, i := range missing {
			pods[at] = wanted[i].Bin.Pods
		}
		tries, ok := p.claimAdmission.triesOf(pods)
		if !ok || len(tries) > 0 && slices.ContainsFunc(missing, mustWait) {
			continue
		}
		for at, i := range missing {
			if mustWait(i) {
				continue
			}
			probed[wanted[i].Bin.Pool.Name] = true
			p.claimAdmission.admit(pods[at])
			out[i] = &wanted[i]
			if wanted[i].LinkID() != need.move {
				w := wanted[i].For(need.move)
				out[i] = &w
			}
		}
	}
	return out
}

// needsOfMoves says which of the nodes each move needs. The moves are in the order in which they are named. Moves that
// save money and share new nodes count as one, and each node for an interrupted one is by itself: its pods leave in any
// case.
func needsOfMoves(wanted []disrupt.ReplacementRequest) []moveNeed {
	var out []moveNeed
	at := make(map[string]int)
	for i := range wanted {
		w := &wanted[i]
		if w.Reason == command.Interrupted {
			out = append(out, moveNeed{w.LinkID(), []int{i}})
			continue
		}
		for _, move := range append([]string{w.LinkID()}, w.SharedWith...) {
			j, known := at[move]
			if !known {
				j = len(out)
				at[move] = j
				out = append(out, moveNeed{move: move})
			}
			out[j].requests = append(out[j].requests, i)
		}
	}
	return out
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
