package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// ticks are when windows of a budget open: first so long after the full hour, then at intervals that half an hour is a
// multiple of, so that they are the same on all clocks of the world. They are drawn as numbers and written as a
// schedule: the judge has to trust nobody to read it.
type ticks struct{ first, every time.Duration }

func (t ticks) String() string {
	return fmt.Sprintf("%d-59/%d * * * *", t.first/time.Minute, t.every/time.Minute)
}

// open reports whether a window of the length is open.
func (t ticks) open(now time.Time, length time.Duration) bool {
	since := (now.Sub(now.Truncate(time.Hour)) - t.first + t.every) % t.every
	return since < length
}

// drawBudgets draws how many nodes may go at the same time. Some pools say more than a number: for some reasons only,
// or at some times.
func (s *Sim) drawBudgets() []v1.Budget {
	c := s.clock
	out := []v1.Budget{{Nodes: pick(c, []string{"1", "2", "50%", "100%", "10%"})}}
	if !c.chance(0.4) {
		return out
	}
	for range c.number(1, 3) {
		b := v1.Budget{Nodes: pick(c, []string{"0", "0", "1", "30%"})}
		if c.chance(0.7) {
			b.Reasons = pick(c, [][]v1.DisruptionReason{{v1.DisruptionReasonEmpty}, {v1.DisruptionReasonUnderutilized},
				{v1.DisruptionReasonDrifted},
				{v1.DisruptionReasonUnhealthy}, {v1.DisruptionReasonEmpty, v1.DisruptionReasonUnderutilized},
				{v1.DisruptionReasonDrifted, v1.DisruptionReasonUnhealthy}})
		}
		if c.chance(0.6) {
			s.drawWindow(&b)
		}
		out = append(out, b)
	}
	if c.chance(0.3) {
		out[0].Nodes = "100%"
	}
	return out
}

// drawWindow draws when a budget holds: windows open and close while things go wrong, and some times after that.
func (s *Sim) drawWindow(b *v1.Budget) {
	c := s.clock
	t := ticks{every: pick(c, []time.Duration{10 * time.Minute, 15 * time.Minute, 30 * time.Minute})}
	t.first = time.Duration(c.number(-3, 4)) * time.Minute
	if t.first < 0 { // one has opened before all begins
		t.first += t.every
	}
	text := pick(c, []string{"", "", "CRON_TZ=Europe/Berlin ", "CRON_TZ=Asia/Kolkata "}) + t.String()
	b.Schedule, b.Duration = &text, &metav1.Duration{Duration: time.Duration(c.number(1, 5)) * time.Minute}
	s.ticks[text] = t
}

// liftBudgets takes away what would keep nodes from going for ever.
func liftBudgets(p *v1.NodePool) {
	p.Spec.Disruption.Budgets = slices.DeleteFunc(p.Spec.Disruption.Budgets, func(b v1.Budget) bool {
		return b.Nodes == "0"
	})
}

// holds reports whether a budget has a say about the reason at a time.
func (s *Sim) holds(b *v1.Budget, reason command.Reason, at time.Time) bool {
	if b.Schedule != nil && !s.ticks[*b.Schedule].open(at, b.Duration.Duration) {
		return false
	}
	return len(b.Reasons) == 0 || slices.Contains(b.Reasons, v1.DisruptionReason(reason))
}

// comesAndGoes reports whether a pool has budgets for the reason that hold at some times only.
func comesAndGoes(p *v1.NodePool, reason command.Reason) bool {
	return slices.ContainsFunc(p.Spec.Disruption.Budgets, func(b v1.Budget) bool {
		return b.Schedule != nil && (len(b.Reasons) == 0 || slices.Contains(b.Reasons, v1.DisruptionReason(reason)))
	})
}

// planFor is how long before a command is begun its plan may have been made: a window that opens in between is not
// noticed.
const planFor = 10 * time.Second

// disrupting: a claim is ended. Not in a dry run, and within its pool's budgets, if somebody chose to and nothing
// happened to it. What a stale replica has ended so counts as soon as its successor can see it.
func (j *judge) disrupting(r *replica, claim *v1.NodeClaim) {
	c, ok := r.current.command.(command.DeleteClaim)
	if !ok || claim.DeletionTimestamp != nil {
		return
	}
	pool, ok := find[*v1.NodePool](j.sim.store, pools, claim.Labels[v1.NodePoolLabelKey])
	switch {
	case c.Reason == command.Unhealthy && ok:
		j.repaired[claim.UID], j.turns[claim.UID] = !r.stale, r.current.turn
		j.heeds(r, claim, pool, c.Reason)
		j.spares(r, claim, pool, c.Reason)
		return
	case !j.chosen(claim, c.Reason):
		return
	}
	initialized := meta.IsStatusConditionTrue(claim.Status.Conditions, v1.ConditionTypeInitialized)
	j.voluntary[claim.UID], j.turns[claim.UID] = initialized && !r.stale, r.current.turn
	if !initialized {
		return // budgets are about nodes that take pods; one whose node is unused is none
	}
	if ok {
		j.heeds(r, claim, pool, c.Reason)
	}
	j.leaving(r, claim, c.Reason)
	if ok {
		j.spares(r, claim, pool, c.Reason)
	}
}

// chosen reports whether a node is ended because somebody chose to, and not because something happened to it or its
// time is up.
func (j *judge) chosen(claim *v1.NodeClaim, reason command.Reason) bool {
	switch reason {
	case command.Empty, command.Underutilized, command.Drifted:
		return true
	case command.Expired:
		if disrupt.MoveReason(claim.Annotations[cluster.MoveAnnotation]) != command.Expired {
			return false // it goes in no move, or in one for another reason, and its time has come
		}
		life := claim.Spec.ExpireAfter.Duration
		return life == nil || j.sim.clock.now.Before(claim.CreationTimestamp.Add(*life))
	}
	return false
}

// heeds: nothing is done for which people only want to be told.
func (j *judge) heeds(r *replica, claim *v1.NodeClaim, pool *v1.NodePool, reason command.Reason) {
	const promise = "a dry run does nothing"
	if j.asks(promise); pool.Annotations[dryRunAnnotation] == "true" {
		j.charge(promise, []excuseReason{is("the pool was changed just now", !j.sim.knows(r, pool)),
			is(cutOff, r.stale)},
			"%s ends %s of pool %s for the reason %s", r, claim.Name, pool.Name, reason)
	}
}

// spares: of all budgets that hold for the reason, each has a node to give.
func (j *judge) spares(r *replica, claim *v1.NodeClaim, pool *v1.NodePool, reason command.Reason) {
	s := j.sim
	total, out := j.countNodes(r, pool, reason, claim)
	for i := range pool.Spec.Disruption.Budgets {
		b := &pool.Spec.Disruption.Budgets[i]
		if !s.holds(b, reason, s.clock.now) {
			continue
		}
		j.asks(budgetsHold)
		if len(b.Reasons) > 0 {
			s.seen["departure by a budget with reasons"]++
		}
		if b.Schedule != nil {
			s.seen["departure by a budget with a window"]++
		}
		if allowed := allows(b.Nodes, total); out > allowed {
			j.charge(budgetsHold, []excuseReason{
				is("its window has opened just now", !s.holds(b, reason, r.current.began.Add(-planFor))),
				is(cutOff, r.stale),
			}, "pool %s with %d nodes allows %s (budget %d, for %v), and with %s, which is %s, it loses %d",
				pool.Name, total, b.Nodes, i, b.Reasons, claim.Name, reason, out)
		}
	}
}

// countNodes counts the nodes of a pool that its budgets are about and, of these, those that are out because the
// program has ended them, and the one that it is ending now. They count in the order in which they were decided on: of
// several that one plan lets go each counts against those that come after it, whichever the API server hears of first.
func (j *judge) countNodes(r *replica, pool *v1.NodePool, reason command.Reason, now *v1.NodeClaim) (total, out int) {
	up := v1.ConditionTypeInitialized
	if reason == command.Unhealthy { // a node may fall sick before it is up
		up = v1.ConditionTypeRegistered
	}
	for _, c := range list[*v1.NodeClaim](j.sim.store, claims) {
		if c.Labels[v1.NodePoolLabelKey] != pool.Name || meta.IsStatusConditionTrue(c.Status.Conditions,
			v1.ConditionTypeInstanceTerminating) ||
			!meta.IsStatusConditionTrue(c.Status.Conditions, up) {
			continue
		}
		total++
		if c.UID == now.UID || j.decidedBefore(r, c) {
			out++
		}
	}
	return total, out
}

// decidedBefore reports whether it was decided to end the claim before the replica decided on what it is doing now.
// What it began before that may still be on its way.
func (j *judge) decidedBefore(r *replica, claim *v1.NodeClaim) bool {
	if byLeader, ended := j.voluntary[claim.UID]; byLeader || j.repaired[claim.UID] {
		return j.turns[claim.UID] < r.current.turn
	} else if ended {
		return r.current.leaving[claim.UID]
	}
	return claim.DeletionTimestamp == nil && slices.ContainsFunc(r.acts, func(a *act) bool {
		c, ok := a.command.(command.DeleteClaim)
		return ok && c.UID == string(claim.UID) && a.turn < r.current.turn && (c.Reason == command.Unhealthy ||
			j.chosen(claim, c.Reason))
	})
}

func allows(text string, total int) int {
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	if percent {
		return (total*n + 99) / 100
	}
	return n
}
