package static

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// KeepReplicas keeps the number of nodes that static pools ask for. Pods have no say in it, and neither have budgets:
// whoever lowers the number wants fewer nodes.
func KeepReplicas(s *cluster.Snapshot, settings schedule.Settings) disrupt.Result {
	var result disrupt.Result
	for _, p := range s.Pools {
		if !p.Static || p.Deleting {
			continue // the claims of a pool that is deleted go with it
		}
		wakeForSlots(&result, s, p)
		var staying []*cluster.Claim
		for _, c := range s.ClaimsOf(p.Name) {
			if c.Deleting.IsZero() && !s.InFlight[command.DeleteClaim{Claim: c.Name}.Key()] && countsForReplicas(s, c) {
				staying = append(staying, c)
			}
		}
		switch have := int64(len(staying)); {
		case have < p.Replicas:
			growPool(s, p, settings, int(p.Replicas-have), &result)
		case have > p.Replicas:
			shrinkPool(s, staying, int(have-p.Replicas), p, &result)
		}
	}
	return result
}

// growPool asks for n more claims.
func growPool(s *cluster.Snapshot, p *cluster.Pool, settings schedule.Settings, n int, result *disrupt.Result) {
	blocked := func(why reason.Text) {
		note := p.Note("StaticCapacityBlocked", reason.Of(reason.NodesMissing, n, p.Replicas, why))
		note.Warning = true
		result.Notes = append(result.Notes, note)
	}
	switch {
	case len(p.Problems) > 0:
		blocked(cluster.ProblemsText(p.Problems[:1]))
		return
	case !p.NodeClass.Ready:
		blocked(reason.Said(p.NodeClass.Message))
		return
	case p.Catalog == nil && p.CatalogError != "":
		blocked(reason.Said(p.CatalogError))
		return
	case p.Catalog == nil:
		return // the cloud has not said yet what it sells
	case p.InBackoff:
		blocked(reason.Of(reason.PoolRefused, p.BackoffCause))
		result.WakeAt = cluster.Earlier(result.WakeAt, p.BackoffUntil)
		return
	}
	slots := SlotsOf(s, p)
	noteRestingSlots(result, p, n, slots.restingSlots)
	n -= len(slots.restingSlots) + countLeaving(s, p)
	if p.Probing { // one finds out
		if market.HasUnlaunchedClaim(s, p) {
			return
		}
		n = min(n, 1)
	}
	if n <= 0 {
		return
	}
	bins, why := schedule.EmptyBins(s, p, settings, n)
	for i, at := range slots.takeSlots(len(bins)) {
		b := &bins[i]
		result.Commands = append(result.Commands, command.CreateClaim{
			Name: at.Name, Slot: at.Slot, Pool: p.Name, PoolUID: p.UID, Generation: p.Generation, Template: p.Template,
			Labels:       b.Labels,
			Requirements: b.Requirements, Requests: b.Requests, Reason: command.Provisioned, Relaxed: b.Relaxed,
			Price: b.Price, Estimated: b.Estimated,
		})
	}
	if n -= len(bins); n > 0 {
		blocked(why)
	}
}

// shrinkPool lets n claims go: those that are not running yet, then empty nodes, then those that disturb the fewest,
// then the youngest.
func shrinkPool(s *cluster.Snapshot, claims []*cluster.Claim, n int, p *cluster.Pool, result *disrupt.Result) {
	there := slices.DeleteFunc(slices.Clone(claims), func(c *cluster.Claim) bool { return c.Expected })
	n -= len(claims) - len(there) // they go once they are there, before any that runs
	claims = there
	cost := make(map[string]int, len(claims))
	for _, c := range claims {
		cost[c.Name] = removalCost(s, c)
	}
	slices.SortFunc(claims, func(a, b *cluster.Claim) int {
		return cmp.Or(cmp.Compare(cost[a.Name], cost[b.Name]), b.Created.Compare(a.Created),
			strings.Compare(a.Name, b.Name))
	})
	for _, c := range claims[:max(0, min(n, len(claims)))] {
		d := command.DeleteClaim{Claim: c.Name, UID: c.UID, Reason: command.ScaledDown,
			Text: reason.Of(reason.PoolAsksFor, p.Name, p.Replicas)}
		if node := s.NodeOf(c.Name); node != nil {
			d.Node = node.Name
		}
		result.Commands = append(result.Commands, d)
	}
}

// removalCost is how much the end of a claim would disturb: nothing before it is launched, little while nobody runs
// there, then the more the more pods do; what people have asked not to disturb comes last.
func removalCost(s *cluster.Snapshot, c *cluster.Claim) int {
	n := s.NodeOf(c.Name)
	switch {
	case !c.Is(cluster.Launched):
		return 0
	case n == nil:
		return 1
	case n.DoNotDisrupt || c.DoNotDisrupt:
		return math.MaxInt
	}
	cost := 2
	for _, p := range s.PodsOn(n.Name) {
		if p.DoNotDisrupt {
			return math.MaxInt
		}
		if p.IsWorkload() {
			cost++
		}
	}
	return cost
}

// countsForReplicas reports whether a claim counts for the number of nodes that a static pool asks for: one that was
// made to take the place of another does not until that goes.
func countsForReplicas(s *cluster.Snapshot, c *cluster.Claim) bool {
	if c.Replaces == "" {
		return true
	}
	for _, m := range s.MoveClaims(c.Replaces) {
		if m.Deleting.IsZero() && !s.InFlight[command.DeleteClaim{Claim: m.Name}.Key()] {
			return false
		}
	}
	return true
}
