package disrupt

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/reason"
)

// BudgetsCondition is what a pool's status says about its disruption budgets: for each reason how many nodes may be
// disrupted at the same time, which budget says so, and when that changes.
//
// It is written together with the number of nodes that the pool's status tells, and is about that number, so that both
// change at once. Budgets are really of the nodes that have come up and are not being ended, which is the same but for
// moments; and how many are being disrupted just now is not told: it would be written anew with each.
//
// It is False while a budget that is zero, or can't be read, keeps some reason from doing anything at all.
func BudgetsCondition(p *cluster.Pool, nodes int64) command.Condition {
	b := &poolBudget{pool: p, total: int(nodes), repairTotal: int(nodes), limits: make(map[command.Reason]budgetLimit)}
	var lines []allowance
	var groups []string
	blocked, reasons := 0, BudgetReasons()
	for _, of := range reasons {
		line := b.allowanceFor(of)
		if line.forbidden {
			blocked++
		}
		if group := slices.Index(lines, line); group >= 0 {
			groups[group] += ", " + string(of)
			continue
		}
		lines, groups = append(lines, line), append(groups, string(of))
	}
	parts := make([]reason.Text, len(lines))
	for i := range lines {
		parts[i] = reason.Of(reason.About, groups[i], b.describe(lines[i]))
	}
	c := command.Condition{Type: cluster.BudgetsAllow, Status: cluster.True, Reason: "BudgetsAllow",
		Text: reason.Of(reason.BudgetsTogether, b.total, reason.Join(parts...))}
	switch blocked {
	case 0:
	case len(reasons):
		c.Status, c.Reason = cluster.False, "AllReasonsBlocked"
	default:
		c.Status, c.Reason = cluster.False, "SomeReasonsBlocked"
	}
	return c
}

// allowance is what the budgets allow for a reason: the share that the one of them gives that binds, and the budget
// whose window changes that first, or -1. none is true if one of them forbids it altogether.
type allowance struct {
	limit      budgetLimit
	nextChange int
	forbidden  bool
}

func (pb *poolBudget) allowanceFor(why command.Reason) allowance {
	sh := pb.limitFor(why)
	out := allowance{limit: sh, nextChange: pb.nextChange(why, sh)}
	if sh.budget >= 0 {
		b := &pb.pool.Budgets[sh.budget]
		out.forbidden = b.Broken || b.Nodes <= 0
	}
	return out
}

// describe tells an allowance.
func (pb *poolBudget) describe(l allowance) reason.Text {
	text := reason.Of(reason.NoBudgetHolds)
	switch {
	case l.limit.budget < 0:
	case l.forbidden:
		text = reason.Of(reason.BudgetForbids, pb.describeBudget(l.limit.budget))
	default:
		text = reason.Of(reason.BudgetAllows, l.limit.allowed, pb.describeBudget(l.limit.budget))
	}
	if l.nextChange < 0 {
		return text
	}
	at := pb.pool.Budgets[l.nextChange].ChangesAt
	if l.nextChange == l.limit.budget {
		return reason.Of(reason.AllowedUntil, text, at)
	}
	return reason.Of(reason.AllowedFrom, text, at, pb.describeBudget(l.nextChange))
}

// describeBudget tells a budget by its place in the pool's spec and what it allows.
func (pb *poolBudget) describeBudget(i int) reason.Text {
	b := &pb.pool.Budgets[i]
	switch {
	case b.Broken:
		return reason.Of(reason.BudgetBroken, i)
	case b.Percent:
		return reason.Of(reason.BudgetOfPercent, i, b.Nodes)
	}
	return reason.Of(reason.BudgetOfNodes, i, b.Nodes)
}

// nextChange is the budget by which the answer changes first by itself, or -1: the window of the budget that binds
// closes, or that of one opens which would bind.
func (pb *poolBudget) nextChange(why command.Reason, now budgetLimit) int {
	first := -1
	for i := range pb.pool.Budgets {
		b := pb.pool.Budgets[i]
		if b.Broken || b.ChangesAt.IsZero() {
			continue
		}
		if i != now.budget {
			if b.Active || b.Allows(pb.totalFor(why)) >= now.allowed {
				continue
			}
			b.Active = true
			if !b.Covers(string(why)) {
				continue
			}
		}
		if first < 0 || b.ChangesAt.Before(pb.pool.Budgets[first].ChangesAt) {
			first = i
		}
	}
	return first
}

// AllowedNow says what a pool's budgets allow for a reason at this moment, which of them says so, until when, and how
// many nodes are out already.
func AllowedNow(s *cluster.Snapshot, p *cluster.Pool, of command.Reason) reason.Text {
	b := newPoolBudget(s, p)
	return reason.Of(reason.AllowedNow, b.describe(b.allowanceFor(of)), b.total, b.unavailable)
}
