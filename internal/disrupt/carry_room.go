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
// gone, too, and the pods that have no node yet are where the placement has put them.
func Cramped(s *cluster.Snapshot, set Settings, placed *schedule.Placement, commands []command.Command, parties map[string][]string) map[string]bool {
	d := &desk{s: s, set: set, gone: make(map[string]bool)}
	party := make(map[string]string)
	for name, nodes := range parties {
		for _, n := range nodes {
			party[n] = name
		}
	}
	for _, c := range commands {
		switch c := c.(type) {
		case command.Fence:
			d.gone[c.Node] = true
		case command.DeleteClaim:
			d.gone[c.Node] = party[c.Node] == ""
		}
	}
	delete(d.gone, "")
	room, out := stillPending(s, placed), make(map[string]bool)
	for range lastRounds {
		lacking := d.lacking(room, parties, party, out)
		if len(lacking) == 0 {
			return out
		}
		maps.Copy(out, lacking)
	}
	for name := range parties { // nobody can tell who may go without whom
		out[name] = true
	}
	return out
}

// lacking finds the parties that lack room if all go but those that are out.
func (d *desk) lacking(r *room, parties map[string][]string, party map[string]string, out map[string]bool) map[string]bool {
	gone := d.leaving()
	for _, name := range slices.Sorted(maps.Keys(parties)) {
		if !out[name] {
			gone = append(gone, parties[name]...)
		}
	}
	goes, shut := setOf(gone), make(map[string]bool)
	for _, n := range d.s.Nodes {
		shut[n.Name] = !goes[n.Name] && d.rankOf(n.Name) != ready
	}
	for _, c := range d.s.Claims {
		if d.s.NodeOf(c.Name) == nil {
			shut[c.Name] = true
		}
	}
	answer := schedule.Place(d.overlay(gone, r.on, r.cared).Avoiding(shut), d.set.Schedule)
	lacking := make(map[string]bool)
	note := func(p *cluster.Pod) {
		if name := party[p.Node]; name != "" && !out[name] {
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

// stillPending is the room that a placement has given to pods that have no node yet.
func stillPending(s *cluster.Snapshot, p *schedule.Placement) *room {
	r := roomFor(nil)
	if p == nil {
		return r
	}
	waits := make(map[string]bool)
	for _, pod := range s.Pending() {
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
	return r
}
