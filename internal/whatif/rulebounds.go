package whatif

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
	"github.com/tenon-sh/tenon/internal/topology"
)

// WithinRuleBounds says which departures a search takes on, in the order given, beginning with the one at first. Each
// pod may have rules of its own, and what they count is worked out for all of them: beyond a bound, departures whose
// pods would add more rules are left out. Their pods count for the others as pods that run do.
func WithinRuleBounds(s *cluster.Snapshot, settings schedule.Settings, departures []RemovableNode, first int) []bool {
	out := make([]bool, len(departures))
	b := topology.NewComparisonBudget(s, !settings.IgnorePreferences)
	for n := range departures {
		i := (first + n) % len(departures)
		out[i] = true
		for _, p := range departures[i].Pods {
			out[i] = out[i] && b.Admit(p.Class)
		}
	}
	return out
}
