package ingest

import (
	"cmp"
	"reflect"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
	"github.com/tenon-sh/tenon/internal/reason"
)

// SetPDB takes in a PodDisruptionBudget.
func (b *Book) SetPDB(pdb *policyv1.PodDisruptionBudget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := &cluster.PDB{
		Namespace: pdb.Namespace, Name: pdb.Name, UID: string(pdb.UID),
		Selector: b.pdbSelector(pdb),
		Allowed:  int(pdb.Status.DisruptionsAllowed), Healthy: int(pdb.Status.CurrentHealthy),
		DesiredHealthy: int(pdb.Status.DesiredHealthy), Expected: int(pdb.Status.ExpectedPods),
	}
	g.Selector.Namespaces = []string{pdb.Namespace}
	if policy := pdb.Spec.UnhealthyPodEvictionPolicy; policy != nil {
		g.AllowsUnhealthy = *policy == policyv1.AlwaysAllow
	}
	if pdb.Status.ObservedGeneration < pdb.Generation {
		g.Allowed = 0 // the count is about what was asked for before; the API server refuses, too
	}
	b.putPDB(g.ID(), g)
}

// pdbSelector reads which pods a budget counts. One that is too long is taken to count every pod of its namespace: then
// none leaves that the budget may hold. The lock is held.
func (b *Book) pdbSelector(pdb *policyv1.PodDisruptionBudget) cluster.Selector {
	const kind = "PodDisruptionBudget"
	b.notes.forget(kind, string(pdb.UID))
	if why := cmp.Or(decode.TooLongReason(decode.SelectorParts(pdb.Spec.Selector), 0),
		decode.TooLongPart(&pdb.ObjectMeta)); why != "" {
		b.notes[kind+string(pdb.UID)] = cluster.Note{
			Kind: kind, Namespace: pdb.Namespace, Name: pdb.Name, UID: string(pdb.UID), Reason: tooLong, Warning: true,
			Text: reason.Said(why + "; the budget is taken to count every pod of its namespace; select pods by a " +
				"label that they share"),
		}
		return cluster.Selector{}
	}
	s, _ := podspec.ReadSelector(pdb.Spec.Selector)
	return s
}

// DeletePDB takes in that a PodDisruptionBudget is gone.
func (b *Book) DeletePDB(namespace, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.pdbs[namespace+"/"+name]; g != nil {
		b.notes.forget("PodDisruptionBudget", g.UID)
	}
	b.putPDB(namespace+"/"+name, nil)
}

// putPDB keeps a budget, or forgets it, and notes what that means. Budgets are no matter of placement, except that pods
// which one holds don't look for another place. The lock is held.
func (b *Book) putPDB(id string, g *cluster.PDB) {
	old := b.pdbs[id]
	if old == nil && g == nil || old != nil && g != nil && reflect.DeepEqual(*old, *g) {
		return
	}
	if delete(b.pdbs, id); g != nil {
		b.pdbs[id] = g
	}
	b.pdbList = nil
	before, now := old.Surplus(), g.Surplus()
	switch {
	case before != now, now >= 0 && !reflect.DeepEqual(old.Selector, g.Selector):
		b.noteAndWake(change.Demand | change.Room)
	case old != nil && g != nil && old.Allowed == g.Allowed && old.NeverAllows() == g.NeverAllows() &&
		allowsUnready(old) == allowsUnready(g) && reflect.DeepEqual(old.Selector, g.Selector):
		b.noteChange(change.None) // the counts move with every pod that comes or goes, and nobody waits for them
	default:
		b.noteAndWake(change.Disruption)
	}
}

// allowsUnready reports whether pods that are not ready may leave without using up the budget.
func allowsUnready(g *cluster.PDB) bool { return g.AllowsFreely(&cluster.Pod{}) }

// pdbsNow lists the budgets by namespace and name. The lock is held.
func (b *references) pdbsNow() []*cluster.PDB {
	if b.pdbList == nil && len(b.pdbs) > 0 {
		b.pdbList = valuesByKey(b.pdbs)
	}
	return b.pdbList
}
