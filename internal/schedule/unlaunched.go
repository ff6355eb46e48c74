package schedule

import "github.com/tenon-sh/tenon/internal/cluster"

// HasUnlaunchedClaim reports whether the pool has a claim that is yet to be launched: of a pool being probed it is the
// one that finds out whether launches go well again.
func HasUnlaunchedClaim(s *cluster.Snapshot, p *cluster.Pool) bool {
	for _, c := range s.ClaimsOf(p.Name) {
		if c.Deleting.IsZero() && c.Condition(cluster.Launched).Status == cluster.Unknown {
			return true
		}
	}
	return false
}
