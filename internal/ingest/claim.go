package ingest

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/validate"
)

// claimEntry keeps the resource lists beside the claim, to measure them again when a new resource is asked for.
type claimEntry struct {
	claim                 *cluster.Claim
	capacity, allocatable corev1.ResourceList
	requests              corev1.ResourceList
	// inSnapshot is what the last snapshot has of the claim, and madeFrom is the claim that it was made from.
	inSnapshot, madeFrom *cluster.Claim
}

// lists are the resource lists of a claim: what its node has, and what it was made to have. There may be no claim.
func (e *claimEntry) lists() []corev1.ResourceList {
	if e == nil {
		return nil
	}
	return []corev1.ResourceList{e.capacity, e.allocatable, e.requests}
}

// value is the claim; there may be none.
func (e *claimEntry) value() *cluster.Claim {
	if e == nil {
		return nil
	}
	return e.claim
}

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
	if old != nil && old.claim.UID != c.UID {
		b.drift.Forget(old.claim.UID)
		b.notes.forget("NodeClaim", old.claim.UID)
		b.notes.forget(madeForNote, old.claim.UID)
	}
	switch {
	case old != nil && old.claim.UID == c.UID:
		c.FirstSeen = old.claim.FirstSeen
		c.Deleting = b.deletedAt(old.claim.Deleting, c.Deleting)
	case b.commands.Has(command.CreateClaim{Name: c.Name}.Key()):
		c.FirstSeen = b.now()
	}
	entry := &claimEntry{claim: c, capacity: claim.Status.Capacity, allocatable: claim.Status.Allocatable,
		requests: claim.Spec.Resources.Requests}
	b.specs.Dims.Offer(old.lists(), entry.lists())
	b.claims[c.Name] = entry
	if old != nil && old.claim.UID != c.UID {
		b.tries.EndTracking(old.claim, b.now())
		b.slots.End(old.claim, b.now(), b.slotEnd(old.claim))
	}
	b.tries.TrackClaim(c)
	b.slots.Watch(old.value(), c, b.slotEnd(c))
	settled := b.settleWrites(command.KindClaim, c.Name)
	what, changed := claimChange(old, c)
	if changed {
		b.indexClaim(old, c)
		what |= b.rereadNominees(b.nodeBy[c.ProviderID]) | b.observeLaunch(old, c) | b.noteTakenBack(old, c)
	}
	if changed || settled {
		b.noteAndWake(what)
	}
}

// readClaim reads a NodeClaim. The lock is held.
func (b *Book) readClaim(claim *v1.NodeClaim) *cluster.Claim {
	c := &cluster.Claim{
		Name: claim.Name, UID: string(claim.UID), Version: claim.ResourceVersion,
		Pool:    claim.Labels[v1.NodePoolLabelKey],
		Created: claim.CreationTimestamp.Time, Deleting: decode.TimeOf(claim.DeletionTimestamp),
		Finalized:  slices.Contains(claim.Finalizers, v1.TerminationFinalizer),
		ProviderID: claim.Status.ProviderID, NodeName: claim.Status.NodeName,
		Labels: cluster.LabelsOf(claim.Labels), Requirements: decode.RequirementsOf(claim.Spec.Requirements),
		Taints: decode.TaintsOf(claim.Spec.Taints), StartupTaints: decode.TaintsOf(claim.Spec.StartupTaints),
		Capacity:     b.specs.Dims.Measure(claim.Status.Capacity),
		Conditions:   decode.ConditionsOf(claim.Status.Conditions),
		LastPodEvent: claim.Status.LastPodEventTime.Time, SavedPodEvent: claim.Status.LastPodEventTime.Time,
		DoNotDisrupt: decode.KeepsNode(claim.Annotations),
		DoNotRepair:  claim.Annotations[v1.DoNotRepairAnnotationKey] == "true",
		ExpireAfter:  decode.WaitOf(claim.Spec.ExpireAfter),
		Hash:         claim.Annotations[v1.NodePoolHashAnnotationKey],
		HashVersion:  claim.Annotations[v1.NodePoolHashVersionAnnotationKey],
		Move:         claim.Annotations[cluster.MoveAnnotation],
		Replaces:     claim.Annotations[cluster.ReplacesAnnotation],
	}
	c.RestUntil, c.Rests = cluster.ParseRest(claim.Annotations[cluster.RestAnnotation])
	c.SavingRestUntil, c.SavingRests = cluster.ParseRest(claim.Annotations[cluster.SavingRestAnnotation])
	b.readDeadline(c, claim.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey])
	b.readInterruption(c, claim.Annotations[cloudprovider.InterruptionAnnotation])
	if c.IsStandalone() {
		for _, problem := range validate.NodeClaim(claim, b.labels) {
			c.Problems = append(c.Problems, decode.ProblemOf(problem))
		}
	}
	c.Requests = b.specs.Dims.Number(claim.Spec.Resources.Requests)
	c.Allocatable = b.claimAllocatable(c, claim.Status.Allocatable)
	for dim := resource.Pods + 1; dim < resource.Size; dim++ {
		if c.Requests[dim] > 0 && !b.specs.Dims.Names.Attaches(dim) {
			c.AwaitedResources = append(c.AwaitedResources, dim)
		}
	}
	if grace := claim.Spec.TerminationGracePeriod; grace != nil {
		c.HasTerminationGrace, c.TerminationGrace = true, grace.Duration
	}
	// Seats that can't be read reserve nothing; the pods then find the node's room like any other pod.
	c.Seats, _ = cluster.ParseSeats(claim.Annotations[cluster.SeatsAnnotation])
	b.readMadeFor(c, claim.Annotations[cluster.MadeForAnnotation])
	// A slot that can't be read is none, as on a claim of an older version: its end delays no other.
	// and one without a mark is a first replacement
	c.DriftReplacement, _ = cluster.ParseDriftReplacement(claim.Annotations[cluster.DriftAnnotation])
	c.Slot, _ = cluster.ParseSlot(claim.Annotations[cluster.SlotAnnotation])
	return c
}

// readMadeFor reads for whom a claim was made. If not all of it can be read, the node counts for the workloads whose
// pods wait for its seats, too, and whoever wrote it is told. The lock is held.
func (b *Book) readMadeFor(c *cluster.Claim, text string) {
	b.notes.forget(madeForNote, c.UID)
	var err error
	if c.MadeFor, err = cluster.ParseMadeFor(text); err == nil {
		return
	}
	c.MadeForUnread = true
	note := c.Note("InvalidMadeFor", fmt.Sprintf("annotation %s. The node counts for the workloads whose pods wait "+
		"for a place on it, too. "+
		"Only Tenon writes this annotation; let nobody else change it", err))
	note.Warning = true
	b.notes[madeForNote+c.UID] = note
}

// madeForNote is the kind of a note about a claim's MadeFor.
const madeForNote = "MadeFor"

// indexClaim keeps the index of claims by their machine. The lock is held.
func (b *machineState) indexClaim(old *claimEntry, c *cluster.Claim) {
	if old != nil && old.claim.ProviderID != c.ProviderID {
		b.unindexClaim(old.claim)
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

// readDeadline reads by when a claim must be gone. A time that can't be read is none, and whoever wrote it is told. The
// lock is held.
func (b *Book) readDeadline(c *cluster.Claim, text string) {
	b.notes.forget("NodeClaim", c.UID)
	if text == "" {
		return
	}
	at, err := time.Parse(time.RFC3339, text)
	if err == nil {
		c.Deadline = at
		return
	}
	note := c.Note("InvalidTerminationTimestamp", fmt.Sprintf(
		"annotation %s: %q is not a time and is ignored; use one like 2026-01-31T12:00:00Z, or remove it",
		v1.NodeClaimTerminationTimestampAnnotationKey, text))
	note.Warning = true
	b.notes["NodeClaim"+c.UID] = note
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
	what := changesRoom
	if e := b.claims[name]; e != nil {
		if e.claim.Deleting.IsZero() {
			b.claimLost = b.now()
		}
		b.specs.Dims.Offer(e.lists(), nil)
		delete(b.claims, name)
		b.unindexClaim(e.claim)
		b.tries.EndTracking(e.claim, b.now())
		b.slots.End(e.claim, b.now(), b.slotEnd(e.claim)) // whether its launch was refused still counts here
		b.launches.ForgetRefusal(e.claim.UID)
		b.drift.Forget(e.claim.UID)
		b.notes.forget("NodeClaim", e.claim.UID)
		b.notes.forget(madeForNote, e.claim.UID)
		what |= b.rereadNominees(b.nodeBy[e.claim.ProviderID])
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

// claimChange says what it means that a claim looks like this now; changed is false if only its version differs.
func claimChange(old *claimEntry, now *cluster.Claim) (what change, changed bool) {
	if old == nil {
		return changesSupply, true // it may become a node, and counts against limits
	}
	x, y := *old.claim, *now
	x.Version, y.Version = "", ""
	if reflect.DeepEqual(x, y) {
		return noChange, false
	}
	if x.DoNotDisrupt != y.DoNotDisrupt || !x.RestUntil.Equal(y.RestUntil) ||
		!x.SavingRestUntil.Equal(y.SavingRestUntil) {
		what = changesDisruption
	}
	for _, c := range []*cluster.Claim{&x, &y} {
		c.Hash, c.HashVersion, c.RestUntil, c.Rests = "", "", time.Time{}, 0
		c.SavingRestUntil, c.SavingRests = time.Time{}, 0
		c.LastPodEvent, c.SavedPodEvent, c.DoNotDisrupt = time.Time{}, time.Time{}, false
		c.HasTerminationGrace, c.TerminationGrace, c.ExpireAfter, c.Deadline, c.DoNotRepair = false, 0,
			cluster.NillableDuration{}, time.Time{}, false
		c.Conditions = withoutMessages(c.Conditions)
	}
	if reflect.DeepEqual(x, y) {
		return what, true
	}
	return what | changesRoom, true
}

// withoutMessages are the conditions that say how far a claim has come, without the words around them.
func withoutMessages(list []cluster.Condition) []cluster.Condition {
	var out []cluster.Condition
	for _, c := range list {
		switch c.Type {
		case cluster.Launched, cluster.Registered, cluster.Initialized, cluster.DisruptionReason:
			out = append(out, cluster.Condition{Type: c.Type, Status: c.Status})
		}
	}
	return out
}
