package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// withoutGiants parts pods from the rest that have a place nowhere, whatever others do: no host has room for one and
// nothing for sale is large enough. Zones are dealt by the rules of all who wait, and steps are counted for all of
// them, so such a pod would cost others choice and money in vain.
func (sh *shop) withoutGiants(hosts []cluster.Host, pending []*cluster.Pod) (rest, giants []*cluster.Pod) {
	known := make(map[*cluster.PodClass]bool)
	for i, pod := range pending {
		c := pod.Class
		giant, seen := known[c]
		if !seen {
			giant = sh.giant(hosts, c)
			known[c] = giant
		}
		giant = giant && len(pod.Volumes) == 0 && len(pod.Exclusive) == 0
		switch {
		case giant && giants == nil:
			rest, giants = slices.Clone(pending[:i]), []*cluster.Pod{pod}
		case giant:
			giants = append(giants, pod)
		case giants != nil:
			rest = append(rest, pod)
		}
	}
	if giants == nil {
		return pending, nil
	}
	return rest, giants
}

// giant reports whether pods of the class fit nowhere. What depends on volumes, on daemons or on seats that are kept is
// left to be found out later.
func (sh *shop) giant(hosts []cluster.Host, c *cluster.PodClass) bool {
	befriended := func(d *cluster.Daemon) bool { return befriends(sh.s, c, d) }
	if len(c.Unsupported) > 0 || slices.ContainsFunc(sh.s.Daemons, befriended) {
		return false
	}
	if sh.site([]*cluster.PodClass{c}, nil).holds(&c.Requests) || sh.holdsWithoutDaemons(c) {
		return false
	}
	hasSeat := func(seat cluster.Seat) bool { return seat.Class == c.Key }
	return !slices.ContainsFunc(hosts, func(h cluster.Host) bool {
		return c.Requests.Fits(h.Free) && h.Takes(c) || slices.ContainsFunc(h.Seats, hasSeat)
	})
}

// holdsWithoutDaemons reports whether DaemonSets may be all that keeps pods of the class from an instance type: some of
// them may be left out.
func (sh *shop) holdsWithoutDaemons(c *cluster.PodClass) bool {
	holds := func(t cluster.Type) bool { return c.Requests.Fits(t.Allocatable) }
	return slices.ContainsFunc(sh.markets, func(m *market) bool {
		return len(m.daemons) > 0 && slices.ContainsFunc(m.pool.Catalog.Types, holds)
	})
}

// explainGiants says why they have no place. Nobody's rules are to blame. What was said before is said again.
func (out *Placement) explainGiants(o *cluster.Overlay, sh *shop, giants []*cluster.Pod, settings *Settings) {
	if len(giants) == 0 {
		return
	}
	book := newLedger(o.Base, giants, !settings.IgnoreWishes)
	kinds := kindsOf(giants, book)
	out.despair(settings.Before, kinds)
	out.hold(kinds, settings.Held)
	for _, k := range kinds {
		k.doomed = steady(k)
		explain(o.Base, sh, book, k, out)
	}
}
