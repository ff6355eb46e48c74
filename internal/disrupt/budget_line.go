package disrupt

import (
	"fmt"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// BudgetLine says what a pool's budgets allow for a reason at this moment, which of them says so, until when, and how many nodes
// are out already.
func BudgetLine(s *cluster.Snapshot, p *cluster.Pool, reason command.Reason) string {
	a := newAccount(s, p)
	return fmt.Sprintf("%s of %d nodes, and %d are out", a.tell(a.allows(reason)), a.total, a.out)
}
