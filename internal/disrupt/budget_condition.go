package disrupt

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// BudgetsCondition is what a pool's status says about its disruption budgets: for each reason how many nodes may be
// disrupted at the same time, which budget says so, and when that changes.
//
// It is written together with the number of nodes that the pool's status tells, and is about that number, so that both
// change at once. Budgets are really of the nodes that have come up and are not being ended, which is the same but for
// moments; and how many are being disrupted just now is not told: it would be written anew with each.
//
// It is False while a budget that is zero, or can't be read, keeps some reason from doing anything at all.
func BudgetsCondition(p *cluster.Pool, nodes int64) cluster.Condition {
	b := &poolBudget{pool: p, total: int(nodes), repairTotal: int(nodes), limits: make(map[command.Reason]budgetLimit)}
	var lines []allowance
	var groups []string
	blocked, reasons := 0, BudgetReasons()
	for _, reason := range reasons {
		line := b.allowanceFor(reason)
		if line.forbidden {
			blocked++
		}
		if group := slices.Index(lines, line); group >= 0 {
			groups[group] += ", " + string(reason)
			continue
		}
		lines, groups = append(lines, line), append(groups, string(reason))
	}
	parts := make([]string, len(lines))
	for i := range lines {
		parts[i] = groups[i] + ": " + b.describe(lines[i])
	}
	c := cluster.Condition{Type: cluster.BudgetsAllow, Status: cluster.True, Reason: "BudgetsAllow",
		Message: "of " + strconv.Itoa(b.total) + " nodes at the same time: " + strings.Join(parts, "; ")}
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

func (pb *poolBudget) allowanceFor(reason command.Reason) allowance {
	sh := pb.limitFor(reason)
	out := allowance{limit: sh, nextChange: pb.nextChange(reason, sh)}
	if sh.budget >= 0 {
		b := &pb.pool.Budgets[sh.budget]
		out.forbidden = b.Broken || b.Nodes <= 0
	}
	return out
}

// describe puts an allowance into words.
func (pb *poolBudget) describe(l allowance) string {
	text := "all, no budget holds"
	switch {
	case l.limit.budget < 0:
	case l.forbidden:
		text = "none (" + pb.describeBudget(l.limit.budget) + ")"
	default:
		text = "up to " + strconv.Itoa(l.limit.allowed) + " (" + pb.describeBudget(l.limit.budget) + ")"
	}
	if l.nextChange < 0 {
		return text
	}
	at := pb.pool.Budgets[l.nextChange].ChangesAt.UTC().Format(time.RFC3339)
	if l.nextChange == l.limit.budget {
		return text + " until " + at
	}
	return text + ", from " + at + " on " + pb.describeBudget(l.nextChange)
}

// describeBudget tells a budget by its place in the pool's spec and what it allows.
func (pb *poolBudget) describeBudget(i int) string {
	b := &pb.pool.Budgets[i]
	text := "budgets[" + strconv.Itoa(i) + "]"
	switch {
	case b.Broken:
		return text + " can't be read"
	case b.Percent:
		return text + ", " + strconv.Itoa(b.Nodes) + "%"
	}
	return text + ", " + strconv.Itoa(b.Nodes)
}

// nextChange is the budget by which the answer changes first by itself, or -1: the window of the budget that binds
// closes, or that of one opens which would bind.
func (pb *poolBudget) nextChange(reason command.Reason, now budgetLimit) int {
	first := -1
	for i := range pb.pool.Budgets {
		b := pb.pool.Budgets[i]
		if b.Broken || b.ChangesAt.IsZero() {
			continue
		}
		if i != now.budget {
			if b.Active || b.Allows(pb.totalFor(reason)) >= now.allowed {
				continue
			}
			b.Active = true
			if !b.Covers(string(reason)) {
				continue
			}
		}
		if first < 0 || b.ChangesAt.Before(pb.pool.Budgets[first].ChangesAt) {
			first = i
		}
	}
	return first
}
