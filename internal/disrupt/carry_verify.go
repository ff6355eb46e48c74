package disrupt

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Memo is what was verified last. It saves work while moves wait for their replacements, and changes nothing.
type Memo struct {
	due, saving verified
	departed    departed
}

// verified is the answer to the question where pods would go without some nodes.
type verified struct {
	question question
	answer   schedule.Placement
}

// seat is where a pod of a move goes. The lower its rank, the sooner it is there.
type seat struct {
	pod  *cluster.Pod
	rank rank
	// host is there or on its way; bin is the number of a node that would have to be made.
	host string
	bin  int
}

// rank says how far a place is.
type rank int

const (
	ready  rank = iota // on a node that is up
	coming             // on one that is on its way, or closed for the moment
	wished             // on one that would have to be made
	none               // nowhere
)

// verify places the pods of all moves as if the nodes of all were gone. Those that go whatever it costs come first; what they
// leave is for those that go to save money.
func (d *desk) verify() {
	var due, saving []*group
	for _, g := range d.groups {
		switch {
		case g.over != "" || g.static && d.replacement(g) == nil:
		case saves(g.reason):
			saving = append(saving, g)
		default:
			due = append(due, g)
		}
	}
	if len(due)+len(saving) == 0 {
		return
	}
	for _, g := range due {
		d.forceSick(g)
	}
	d.memo = &Memo{}
	room := roomFor(d.orders.Placement)
	d.due = d.place(due, saving, room, &d.before.due, &d.memo.due)
	room.take(d.due)
	d.saving = d.place(saving, due, room, &d.before.saving, &d.memo.saving)
}

// room is what other placements of the same plan have decided: pods that count as being on a host, and all those that are
// looked after.
type room struct {
	on    map[string][]*cluster.Pod
	cared map[string]bool
}

func roomFor(p *schedule.Placement) *room {
	r := &room{on: make(map[string][]*cluster.Pod), cared: make(map[string]bool)}
	r.take(p)
	return r
}

func (r *room) take(p *schedule.Placement) {
	if p == nil {
		return
	}
	for _, a := range p.Assigned {
		r.on[a.Host] = append(r.on[a.Host], a.Pod)
		r.cared[a.Pod.UID] = true
	}
	for i := range p.Bins {
		for _, pod := range p.Bins[i].Pods {
			r.cared[pod.UID] = true
		}
	}
	for i := range p.Unplaced {
		r.cared[p.Unplaced[i].Pod.UID] = true
	}
}

// place finds places for the pods of some moves, those of the others being gone, too, and tells each move which are its own.
func (d *desk) place(groups, others []*group, r *room, before, memo *verified) *schedule.Placement {
	if len(groups) == 0 {
		return nil
	}
	gone := d.leaving()
	cared := make(map[string]bool, len(r.cared))
	for uid := range r.cared {
		cared[uid] = true
	}
	for _, g := range others {
		for i := range g.nodes {
			gone = append(gone, g.nodes[i].Node.Name)
			for _, p := range d.s.PodsOn(g.nodes[i].Node.Name) {
				cared[p.UID] = true
			}
		}
	}
	for _, g := range groups {
		for i := range g.nodes {
			gone = append(gone, g.nodes[i].Node.Name)
		}
	}
	shut, avoid := append(d.madeFor(others), d.late()...), []string(nil)
	if saves(groups[0].reason) {
		shut = append(append(shut, d.unquiet(groups)...), d.claimless()...)
	} else {
		avoid = d.driftedHosts()
	}
	overlay := d.overlay(gone, r.on, cared)
	memo.question = d.question(groups, gone, append(avoid, shut...), &room{on: r.on, cared: cared})
	if memo.question.same(&before.question) {
		memo.answer = before.answer
	} else {
		memo.answer = d.solve(overlay, shut, avoid)
	}
	for _, host := range d.seat(groups, &memo.answer) {
		d.sought[host] = true
	}
	return &memo.answer
}

// overlay is the cluster without the hosts that are gone, and with all that is known to need a place.
func (d *desk) overlay(gone []string, on map[string][]*cluster.Pod, cared map[string]bool) *cluster.Overlay {
	d.count()
	return d.s.Without(gone...).Settled(on, cared).Expecting(d.homeless)
}

// count finds the pods that are between two nodes.
func (d *desk) count() {
	if !d.counted {
		d.homeless, d.counted = d.s.Homeless(), true
	}
}

// leaving are the hosts that go in any case.
func (d *desk) leaving() []string {
	var out []string
	for _, c := range d.s.Claims {
		if !c.Deleting.IsZero() {
			out = append(out, cluster.HostName(c, d.s.NodeOf(c.Name)))
		}
	}
	for _, n := range d.s.Nodes {
		if !n.Deleting.IsZero() || d.gone[n.Name] {
			out = append(out, n.Name)
		}
	}
	return out
}

// solve places pods. They don't go to hosts that are shut; and they are kept off the nodes to avoid if all find a place without
// those.
func (d *desk) solve(o *cluster.Overlay, shut, avoid []string) schedule.Placement {
	if len(avoid) > 0 {
		if p := schedule.Place(o.Avoiding(setOf(shut, avoid)), d.set.Schedule); len(p.Unplaced) == 0 {
			return p
		}
	}
	return schedule.Place(o.Avoiding(setOf(shut)), d.set.Schedule)
}

func setOf(lists ...[]string) map[string]bool {
	out := make(map[string]bool)
	for _, list := range lists {
		for _, name := range list {
			out[name] = true
		}
	}
	return out
}

// late are the replacements that have not come up for so long that nobody waits for them any more.
func (d *desk) late() []string {
	var out []string
	for _, c := range d.s.Claims {
		if c.Replaces == "" || c.Is(cluster.Initialized) {
			continue
		}
		if at := c.Created.Add(d.mostFor(c)); !d.s.Now.Before(at) {
			out = append(out, cluster.HostName(c, d.s.NodeOf(c.Name)))
		}
	}
	return out
}

// unquiet are the nodes that are still being filled, or have been left alone for less than their own consolidateAfter: to save
// money no pods are moved there. What was made for a move is not asked until that is over; and neither is who has come or gone
// since the first of the moves began, for that may be their own doing.
func (d *desk) unquiet(groups []*group) []string {
	var since time.Time
	for _, g := range groups {
		since = cluster.Earlier(since, g.since)
	}
	var out []string
	for _, c := range d.s.Claims {
		n := d.s.NodeOf(c.Name)
		if n == nil || !c.Is(cluster.Initialized) || len(d.s.Members(c.Replaces)) > 0 || Settled(d.s, d.set, c) {
			continue
		}
		if since.IsZero() || c.Condition(cluster.Initialized).Since.After(since) || c.LastPodEvent.Before(since) {
			out = append(out, n.Name)
		}
	}
	return out
}

// claimless are the nodes of ours that no claim has found, or that have lost theirs: most of these go.
func (d *desk) claimless() []string {
	var out []string
	for _, n := range d.s.Nodes {
		if n.Ours && d.s.ClaimOf(n.Name) == nil && d.s.Claim(n.Name) == nil {
			out = append(out, n.Name)
		}
	}
	return out
}

// madeFor are the hosts that were made for some moves.
func (d *desk) madeFor(groups []*group) []string {
	if len(groups) == 0 {
		return nil
	}
	ids := make(map[string]bool, len(groups))
	for _, g := range groups {
		ids[g.id] = true
	}
	var out []string
	for _, c := range d.s.Claims {
		if ids[c.Replaces] && d.s.Replacing(c) {
			out = append(out, cluster.HostName(c, d.s.NodeOf(c.Name)))
		}
	}
	return out
}

// driftedHosts are the nodes that have drifted: pods that were moved there would have to move again.
func (d *desk) driftedHosts() []string {
	var out []string
	for _, c := range d.s.Claims {
		if n := d.s.NodeOf(c.Name); n != nil && c.Is(cluster.Drifted) && DriftOf(d.s, c) != "" {
			out = append(out, n.Name)
		}
	}
	return out
}

// rankOf says how far a host is.
func (d *desk) rankOf(host string) rank {
	n := d.s.Node(host)
	if n == nil || !n.Deleting.IsZero() || tainted(n) {
		return coming
	}
	c := d.s.ClaimOf(host)
	if c == nil {
		c = d.s.Claim(host) // a node may have joined under its claim's name before it is known to be the claim's
	}
	if c == nil && n.Ours {
		return coming // either its claim will find it, or its machine has lost its claim and goes
	}
	if c != nil && !c.Is(cluster.Initialized) || d.interrupting && d.keptForOthers(n) || d.chosen[host] {
		return coming
	}
	return ready
}

// chosenHosts are the nodes to which pods without a place are nominated that the placement sends elsewhere. kube-scheduler keeps room there for
// them, or binds them there, until it has seen that the nomination is taken back.
func chosenHosts(p *schedule.Placement) map[string]bool {
	out := make(map[string]bool)
	note := func(pod *cluster.Pod, host string) {
		if pod.Nominated != "" && pod.Nominated != host {
			out[pod.Nominated] = true
		}
	}
	for _, a := range p.Assigned {
		note(a.Pod, a.Host)
	}
	for i := range p.Bins {
		for _, pod := range p.Bins[i].Pods {
			note(pod, "")
		}
	}
	for i := range p.Unplaced {
		note(p.Unplaced[i].Pod, "")
	}
	return out
}

// keptForOthers reports whether a node is kept for a move that is not looked at here: it is closed until that move lets
// it go.
func (d *desk) keptForOthers(n *cluster.Node) bool {
	return n.KeptFor != "" && !slices.ContainsFunc(d.groups, func(g *group) bool { return g.id == n.KeptFor })
}
