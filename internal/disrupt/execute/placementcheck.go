package execute

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/saving"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/resource"
)

// placementCheck checks whether the places that a search has found for the pods of its moves are still free.
type placementCheck struct {
	bg *beginner
	// others is what others have taken. hosts are those that take pods now, by name; nil until somebody asks. coming
	// are those with room that are on their way.
	others *destination.Others
	hosts  map[string]*cluster.Host
	coming []*cluster.Host
	// leftovers are the moves of which an earlier try has left replacements that nobody uses: what these cost is to be
	// counted first.
	leftovers map[string]bool
	// promisedHosts are the hosts to which pods go in moves that are under way, or in those that begin.
	promisedHosts map[string]bool
}

func (bg *beginner) newPlacementCheck() *placementCheck {
	p := &placementCheck{bg: bg, others: destination.OthersOf(bg.input.Placement), leftovers: make(map[string]bool),
		promisedHosts: maps.Clone(bg.OtherPodsHosts)}
	p.others.Add(bg.requiredPlacement)
	p.others.Add(bg.savingPlacement)
	for _, m := range bg.Ongoing() {
		for i := range m.Destinations {
			p.promisedHosts[m.Destinations[i].Host] = true
		}
	}
	for _, c := range bg.s.Claims {
		if c.Deleting.IsZero() && bg.isChargedToMove(c) {
			p.leftovers[c.Replaces] = true
		}
	}
	return p
}

// stillHolds reports whether all pods of the nodes have the places that the move gives them, and takes these if so;
// bins are the new nodes among them. Where pods have more to say than how much room they need, only a placement can
// tell.
func (p *placementCheck) stillHolds(m *disrupt.Move, candidates []disrupt.Candidate) (bins []market.Bin, ok bool) {
	at, inBin := make(map[string]string, len(m.Assigned)), make(map[string]bool)
	for i := range m.Assigned {
		at[m.Assigned[i].Pod.UID] = m.Assigned[i].Host
	}
	bins = slices.Clone(m.Bins)
	for i := range bins {
		if bins[i].Pool = p.currentPool(&bins[i]); bins[i].Pool == nil {
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
			host := p.hostWithRoom(at[pod.UID])
			if host == nil || pod.IsTied() || !host.Allows(pod.Class) {
				return nil, false
			}
			taken[host.Name] = taken[host.Name].Add(pod.Class.Requests)
			if !taken[host.Name].Fits(host.Free) {
				return nil, false
			}
			seated[host.Name] = append(seated[host.Name], pod)
		}
	}
	a, blocked := saving.AppraiseCheapestZones(p.bg.set, candidates, bins)
	if blocked != nil || p.leftovers[m.ID] || p.bg.isUnbalanced(candidates, a.Saving()) {
		return nil, false
	}
	if along, _ := saving.FreeRiders(p.bg.set, candidates, bins, saving.CandidateByNode(candidates),
		saving.PartDemand{}); len(along) > 0 {
		// found out when all is placed once more
		return nil, false
	}
	p.addTaken(taken, seated, bins)
	return a.Bins, true
}

// currentPool is the pool of a new node as it is now; nil if it is not the one that it was, does not let the node be
// made, or bounds what others might have used up.
func (p *placementCheck) currentPool(b *market.Bin) *cluster.Pool {
	pool := p.bg.s.Pool(b.Pool.Name)
	if pool == nil || pool.UID != b.Pool.UID || pool.Generation != b.Pool.Generation || !pool.IsUsable() ||
		pool.Probing || pool.Limits.Any() {
		return nil
	}
	for _, pod := range b.Pods {
		if pod.IsTied() {
			return nil
		}
	}
	return pool
}

// hostWithRoom finds a node that is up and takes pods, with the room that it has left. To save money pods only go to
// nodes that have been quiet for long enough.
func (p *placementCheck) hostWithRoom(name string) *cluster.Host {
	p.look()
	if p.bg.RemovedNodes[name] {
		return nil
	}
	return p.hosts[name]
}

// look finds the hosts that take pods, now or when they have come.
func (p *placementCheck) look() {
	if p.hosts != nil {
		return
	}
	p.hosts = make(map[string]*cluster.Host)
	x := p.bg
	gone := append(x.LeavingAnyway(), destination.HostsOf(x.Ongoing())...)
	list := x.Without(gone, p.others).Hosts()
	for i := range list {
		h := &list[i]
		c := x.s.Claim(h.Claim)
		switch {
		case h.Closed || h.Reserved:
		case c != nil && !h.Initialized:
			p.coming = append(p.coming, h)
		case x.DistanceOf(h.Name) == destination.AtReadyNode && (c == nil || disrupt.IsQuietTarget(x.s, x.set, c)):
			p.hosts[h.Name] = h
		}
	}
}

// spare reports whether a node is on its way that nobody else needs, and that the pod could have instead of a new one.
// A search puts nobody there; a placement does.
func (p *placementCheck) spare(pod *cluster.Pod) bool {
	p.look()
	return slices.ContainsFunc(p.coming, func(h *cluster.Host) bool {
		return !p.bg.RemovedNodes[h.Name] && h.Holds(pod.Class)
	})
}

// addTaken notes what a move has taken.
func (p *placementCheck) addTaken(taken map[string]resource.Vector, seated map[string][]*cluster.Pod,
	bins []market.Bin) {
	for name, need := range taken {
		p.hosts[name].Free = p.hosts[name].Free.Sub(need)
	}
	for name, pods := range seated {
		p.promisedHosts[name] = true
		p.others.PlacedOn[name] = append(p.others.PlacedOn[name], pods...)
		for _, pod := range pods {
			p.others.Handled[pod.UID] = true
		}
	}
	for i := range bins {
		for _, pod := range bins[i].Pods {
			p.others.Handled[pod.UID] = true
		}
	}
}
