package disrupt

import (
	"fmt"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// BudgetsAllow is what a pool's status says about its disruption budgets: for each reason how many nodes may be disrupted at the
// same time, which budget says so, and when that changes.
//
// It is written together with the number of nodes that the pool's status tells, and is about that number, so that both change at
// once. Budgets are really of the nodes that have come up and are not being ended, which is the same but for moments; and how many
// are being disrupted just now is not told: it would be written anew with each.
//
// It is False while a budget that is zero, or can't be read, keeps some reason from doing anything at all.
func BudgetsAllow(p *cluster.Pool, nodes int64) cluster.Condition {
	a := &account{pool: p, total: int(nodes), ward: int(nodes), known: make(map[command.Reason]share)}
	var lines []string
	var groups [][]string
	blocked, reasons := 0, Budgeted()
	for _, reason := range reasons {
		line, none := a.tell(reason)
		if none {
			blocked++
		}
		group := 0
		for group < len(lines) && lines[group] != line {
			group++
		}
		if group == len(lines) {
			lines, groups = append(lines, line), append(groups, nil)
		}
		groups[group] = append(groups[group], string(reason))
	}
	parts := make([]string, len(lines))
	for i := range lines {
		parts[i] = strings.Join(groups[i], ", ") + ": " + lines[i]
	}
	c := cluster.Condition{Type: cluster.BudgetsAllow, Status: cluster.True, Reason: "BudgetsAllow",
		Message: fmt.Sprintf("of %d nodes at the same time: %s", a.total, strings.Join(parts, "; "))}
	switch blocked {
	case 0:
	case len(reasons):
		c.Status, c.Reason = cluster.False, "AllReasonsBlocked"
	default:
		c.Status, c.Reason = cluster.False, "SomeReasonsBlocked"
	}
	return c
}

// tell says what the budgets allow for a reason; none is true if one of them forbids it altogether.
func (a *account) tell(reason command.Reason) (line string, none bool) {
	sh := a.share(reason)
	if sh.by < 0 {
		return "all, no budget holds" + a.next(reason, sh), false
	}
	b := &a.pool.Budgets[sh.by]
	none = b.Broken || b.Nodes <= 0
	many := fmt.Sprintf("up to %d", sh.allowed)
	if none {
		many = "none"
	}
	return fmt.Sprintf("%s (%s)%s", many, a.name(sh.by), a.next(reason, sh)), none
}

// name tells a budget by its place in the pool's spec and what it allows.
func (a *account) name(i int) string {
	b := &a.pool.Budgets[i]
	switch {
	case b.Broken:
		return fmt.Sprintf("budgets[%d] can't be read", i)
	case b.Percent:
		return fmt.Sprintf("budgets[%d], %d%%", i, b.Nodes)
	}
	return fmt.Sprintf("budgets[%d], %d", i, b.Nodes)
}

// next says when the answer changes by itself: the window of the budget that binds closes, or that of one opens which would
// bind.
func (a *account) next(reason command.Reason, now share) string {
	at, text := time.Time{}, ""
	for i := range a.pool.Budgets {
		b := a.pool.Budgets[i]
		if b.Broken || b.Changes.IsZero() {
			continue
		}
		say := " until %s"
		if i != now.by {
			if b.Active || b.Allows(a.totalFor(reason)) >= now.allowed {
				continue
			}
			b.Active = true
			if !b.Covers(string(reason)) {
				continue
			}
			say = ", from %s on " + strings.ReplaceAll(a.name(i), "%", "%%")
		}
		if at.IsZero() || b.Changes.Before(at) {
			at, text = b.Changes, fmt.Sprintf(say, b.Changes.UTC().Format(time.RFC3339))
		}
	}
	return text
}
