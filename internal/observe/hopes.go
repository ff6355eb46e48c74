package observe

import (
	"sync"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
)

// hopes remember which pods each claim was planned for, until it is launched or gone: if the cloud has no machine for it, they are told.
type hopes struct {
	mu   sync.Mutex
	pods map[string][]*cluster.Pod // by claim
}

// keep takes in a plan. Pods that it sends elsewhere are forgotten only when their claim is: a plan that gives a claim up has other
// places for its pods already.
func (h *hopes) keep(s *cluster.Snapshot, p *plan.Plan) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range h.pods {
		if c := s.Claim(name); c == nil || c.Is(cluster.Launched) {
			delete(h.pods, name)
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
	if h.pods == nil {
		h.pods = make(map[string][]*cluster.Pod)
	}
	for name, pods := range next {
		h.pods[name] = pods
	}
}

// of lists the pods of a claim that still have no node.
func (h *hopes) of(s *cluster.Snapshot, claim string) []*cluster.Pod {
	h.mu.Lock()
	hoped := h.pods[claim]
	h.mu.Unlock()
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

// disappoint tells the pods of a claim that the cloud has no machine for it, as long as there is room for more events.
func (e *events) disappoint(s *cluster.Snapshot, c command.DeleteClaim) {
	for _, pod := range e.hopes.of(s, c.Claim) {
		if !e.disappointments.take(e.now()) {
			return
		}
		e.tell(podRef(pod), warning, insufficientCapacity, "Scheduling", "NodeClaim "+c.Claim+", which was made for this pod, could not be launched: "+c.Message)
	}
}
