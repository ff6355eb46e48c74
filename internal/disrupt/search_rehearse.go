package disrupt

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// mostRehearsed is up to how many pods that move their moves are rehearsed: placing more takes too much of a search's time, and where
	// so much is found something begins.
	mostRehearsed = 256
	// mostAlone is how many moves are tried alone if nothing of them begins together.
	mostAlone = 8
)

// rehearse asks of what was found what will be asked when it is to begin, if it might be that nothing of it does: the same would else be
// found again and again. It returns the moves that are left, and why the nodes of the others stay.
//
// The places of pods that have no rules are taken over as they were found, and something begins in any case. Pods with rules
// are placed once more, all of them together, and a placement may come to something dearer.
func (sr *searcher) rehearse(moves []Move) (left []Move, stays []Stay) {
	if len(moves) == 0 || sr.begins(moves) {
		return moves, nil
	}
	d := newDesk(sr.s, sr.set, Orders{})
	for name := range sr.idle {
		d.gone[name] = true
	}
	t := d.sift(moves)
	if len(t.fresh) == 0 {
		return moves, nil
	}
	no := d.refusals(t)
	for i := range moves {
		m := &moves[i]
		stay := no[m]
		if stay == nil {
			left = append(left, *m)
			continue
		}
		for _, name := range m.Claims {
			one := *stay
			one.Claim, one.Node = name, sr.s.NodeOf(name).Name
			stays = append(stays, one)
		}
	}
	return left, stays
}

// begins reports whether something of what was found is sure to begin, or if too much was found to ask, or too much is going on.
func (sr *searcher) begins(moves []Move) bool {
	pods := 0
	for i := range moves {
		pods += moves[i].Evicted
		if sr.plain(&moves[i]) {
			return true
		}
	}
	return pods > mostRehearsed || beginning(sr.s) ||
		slices.ContainsFunc(sr.s.Claims, func(c *cluster.Claim) bool { return c.Move != "" })
}

// plain reports whether the places of a move's pods will be taken over as they were found.
func (sr *searcher) plain(m *Move) bool {
	for i := range m.Bins {
		if p := m.Bins[i].Pool; p.Limits.Any() || p.OnTrial {
			return false
		}
	}
	for _, name := range m.Claims {
		if slices.ContainsFunc(sr.s.PodsOn(sr.s.NodeOf(name).Name), func(p *cluster.Pod) bool { return sr.s.Moves(p) && !plain(p) }) {
			return false
		}
	}
	return true
}

// refusals says of the moves of a trial why they may not begin; nothing if some may. If none may together with the others, they are
// tried alone, and the first that may then is kept: the others come after it.
func (d *desk) refusals(t *trial) map[*Move]*Stay {
	no := make(map[*Move]*Stay)
	for _, r := range d.weigh(t, t.fresh) {
		if r.stay == nil {
			return nil
		}
		for _, m := range r.moves {
			no[m] = r.stay
		}
	}
	if len(t.fresh) == 1 {
		return no
	}
	for n, g := range t.fresh[:min(len(t.fresh), mostAlone)] {
		d.letGo(t, g)
		m := t.proposed[g]
		if no[m] = d.weigh(t, t.fresh[n:n+1])[0].stay; no[m] != nil {
			continue
		}
		for _, later := range t.fresh[n+1:] {
			no[t.proposed[later]] = &Stay{Why: OthersFirst}
		}
		break
	}
	return no
}

// letGo lets one move of a trial go and has the others stay.
func (d *desk) letGo(t *trial, only *group) {
	clear(d.sought)
	for _, g := range t.fresh {
		for i := range g.nodes {
			if name := g.nodes[i].Node.Name; g == only {
				d.gone[name] = true
			} else {
				delete(d.gone, name)
			}
		}
	}
}
