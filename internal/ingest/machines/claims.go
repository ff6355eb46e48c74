package machines

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/validate"
)

// ClaimEntry keeps the resource lists beside the claim, to measure them again when a new resource is asked for.
type ClaimEntry struct {
	Claim                 *cluster.Claim
	Capacity, Allocatable corev1.ResourceList
	Requests              corev1.ResourceList
	// InSnapshot is what the last snapshot has of the claim, and MadeFrom is the claim that it was made from.
	InSnapshot, MadeFrom *cluster.Claim
}

// Lists are the resource lists of a claim: what its node has, and what it was made to have. There may be no claim.
func (e *ClaimEntry) Lists() []corev1.ResourceList {
	if e == nil {
		return nil
	}
	return []corev1.ResourceList{e.Capacity, e.Allocatable, e.Requests}
}

// Value is the claim; there may be none.
func (e *ClaimEntry) Value() *cluster.Claim {
	if e == nil {
		return nil
	}
	return e.Claim
}

// ClaimNotes are what is to be told about a claim, if anything: about its annotations, and about whom it was made for.
type ClaimNotes struct{ Claim, MadeFor *cluster.Note }

// ReadClaim reads a NodeClaim, but for how much it has.
func ReadClaim(claim *v1.NodeClaim, labels validate.Labels) (c *cluster.Claim, told ClaimNotes) {
	c = &cluster.Claim{
		Name: claim.Name, UID: string(claim.UID), Version: claim.ResourceVersion,
		Pool:    claim.Labels[v1.NodePoolLabelKey],
		Created: claim.CreationTimestamp.Time, Deleting: decode.TimeOf(claim.DeletionTimestamp),
		Finalized:  slices.Contains(claim.Finalizers, v1.TerminationFinalizer),
		ProviderID: claim.Status.ProviderID, NodeName: claim.Status.NodeName,
		Labels: cluster.LabelsOf(claim.Labels), Requirements: decode.RequirementsOf(claim.Spec.Requirements),
		Taints: decode.TaintsOf(claim.Spec.Taints), StartupTaints: decode.TaintsOf(claim.Spec.StartupTaints),
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
	told.Claim = readDeadline(c, claim.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey])
	if note := readInterruption(c, claim.Annotations[cloudprovider.InterruptionAnnotation]); note != nil {
		told.Claim = note
	}
	if c.IsStandalone() {
		for _, problem := range validate.NodeClaim(claim, labels) {
			c.Problems = append(c.Problems, decode.ProblemOf(problem))
		}
	}
	if grace := claim.Spec.TerminationGracePeriod; grace != nil {
		c.HasTerminationGrace, c.TerminationGrace = true, grace.Duration
	}
	// Seats that can't be read reserve nothing; the pods then find the node's room like any other pod.
	c.Seats, _ = cluster.ParseSeats(claim.Annotations[cluster.SeatsAnnotation])
	told.MadeFor = readMadeFor(c, claim.Annotations[cluster.MadeForAnnotation])
	// A slot that can't be read is none, as on a claim of an older version: its end delays no other.
	// and one without a mark is a first replacement
	c.DriftReplacement, _ = cluster.ParseDriftReplacement(claim.Annotations[cluster.DriftAnnotation])
	c.Slot, _ = cluster.ParseSlot(claim.Annotations[cluster.SlotAnnotation])
	return c, told
}

// readMadeFor reads for whom a claim was made. If not all of it can be read, the node counts for the workloads whose
// pods wait for its seats, too, and whoever wrote it is told.
func readMadeFor(c *cluster.Claim, text string) *cluster.Note {
	var err error
	if c.MadeFor, err = cluster.ParseMadeFor(text); err == nil {
		return nil
	}
	c.MadeForUnread = true
	note := c.Note("InvalidMadeFor", reason.Said(fmt.Sprintf("annotation %s. The node counts for the workloads whose "+
		"pods wait "+
		"for a place on it, too. "+
		"Only Tenon writes this annotation; let nobody else change it", err)))
	note.Warning = true
	return &note
}

// readDeadline reads by when a claim must be gone. A time that can't be read is none, and whoever wrote it is told.
func readDeadline(c *cluster.Claim, text string) *cluster.Note {
	if text == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err == nil {
		c.Deadline = at
		return nil
	}
	note := c.Note("InvalidTerminationTimestamp", reason.Said(fmt.Sprintf(
		"annotation %s: %q is not a time and is ignored; use one like 2026-01-31T12:00:00Z, or remove it",
		v1.NodeClaimTerminationTimestampAnnotationKey, text)))
	note.Warning = true
	return &note
}

// ClaimChange says what it means that a claim looks like this now; changed is false if only its version differs.
func ClaimChange(old *ClaimEntry, now *cluster.Claim) (what change.Kind, changed bool) {
	if old == nil {
		return change.Supply, true // it may become a node, and counts against limits
	}
	x, y := *old.Claim, *now
	x.Version, y.Version = "", ""
	if reflect.DeepEqual(x, y) {
		return change.None, false
	}
	if x.DoNotDisrupt != y.DoNotDisrupt || !x.RestUntil.Equal(y.RestUntil) ||
		!x.SavingRestUntil.Equal(y.SavingRestUntil) {
		what = change.Disruption
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
	return what | change.Room, true
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

// readInterruption reads that the cloud takes a claim's instance away. A text that can't be read is none, and whoever
// wrote it is told.
func readInterruption(c *cluster.Claim, text string) *cluster.Note {
	i, err := cloudprovider.ParseInterruption(text)
	if err == nil {
		c.Interruption = cluster.Interruption{Kind: i.Kind, Deadline: i.Deadline, Force: i.Force}
		return nil
	}
	note := c.Note("InvalidInterruption", reason.Said(fmt.Sprintf("annotation %s is ignored: %v",
		cloudprovider.InterruptionAnnotation, err)))
	note.Warning = true
	return &note
}
