package disrupt

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Wanted is a new node for a move. Name is set if it is not to follow from the node's content.
type Wanted struct {
	Bin      schedule.Bin
	Name     string
	Slot     cluster.Slot // of a static pool
	Replaces string
	Reason   command.Reason
	// Party is the move with which the one that it is for shares new nodes; empty if it shares none.
	Party string
}

// Group is the name of all moves that share new nodes with the one that the node is for.
func (w *Wanted) Group() string { return cmp.Or(w.Party, w.Replaces) }

// GivenUp is a move that does not come about.
type GivenUp struct {
	ID     string
	Reason command.Reason
	Claims []string
	Why    Why
	// Saving, Sure and Needed are as in a Stay, where it is about money and was worked out again.
	Saving, Sure, Needed float64
}

// Why moves are given up that were begun, beyond what may keep a node from being chosen.
const (
	NoLongerDue      Why = "NoLongerDue"      // the node is no longer drifted, sick or near its end
	ReplacementsLate Why = "ReplacementsLate" // what was to take its place did not come up in time
	NotDeleted       Why = "NotDeleted"       // what was to take its place is there, but it can't be deleted
	ManyUnhealthy    Why = "ManyUnhealthy"    // so many nodes of the pool have fallen sick that the cause is elsewhere
	DryRun           Why = "DryRun"           // the pool only wants to be told
)

// defaultReplacementTimeout is how long replacements are awaited if nobody says otherwise.
const defaultReplacementTimeout = 10 * time.Minute

// young is how long after the first fence of a move others may be on their way.
const young = 30 * time.Second

// proceed takes every move a step further.
func (d *desk) proceed() {
	d.proceedDue()
	d.proceedSaving()
	d.proceedStatic()
	d.depart()
	d.open()
	for _, g := range d.groups {
		if g.over != "" {
			d.release(g)
		} else {
			d.refence(g)
		}
	}
}

// refence puts fences up again that did not go up.
func (d *desk) refence(g *group) {
	for _, i := range g.again {
		c := &g.nodes[i]
		d.do(command.Fence{Claim: c.Claim.Name, UID: c.Claim.UID, Node: c.Node.Name, Reason: g.reason, Move: g.id})
	}
}

// proceedDue is about the moves that have to be, each by itself.
func (d *desk) proceedDue() {
	made := make(map[int]bool)
	for _, g := range d.groups {
		if g.over != "" || g.static || saves(g.reason) {
			continue
		}
		switch far := g.worst(); {
		case far == none:
			d.strand(g)
		case g.fresh():
			d.fence(g)
		case d.hindered(g):
			d.await(g)
		case far == ready && d.lacks(g):
			d.await(g)
		case far == ready:
			d.departures = append(d.departures, departure{[]*group{g}, d.message(g)})
		case !d.await(g):
		case far == wished:
			d.want(g, d.due.Bins, made)
		}
	}
}

// lacks reports whether something that was made for the move is not up yet. Its pods may have places without that, too; but a pod that
// has just been evicted, and which its owner has not made again yet, is one that nobody sees: the place may be meant for it.
func (d *desk) lacks(g *group) bool {
	if d.wanting == nil {
		d.wanting = make(map[string]bool)
		for _, c := range d.s.Claims {
			if c.Replaces != "" && c.Deleting.IsZero() && !c.Is(cluster.Initialized) && d.s.Replacing(c) {
				d.wanting[c.Replaces] = true
			}
		}
	}
	return d.wanting[g.id]
}

// want asks for the new nodes that the move's pods need, unless another move has.
func (d *desk) want(g *group, bins []schedule.Bin, made map[int]bool) {
	for i := range g.seats {
		if n := g.seats[i].bin; g.seats[i].rank == wished && !made[n] {
			made[n] = true
			d.Wanted = append(d.Wanted, Wanted{Bin: bins[n], Replaces: g.id, Reason: g.reason})
		}
	}
}

// strand gives a move up some pod of which has no place.
func (d *desk) strand(g *group) {
	if g.taken {
		d.ledger.Give(g.nodes[0].Claim.Pool, 1)
	}
	g.giveUp(PodsStranded, true)
}

// fence begins a move.
func (d *desk) fence(g *group) {
	for i := range g.nodes {
		c := &g.nodes[i]
		d.do(command.Fence{Claim: c.Claim.Name, UID: c.Claim.UID, Node: c.Node.Name, Reason: g.reason, Move: g.id})
	}
	d.Begun = append(d.Begun, g.move())
}

// hindered reports whether a move can't go on at this moment.
func (d *desk) hindered(g *group) bool {
	return g.unsettled || g.blocked || len(g.again) > 0 || d.fencing && d.s.Now.Before(g.since.Add(young))
}

// delete lets the nodes of a move go, together with those of the party.
func (d *desk) delete(g *group, party, message string) {
	if saves(g.reason) {
		message = d.destiny(g) + ", " + message
	}
	for i := range g.nodes {
		c := &g.nodes[i]
		cmd := command.DeleteClaim{Claim: c.Claim.Name, UID: c.Claim.UID, Node: c.Node.Name, Reason: g.reason, Message: message, Party: party}
		if g.reason == command.Unhealthy {
			ill := d.sick[c.Claim.Name]
			cmd.Condition, cmd.Message = ill.policy.Type, ill.message(c.Node)
			if grace, has := d.clinic.Grace(c.Claim); has {
				cmd.Deadline = d.s.Now.Add(grace)
			}
		}
		d.do(cmd)
	}
}

// message says why the node of a move goes that has to.
func (d *desk) message(g *group) string {
	c := &g.nodes[0]
	what := ""
	switch g.reason {
	case command.Drifted:
		what = fmt.Sprintf("it is no longer what its NodePool and NodeClass ask for (%s)", DriftOf(d.s, c.Claim))
	case command.Expired:
		what = fmt.Sprintf("it comes to the end of its expireAfter of %s", c.Claim.Expire.For)
	}
	return what + "; " + d.destiny(g)
}

// destiny says where the pods of a move go.
func (d *desk) destiny(g *group) string {
	var names []string
	for i := range g.seats {
		c := d.s.ClaimOf(g.seats[i].host)
		if c != nil && !slices.Contains(names, c.Name) && len(d.s.Members(c.Replaces)) > 0 {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	switch {
	case len(g.seats) == 0:
		return "it has no pods that move"
	case len(names) == 0:
		return "its pods fit on nodes that are there"
	case len(names) == 1:
		return "its pods go to " + names[0]
	case len(names) > 3:
		return fmt.Sprintf("its pods go to %d new nodes", len(names))
	}
	return fmt.Sprintf("its pods go to %s", join(names))
}

// join lists names as people do.
func join(names []string) string {
	out := names[0]
	for _, name := range names[1 : len(names)-1] {
		out += ", " + name
	}
	return out + " and " + names[len(names)-1]
}

const (
	// firstRest is how long a node is left alone after a disruption of it was given up for the first time. It doubles with
	// each, up to longestRest; a node that has been at rest for so long begins anew.
	firstRest   = time.Minute
	longestRest = time.Hour
)

// restOf is until when a node rests now, and how often it has.
func restOf(c *cluster.Claim, now time.Time) (until time.Time, rests int) {
	return nextRest(c.RestUntil, c.Rests, longestRest, now)
}

// longestSavingRest is how long at most a node is not fenced to save money because pods needed it whenever it was. If it carries nothing it
// costs money in vain meanwhile.
const longestSavingRest = 10 * time.Minute

// savingRestOf is the same for a node that was fenced to save money and is needed.
func savingRestOf(c *cluster.Claim, now time.Time) (until time.Time, rests int) {
	return nextRest(c.SavingRestUntil, c.SavingRests, longestSavingRest, now)
}

// nextRest is the next rest of a node that has rested so often, and until then.
func nextRest(last time.Time, rests int, longest time.Duration, now time.Time) (until time.Time, more int) {
	if now.After(last.Add(longest)) {
		rests = 0
	}
	wait := firstRest
	for range min(rests, 10) {
		wait *= 2
	}
	return now.Add(min(wait, longest)), rests + 1
}

// release opens the nodes of a move again.
func (d *desk) release(g *group) {
	for i := range g.nodes {
		d.unfence(&g.nodes[i], g.over, g.rest) // where something is being done that shows first
	}
	d.GivenUp = append(d.GivenUp, GivenUp{ID: g.id, Reason: g.reason, Claims: g.claims(), Why: g.over})
}
