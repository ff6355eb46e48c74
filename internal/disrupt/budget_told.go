package disrupt

import (
	"slices"
	"strconv"
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
	var lines []allowance
	var groups []string
	blocked, reasons := 0, Budgeted()
	for _, reason := range reasons {
		line := a.allows(reason)
		if line.none {
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
		parts[i] = groups[i] + ": " + a.tell(lines[i])
	}
	c := cluster.Condition{Type: cluster.BudgetsAllow, Status: cluster.True, Reason: "BudgetsAllow",
		Message: "of " + strconv.Itoa(a.total) + " nodes at the same time: " + strings.Join(parts, "; ")}
	switch blocked {
	case 0:
	case len(reasons):
		c.Status, c.Reason = cluster.False, "AllReasonsBlocked"
	default:
		c.Status, c.Reason = cluster.False, "SomeReasonsBlocked"
	}
	return c
}

// allowance is what the budgets allow for a reason: the share that the one of them gives that binds, and the budget whose window
// changes that first, or -1. none is true if one of them forbids it altogether.
type allowance struct {
	share share
	next  int
	none  bool
}

func (a *account) allows(reason command.Reason) allowance {
	sh := a.share(reason)
	out := allowance{share: sh, next: a.next(reason, sh)}
	if sh.by >= 0 {
		b := &a.pool.Budgets[sh.by]
		out.none = b.Broken || b.Nodes <= 0
	}
	return out
}

// tell puts an allowance into words.
func (a *account) tell(l allowance) string {
	text := "all, no budget holds"
	switch {
	case l.share.by < 0:
	case l.none:
		text = "none (" + a.name(l.share.by) + ")"
	default:
		text = "up to " + strconv.Itoa(l.share.allowed) + " (" + a.name(l.share.by) + ")"
	}
	if l.next < 0 {
		return text
	}
	at := a.pool.Budgets[l.next].Changes.UTC().Format(time.RFC3339)
	if l.next == l.share.by {
		return text + " until " + at
	}
	return text + ", from " + at + " on " + a.name(l.next)
}

// name tells a budget by its place in the pool's spec and what it allows.
func (a *account) name(i int) string {
	b := &a.pool.Budgets[i]
	text := "budgets[" + strconv.Itoa(i) + "]"
	switch {
	case b.Broken:
		return text + " can't be read"
	case b.Percent:
		return text + ", " + strconv.Itoa(b.Nodes) + "%"
	}
	return text + ", " + strconv.Itoa(b.Nodes)
}

// next is the budget by which the answer changes first by itself, or -1: the window of the budget that binds closes, or that of one
// opens which would bind.
func (a *account) next(reason command.Reason, now share) int {
	first := -1
	for i := range a.pool.Budgets {
		b := a.pool.Budgets[i]
		if b.Broken || b.Changes.IsZero() {
			continue
		}
		if i != now.by {
			if b.Active || b.Allows(a.totalFor(reason)) >= now.allowed {
				continue
			}
			b.Active = true
			if !b.Covers(string(reason)) {
				continue
			}
		}
		if first < 0 || b.Changes.Before(a.pool.Budgets[first].Changes) {
			first = i
		}
	}
	return first
}
