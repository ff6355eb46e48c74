package cluster

import (
	"slices"
	"strings"
)

// PDB is a PodDisruptionBudget: how many of the pods that it selects may be made to leave now.
type PDB struct {
	Namespace, Name, UID string
	Selector             Selector
	// Allowed is how many evictions the API server would grant now; zero while its count is out of date.
	Allowed int
	// Healthy and DesiredHealthy are how many of its pods are ready, and how many must be; Expected is how many there
	// should be.
	Healthy, DesiredHealthy, Expected int
	// AllowsUnhealthy lets pods go that are not ready, whatever the count (unhealthyPodEvictionPolicy AlwaysAllow).
	AllowsUnhealthy bool
}

// ID names the budget for people.
func (b *PDB) ID() string { return b.Namespace + "/" + b.Name }

// Selects reports whether the budget counts the pod.
func (b *PDB) Selects(p *Pod) bool {
	return p.Namespace == b.Namespace && b.Selector.Selects(p.Namespace, nil, p.Labels)
}

// AllowsFreely reports whether the pod may leave without using up the budget: it is not ready, and the budget either
// does not mind or has enough pods that are.
func (b *PDB) AllowsFreely(p *Pod) bool {
	return !p.Ready && (b.AllowsUnhealthy || b.DesiredHealthy > 0 && b.Healthy >= b.DesiredHealthy)
}

// NeverAllows reports whether the budget wants all the pods that there should be: it lets none of them go, however
// healthy they are.
func (b *PDB) NeverAllows() bool { return b.DesiredHealthy > 0 && b.DesiredHealthy >= b.Expected }

// Surplus is how many of the budget's pods may go while the others wait for the end of their node where they are: it
// wants all that there should be, and there are so many more, as in the middle of a rollout. It is -1 for no budget,
// and for one that holds no pods.
func (b *PDB) Surplus() int {
	if b == nil || !b.NeverAllows() {
		return -1
	}
	return max(b.Allowed, 0)
}

// Holds reports whether the budget holds a pod that it counts until the end of its node. As many pods of each node as
// there are too many are not held, the first in the order in which they are evicted.
func (b *PDB) Holds(s *Snapshot, p *Pod) bool {
	surplus, before := b.Surplus(), 0
	if surplus <= 0 {
		return surplus == 0
	}
	for _, other := range s.PodsOn(p.Node) {
		if before == surplus || other.UID == p.UID {
			break
		}
		if other.NeedsNewPlace() && !other.StaysThroughDrain && b.Selects(other) {
			before++
		}
	}
	return before == surplus
}

// PDBsOf lists the budgets that count the pod.
func (s *Snapshot) PDBsOf(p *Pod) []*PDB {
	here := s.lookups.pdbs[p.Namespace]
	if here == nil {
		return nil
	}
	var out []*PDB
	for _, at := range here.candidates(p.Labels) {
		if pdb := here.all[at]; pdb.Selects(p) {
			out = append(out, pdb)
		}
	}
	return out
}

// isHeldByPDB reports whether a budget that counts the pod holds it.
func (s *Snapshot) isHeldByPDB(p *Pod) bool {
	here := s.lookups.pdbs[p.Namespace]
	return here != nil && here.hasHolding &&
		slices.ContainsFunc(s.PDBsOf(p), func(b *PDB) bool { return b.Holds(s, p) })
}

// namespacePDBs are the budgets of a namespace, by a label that their pods must have: with thousands of budgets and
// pods, each pod is compared with the few that can be about it.
type namespacePDBs struct {
	all     []*PDB
	byLabel map[Label][]int
	// unlabelled are those that name no label with its values.
	unlabelled []int
	// hasHolding says that one of them may hold its pods.
	hasHolding bool
}

// mostLabelValues bounds under how many values one budget is kept.
const mostLabelValues = 64

func (n *namespacePDBs) add(pdb *PDB) {
	at := len(n.all)
	n.all = append(n.all, pdb)
	n.hasHolding = n.hasHolding || pdb.NeverAllows()
	for _, e := range pdb.Selector.Labels {
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
	n.unlabelled = append(n.unlabelled, at)
}

// candidates are the positions of the budgets that may count a pod with the labels, in order.
func (n *namespacePDBs) candidates(labels Labels) []int {
	out := slices.Clone(n.unlabelled)
	for _, l := range labels {
		out = append(out, n.byLabel[l]...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// NeedsNewPlace reports whether the pod will need another place when its node is drained. One that a disruption budget
// holds stays: a node made for it would wait in vain. No budget is asked about one that ends with its node. Where an
// unhealthy node goes all its pods do. One whose class is in quarantine gets no place before it is out.
func (s *Snapshot) NeedsNewPlace(p *Pod) bool {
	if s.IsQuarantined(p) {
		return false
	}
	if !p.IsReschedulable() || s.forcesPods(p.Node) {
		return p.IsReschedulable()
	}
	return p.NeedsNewPlace() && (p.StaysThroughDrain || !s.isHeldByPDB(p))
}

// forcesPods reports whether the node is on its way out for its health and has a time by which all its pods have to
// leave, whatever they say. Places were made for them before.
func (s *Snapshot) forcesPods(node string) bool {
	c := s.lookups.claimOf[node]
	if c == nil || c.Deleting.IsZero() || !strings.HasPrefix(c.Move, repairPrefix) {
		return false
	}
	_, has := c.EndsBy()
	return has
}

// repairPrefix begins the names of moves that replace an unhealthy node.
const repairPrefix = "unhealthy-"
