package cluster

// Guard is a PodDisruptionBudget: how many of the pods that it selects may be made to leave now.
type Guard struct {
	Namespace, Name, UID string
	Selector             Selector
	// Allowed is how many evictions the API server would grant now; zero while its count is out of date.
	Allowed int
	// Healthy and Wanted are how many of its pods are ready, and how many must be.
	Healthy, Wanted int
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
