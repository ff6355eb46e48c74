package ingest

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/machines"
	"github.com/tenon-sh/tenon/internal/resource"
)

// SetClaim takes in a NodeClaim as the API server shows it.
func (b *Book) SetClaim(claim *v1.NodeClaim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.setOtherClaim(claim) {
		return
	}
	c := b.readClaim(claim)
	b.drift.Track(c, claim.Spec.NodeClassRef, b.now())
	old := b.claims[c.Name]
	if old != nil && old.Claim.UID != c.UID {
		b.drift.Forget(old.Claim.UID)
		b.notes.forget("NodeClaim", old.Claim.UID)
		b.notes.forget(madeForNote, old.Claim.UID)
	}
	switch {
	case old != nil && old.Claim.UID == c.UID:
		c.FirstSeen = old.Claim.FirstSeen
		c.Deleting = b.deletedAt(old.Claim.Deleting, c.Deleting)
	case b.commands.Has(command.CreateClaim{Name: c.Name}.Key()):
		c.FirstSeen = b.now()
	}
	entry := &machines.ClaimEntry{Claim: c, Capacity: claim.Status.Capacity, Allocatable: claim.Status.Allocatable,
		Requests: claim.Spec.Resources.Requests}
	b.specs.Dims.Offer(old.Lists(), entry.Lists())
	b.claims[c.Name] = entry
	if old != nil && old.Claim.UID != c.UID {
		b.tries.EndTracking(old.Claim, b.now())
		b.slots.End(old.Claim, b.now(), b.slotEnd(old.Claim))
	}
	b.tries.TrackClaim(c)
	b.slots.Watch(old.Value(), c, b.slotEnd(c))
	settled := b.settleWrites(command.KindClaim, c.Name)
	what, changed := machines.ClaimChange(old, c)
	if changed {
		b.indexClaim(old, c)
		what |= b.rereadNominees(b.nodeBy[c.ProviderID]) | b.observeLaunch(old, c) | b.noteTakenBack(old, c)
	}
	if changed || settled {
		b.noteAndWake(what)
	}
}

// madeForNote is the kind of a note about a claim's MadeFor.
const madeForNote = "MadeFor"

// indexClaim keeps the index of claims by their machine. The lock is held.
func (b *machineState) indexClaim(old *machines.ClaimEntry, c *cluster.Claim) {
	if old != nil && old.Claim.ProviderID != c.ProviderID {
		b.unindexClaim(old.Claim)
	}
	if c.ProviderID != "" {
		b.claimBy[c.ProviderID] = c.Name
	}
}

func (b *machineState) unindexClaim(c *cluster.Claim) {
	if b.claimBy[c.ProviderID] == c.Name {
		delete(b.claimBy, c.ProviderID)
	}
}

// DeleteClaim takes in that a claim is gone.
func (b *Book) DeleteClaim(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dropOtherClaim(name) {
		return
	}
	b.dropClaim(name)
}

// dropClaim forgets a claim. The lock is held.
func (b *Book) dropClaim(name string) {
	what := change.Room
	if e := b.claims[name]; e != nil {
		if e.Claim.Deleting.IsZero() {
			b.claimLost = b.now()
		}
		b.specs.Dims.Offer(e.Lists(), nil)
		delete(b.claims, name)
		b.unindexClaim(e.Claim)
		b.tries.EndTracking(e.Claim, b.now())
		b.slots.End(e.Claim, b.now(), b.slotEnd(e.Claim)) // whether its launch was refused still counts here
		b.launches.ForgetRefusal(e.Claim.UID)
		b.drift.Forget(e.Claim.UID)
		b.notes.forget("NodeClaim", e.Claim.UID)
		b.notes.forget(madeForNote, e.Claim.UID)
		what |= b.rereadNominees(b.nodeBy[e.Claim.ProviderID])
	}
	b.settleWrites(command.KindClaim, name)
	b.noteAndWake(what)
}

// claimAllocatable is what pods may use of a claim's node, with what its type can attach. The lock is held.
func (b *Book) claimAllocatable(c *cluster.Claim, list corev1.ResourceList) resource.Vector {
	v := b.specs.Dims.Measure(list)
	if v.IsZero() {
		return v // not launched yet
	}
	kind, _ := c.Labels.Get(cluster.InstanceTypeLabel)
	return b.specs.Dims.WithAttachLimits(v, b.attachLimits.OfType(kind))
}

// readClaim reads a NodeClaim. The lock is held.
func (b *Book) readClaim(claim *v1.NodeClaim) *cluster.Claim {
	c, told := machines.ReadClaim(claim, b.labels)
	b.notes.put("NodeClaim", c.UID, told.Claim)
	b.notes.put(madeForNote, c.UID, told.MadeFor)
	c.Capacity = b.specs.Dims.Measure(claim.Status.Capacity)
	c.Requests = b.specs.Dims.Number(claim.Spec.Resources.Requests)
	c.Allocatable = b.claimAllocatable(c, claim.Status.Allocatable)
	for dim := resource.Pods + 1; dim < resource.Size; dim++ {
		if c.Requests[dim] > 0 && !b.specs.Dims.Names.Attaches(dim) {
			c.AwaitedResources = append(c.AwaitedResources, dim)
		}
	}
	return c
}
