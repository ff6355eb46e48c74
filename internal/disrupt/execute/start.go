package execute

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
)

// StartRequired begins the replacement of nodes that have to go whatever it costs while pods are still being counted:
// only fences are put up, which can be taken down again. Where the pods that are counted go is not known yet, so that
// everything else waits; but where pods come and go all the time, whoever waits for a budget would hardly ever find a
// moment otherwise.
func StartRequired(s *cluster.Snapshot, set disrupt.Settings, o Input) disrupt.Result {
	if !anyRequired(s, o) { // there are rushes in which every pass counts
		return disrupt.Result{}
	}
	o.Proposal, o.Placement = nil, destination.PlacementOfPending(s)
	x := newExecutor(s, set, o)
	x.gather()
	x.revalidate()
	x.fitBudgets()
	under := len(x.Moves)
	x.beginRequired()
	if len(x.Moves) > under {
		x.verify()
	}
	for _, m := range x.Moves[under:] {
		if m.IsStatic || m.Farthest() != destination.Nowhere {
			x.fence(m)
		}
	}
	return disrupt.Result{Commands: x.Commands, Begun: x.Begun, WakeAt: x.WakeAt, PlanSoon: x.PlanSoon}
}

// anyRequired reports whether there may be nodes that have to go whatever it costs.
func anyRequired(s *cluster.Snapshot, o Input) bool {
	return o.Repair.Enabled || slices.ContainsFunc(s.Pools, func(p *cluster.Pool) bool {
		return p.Overrides.SoftExpiry > 0
	}) ||
		slices.ContainsFunc(s.Claims, func(c *cluster.Claim) bool {
			return c.Is(cluster.Drifted) && c.Move == "" && c.Deleting.IsZero()
		})
}
