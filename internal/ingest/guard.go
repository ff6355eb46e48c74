package ingest

import (
	"cmp"
	"reflect"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// SetGuard takes in a PodDisruptionBudget.
func (b *Book) SetGuard(pdb *policyv1.PodDisruptionBudget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := &cluster.Guard{
		Namespace: pdb.Namespace, Name: pdb.Name, UID: string(pdb.UID),
		Selector: b.guardSelector(pdb),
		Allowed:  int(pdb.Status.DisruptionsAllowed), Healthy: int(pdb.Status.CurrentHealthy),
		Wanted: int(pdb.Status.DesiredHealthy), Expected: int(pdb.Status.ExpectedPods),
	}
	g.Selector.Namespaces = []string{pdb.Namespace}
	if policy := pdb.Spec.UnhealthyPodEvictionPolicy; policy != nil {
		g.FreesUnhealthy = *policy == policyv1.AlwaysAllow
	}
	if pdb.Status.ObservedGeneration < pdb.Generation {
		g.Allowed = 0 // the count is about what was asked for before; the API server refuses, too
	}
	b.putGuard(g.ID(), g)
}

// guardSelector reads which pods a budget counts. One that is too long is taken to count every pod of its namespace: then none
// leaves that the budget may hold. The lock is held.
func (b *Book) guardSelector(pdb *policyv1.PodDisruptionBudget) cluster.Selector {
	const kind = "PodDisruptionBudget"
	b.forgetNote(kind, string(pdb.UID))
	if why := cmp.Or(overlong(selectorParts(pdb.Spec.Selector), 0), leftOut(&pdb.ObjectMeta)); why != "" {
		b.notes[kind+string(pdb.UID)] = cluster.Note{
			Kind: kind, Namespace: pdb.Namespace, Name: pdb.Name, UID: string(pdb.UID), Reason: tooLong, Warning: true,
			Message: why + "; the budget is taken to count every pod of its namespace; select pods by a label that they share",
		}
		return cluster.Selector{}
	}
	return (&ruleReader{book: b}).labelSelector(pdb.Spec.Selector)
}

// DeleteGuard takes in that a PodDisruptionBudget is gone.
func (b *Book) DeleteGuard(namespace, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.guards[namespace+"/"+name]; g != nil {
		b.forgetNote("PodDisruptionBudget", g.UID)
	}
	b.putGuard(namespace+"/"+name, nil)
}

// putGuard keeps a budget, or forgets it, and notes what that means. Budgets are no matter of placement, except that pods
// which one holds don't look for another place. The lock is held.
func (b *Book) putGuard(id string, g *cluster.Guard) {
	old := b.guards[id]
	if old == nil && g == nil || old != nil && g != nil && reflect.DeepEqual(*old, *g) {
		return
	}
	if delete(b.guards, id); g != nil {
		b.guards[id] = g
	}
	b.guardList = nil
	held, holds := old != nil && old.Holds(), g != nil && g.Holds()
	switch {
	case held != holds, held && holds && !reflect.DeepEqual(old.Selector, g.Selector):
		b.touch(demand | room)
	case old != nil && g != nil && old.Allowed == g.Allowed && old.Never() == g.Never() && sparesUnready(old) == sparesUnready(g) && reflect.DeepEqual(old.Selector, g.Selector):
		b.note(nothing) // the counts move with every pod that comes or goes, and nobody waits for them
	default:
		b.touch(stakes)
	}
}

// sparesUnready reports whether pods that are not ready may leave without using up the budget.
func sparesUnready(g *cluster.Guard) bool { return g.Spares(&cluster.Pod{}) }

// guardsNow lists the budgets by namespace and name. The lock is held.
func (b *Book) guardsNow() []*cluster.Guard {
	if b.guardList == nil && len(b.guards) > 0 {
		b.guardList = inOrder(b.guards)
	}
	return b.guardList
}
