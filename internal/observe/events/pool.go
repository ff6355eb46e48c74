package events

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/render"
)

// doubtfulLabel is the reason of an event about a label that is allowed and probably mistyped.
const doubtfulLabel = "DoubtfulLabel"

// tellPool tells what changed in the conditions of a pool: what is wrong with it, or that it is ready. Ready only sums
// up the others, so it is a cause of its own only if none of them is False.
func (e *Teller) tellPool(s *cluster.Snapshot, c command.SetPool) {
	p := s.Pool(c.Pool)
	if p == nil {
		return
	}
	explained := slices.ContainsFunc(c.Status.Conditions, func(cond command.Condition) bool {
		return cond.Type != cluster.Ready && cond.Type != cluster.BudgetsAllow && cond.Status == cluster.False
	})
	for _, cond := range c.Status.Conditions {
		if !changed(cond, p.Status.Conditions) {
			continue
		}
		switch {
		case cond.Type == cluster.BudgetsAllow:
			e.tellBudgets(p, cond)
		case cond.Status == cluster.False && (cond.Type != cluster.Ready || !explained):
			e.tellCondition(p, cond, warning, cond.Type+" is False")
		case cond.Status == cluster.True && cond.Type == cluster.CanLaunch && !cond.Text.IsZero():
			cond.Reason = doubtfulLabel
			e.tellCondition(p, cond, warning, "")
		case cond.Status == cluster.True && cond.Type == cluster.Ready:
			e.tellCondition(p, cond, corev1.EventTypeNormal, "NodePool is ready")
		}
	}
}

// tellCondition writes the event of a condition. Its generation is part of the news: the same mistake in a new edit of
// the pool is told again.
func (e *rationed) tellCondition(p *cluster.Pool, cond command.Condition, kind, otherwise string) {
	note, reason := render.Text(cond.Text), cond.Reason
	if note == "" {
		note = otherwise
	}
	if reason == "" {
		reason = cond.Type
	}
	if e.recentEvents.Learn(p.UID, e.recentEvents.Hash(fmt.Sprint(cond.Generation, cond.Type, reason, note))) {
		e.write(poolRef(p.Name, p.UID), kind, reason, "Checking", note)
	}
}

// tellBudgets tells that a pool's budgets let no node go for some reason. How many nodes the pool has is no news.
func (e *rationed) tellBudgets(p *cluster.Pool, cond command.Condition) {
	text := render.Text(cond.Text)
	if cond.Status == cluster.False && e.LongEvents.Learn(p.UID, e.LongEvents.Hash(cond.Reason+withoutFigures(text))) {
		e.write(poolRef(p.Name, p.UID), normal, disruptionBlocked, "Checking", "Disruption budgets hold nodes back: "+
			text)
	}
}

func changed(cond command.Condition, before []cluster.Condition) bool {
	return !slices.ContainsFunc(before, func(b cluster.Condition) bool {
		return b.Type == cond.Type && render.Says(b, cond)
	})
}
