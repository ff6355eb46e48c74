package plan

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// interrupt sees to the nodes whose instances the cloud takes away. Nobody waits for anything but the deadline: not for budgets,
// and not for pods that are still being counted.
func (p *Plan) interrupt(s *cluster.Snapshot, policy Policy, counting bool) {
	result, placed, memo := disrupt.Interrupt(s, policy.disruption(), disrupt.Orders{
		Placement: &p.Placement, Commands: p.Commands, Static: policy.StaticCapacity, Before: p.memory.interrupted}, counting)
	p.memory.interrupted, p.hurried = memo, placed
	p.take(result)
	p.replace(s, result.Wanted)
}

// taken is where pods go that have no place, or will have none because the cloud takes their nodes away: other moves have to
// leave them their room.
func (p *Plan) taken() *schedule.Placement {
	h := p.hurried
	if h == nil {
		return &p.Placement
	}
	out := p.Placement
	out.Assigned = slices.Concat(p.Placement.Assigned, h.Assigned)
	out.Bins = slices.Concat(p.Placement.Bins, h.Bins)
	out.Unplaced = slices.Concat(p.Placement.Unplaced, h.Unplaced)
	return &out
}
