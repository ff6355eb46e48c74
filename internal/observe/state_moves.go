package observe

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// moveFamilies are gauges about disruption.
type moveFamilies struct{ eligible, moves, stays, found *family }

func newMoveFamilies() moveFamilies {
	return moveFamilies{
		eligible: newFamily("karpenter_voluntary_disruption_eligible_nodes", "Nodes that could be disrupted, by reason.", "reason"),
		moves:    newFamily("tenon_disruption_moves", "Disruptions that are under way, by reason and by how far they have come.", "reason", "stage"),
		stays:    newFamily("tenon_disruption_stays", "Nodes by why the last search for cheaper ones left them where they are.", "nodepool", "why"),
		found:    newFamily("tenon_consolidation_found_saving_per_hour", "What the moves that the last search found would save, and the nodes that carry nothing, in dollars per hour."),
	}
}

func (f *moveFamilies) all() []*family { return []*family{f.eligible, f.moves, f.stays, f.found} }

func (c *scrape) moveGauges(f *moveFamilies, sr *search) {
	give := func(reason command.Reason, n int) {
		c.give(f.eligible, float64(n), c.shared("reason", reasonLabel(reason)))
	}
	give(command.Empty, c.empty())
	give(command.Drifted, c.drifted())
	counts := c.underWay()
	for _, reason := range append(disrupt.Budgeted(), command.Expired) {
		for _, stage := range stages() {
			c.give(f.moves, float64(counts[step{reason, stage}]), c.shared("reason", reasonLabel(reason)), c.shared("stage", stage))
		}
	}
	if sr == nil {
		return
	}
	give(command.Underutilized, sr.candidates())
	c.give(f.found, sr.saving()+c.spare())
	type row struct{ pool, why string }
	nodes := make(map[row]int)
	for i := range sr.stays {
		nodes[row{sr.stays[i].pool, string(sr.stays[i].Why)}]++
	}
	for key := range maps.Keys(nodes) {
		c.give(f.stays, float64(nodes[key]), c.shared("nodepool", key.pool), c.shared("why", key.why))
	}
}

// spare is what the nodes cost that carry nothing and are still there although they might go.
func (c *scrape) spare() float64 {
	sum := 0.0
	for _, claim := range c.Claims {
		if disrupt.Spare(c.Snapshot, claim) {
			sum += claim.Price
		}
	}
	return sum
}

// drifted counts the nodes that have drifted and may go as far as people and pods say.
func (c *scrape) drifted() int {
	count := 0
	var judge *disrupt.Judge
	for _, claim := range c.Claims {
		if !claim.Is(cluster.Drifted) {
			continue
		}
		if judge == nil {
			judge = disrupt.NewJudge(c.Snapshot, disrupt.Settings{})
		}
		if _, stay := judge.MayGo(claim, command.Drifted); stay == nil {
			count++
		}
	}
	return count
}

// stages are how far a move may have come: its nodes are fenced, replacements are awaited, these are up, its nodes are leaving.
func stages() []string { return []string{"fenced", "waiting", "ready", "leaving"} }

// step is a reason and a stage.
type step struct {
	reason command.Reason
	stage  string
}

// underWay counts the moves that are under way.
func (c *scrape) underWay() map[step]int {
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
	out := make(map[step]int)
	for move, at := range stage {
		out[step{moveReason(move), stages()[at]}]++
	}
	return out
}

// moveReason is the reason of a move, by its name.
func moveReason(move string) command.Reason { return disrupt.ReasonOf(move) }

// underWayMoves lists the names of the moves that are under way.
func underWayMoves(s *cluster.Snapshot) []string {
	seen := make(map[string]bool)
	for _, c := range s.Claims {
		if c.Move != "" {
			seen[c.Move] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
