package plan

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// trustVerifiedMoves buys nothing for pods that have yet to leave a node which goes to save money: that there is room
// for all of them was verified before it went. While some have moved and others have not, kube-scheduler has put those
// elsewhere than was planned, and a placement of the rest may come out short although in the end everybody finds room.
// Whoever does not shows when kube-scheduler has looked at it.
func trustVerifiedMoves(o *cluster.Overlay, settings schedule.Settings, p schedule.Placement) schedule.Placement {
	short := false
	for i := range p.Bins {
		for _, pod := range p.Bins[i].Pods {
			short = short || pod.Node != "" && leavesToSaveMoney(o.Base, pod.Node)
		}
	}
	if !short {
		return p
	}
	on, cared := make(map[string][]*cluster.Pod), make(map[string]bool)
	var kept []schedule.Assignment
	for _, a := range p.Assigned {
		if a.Pod.Node != "" && leavesToSaveMoney(o.Base, a.Pod.Node) {
			on[a.Host] = append(on[a.Host], a.Pod)
			kept = append(kept, a)
		}
	}
	for _, pod := range o.Pending() {
		cared[pod.UID] = pod.Node != "" && leavesToSaveMoney(o.Base, pod.Node)
	}
	out := schedule.Place(o.WithPlaced(on, cared), settings)
	out.Assigned = append(out.Assigned, kept...)
	return out
}
