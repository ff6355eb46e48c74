package disrupt

import (
	"fmt"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// DescribeBudget says what a pool's budgets allow for a reason at this moment, which of them says so, until when, and
// how many nodes are out already.
func DescribeBudget(s *cluster.Snapshot, p *cluster.Pool, reason command.Reason) string {
	b := newPoolBudget(s, p)
	return fmt.Sprintf("%s of %d nodes, and %d are out", b.describe(b.allowanceFor(reason)), b.total, b.unavailable)
}
