package disrupt

import "github.com/tenon-sh/tenon/internal/cluster"

// Static keeps the number of nodes that static pools ask for.
func Static(s *cluster.Snapshot) Result {
	return Result{}
}
