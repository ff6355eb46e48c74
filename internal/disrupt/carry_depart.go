package disrupt

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// departure are moves all of whose pods have places that are up: their nodes may go.
type departure struct {
	groups  []*group
	message string
}

// departed is which moves of those that were ready might go.
type departed struct {
	question question
	may      map[string]bool
}

// depart lets the nodes go that are ready to, as far as the budgets allow it. What could have gone for long and is still there is
// given up: somebody refuses it each time.
func (d *desk) depart() {
	may := d.mayDepart()
	for _, dep := range d.departures {
		refused := slices.ContainsFunc(dep.groups, d.overdue)
		ok := !slices.ContainsFunc(dep.groups, func(g *group) bool { return !may[g.id] }) && !refused && d.afford(dep.groups...)
		for _, g := range dep.groups {
			switch {
			case ok:
				d.delete(g, dep.groups[0].id, dep.message)
			case refused:
				g.giveUp(NotDeleted, true)
			default:
				d.await(g)
			}
		}
	}
}

// lastRounds bounds how often it is asked who may go without those who may not.
const lastRounds = 4

// mayDepart finds the moves that may go although others stay. Where pods say something about each other, a place may be free
// only once pods of another node have gone, too: then they wait for each other.
func (d *desk) mayDepart() map[string]bool {
	may := make(map[string]bool)
	for _, dep := range d.departures {
		for _, g := range dep.groups {
			may[g.id] = true
		}
	}
	stay := slices.ContainsFunc(d.groups, func(g *group) bool { return !may[g.id] })
	if len(may) == 0 || !stay || !d.tied() {
		return may
	}
	going, staying := d.split(may)
	question := d.question(going, append(d.leaving(), d.hostsOf(going)...), d.hostsOf(staying), roomFor(d.orders.Placement))
	if question.same(&d.before.departed.question) {
		d.memo.departed = d.before.departed
		return d.memo.departed.may
	}
	for range lastRounds {
		going, staying = d.split(may)
		if len(going) == 0 {
			break
		}
		dropped := false
		for _, g := range d.unready(going, staying) {
			delete(may, g.id)
			dropped = true
		}
		if !dropped {
			d.memo.departed = departed{question, may}
			return may
		}
	}
	d.memo.departed = departed{question, nil}
	return nil
}

// split tells the moves that may go from those that stay, for now or because they are given up.
func (d *desk) split(may map[string]bool) (going, staying []*group) {
	for _, g := range d.groups {
		if may[g.id] {
			going = append(going, g)
		} else {
			staying = append(staying, g)
		}
	}
	return going, staying
}

// tied reports whether some pod of a move, or of a node that was to go in one, says something about other pods.
func (d *desk) tied() bool {
	speaks := func(n *cluster.Node) bool {
		return slices.ContainsFunc(d.s.PodsOn(n.Name), func(p *cluster.Pod) bool { return len(p.Class.Rules) > 0 })
	}
	for _, g := range d.groups {
		if slices.ContainsFunc(g.nodes, func(c Candidate) bool { return speaks(c.Node) }) {
			return true
		}
	}
	return slices.ContainsFunc(d.dropped, func(out dropped) bool { return speaks(out.node.Node) })
}

// unready finds the moves some pod of which would have no place that is up if only these went.
func (d *desk) unready(going, staying []*group) []*group {
	room := roomFor(d.orders.Placement)
	shut := d.hostsOf(staying)
	stays := setOf(shut)
	gone := slices.DeleteFunc(append(d.leaving(), d.hostsOf(going)...), func(name string) bool { return stays[name] })
	answer := d.solve(d.overlay(gone, room.on, room.cared), shut, nil)
	kept := make([][]seat, len(going))
	for i, g := range going {
		kept[i] = g.seats
	}
	d.seat(going, &answer)
	var out []*group
	for i, g := range going {
		if g.worst() != ready && !g.static {
			out = append(out, g)
		}
		g.seats = kept[i]
	}
	return out
}

// hostsOf are the nodes of moves.
func (d *desk) hostsOf(groups []*group) []string {
	var out []string
	for _, g := range groups {
		for i := range g.nodes {
			out = append(out, g.nodes[i].Node.Name)
		}
	}
	return out
}
