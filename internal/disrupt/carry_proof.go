package disrupt

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// proof checks whether the places that a search has found for the pods of its moves are still free.
type proof struct {
	d *desk
	// room is what others have taken. hosts are those that take pods now, by name; nil until somebody asks. coming are those with room
	// that are on their way.
	room   *room
	hosts  map[string]*cluster.Host
	coming []*cluster.Host
	// left are the moves of which an earlier try has left replacements that nobody uses: what these cost is to be counted first.
	left map[string]bool
	// promised are the hosts to which pods go in moves that are under way, or in those that begin.
	promised map[string]bool
}

func (d *desk) newProof() *proof {
	p := &proof{d: d, room: roomFor(d.orders.Placement), left: make(map[string]bool), promised: maps.Clone(d.sought)}
	p.room.take(d.due)
	p.room.take(d.saving)
	for _, g := range d.alive() {
		for i := range g.seats {
			p.promised[g.seats[i].host] = true
		}
	}
	for _, c := range d.s.Claims {
		if c.Deleting.IsZero() && d.owed(c) {
			p.left[c.Replaces] = true
		}
	}
	return p
}

// holds reports whether all pods of the nodes have the places that the move gives them, and takes these if so; bins are the new
// nodes among them. Where pods have more to say than how much room they need, only a placement can tell.
func (p *proof) holds(m *Move, candidates []Candidate) (bins []schedule.Bin, ok bool) {
	at, inBin := make(map[string]string, len(m.Assigned)), make(map[string]bool)
	for i := range m.Assigned {
		at[m.Assigned[i].Pod.UID] = m.Assigned[i].Host
	}
	bins = slices.Clone(m.Bins)
	for i := range bins {
		if bins[i].Pool = p.current(&bins[i]); bins[i].Pool == nil {
			return nil, false
		}
		for _, pod := range bins[i].Pods {
			if inBin[pod.UID] = true; p.spare(pod) {
				return nil, false
			}
		}
	}
	taken := make(map[string]resource.Vector)
	seated := make(map[string][]*cluster.Pod)
	for i := range candidates {
		for _, pod := range candidates[i].Pods {
			if inBin[pod.UID] {
				continue
			}
			host := p.host(at[pod.UID])
			if host == nil || !plain(pod) || !host.Takes(pod.Class) {
				return nil, false
			}
			taken[host.Name] = taken[host.Name].Add(pod.Class.Requests)
			if !taken[host.Name].Fits(host.Free) {
				return nil, false
			}
			seated[host.Name] = append(seated[host.Name], pod)
		}
	}
	a, stay := AppraiseClosely(p.d.set, candidates, bins)
	if stay != nil || p.left[m.ID] || p.d.unbalanced(candidates, a.Saving()) {
		return nil, false
	}
	if along, _ := riders(p.d.set, candidates, bins, byNode(candidates), demand{}); len(along) > 0 { // found out when all is placed once more
		return nil, false
	}
	p.take(taken, seated, bins)
	return a.Bins, true
}

// current is the pool of a new node as it is now; nil if it is not the one that it was, does not let the node be made, or
// bounds what others might have used up.
func (p *proof) current(b *schedule.Bin) *cluster.Pool {
	pool := p.d.s.Pool(b.Pool.Name)
	if pool == nil || pool.UID != b.Pool.UID || pool.Generation != b.Pool.Generation || !pool.Usable() || pool.OnTrial || pool.Limits.Any() {
		return nil
	}
	for _, pod := range b.Pods {
		if !plain(pod) {
			return nil
		}
	}
	return pool
}

// plain reports whether nothing but room and the node itself decides where the pod may go.
func plain(p *cluster.Pod) bool {
	return len(p.Class.Rules)+len(p.Class.Ports)+len(p.Volumes)+len(p.Exclusive)+len(p.Unbound) == 0
}

// host finds a node that is up and takes pods, with the room that it has left. To save money pods only go to nodes that have been
// quiet for long enough.
func (p *proof) host(name string) *cluster.Host {
	p.look()
	if p.d.gone[name] {
		return nil
	}
	return p.hosts[name]
}

// look finds the hosts that take pods, now or when they have come.
func (p *proof) look() {
	if p.hosts != nil {
		return
	}
	p.hosts = make(map[string]*cluster.Host)
	d := p.d
	gone := append(d.leaving(), d.hostsOf(d.alive())...)
	list := d.overlay(gone, p.room.on, p.room.cared).Hosts()
	for i := range list {
		h := &list[i]
		c := d.s.Claim(h.Claim)
		switch {
		case h.Closed || h.Reserved:
		case c != nil && !h.Initialized:
			p.coming = append(p.coming, h)
		case d.rankOf(h.Name) == ready && (c == nil || Settled(d.s, d.set, c)):
			p.hosts[h.Name] = h
		}
	}
}

// spare reports whether a node is on its way that nobody else needs, and that the pod could have instead of a new one. A search puts nobody
// there; a placement does.
func (p *proof) spare(pod *cluster.Pod) bool {
	p.look()
	return slices.ContainsFunc(p.coming, func(h *cluster.Host) bool {
		return !p.d.gone[h.Name] && pod.Class.Requests.Fits(h.Free) && h.Takes(pod.Class)
	})
}

// take notes what a move has taken.
func (p *proof) take(taken map[string]resource.Vector, seated map[string][]*cluster.Pod, bins []schedule.Bin) {
	for name, need := range taken {
		p.hosts[name].Free = p.hosts[name].Free.Sub(need)
	}
	for name, pods := range seated {
		p.promised[name] = true
		p.room.on[name] = append(p.room.on[name], pods...)
		for _, pod := range pods {
			p.room.cared[pod.UID] = true
		}
	}
	for i := range bins {
		for _, pod := range bins[i].Pods {
			p.room.cared[pod.UID] = true
		}
	}
}
