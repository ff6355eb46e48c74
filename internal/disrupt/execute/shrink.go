package execute

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/saving"
	"github.com/tenon-sh/tenon/internal/market"
)

// excludedNode is a node that stays although its move goes on.
type excludedNode struct {
	move      *destination.Move
	node      disrupt.Candidate
	reason    disrupt.BlockReason
	restAfter bool
}

// fences puts fences up and takes them down.
type fences struct {
	*frame
	// excluded are nodes that stay although their moves go on.
	excluded []excludedNode
}

// excludeNodes lets some nodes of a move stay, each for its reason; the others go on without them. A move of which
// nothing would be left is given up. What was found for many nodes must not fail because of one.
func (fs *fences) excludeNodes(m *destination.Move, excluded map[int]disrupt.BlockReason, rest bool) {
	if len(excluded) == 0 || m.GiveUpReason != "" {
		return
	}
	if len(excluded) == len(m.Nodes) {
		m.GiveUp(excluded[0], rest)
		return
	}
	var nodes []disrupt.Candidate
	var again []int
	for i := range m.Nodes {
		if reason, out := excluded[i]; out {
			fs.excluded = append(fs.excluded, excludedNode{m, m.Nodes[i], reason, rest})
			continue
		}
		if slices.Contains(m.Unfenced, i) {
			again = append(again, len(nodes))
		}
		nodes = append(nodes, m.Nodes[i])
	}
	m.Nodes, m.Unfenced = nodes, again
}

// reopenExcluded takes down the fences of the nodes that stay although their moves go on.
func (fs *fences) reopenExcluded() {
	for i := range fs.excluded {
		out := &fs.excluded[i]
		if fs.unfence(&out.node, out.reason, out.restAfter) {
			fs.GivenUp = append(fs.GivenUp, disrupt.GivenUp{ID: out.move.ID, Reason: out.move.Reason,
				Claims: []string{out.node.Claim.Name}, BlockReason: out.reason})
		}
	}
}

// unfence opens a node again; with rest, no more is tried with it for a while. It is false if something is being done
// to the node that has yet to show.
func (fs *fences) unfence(c *disrupt.Candidate, reason disrupt.BlockReason, rest bool) bool {
	if disrupt.HasCommandUnderWay(fs.s, c.Claim, c.Node) {
		return false
	}
	cmd := command.Unfence{Claim: c.Claim.Name, UID: c.Claim.UID, Node: c.Node.Name, BlockReason: string(reason)}
	switch {
	case rest && disrupt.SavesMoney(disrupt.MoveReason(c.Claim.Move)): // it may still go because it has to
		cmd.ForSaving = true
		cmd.RestUntil, cmd.Rests = disrupt.NextRestAfter(c.Claim.SavingRestUntil, c.Claim.SavingRests,
			disrupt.LongestRest, fs.s.Now)
	case rest:
		cmd.RestUntil, cmd.Rests = disrupt.RestOf(c.Claim, fs.s.Now)
	case reason == disrupt.PodsExpected:
		// where pods come and go all the time it would be fenced and opened again and again
		cmd.ForSaving = true
		cmd.RestUntil, cmd.Rests = disrupt.SavingRestOf(c.Claim, fs.s.Now)
	}
	fs.Emit(cmd)
	return true
}

// moveNode is a node of one of the linked moves, by its place there.
type moveNode struct {
	move  *destination.Move
	index int
}

func (n moveNode) candidate() *disrupt.Candidate { return &n.move.Nodes[n.index] }

func candidatesOf(list []moveNode) []disrupt.Candidate {
	out := make([]disrupt.Candidate, len(list))
	for i := range list {
		out[i] = *list[i].candidate()
	}
	return out
}

// nodesToKeep finds nodes without which all pods of the linked moves have places that are nearer than that distance,
// and as cheap ones as possible: if they stay, their pods leave their places to others of their kind.
func (sm *savingMoves) nodesToKeep(l *linkedMoves, farthest destination.Distance) []moveNode {
	missing := make(map[cluster.InterchangeKey]int)
	for _, m := range l.moves {
		for i := range m.Destinations {
			if m.Destinations[i].Distance >= farthest {
				missing[cluster.InterchangeKeyOf(m.Destinations[i].Pod)]++
			}
		}
	}
	var left []*keepBenefit
	for _, m := range l.moves {
		for i := range m.Nodes {
			if a := sm.keepBenefitOf(moveNode{m, i}, missing); len(a.pods) > 0 {
				left = append(left, a)
			}
		}
	}
	var out []moveNode
	for len(missing) > 0 && len(left) > 0 {
		at := bestToKeep(left, missing)
		out = append(out, left[at].moveNode)
		for t, n := range left[at].pods {
			if missing[t] -= n; missing[t] <= 0 {
				delete(missing, t)
			}
		}
		left = slices.Delete(left, at, at+1)
	}
	return out
}

// keepBenefit is what it helps if a node stays: so many pods of some kinds need no other place.
type keepBenefit struct {
	moveNode
	pods map[cluster.InterchangeKey]int
}

func (sm *savingMoves) keepBenefitOf(n moveNode, missing map[cluster.InterchangeKey]int) *keepBenefit {
	a := &keepBenefit{n, make(map[cluster.InterchangeKey]int)}
	for _, p := range sm.s.PodsOn(n.candidate().Node.Name) {
		if t := cluster.InterchangeKeyOf(p); missing[t] > 0 && sm.s.NeedsNewPlace(p) {
			a.pods[t]++
		}
	}
	return a
}

// bestToKeep is the place of the node that helps most for what it costs.
func bestToKeep(list []*keepBenefit, missing map[cluster.InterchangeKey]int) int {
	worth := func(a *keepBenefit) float64 {
		helps := 0
		for t, n := range a.pods {
			helps += min(n, missing[t])
		}
		return float64(helps) / max(a.candidate().Price, saving.Least)
	}
	at, most := 0, worth(list[0])
	for i, a := range list[1:] {
		w := worth(a)
		if c := cmp.Or(cmp.Compare(w, most), strings.Compare(list[at].candidate().Claim.Name,
			a.candidate().Claim.Name)); c > 0 {
			at, most = i+1, w
		}
	}
	return at
}

// shrinkLinked lets nodes of linked moves stay, if what is left of it still saves enough.
func (sm *savingMoves) shrinkLinked(l *linkedMoves, blocked []moveNode, reason disrupt.BlockReason) {
	excluded := make(map[*destination.Move]map[int]disrupt.BlockReason)
	for _, n := range blocked {
		if excluded[n.move] == nil {
			excluded[n.move] = make(map[int]disrupt.BlockReason)
		}
		excluded[n.move][n.index] = reason
	}
	var left []disrupt.Candidate
	for _, m := range l.moves {
		for i := range m.Nodes {
			if _, out := excluded[m][i]; !out {
				left = append(left, m.Nodes[i])
			}
		}
	}
	t, known := sm.fullBalance(l, left)
	enough := known && t.Shortfall(sm.set, 0) == ""
	for _, m := range l.moves {
		if enough {
			sm.excludeNodes(m, excluded[m], true)
		} else {
			m.GiveUp(reason, true)
		}
	}
}

// freeRidersOf finds the nodes of linked moves that only ride along, and why they stay.
func (sm *savingMoves) freeRidersOf(l *linkedMoves, part []disrupt.Candidate, bins []market.Bin) (out []moveNode,
	reason disrupt.BlockReason) {
	seated := slices.Clone(bins)
	for i, n := range l.bins {
		seated[i].Pods = nil
		for _, m := range l.moves {
			for _, dest := range m.Destinations {
				if dest.Distance == destination.AtNewNode && dest.Bin == n {
					seated[i].Pods = append(seated[i].Pods, dest.Pod)
				}
			}
		}
	}
	list, blocked := saving.FreeRiders(sm.set, part, seated, saving.CandidateByNode(part), saving.PartDemand{})
	for _, i := range list {
		for _, m := range l.moves {
			for place := range m.Nodes {
				if m.Nodes[place].Claim == part[i].Claim {
					out, reason = append(out, moveNode{m, place}), blocked.Reason
				}
			}
		}
	}
	return out, reason
}
