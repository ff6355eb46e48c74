package disrupt

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// dropped is a node that stays although its move goes on.
type dropped struct {
	group *group
	node  Candidate
	why   Why
	rest  bool
}

// drop lets some nodes of a move stay, each for its reason; the others go on without them. A move of which nothing would be left
// is given up. What was found for many nodes must not fail because of one.
func (d *desk) drop(g *group, outs map[int]Why, rest bool) {
	if len(outs) == 0 || g.over != "" {
		return
	}
	if len(outs) == len(g.nodes) {
		g.giveUp(outs[0], rest)
		return
	}
	var nodes []Candidate
	var again []int
	for i := range g.nodes {
		if why, out := outs[i]; out {
			d.dropped = append(d.dropped, dropped{g, g.nodes[i], why, rest})
			continue
		}
		if slices.Contains(g.again, i) {
			again = append(again, len(nodes))
		}
		nodes = append(nodes, g.nodes[i])
	}
	g.nodes, g.again = nodes, again
}

// open takes down the fences of the nodes that stay although their moves go on.
func (d *desk) open() {
	for i := range d.dropped {
		out := &d.dropped[i]
		if d.unfence(&out.node, out.why, out.rest) {
			d.GivenUp = append(d.GivenUp, GivenUp{ID: out.group.id, Reason: out.group.reason, Claims: []string{out.node.Claim.Name}, Why: out.why})
		}
	}
}

// unfence opens a node again; with rest, no more is tried with it for a while. It is false if something is being done to the node
// that has yet to show.
func (d *desk) unfence(c *Candidate, why Why, rest bool) bool {
	if underWay(d.s, c.Claim, c.Node) {
		return false
	}
	cmd := command.Unfence{Claim: c.Claim.Name, UID: c.Claim.UID, Node: c.Node.Name, Why: string(why)}
	switch {
	case rest && saves(ReasonOf(c.Claim.Move)): // it may still go because it has to
		cmd.ForSaving = true
		cmd.RestUntil, cmd.Rests = nextRest(c.Claim.SavingRestUntil, c.Claim.SavingRests, longestRest, d.s.Now)
	case rest:
		cmd.RestUntil, cmd.Rests = restOf(c.Claim, d.s.Now)
	case why == PodsExpected: // where pods come and go all the time it would be fenced and opened again and again
		cmd.ForSaving = true
		cmd.RestUntil, cmd.Rests = savingRestOf(c.Claim, d.s.Now)
	}
	d.do(cmd)
	return true
}

// holdout is a node of a bundle's move, by its place there.
type holdout struct {
	group *group
	place int
}

func (h holdout) candidate() *Candidate { return &h.group.nodes[h.place] }

func candidatesOf(list []holdout) []Candidate {
	out := make([]Candidate, len(list))
	for i := range list {
		out[i] = *list[i].candidate()
	}
	return out
}

// holdouts finds nodes without which all pods of the bundle have places that are nearer than the rank, and as cheap ones as
// possible: if they stay, their pods leave their places to others of their kind.
func (d *desk) holdouts(b *bundle, far rank) []holdout {
	lack := make(map[cluster.Twins]int)
	for _, g := range b.groups {
		for i := range g.seats {
			if g.seats[i].rank >= far {
				lack[cluster.TwinsOf(g.seats[i].pod)]++
			}
		}
	}
	var left []*aid
	for _, g := range b.groups {
		for i := range g.nodes {
			if a := d.aidOf(holdout{g, i}, lack); len(a.pods) > 0 {
				left = append(left, a)
			}
		}
	}
	var out []holdout
	for len(lack) > 0 && len(left) > 0 {
		at := best(left, lack)
		out = append(out, left[at].holdout)
		for t, n := range left[at].pods {
			if lack[t] -= n; lack[t] <= 0 {
				delete(lack, t)
			}
		}
		left = slices.Delete(left, at, at+1)
	}
	return out
}

// aid is what it helps if a node stays: so many pods of some kinds need no other place.
type aid struct {
	holdout
	pods map[cluster.Twins]int
}

func (d *desk) aidOf(h holdout, lack map[cluster.Twins]int) *aid {
	a := &aid{h, make(map[cluster.Twins]int)}
	for _, p := range d.s.PodsOn(h.candidate().Node.Name) {
		if t := cluster.TwinsOf(p); lack[t] > 0 && d.s.Moves(p) {
			a.pods[t]++
		}
	}
	return a
}

// best is the place of the node that helps most for what it costs.
func best(list []*aid, lack map[cluster.Twins]int) int {
	worth := func(a *aid) float64 {
		helps := 0
		for t, n := range a.pods {
			helps += min(n, lack[t])
		}
		return float64(helps) / max(a.candidate().Price, leastSaving)
	}
	at, most := 0, worth(list[0])
	for i, a := range list[1:] {
		w := worth(a)
		if c := cmp.Or(cmp.Compare(w, most), strings.Compare(list[at].candidate().Claim.Name, a.candidate().Claim.Name)); c > 0 {
			at, most = i+1, w
		}
	}
	return at
}

// shrink lets nodes of a bundle stay, if what is left of it still saves enough.
func (d *desk) shrink(b *bundle, stay []holdout, why Why) {
	outs := make(map[*group]map[int]Why)
	for _, h := range stay {
		if outs[h.group] == nil {
			outs[h.group] = make(map[int]Why)
		}
		outs[h.group][h.place] = why
	}
	var left []Candidate
	for _, g := range b.groups {
		for i := range g.nodes {
			if _, out := outs[g][i]; !out {
				left = append(left, g.nodes[i])
			}
		}
	}
	t, known := d.whole(b, left)
	enough := known && t.short(d.set, 0) == ""
	for _, g := range b.groups {
		if enough {
			d.drop(g, outs[g], true)
		} else {
			g.giveUp(why, true)
		}
	}
}
