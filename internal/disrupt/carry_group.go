package disrupt

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// group is a move that is under way or about to begin, as the snapshot shows it.
type group struct {
	id     string
	reason command.Reason
	// nodes are those of its nodes that are there and not on their way out; leaving are those that are, as far as they are known.
	nodes, leaving []Candidate
	// since is when the first of them was fenced; zero for a move that has not begun.
	since time.Time
	// unsettled says that something is being done to one of its nodes; again are those whose fence did not go up.
	unsettled bool
	again     []int
	// blocked says that the nodes may not go now and will again, presumably.
	blocked bool
	// taken says that the node of a move that has not begun was taken from its budget.
	taken bool
	// static groups are of a pool with a fixed number of nodes.
	static bool
	// drained groups are of a node that goes already; only places are made for its pods.
	drained bool
	// over is why the move is given up, if it is; rest says that it would fail again if it were tried at once.
	over Why
	rest bool
	// guests are pods that have been sent to its nodes and are not there; seats are where they and its pods go.
	guests []*cluster.Pod
	seats  []seat
}

// fresh reports whether the move has not begun.
func (g *group) fresh() bool { return g.since.IsZero() }

func (g *group) claims() []string {
	out := make([]string, len(g.nodes))
	for i := range g.nodes {
		out[i] = g.nodes[i].Claim.Name
	}
	return out
}

// giveUp notes why the move does not go on; the first reason stands.
func (g *group) giveUp(why Why, rest bool) {
	if g.over == "" {
		g.over, g.rest = why, rest
	}
}

// move describes the group for people.
func (g *group) move() Move {
	m := Move{ID: g.id, Reason: g.reason, Claims: g.claims()}
	for i := range g.nodes {
		m.Before += g.nodes[i].Price
		m.Evicted += g.nodes[i].Evicted
		m.Cost += g.nodes[i].Cost
	}
	return m
}

// compareGroups puts the oldest first, and those that have not begun last.
func compareGroups(a, b *group) int {
	if a.fresh() != b.fresh() {
		if b.fresh() {
			return -1
		}
		return 1
	}
	return cmp.Or(a.since.Compare(b.since), strings.Compare(a.id, b.id))
}

// gather finds the moves that are under way. One that touches what the planner has failed on is left to Withdraw.
func (d *desk) gather() {
	byID, still := make(map[string]*group), standstill(d.s)
	for _, c := range d.s.Claims {
		if c.Move == "" || c.Expected || hurried(c) || still[c.Move] {
			continue
		}
		g := byID[c.Move]
		if g == nil {
			g = &group{id: c.Move, reason: ReasonOf(c.Move)}
			byID[c.Move] = g
			d.groups = append(d.groups, g)
		}
		d.enrol(g, c)
	}
	d.groups = slices.DeleteFunc(d.groups, func(g *group) bool { return len(g.nodes) == 0 })
	slices.SortFunc(d.groups, compareGroups)
	d.fencing = beginning(d.s)
}

// standstill are the moves of nodes that are left alone because the planner has failed on them or on their pods.
func standstill(s *cluster.Snapshot) map[string]bool {
	if !s.Quarantine.Holds() {
		return nil
	}
	out := make(map[string]bool)
	for _, c := range s.Claims {
		if c.Move != "" && s.LeftAlone(c) {
			out[c.Move] = true
		}
	}
	return out
}

// enrol adds a claim to its move.
func (d *desk) enrol(g *group, c *cluster.Claim) {
	s, n := d.s, d.s.NodeOf(c.Name)
	switch {
	case n == nil || !c.Deleting.IsZero() || !n.Deleting.IsZero():
		d.note(g, c, n)
		return
	case s.Busy[command.DeleteClaim{Claim: c.Name}.Key()]:
		d.note(g, c, n)
		d.gone[n.Name] = true
		return
	case s.Busy[command.Unfence{Node: n.Name}.Key()]:
		g.unsettled = true // it comes back
		return
	}
	if _, failed := s.Retry[command.Unfence{Node: n.Name}.Key()]; failed { // it was to come back, which did not work out at once
		d.dropped = append(d.dropped, dropped{g, Candidate{Claim: c, Node: n, Pool: s.Pool(c.Pool)}, BeingDisrupted, true})
		return
	}
	fenced := tainted(n) && c.Is(cluster.DisruptionReason)
	_, failed := s.Retry[command.Fence{Node: n.Name}.Key()]
	switch {
	case s.Busy[command.Fence{Node: n.Name}.Key()]:
		g.unsettled = true
	case fenced:
	case failed:
		g.again = append(g.again, len(g.nodes))
	default:
		g.giveUp(BeingDisrupted, true) // the fence was put up in part only, or somebody takes it down again and again
	}
	since := c.Condition(cluster.DisruptionReason).Since
	if since.IsZero() {
		since = s.Now
	}
	g.since = cluster.Earlier(g.since, since)
	p := s.Pool(c.Pool)
	if p != nil && p.Static {
		g.static = true
	}
	g.nodes = append(g.nodes, Candidate{Claim: c, Node: n, Pool: p})
}

// note remembers a node of the move that is on its way out: what it cost belongs to what the move saves.
func (d *desk) note(g *group, c *cluster.Claim, n *cluster.Node) {
	if p := d.s.Pool(c.Pool); p != nil {
		price, _ := d.priceOf(c)
		g.leaving = append(g.leaving, Candidate{Claim: c, Node: n, Pool: p, Price: price})
	}
}
