package ingest

import (
	"fmt"
	"maps"
	"reflect"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/validate"
)

// poolEntry keeps beside the pool what depends on the time of the snapshot.
type poolEntry struct {
	pool    *cluster.Pool
	object  *v1.NodePool
	version uint64
	windows []window // by budget
}

// SetPool takes in a NodePool as the API server shows it. Most changes are of its status, which we write ourselves: the
// rest is not read again then.
func (b *Book) SetPool(pool *v1.NodePool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.setOtherPool(pool) {
		return
	}
	old := b.pools[pool.Name]
	e := &poolEntry{object: pool, version: decode.ParseVersion(pool.ResourceVersion)}
	if old != nil && old.hasSameSpec(pool) {
		same := *old.pool
		e.pool, e.windows = &same, old.windows
	} else {
		e.pool = b.readPool(pool)
		e.readBudgets(old)
	}
	e.pool.Status = cluster.PoolStatus{
		Nodes: pool.Status.Nodes, Resources: b.specs.Dims.Measure(pool.Status.Resources),
		ClassGeneration: pool.Status.NodeClassObservedGeneration,
		Conditions:      decode.ConditionsOf(pool.Status.Conditions),
	}
	b.putPool(e)
}

// hasSameSpec reports whether a NodePool differs in nothing but its status from what was read. A limit that could not
// be counted is read again.
func (e *poolEntry) hasSameSpec(pool *v1.NodePool) bool {
	old := e.object
	return old != pool && old.UID == pool.UID && old.Generation == pool.Generation &&
		(old.DeletionTimestamp != nil) == (pool.DeletionTimestamp != nil) &&
		e.pool.Limits.Broken == "" && maps.Equal(old.Annotations, pool.Annotations) && reflect.DeepEqual(&old.Spec,
		&pool.Spec)
}

// readPool reads all of a NodePool but its budgets and its status. The lock is held.
func (b *Book) readPool(pool *v1.NodePool) *cluster.Pool {
	spec := &pool.Spec.Template.Spec
	p := &cluster.Pool{
		Name: pool.Name, UID: string(pool.UID), Generation: pool.Generation, Deleting: pool.DeletionTimestamp != nil,
		Static: pool.Spec.Replicas != nil, Policy: cluster.Policy(pool.Spec.Disruption.ConsolidationPolicy),
		ConsolidateAfter: decode.WaitOf(pool.Spec.Disruption.ConsolidateAfter),
		Limits:           b.specs.Dims.LimitsOf(pool.Spec.Limits),
		Template: cluster.Template{
			Labels:       cluster.LabelsOf(pool.Spec.Template.Labels),
			Annotations:  cluster.LabelsOf(pool.Spec.Template.Annotations),
			Requirements: decode.RequirementsOf(spec.Requirements),
			Taints:       decode.TaintsOf(spec.Taints), StartupTaints: decode.TaintsOf(spec.StartupTaints),
			ExpireAfter: spec.ExpireAfter.String(),
		},
	}
	if pool.Spec.Replicas != nil {
		p.Replicas = *pool.Spec.Replicas
	}
	if pool.Spec.Weight != nil {
		p.Weight = *pool.Spec.Weight
	}
	if ref := spec.NodeClassRef; ref != nil {
		p.Template.NodeClass = cluster.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}
		p.Template.Labels = p.Template.Labels.With(v1.NodeClassLabelKey(ref.Group, ref.Kind), ref.Name)
	}
	if grace := spec.TerminationGracePeriod; grace != nil {
		p.Template.HasTerminationGrace, p.Template.TerminationGrace = true, grace.Duration
	}
	for _, problem := range validate.NodePool(pool, b.labels) {
		p.Problems = append(p.Problems, decode.ProblemOf(problem))
	}
	for _, doubt := range validate.Doubts(pool, b.labels) {
		p.Warnings = append(p.Warnings, decode.ProblemOf(doubt))
	}
	for _, timeout := range timeouts(p) {
		if problem, bad := timeout.read(pool.Annotations); bad {
			p.Problems = append(p.Problems, problem)
		}
	}
	b.readTemplateHash(p, pool)
	b.readOverrides(p, pool)
	return p
}

// readBudgets reads the pool's budgets. What old has found out about the times at which they hold is kept if they are
// the same.
func (e *poolEntry) readBudgets(old *poolEntry) {
	budgets := e.object.Spec.Disruption.Budgets
	if old != nil && reflect.DeepEqual(old.object.Spec.Disruption.Budgets, budgets) {
		e.pool.Budgets, e.windows = old.pool.Budgets, old.windows
		return
	}
	for i := range budgets {
		budget, w := budgetOf(&budgets[i])
		e.pool.Budgets, e.windows = append(e.pool.Budgets, budget), append(e.windows, w)
	}
}

// putPool keeps a pool and notes what that means. The lock is held.
func (b *Book) putPool(e *poolEntry) {
	name := e.pool.Name
	old := b.pools[name]
	b.pools[name] = e
	var before *cluster.Pool
	if old != nil {
		before = old.pool
	}
	b.orphanMemory.PoolSeen(before, e.pool, b.now())
	if old != nil && old.pool.UID != e.pool.UID {
		b.forgetNote("NodePool", old.pool.UID)
	}
	settled := b.settleWrites(command.KindPool, name)
	b.requestCatalog(name, e.object.Generation)
	b.restoreLaunchResults(old, e.pool)
	switch {
	case old == nil || !reflect.DeepEqual(placementPart(old.pool), placementPart(e.pool)):
		b.noteAndWake(changesRoom)
	case !reflect.DeepEqual(old.object.Spec.Disruption, e.object.Spec.Disruption),
		!reflect.DeepEqual(old.pool.Overrides, e.pool.Overrides):
		b.noteAndWake(changesDisruption)
	case settled || !reflect.DeepEqual(old.pool, e.pool):
		b.noteAndWake(noChange)
	}
}

// placementPart is the part of a pool that decides where pods go.
func placementPart(p *cluster.Pool) cluster.Pool {
	out := *p
	out.Status, out.Budgets, out.Policy, out.ConsolidateAfter = cluster.PoolStatus{}, nil, "",
		cluster.NillableDuration{}
	out.Replicas, out.Timeouts = 0, cluster.Timeouts{}
	out.WrittenHash, out.Overrides = cluster.TemplateHash{}, cluster.DisruptionOverrides{}
	return out
}

// DeletePool takes in that a pool is gone.
func (b *Book) DeletePool(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropOtherPool(name)
	b.dropPool(name)
}

// dropPool forgets a pool. The lock is held.
func (b *Book) dropPool(name string) {
	e := b.pools[name]
	if e != nil {
		b.forgetNote("NodePool", e.pool.UID)
	}
	delete(b.pools, name)
	if e != nil {
		b.orphanMemory.PoolDeleted(e.pool, len(b.pools))
	}
	b.market.Drop(name)
	b.specs.Dims.SetSold(b.market.Sold())
	b.launches.Forget(name)
	b.slots.DropPool(name)
	b.settleWrites(command.KindPool, name)
	b.noteAndWake(changesRoom)
}

// poolNow is the pool with everything that depends on the moment: its class, its catalog and which budgets hold. The
// lock is held.
func (b *Book) poolNow(e *poolEntry, now time.Time) *cluster.Pool {
	p := *e.pool
	p.NodeClass = b.nodeClassNow(p.Template.NodeClass)
	if until := e.object.CreationTimestamp.Add(nodeClassWait); p.NodeClass.Reason == classNotFound &&
		now.Before(until) {
		p.NodeClass.Pending, p.NodeClass.Until = true, until
	}
	p.Catalog, p.CatalogError = b.market.Now(p.Name, p.Template.NodeClass, now, b.eachClaim, b.asked)
	b.launches.Show(&p, now)
	p.LostSlots = b.slots.Lost(&p, b.eachClaim, now)
	p.Status.Resources = b.specs.Dims.Measure(e.object.Status.Resources)
	p.Budgets = append([]cluster.Budget(nil), e.pool.Budgets...)
	for i := range p.Budgets {
		p.Budgets[i].Active, p.Budgets[i].ChangesAt = e.windows[i].stateAt(now)
	}
	return &p
}

const (
	classNotFound, classUnknown = "NodeClassNotFound", "NodeClassReadinessUnknown"
	// nodeClassWait is how long after its pool a NodeClass may come: whoever applies both at once makes no mistake.
	nodeClassWait = 5 * time.Second
)

// nodeClassNow says whether a pool's NodeClass can be used. The lock is held.
func (b *Book) nodeClassNow(ref cluster.ClassRef) cluster.NodeClassState {
	if !b.nodeClassKinds[cluster.ClassRef{Group: ref.Group, Kind: ref.Kind}] { // it is unreadable: see isOthers
		return cluster.NodeClassState{Reason: "NodeClassNotSupported", Message: fmt.Sprintf(
			"spec.template.spec.nodeClassRef does not say of which group and kind the NodeClass is; correct it to %s",
			b.knownKinds())}
	}
	state, found := b.nodeClasses[ref]
	if !found {
		return cluster.NodeClassState{
			Reason: classNotFound,
			Message: fmt.Sprintf("%s %q was not found; create it or correct spec.template.spec.nodeClassRef.name",
				ref.Kind, ref.Name),
		}
	}
	return state
}

// SetNodeClass takes in the state of a NodeClass.
func (b *Book) SetNodeClass(ref cluster.ClassRef, state cluster.NodeClassState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nodeClasses[ref] == state {
		return
	}
	before, known := b.nodeClasses[ref]
	changed := before.Generation != state.Generation
	b.nodeClasses[ref] = state
	if known && changed {
		b.market.ForgetClass(ref, b.now())
		b.forgetLaunches(ref)
		b.askDriftSoon(ref)
		b.allowTriesNow()
	}
	b.wakeCatalogs() // a class that has become ready may have pools waiting for it
	for name, e := range b.pools {
		if changed && e.pool.Template.NodeClass == ref {
			b.requestCatalog(name, -1)
		}
	}
	b.noteAndWake(changesRoom)
}

// DeleteNodeClass takes in that a NodeClass is gone.
func (b *Book) DeleteNodeClass(ref cluster.ClassRef) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.nodeClasses, ref)
	b.drift.ForgetClass(ref)
	b.market.DropClass(ref)
	b.forgetLaunches(ref)
	b.noteAndWake(changesRoom)
}
