package disrupt

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Budgeted are the reasons that a pool's budgets tell apart.
func Budgeted() []command.Reason {
	return []command.Reason{command.Empty, command.Underutilized, command.Drifted, command.Unhealthy}
}

// Ledger is what the disruption budgets of all pools leave. It is made once from a snapshot, and whoever decides to disrupt
// nodes takes them from it, so that decisions of the same plan share the budgets.
type Ledger struct {
	accounts map[string]*account // by pool
}

// account is one pool's part of a ledger.
type account struct {
	pool *cluster.Pool
	// total are the nodes that percentages are of; out are those of them that are not at work, whoever took them: a node
	// that is unwell in two ways is out once.
	total, out int
	// ward is what total is for repairs: a node may be sick before it is up. leaving are those of them that are on their way out.
	ward, leaving int
	// allowed and by are known once somebody has asked for the reason.
	known map[command.Reason]share
}

// share is how many nodes may be out at the same time for a reason, and which of the pool's budgets says so: -1 if none does.
type share struct {
	allowed, by int
}

// NewLedger counts the nodes of every pool.
func NewLedger(s *cluster.Snapshot) *Ledger {
	l := &Ledger{accounts: make(map[string]*account, len(s.Pools))}
	for _, p := range s.Pools {
		l.accounts[p.Name] = newAccount(s, p)
	}
	return l
}

func newAccount(s *cluster.Snapshot, p *cluster.Pool) *account {
	a := &account{pool: p, known: make(map[command.Reason]share)}
	a.ward, a.leaving = ward(s, s.ClaimsOf(p.Name))
	for _, c := range s.ClaimsOf(p.Name) {
		if !c.Is(cluster.Initialized) || c.Is(cluster.InstanceTerminating) {
			continue
		}
		a.total++
		n := s.NodeOf(c.Name)
		if n == nil || !n.Ready || hurried(c) || c.Move != "" || !c.Deleting.IsZero() || !n.Deleting.IsZero() || tainted(n) || underWay(s, c, n) {
			a.out++
		}
	}
	return a
}

// share finds the least that an active budget allows for the reason.
func (a *account) share(reason command.Reason) share {
	if known, ok := a.known[reason]; ok {
		return known
	}
	total := a.totalFor(reason)
	out := share{total, -1}
	for i := range a.pool.Budgets {
		b := &a.pool.Budgets[i]
		if allows := min(b.Allows(total), total); b.Covers(string(reason)) && (allows < out.allowed || out.by < 0 && allows == out.allowed) {
			out = share{allows, i}
		}
	}
	a.known[reason] = out
	return out
}

// totalFor is how many nodes percentages are of.
func (a *account) totalFor(reason command.Reason) int {
	if reason == command.Unhealthy {
		return a.ward
	}
	return a.total
}

// Left is how many more of the pool's nodes may be disrupted for the reason; below zero if more are out than may be.
func (l *Ledger) Left(pool string, reason command.Reason) int {
	a := l.accounts[pool]
	if a == nil {
		return 0
	}
	if reason == command.Unhealthy {
		return a.share(reason).allowed - a.leaving
	}
	return a.share(reason).allowed - a.out
}

// Take takes n nodes of the pool for the reason if there are so many left; else it takes none.
func (l *Ledger) Take(pool string, reason command.Reason, n int) bool {
	if n > l.Left(pool, reason) {
		return false
	}
	l.Give(pool, -n)
	return true
}

// TakeAll takes all candidates of a move, each from its pool, or none.
func (l *Ledger) TakeAll(candidates []Candidate, reason command.Reason) bool {
	count := make(map[string]int)
	for i := range candidates {
		count[candidates[i].Claim.Pool]++
	}
	for pool, n := range count {
		if n > l.Left(pool, reason) {
			return false
		}
	}
	for pool, n := range count {
		l.Take(pool, reason, n)
	}
	return true
}

// Give returns nodes that are at work again.
func (l *Ledger) Give(pool string, n int) {
	if a := l.accounts[pool]; a != nil {
		a.out -= n
		a.leaving -= n
	}
}

// Allowance is how many of the pool's nodes may be out at the same time for the reason, the least that an active budget
// allows, and how many are out already, whoever took them. Repairs are counted in their own way: see Repair.
func Allowance(s *cluster.Snapshot, p *cluster.Pool, reason string) (allowed, out int) {
	a := newAccount(s, p)
	if reason == string(command.Unhealthy) {
		return a.share(command.Unhealthy).allowed, a.leaving
	}
	return a.share(command.Reason(reason)).allowed, a.out
}
