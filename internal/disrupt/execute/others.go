package execute

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// otherPlacements is what other placements of the same plan have decided: pods that count as being on a host, and all
// those that are looked after.
type otherPlacements struct {
	placedOn map[string][]*cluster.Pod
	handled  map[string]bool
}

func otherPlacementsOf(p *schedule.Placement) *otherPlacements {
	o := &otherPlacements{placedOn: make(map[string][]*cluster.Pod), handled: make(map[string]bool)}
	o.add(p)
	return o
}

func (o *otherPlacements) add(p *schedule.Placement) {
	if p == nil {
		return
	}
	for _, a := range p.Assigned {
		o.placedOn[a.Host] = append(o.placedOn[a.Host], a.Pod)
		o.handled[a.Pod.UID] = true
	}
	for i := range p.Bins {
		for _, pod := range p.Bins[i].Pods {
			o.handled[pod.UID] = true
		}
	}
	for i := range p.Unplaced {
		o.handled[p.Unplaced[i].Pod.UID] = true
	}
}

// decidedPending is what a placement has decided about pods that have no node yet, or are about to lose theirs.
func decidedPending(s *cluster.Snapshot, p *schedule.Placement) *otherPlacements {
	o := otherPlacementsOf(nil)
	if p == nil {
		return o
	}
	waits := make(map[string]bool)
	for _, pod := range s.SchedulerView().Pending() {
		waits[pod.UID] = true
	}
	for _, a := range p.Assigned {
		if waits[a.Pod.UID] {
			o.placedOn[a.Host] = append(o.placedOn[a.Host], a.Pod)
			o.handled[a.Pod.UID] = true
		}
	}
	for i := range p.Bins {
		for _, pod := range p.Bins[i].Pods {
			o.handled[pod.UID] = waits[pod.UID]
		}
	}
	for i := range p.Unplaced {
		o.handled[p.Unplaced[i].Pod.UID] = waits[p.Unplaced[i].Pod.UID]
	}
	return o
}

// placementOfPending is a placement that knows of the pods without a place only that others look after them.
func placementOfPending(s *cluster.Snapshot) *schedule.Placement {
	pending := s.Pending()
	out := &schedule.Placement{Unplaced: make([]schedule.Unplaced, len(pending))}
	for i, p := range pending {
		out.Unplaced[i].Pod = p
	}
	return out
}

// chosenHosts are the nodes to which pods without a place are nominated that the placement sends elsewhere.
// kube-scheduler keeps room there for them, or binds them there, until it has seen that the nomination is taken back.
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
