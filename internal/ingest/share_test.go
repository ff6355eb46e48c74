package ingest

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/validate"
)

// There may be thousands of claims and many snapshots a second: a claim that has not changed is not copied for each.
func TestSnapshotsShareClaimsUntilTheyChange(t *testing.T) {
	now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	b := New(func() time.Time { return now }, validate.Labels{}, nil)
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u", ResourceVersion: "1"},
		Status: v1.NodeClaimStatus{ProviderID: "p", NodeName: "n"}}
	b.SetClaim(claim)
	first := b.Snapshot().Claims[0]
	if again := b.Snapshot().Claims[0]; again != first {
		t.Error("a claim that has not changed was copied")
	}
	b.Record(command.Outcome{Command: command.Terminate{Claim: "c", UID: "u", ProviderID: "p"}, At: now,
		InstanceGone: true})
	ended := b.Snapshot().Claims[0]
	if first.InstanceGone || !ended.InstanceGone {
		t.Errorf("the instance is gone: %t in the first snapshot, %t in the next", first.InstanceGone,
			ended.InstanceGone)
	}
	b.podEvents["n"] = now
	if joined := b.Snapshot().Claims[0]; !joined.LastPodEvent.Equal(now) || !ended.LastPodEvent.IsZero() {
		t.Errorf("the last event of a pod is %s, and %s in the snapshot before", joined.LastPodEvent,
			ended.LastPodEvent)
	}
	claim = claim.DeepCopy()
	claim.Annotations = map[string]string{v1.DoNotDisruptAnnotationKey: "true"}
	b.SetClaim(claim)
	if changed := b.Snapshot().Claims[0]; !changed.DoNotDisrupt {
		t.Error("a change of the claim did not show")
	}
}

func TestPoolIsReadAgainUnlessOnlyItsStatusHasChanged(t *testing.T) {
	b := New(time.Now, validate.Labels{}, nil)
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Generation: 1}}
	b.SetPool(pool)
	first := b.pools["p"].Pool
	change := func(edit func(*v1.NodePool)) {
		pool = pool.DeepCopy()
		edit(pool)
		b.SetPool(pool)
	}
	change(func(p *v1.NodePool) { p.Status.Nodes = 3 })
	if now := b.pools["p"].Pool; now.Status.Nodes != 3 || now.Hash != first.Hash || first.Status.Nodes != 0 {
		t.Errorf("%d nodes and hash %q, and %d in the pool before", now.Status.Nodes, now.Hash, first.Status.Nodes)
	}
	weight := int32(7)
	change(func(p *v1.NodePool) { p.Spec.Weight = &weight })
	if got := b.pools["p"].Pool.Weight; got != 7 {
		t.Errorf("its weight is %d, want 7: a change of the spec was not read", got)
	}
	change(func(p *v1.NodePool) { p.Annotations = map[string]string{"tenon.sh/dry-run": "true"} })
	if !b.pools["p"].Pool.Overrides.DryRun {
		t.Error("a change of the annotations was not read")
	}
	change(func(p *v1.NodePool) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
	if !b.pools["p"].Pool.Deleting {
		t.Error("that it is being deleted was not read")
	}
	change(func(p *v1.NodePool) { p.UID = "another" })
	if got := b.pools["p"].Pool.UID; got != "another" {
		t.Errorf("its UID is %q, want that of the namesake", got)
	}
}
