package disrupt

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// replacement is the claim that was made for a move of a static pool, or nil. Such a pool replaces one node by one.
func (d *desk) replacement(g *group) *cluster.Claim {
	for _, c := range d.s.ClaimsOf(g.nodes[0].Claim.Pool) {
		if c.Replaces == g.id && c.Deleting.IsZero() && d.s.Replacing(c) {
			return c
		}
	}
	return nil
}

// spareSlots is how many nodes a static pool could make beyond those that it has, within its limits.
func (d *desk) spareSlots(p *cluster.Pool) int {
	if !p.NodeClass.Ready || p.Catalog == nil || p.Held || p.OnTrial {
		return 0
	}
	waiting := 0
	for _, g := range d.groups {
		if g.over == "" && g.nodes[0].Pool == p && d.replacement(g) == nil {
			waiting++
		}
	}
	for _, c := range d.s.ClaimsOf(p.Name) { // those whose fences are just going up are in no move yet
		if beingFenced(d.s, c) {
			waiting++
		}
	}
	bins, _ := schedule.Blank(d.s, p, d.set.Schedule, d.ledger.Left(p.Name, command.Drifted)+waiting)
	return max(0, len(bins)-waiting)
}

// proceedStatic is about the moves of static pools: each node gets one in its place and goes when that is up, whatever runs
// there: more room than that such a pool does not give. What it has is kept for the pods of the node that goes.
func (d *desk) proceedStatic() {
	lacking := make(map[*cluster.Pool][]*group)
	var pools []*cluster.Pool
	for _, g := range d.groups {
		if g.over != "" || !g.static {
			continue
		}
		if g.fresh() {
			d.fence(g)
			continue
		}
		c := d.replacement(g)
		switch {
		case d.hindered(g):
			d.await(g)
		case c == nil:
			if p := g.nodes[0].Pool; d.await(g) {
				if lacking[p] == nil {
					pools = append(pools, p)
				}
				lacking[p] = append(lacking[p], g)
			}
		case c.Is(cluster.Initialized):
			d.departures = append(d.departures, departure{[]*group{g}, d.message(g)})
		default:
			d.await(g)
		}
	}
	for _, p := range pools {
		d.fillSlots(p, lacking[p])
	}
}

// fillSlots asks for a node in place of each that goes.
func (d *desk) fillSlots(p *cluster.Pool, groups []*group) {
	if len(p.Problems) > 0 || !p.NodeClass.Ready || p.Catalog == nil || p.Held {
		return
	}
	bins, _ := schedule.Blank(d.s, p, d.set.Schedule, len(groups))
	slots := newSlots(d.s, p).fresh(len(bins))
	for i := range bins {
		bins[i].Seats = d.seatsFor(groups[i])
		d.Wanted = append(d.Wanted, Wanted{Bin: bins[i], Name: slots[i].name, Slot: slots[i].Slot, Replaces: groups[i].id, Reason: groups[i].reason})
	}
}

// seatsFor are seats for the pods of a move.
func (d *desk) seatsFor(g *group) []cluster.Seat {
	count := make(map[string]int)
	for i := range g.nodes {
		for _, pod := range d.s.PodsOn(g.nodes[i].Node.Name) {
			if d.moves(pod) {
				count[pod.Class.Key]++
			}
		}
	}
	var out []cluster.Seat
	for _, class := range slices.Sorted(maps.Keys(count)) {
		out = append(out, cluster.Seat{Class: class, Count: count[class]})
	}
	return out
}

// counts reports whether a claim counts for the number of nodes that a static pool asks for: one that was made to take the
// place of another does not until that goes.
func counts(s *cluster.Snapshot, c *cluster.Claim) bool {
	if c.Replaces == "" {
		return true
	}
	for _, m := range s.Members(c.Replaces) {
		if m.Deleting.IsZero() && !s.Busy[command.DeleteClaim{Claim: m.Name}.Key()] {
			return false
		}
	}
	return true
}
