package destination

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Others is what other placements of the same plan have decided: pods that count as being on a host, and all
// those that are looked after.
type Others struct {
	PlacedOn map[string][]*cluster.Pod
	Handled  map[string]bool
}

// OthersOf takes in what a placement has decided.
func OthersOf(p *schedule.Placement) *Others {
	o := &Others{PlacedOn: make(map[string][]*cluster.Pod), Handled: make(map[string]bool)}
	o.Add(p)
	return o
}

// Add takes in what another placement has decided.
func (o *Others) Add(p *schedule.Placement) {
	eachPod(p, o.add)
}

func (o *Others) add(pod *cluster.Pod, host string) {
	if o.Handled[pod.UID] = true; host != "" {
		o.PlacedOn[host] = append(o.PlacedOn[host], pod)
	}
}

// eachPod visits the pods that a placement is about, each with the host that is there to which it goes: none if it gets
// a new node or no place.
func eachPod(p *schedule.Placement, visit func(pod *cluster.Pod, host string)) {
	if p == nil {
		return
	}
	for _, a := range p.Assigned {
		visit(a.Pod, a.Host)
	}
	for i := range p.Bins {
		for _, pod := range p.Bins[i].Pods {
			visit(pod, "")
		}
	}
	for i := range p.Unplaced {
		visit(p.Unplaced[i].Pod, "")
	}
}

// decidedPending is what a placement has decided about pods that have no node yet, or are about to lose theirs.
func decidedPending(s *cluster.Snapshot, p *schedule.Placement) *Others {
	o, waits := OthersOf(nil), make(map[string]bool)
	for _, pod := range s.SchedulerView().Pending() {
		waits[pod.UID] = true
	}
	eachPod(p, func(pod *cluster.Pod, host string) {
		if waits[pod.UID] {
			o.add(pod, host)
		}
	})
	return o
}

// PlacementOfPending is a placement that knows of the pods without a place only that others look after them.
func PlacementOfPending(s *cluster.Snapshot) *schedule.Placement {
	pending := s.Pending()
	out := &schedule.Placement{Unplaced: make([]schedule.Unplaced, len(pending))}
	for i, p := range pending {
		out.Unplaced[i].Pod = p
	}
	return out
}

// ChosenHosts are the nodes to which pods without a place are nominated that the placement sends elsewhere.
// kube-scheduler keeps room there for them, or binds them there, until it has seen that the nomination is taken back.
func ChosenHosts(p *schedule.Placement) map[string]bool {
	out := make(map[string]bool)
	eachPod(p, func(pod *cluster.Pod, host string) {
		if pod.Nominated != "" && pod.Nominated != host {
			out[pod.Nominated] = true
		}
	})
	return out
}
