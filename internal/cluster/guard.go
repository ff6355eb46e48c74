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

// Never reports whether the budget wants all the pods that there should be: it lets none of them go, however healthy they are.
func (g *Guard) Never() bool { return g.Wanted > 0 && g.Wanted >= g.Expected }

// Holds reports whether the pods of the budget wait for the end of their node where they are: it wants all that there should be, and there
// are no more than these. While there are more, as in the middle of a rollout, some may go, and nobody can tell which.
func (g *Guard) Holds() bool { return g.Never() && g.Allowed <= 0 }

// GuardsOf lists the budgets that count the pod.
func (s *Snapshot) GuardsOf(p *Pod) []*Guard {
	here := s.view.guards[p.Namespace]
	if here == nil {
		return nil
	}
	var out []*Guard
	for _, at := range here.candidates(p.Labels) {
		if g := here.all[at]; g.Selects(p) {
			out = append(out, g)
		}
	}
	return out
}

// held reports whether a budget that counts the pod holds its pods.
func (s *Snapshot) held(p *Pod) bool {
	here := s.view.guards[p.Namespace]
	return here != nil && here.holds && slices.ContainsFunc(s.GuardsOf(p), (*Guard).Holds)
}

// namespaceGuards are the budgets of a namespace, by a label that their pods must have: with thousands of budgets and pods, each pod is
// compared with the few that can be about it.
type namespaceGuards struct {
	all     []*Guard
	byLabel map[Label][]int
	// rest are those that name no label with its values.
	rest []int
	// holds says that one of them holds its pods.
	holds bool
}

// mostLabelValues bounds under how many values one budget is kept.
const mostLabelValues = 64

func (n *namespaceGuards) add(g *Guard) {
	at := len(n.all)
	n.all = append(n.all, g)
	n.holds = n.holds || g.Holds()
	for _, e := range g.Selector.Labels {
		values, finite := e.Values.Listed()
		if !finite || e.Values.AllowsAbsent() || len(values) > mostLabelValues {
			continue
		}
		for _, value := range values {
			label := Label{Key: e.Key, Value: value}
			n.byLabel[label] = append(n.byLabel[label], at)
		}
		return
	}
	n.rest = append(n.rest, at)
}

// candidates are the positions of the budgets that may count a pod with the labels, in order.
func (n *namespaceGuards) candidates(labels Labels) []int {
	out := slices.Clone(n.rest)
	for _, l := range labels {
		out = append(out, n.byLabel[l]...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Moves reports whether the pod will need another place when its node is drained. One that a disruption budget holds stays:
// a node made for it would wait in vain. No budget is asked about one that ends with its node. Where a sick node goes all its pods do. One whose class is in
// quarantine gets no place before it is out.
func (s *Snapshot) Moves(p *Pod) bool {
	if s.Quarantined(p) {
		return false
	}
	if !p.Reschedulable() || s.expels(p.Node) {
		return p.Reschedulable()
	}
	return p.Moves() && (p.StaysThroughDrain || !s.held(p))
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
