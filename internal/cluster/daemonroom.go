package cluster

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/internal/resource"
)

// reserveForDaemons keeps room and ports for DaemonSets that match the host and have no pod there yet. kube-scheduler
// lets those of higher priority in first, and a DaemonSet displaces nobody of its own priority: whoever runs or has a
// seat here stays. A DaemonSet that finds no room beside these does not get a pod here, and must not keep others off.
// Of equals that don't fit together nobody knows who comes: the worst is assumed.
func (o *Overlay) reserveForDaemons(h *Host) {
	promised := o.Base.lookups.daemonsNominated[h.Name]
	for _, p := range promised { // kube-scheduler keeps this room for it, whoever else comes
		h.Free, h.Ports = h.Free.Sub(p.Class.Requests), append(h.Ports, p.Class.Ports...)
	}
	daemons := o.missingDaemons(h, promised)
	if len(daemons) == 0 {
		return
	}
	left, first := resource.Range{Low: h.Free, High: h.Free}, o.claimedRooms(h)
	for len(daemons) > 0 {
		priority := daemons[0].Class.Priority
		for len(first) > 0 && first[0].priority >= priority {
			left, first = resource.Range{Low: left.Low.Sub(first[0].need), High: left.High.Sub(first[0].need)},
				first[1:]
		}
		var needs []resource.Vector
		for len(daemons) > 0 && daemons[0].Class.Priority == priority {
			if c := daemons[0].Class; c.Requests.Fits(left.High) {
				needs = append(needs, c.Requests)
				h.Ports = append(h.Ports, c.Ports...)
			}
			daemons = daemons[1:]
		}
		after := left.Take(needs)
		h.Free = h.Free.Sub(left.Low.Sub(after.Low))
		left = after
	}
}

// missingDaemons are the DaemonSets that match the host and have no pod there yet, nor one that is promised its room,
// the highest priority first.
func (o *Overlay) missingDaemons(h *Host, promised []*Pod) []*Daemon {
	var out []*Daemon
	for _, d := range o.Base.Daemons {
		if !slices.ContainsFunc(h.Pods, d.Owns) && !slices.ContainsFunc(promised, d.Owns) && h.mayAllow(d.Class) {
			out = append(out, d)
		}
	}
	return out
}

// claimedRoom is what pods of one priority have of a host, or have been promised.
type claimedRoom struct {
	priority int32
	need     resource.Vector
}

// claimedRooms is what the pods need that are on the host, and those that have a seat there and have not come yet; the
// highest priority first.
func (o *Overlay) claimedRooms(h *Host) []claimedRoom {
	var out []claimedRoom
	add := func(priority int32, need resource.Vector) {
		i := slices.IndexFunc(out, func(c claimedRoom) bool { return c.priority == priority })
		if i < 0 {
			i = len(out)
			out = append(out, claimedRoom{priority: priority})
		}
		out[i].need = out[i].need.Add(need)
	}
	for _, p := range h.Pods {
		add(p.Class.Priority, p.Class.Requests)
	}
	for _, seat := range h.Seats {
		count := seat.Count
		for _, p := range h.Pods {
			if p.Class.Key == seat.Class {
				count--
			}
		}
		if class := o.classOf(seat.Class); class != nil && count > 0 {
			add(class.Priority, class.Requests.Times(int64(count)))
		}
	}
	slices.SortFunc(out, func(a, b claimedRoom) int { return cmp.Compare(b.priority, a.priority) })
	return out
}

// classOf finds a class by its key, if a pod has it.
func (o *Overlay) classOf(key string) *PodClass {
	if o.classes == nil {
		o.classes = make(map[string]*PodClass)
		for _, p := range o.Base.Pods {
			o.classes[p.Class.Key] = p.Class
		}
	}
	return o.classes[key]
}
