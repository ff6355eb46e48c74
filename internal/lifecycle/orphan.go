package lifecycle

import "github.com/tenon-sh/tenon/internal/cluster"

// Orphans ends instances that the cloud runs and no claim accounts for.
func Orphans(s *cluster.Snapshot) Step {
	return Step{}
}
