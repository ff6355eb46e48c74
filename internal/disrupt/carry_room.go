package disrupt

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Cramped finds the parties of nodes for whose pods there is no longer room on nodes that are up: between the plan that lets them
// go and this snapshot others may have taken it. parties are the names of the nodes that go; whatever else commands take away is
// gone, too, what they fence takes no pods, and the pods that have no node yet are where the placement has put them.
func Cramped(s *cluster.Snapshot, set Settings, placed *schedule.Placement, commands []command.Command, parties map[string][]string) map[string]bool {
	c := &crush{desk: &desk{s: s, set: set, gone: make(map[string]bool)}, room: stillPending(s, placed), parties: parties,
		party: make(map[string]string), fenced: make(map[string]bool), out: make(map[string]bool)}
	for name, nodes := range parties {
		for _, n := range nodes {
			c.party[n] = name
		}
	}
	listed := make(map[string]bool)
	for _, cmd := range commands {
		switch cmd := cmd.(type) {
		case command.Fence:
			c.fenced[cmd.Node] = true
		case command.DeleteClaim:
			name := c.party[cmd.Node]
			c.gone[cmd.Node] = name == ""
			if name != "" && !listed[name] {
				listed[name] = true
				c.order = append(c.order, name)
			}
		}
	}
	c.muster()
	for round := 1; ; round++ {
		lacking := c.lacking()
		if len(lacking) == 0 {
			return c.out
		}
		maps.Copy(c.out, lacking)
		if round >= lastRounds {
			c.thin()
		}
	}
}

// crush is the question who of several parties of nodes may go, and what is known of the answer.
type crush struct {
	*desk
	room    *room
	parties map[string][]string
	// order is that of the commands; party is that of a node.
	order []string
	party map[string]string
	// fenced are nodes that the same plan fences; out are the parties that stay.
	fenced, out map[string]bool
}

// muster finds the pods that will be made to leave.
func (c *crush) muster() {
	for _, n := range slices.Sorted(maps.Keys(c.party)) {
		if claim := c.s.ClaimOf(n); claim != nil && claim.Interruption.Urgent() {
			c.force(claim, c.s.Node(n))
		}
	}
}

// thin lets the later half of the parties stay: where one after the other lacks room because others stay, it is not asked once more
// for each of them.
func (c *crush) thin() {
	left := slices.DeleteFunc(slices.Clone(c.order), func(name string) bool { return c.out[name] })
	for _, name := range left[(len(left)+1)/2:] {
		c.out[name] = true
	}
}

// lacking finds the parties that lack room if all go but those that are out.
func (c *crush) lacking() map[string]bool {
	gone := c.leaving()
	for _, name := range c.order {
		if !c.out[name] {
			gone = append(gone, c.parties[name]...)
		}
	}
	shut := make(map[string]bool)
	for _, n := range c.s.Nodes {
		shut[n.Name] = c.fenced[n.Name] || c.rankOf(n.Name) != ready
	}
	for _, claim := range c.s.Claims {
		if c.s.NodeOf(claim.Name) == nil {
			shut[claim.Name] = true
		}
	}
	answer := schedule.Place(c.overlay(gone, c.room.on, c.room.cared).Avoiding(shut), c.set.Schedule)
	lacking := make(map[string]bool)
	note := func(p *cluster.Pod) {
		if name := c.party[p.Node]; name != "" && !c.out[name] {
			lacking[name] = true
		}
	}
	for i := range answer.Bins {
		for _, p := range answer.Bins[i].Pods {
			note(p)
		}
	}
	for i := range answer.Unplaced {
		note(answer.Unplaced[i].Pod)
	}
	return lacking
}

// stillPending is what a placement has decided about pods that have no node yet, or are about to lose theirs.
func stillPending(s *cluster.Snapshot, p *schedule.Placement) *room {
	r := roomFor(nil)
	if p == nil {
		return r
	}
	waits := make(map[string]bool)
	for _, pod := range s.Plain().Pending() {
		waits[pod.UID] = true
	}
	for _, a := range p.Assigned {
		if waits[a.Pod.UID] {
			r.on[a.Host] = append(r.on[a.Host], a.Pod)
			r.cared[a.Pod.UID] = true
		}
	}
	for i := range p.Bins {
		for _, pod := range p.Bins[i].Pods {
			r.cared[pod.UID] = waits[pod.UID]
		}
	}
	for i := range p.Unplaced {
		r.cared[p.Unplaced[i].Pod.UID] = waits[p.Unplaced[i].Pod.UID]
	}
	return r
}
