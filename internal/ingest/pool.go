package ingest

import (
	"fmt"
	"reflect"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/pools"
)

// SetPool takes in a NodePool as the API server shows it. Most changes are of its status, which we write ourselves: the
// rest is not read again then.
func (b *Book) SetPool(pool *v1.NodePool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.setOtherPool(pool) {
		return
	}
	if old := b.pools[pool.Name]; old != nil && old.HasSameSpec(pool) {
		b.putPool(old.WithStatus(pool, b.poolStatus(pool)))
		return
	}
	e, note := pools.Read(pool, b.pools[pool.Name], b.labels, b.specs.Dims.LimitsOf)
	e.Pool.Status = b.poolStatus(pool)
	b.notes.put("NodePool", e.Pool.UID, note)
	b.putPool(e)
}

// putPool keeps a pool and notes what that means. The lock is held.
func (b *Book) putPool(e *pools.Entry) {
	name := e.Pool.Name
	old := b.pools[name]
	b.pools[name] = e
	var before *cluster.Pool
	if old != nil {
		before = old.Pool
	}
	b.orphanMemory.PoolSeen(before, e.Pool, b.now())
	if old != nil && old.Pool.UID != e.Pool.UID {
		b.notes.forget("NodePool", old.Pool.UID)
	}
	settled := b.settleWrites(command.KindPool, name)
	b.requestCatalog(name, e.Object.Generation)
	b.restoreLaunchResults(old, e.Pool)
	switch {
	case old == nil || old.PlacesOtherwise(e):
		b.noteAndWake(change.Room)
	case old.DisruptsOtherwise(e):
		b.noteAndWake(change.Disruption)
	case settled || !reflect.DeepEqual(old.Pool, e.Pool):
		b.noteAndWake(change.None)
	}
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
		b.notes.forget("NodePool", e.Pool.UID)
	}
	delete(b.pools, name)
	if e != nil {
		b.orphanMemory.PoolDeleted(e.Pool, len(b.pools))
	}
	b.market.Drop(name)
	b.specs.Dims.SetSold(b.market.Sold())
	b.launches.Forget(name)
	b.slots.DropPool(name)
	b.settleWrites(command.KindPool, name)
	b.noteAndWake(change.Room)
}

// poolNow is the pool with everything that depends on the moment: its class, its catalog and which budgets hold. The
// lock is held.
func (b *Book) poolNow(e *pools.Entry, now time.Time) *cluster.Pool {
	p := *e.Pool
	p.NodeClass = b.nodeClassNow(p.Template.NodeClass)
	if until := e.Object.CreationTimestamp.Add(nodeClassWait); p.NodeClass.Reason == pools.ClassNotFound &&
		now.Before(until) {
		p.NodeClass.Pending, p.NodeClass.Until = true, until
	}
	p.Catalog, p.CatalogError = b.market.Now(p.Name, p.Template.NodeClass, now, b.eachClaim, b.asked)
	b.launches.Show(&p, now)
	p.LostSlots = b.slots.Lost(&p, b.eachClaim, now)
	p.Status.Resources = b.specs.Dims.Measure(e.Object.Status.Resources)
	p.Budgets = e.BudgetsAt(now)
	return &p
}

// nodeClassWait is how long after its pool a NodeClass may come: whoever applies both at once makes no mistake.
const nodeClassWait = 5 * time.Second

// nodeClassNow says whether a pool's NodeClass can be used. The lock is held.
func (b *poolState) nodeClassNow(ref cluster.ClassRef) cluster.NodeClassState {
	if !b.nodeClassKinds[cluster.ClassRef{Group: ref.Group, Kind: ref.Kind}] { // it is unreadable: see isOthers
		return cluster.NodeClassState{Reason: "NodeClassNotSupported", Message: fmt.Sprintf(
			"spec.template.spec.nodeClassRef does not say of which group and kind the NodeClass is; correct it to %s",
			b.knownKinds())}
	}
	state, found := b.nodeClasses[ref]
	if !found {
		return cluster.NodeClassState{
			Reason: pools.ClassNotFound,
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
		if changed && e.Pool.Template.NodeClass == ref {
			b.requestCatalog(name, -1)
		}
	}
	b.noteAndWake(change.Room)
}

// DeleteNodeClass takes in that a NodeClass is gone.
func (b *Book) DeleteNodeClass(ref cluster.ClassRef) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.nodeClasses, ref)
	b.drift.ForgetClass(ref)
	b.market.DropClass(ref)
	b.forgetLaunches(ref)
	b.noteAndWake(change.Room)
}

// poolStatus is the status of a NodePool. The lock is held.
func (b *Book) poolStatus(pool *v1.NodePool) cluster.PoolStatus {
	return cluster.PoolStatus{
		Nodes: pool.Status.Nodes, Resources: b.specs.Dims.Measure(pool.Status.Resources),
		ClassGeneration: pool.Status.NodeClassObservedGeneration,
		Conditions:      decode.ConditionsOf(pool.Status.Conditions),
	}
}
