package cluster

import (
	"slices"
	"strings"
)

// Guard is a PodDisruptionBudget: how many of the pods that it selects may be made to leave now.
type Guard struct {
	Namespace, Name, UID string
	Selector             Selector
	// Allowed is how many evictions the API server would grant now; zero while its count is out of date.
	Allowed int
	// Healthy and Wanted are how many of its pods are ready, and how many must be; Expected is how many there should be.
	Healthy, Wanted, Expected int
	// FreesUnhealthy lets pods go that are not ready, whatever the count (unhealthyPodEvictionPolicy AlwaysAllow).
	FreesUnhealthy bool
}

// ID names the budget for people.
func (g *Guard) ID() string { return g.Namespace + "/" + g.Name }

// Selects reports whether the budget counts the pod.
func (g *Guard) Selects(p *Pod) bool {
	return p.Namespace == g.Namespace && g.Selector.Selects(p.Namespace, nil, p.Labels)
}

// Spares reports whether the pod may leave without using up the budget: it is not ready, and the budget either does not
// mind or has enough pods that are.
func (g *Guard) Spares(p *Pod) bool {
	return !p.Ready && (g.FreesUnhealthy || g.Wanted > 0 && g.Healthy >= g.Wanted)
}

// Never reports whether the budget lets no pod go, however healthy they are: it wants all that there are.
func (g *Guard) Never() bool { return g.Wanted > 0 && g.Wanted >= g.Expected }

// GuardsOf lists the budgets that count the pod.
func (s *Snapshot) GuardsOf(p *Pod) []*Guard {
	var out []*Guard
	for _, g := range s.view.guards[p.Namespace] {
		if g.Selects(p) {
			out = append(out, g)
		}
	}
	return out
}

// Moves reports whether the pod will need another place when its node is drained. One that a disruption budget holds for good stays:
// a node made for it would wait in vain. No budget is asked about one that ends with its node. Where a sick node goes all its pods do. One whose class is in
// quarantine gets no place before it is out.
func (s *Snapshot) Moves(p *Pod) bool {
	if s.Quarantined(p) {
		return false
	}
	if !p.Reschedulable() || s.expels(p.Node) {
		return p.Reschedulable()
	}
	return p.Moves() && (p.StaysThroughDrain || !slices.ContainsFunc(s.view.guards[p.Namespace], func(g *Guard) bool { return g.Never() && g.Selects(p) }))
}

// expels reports whether the node is on its way out for its health and has a time by which all its pods have to leave, whatever they
// say. Places were made for them before.
func (s *Snapshot) expels(node string) bool {
	c := s.view.claimOf[node]
	if c == nil || c.Deleting.IsZero() || !strings.HasPrefix(c.Move, repairPrefix) {
		return false
	}
	_, has := c.End()
	return has
}

// repairPrefix begins the names of moves that replace a sick node.
const repairPrefix = "unhealthy-"
