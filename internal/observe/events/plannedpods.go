package events

import (
	"sync"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
)

// plannedPods remember which pods each claim was planned for, until it is launched or gone: if the cloud has no machine
// for it, they are told.
type plannedPods struct {
	mu   sync.Mutex
	Pods map[string][]*cluster.Pod // by claim
}

// Update takes in a plan. Pods that it sends elsewhere are forgotten only when their claim is: a plan that gives a
// claim up has other places for its pods already.
func (pp *plannedPods) Update(s *cluster.Snapshot, p *plan.Plan) {
	pp.mu.Lock()
	defer pp.mu.Unlock()
	for name := range pp.Pods {
		if c := s.Claim(name); c == nil || c.Is(cluster.Launched) {
			delete(pp.Pods, name)
		}
	}
	next := make(map[string][]*cluster.Pod)
	for _, a := range p.Placement.Assigned {
		if c := s.Claim(a.Claim); c != nil && !c.Is(cluster.Launched) {
			next[a.Claim] = append(next[a.Claim], a.Pod)
		}
	}
	for _, c := range p.Commands {
		if create, ok := c.(command.CreateClaim); ok {
			next[create.Name] = create.Pods
		}
	}
	if pp.Pods == nil {
		pp.Pods = make(map[string][]*cluster.Pod)
	}
	for name, pods := range next {
		pp.Pods[name] = pods
	}
}

// waitingPods lists the pods of a claim that still have no node.
func (pp *plannedPods) waitingPods(s *cluster.Snapshot, claim string) []*cluster.Pod {
	pp.mu.Lock()
	hoped := pp.Pods[claim]
	pp.mu.Unlock()
	if len(hoped) == 0 {
		return nil
	}
	waiting := make(map[string]bool)
	for _, p := range s.Pending() {
		waiting[p.UID] = true
	}
	var out []*cluster.Pod
	for _, p := range hoped {
		if waiting[p.UID] {
			out = append(out, p)
		}
	}
	return out
}

// tellNoCapacity tells the pods of a claim that the cloud has no machine for it, as long as there is room for more
// events.
func (e *Teller) tellNoCapacity(s *cluster.Snapshot, c command.DeleteClaim) {
	for _, pod := range e.PlannedPods.waitingPods(s, c.Claim) {
		if !e.noCapacity.allow(e.now()) {
			return
		}
		e.tell(podRef(pod), warning, insufficientCapacity, "Scheduling", "NodeClaim "+c.Claim+", which was made for "+
			"this pod, could not be launched: "+render.Text(c.Text))
	}
}
