package plan

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt/execute"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// handleInterruptions sees to the nodes whose instances the cloud takes away. Nobody waits for anything but the
// deadline: not for budgets, and not for pods that are still being counted.
func (p *Plan) handleInterruptions(s *cluster.Snapshot, policy Policy, counting bool) {
	result, placed, memo := execute.Interrupt(s, policy.disruption(), execute.Input{
		Placement: &p.Placement, Commands: p.Commands, Static: policy.StaticCapacity, LastMemo: p.memo.interrupted},
		counting)
	p.memo.interrupted, p.interruptedPlacement = memo, placed
	p.addResult(result)
	p.dropFencedHosts()
	p.createReplacements(s, result.Replacements)
}

// dropFencedHosts takes the nodes that the plan fences out of its placement: one that the cloud advises to let go is
// open to pods up to then. Their places elsewhere have been found together with those of the node's pods, and the next
// plan sends them there.
func (p *Plan) dropFencedHosts() {
	fenced := make(map[string]bool)
	for _, c := range p.Commands {
		if f, ok := c.(command.Fence); ok {
			fenced[f.Node] = true
		}
	}
	leaves := func(a schedule.Assignment) bool { return fenced[a.Host] }
	if slices.ContainsFunc(p.Placement.Assigned, leaves) {
		// what is remembered stays as it was
		p.Placement.Assigned = slices.DeleteFunc(slices.Clone(p.Placement.Assigned), leaves)
	}
}

// takenPlaces is where pods go that have no place, or will have none because the cloud takes their nodes away: other
// moves have to leave them their room.
func (p *Plan) takenPlaces() *schedule.Placement {
	h := p.interruptedPlacement
	if h == nil {
		return &p.Placement
	}
	out := p.Placement
	out.Assigned = slices.Concat(p.Placement.Assigned, h.Assigned)
	out.Bins = slices.Concat(p.Placement.Bins, h.Bins)
	out.Unplaced = slices.Concat(p.Placement.Unplaced, h.Unplaced)
	return &out
}
