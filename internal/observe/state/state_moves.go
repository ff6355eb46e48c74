package state

import (
	"maps"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/observe/search"
	"github.com/tenon-sh/tenon/internal/observe/series"
)

// moveFamilies are gauges about disruption.
type moveFamilies struct{ eligible, moves, blocked, found *series.Family }

func newMoveFamilies() moveFamilies {
	return moveFamilies{
		eligible: series.NewFamily("karpenter_voluntary_disruption_eligible_nodes", "Nodes that could be disrupted, "+
			"by reason.", "reason"),
		moves: series.NewFamily("tenon_disruption_moves", "Disruptions that are under way, by reason and by how "+
			"far they have come.", "reason", "stage"),
		blocked: series.NewFamily("tenon_disruption_stays", "Nodes by why the last search for cheaper ones left them "+
			"where they are.", "nodepool", "why"),
		found: series.NewFamily("tenon_consolidation_found_saving_per_hour", "What the moves that the last search "+
			"found would save, and the nodes that carry nothing, in dollars per hour."),
	}
}

func (f *moveFamilies) all() []*series.Family {
	return []*series.Family{f.eligible, f.moves, f.blocked, f.found}
}

func (c *scrape) moveGauges(f *moveFamilies, s *search.Result) {
	give := func(reason command.Reason, n int) {
		c.send(f.eligible, float64(n), c.Shared("reason", series.ReasonLabel(reason)))
	}
	give(command.Empty, c.empty())
	give(command.Drifted, c.drifted())
	counts := c.underWay()
	for _, reason := range append(disrupt.BudgetReasons(), command.Expired) {
		for _, stage := range Stages() {
			c.send(f.moves, float64(counts[moveStage{reason, stage}]), c.Shared("reason", series.ReasonLabel(reason)),
				c.Shared("stage", stage))
		}
	}
	if s == nil {
		return
	}
	give(command.Underutilized, s.Candidates())
	c.send(f.found, s.Saving()+c.removablePrice())
	type row struct{ pool, why string }
	nodes := make(map[row]int)
	for i := range s.Blocked {
		nodes[row{s.Blocked[i].Pool, string(s.Blocked[i].Reason)}]++
	}
	for key := range maps.Keys(nodes) {
		c.send(f.blocked, float64(nodes[key]), c.Shared("nodepool", key.pool), c.Shared("why", key.why))
	}
}

// removablePrice is what the nodes cost that carry nothing and are still there although they might go.
func (c *scrape) removablePrice() float64 {
	sum := 0.0
	for _, claim := range c.Claims {
		if disrupt.IsRemovableEmpty(c.Snapshot, claim) {
			sum += claim.Price
		}
	}
	return sum
}

// drifted counts the nodes that have drifted and may go as far as people and pods say.
func (c *scrape) drifted() int {
	count := 0
	var judge *disrupt.Eligibility
	for _, claim := range c.Claims {
		if !claim.Is(cluster.Drifted) {
			continue
		}
		if judge == nil {
			judge = disrupt.NewEligibility(c.Snapshot, disrupt.Settings{})
		}
		if _, blocked := judge.MayDisrupt(claim, command.Drifted); blocked == nil {
			count++
		}
	}
	return count
}

// Stages are how far a move may have come: its nodes are fenced, replacements are awaited, these are up, its nodes are
// leaving.
func Stages() []string { return []string{"fenced", "waiting", "ready", "leaving"} }

// moveStage is a reason and a stage.
type moveStage struct {
	reason command.Reason
	stage  string
}

// underWay counts the moves that are under way.
func (c *scrape) underWay() map[moveStage]int {
	stage := make(map[string]int)
	reach := func(move string, at int) { stage[move] = max(stage[move], at) }
	for _, claim := range c.Claims {
		if claim.Move == "" {
			continue
		}
		reach(claim.Move, 0)
		if !claim.Deleting.IsZero() {
			reach(claim.Move, 3)
		}
	}
	ready := make(map[string]bool) // moves with replacements: whether all of them are up
	for _, claim := range c.Claims {
		if _, known := stage[claim.Replaces]; known && claim.Replaces != "" {
			up, seen := ready[claim.Replaces]
			ready[claim.Replaces] = (up || !seen) && claim.Is(cluster.Initialized)
		}
	}
	for move, up := range ready {
		at := 1
		if up {
			at = 2
		}
		reach(move, at)
	}
	out := make(map[moveStage]int)
	for move, at := range stage {
		out[moveStage{disrupt.MoveReason(move), Stages()[at]}]++
	}
	return out
}
