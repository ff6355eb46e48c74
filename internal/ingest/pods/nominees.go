package pods

import "github.com/tenon-sh/tenon/internal/cluster"

// Nominee is a pod for which a node has been named before it is bound there: by kube-scheduler, which makes room by
// preemption or waits for a volume, or by us, for a node that is to come. kube-scheduler's pods have a place; ours are
// still to be planned for, since nobody but the plan keeps that place for them.
type Nominee struct {
	// Unschedulable is what kube-scheduler says of the pod.
	Unschedulable bool
	// IsOurs says that the nomination carries our name. One without may be ours all the same, if whoever stores pods
	// does not keep who wrote what: then the node tells.
	IsOurs bool
}

// Nominees are pods by the node that was named for them and by UID.
type Nominees map[string]map[string]Nominee

// Set keeps what is known of a pod; old is what it was before.
func (n Nominees) Set(p, old *cluster.Pod, now Nominee) {
	if old != nil && old.Nominated != p.Nominated {
		n.Remove(old)
	}
	if p.Nominated == "" {
		return
	}
	if n[p.Nominated] == nil {
		n[p.Nominated] = make(map[string]Nominee)
	}
	n[p.Nominated][p.UID] = now
}

// Remove forgets a pod.
func (n Nominees) Remove(p *cluster.Pod) {
	if p.Nominated == "" {
		return
	}
	delete(n[p.Nominated], p.UID)
	if len(n[p.Nominated]) == 0 {
		delete(n, p.Nominated)
	}
}
