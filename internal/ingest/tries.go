package ingest

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/tries"
)

// trackPod notes what a pod shows about the node that was made for it: one that has finished has run. It reports
// whether somebody waits for the news. The lock is held.
func (b *Book) trackPod(old, p *cluster.Pod) bool {
	if p.Daemon || p.Mirror || p.Node == "" || !b.tries.HasTrackers() {
		return false
	}
	if p.Phase == "Succeeded" {
		if c := b.claimOfNode(p.Node); c != nil {
			b.tries.NotePodFinished(c.UID, b.workloadOf(p))
		}
	}
	return (old == nil || old.Phase != p.Phase) && b.tries.Concerns(b.workloadOf, p)
}

// trackPodEnd notes why a pod has to leave its node, if it has to. The lock is held.
func (b *Book) trackPodEnd(p *cluster.Pod, pod *corev1.Pod) {
	end := decode.PodEndCondition(pod)
	if end == nil || p.Node == "" || !b.tries.HasTrackers() {
		return
	}
	if c := b.claimOfNode(p.Node); c != nil {
		b.tries.NotePodEnd(c.UID, b.workloadOf(p), end, decode.AuthorOf(pod.ManagedFields, decode.WroteEnd))
	}
}

// workloadOf is Snapshot.Workload of a pod.
func (b *references) workloadOf(p *cluster.Pod) string {
	return (&cluster.Snapshot{Owners: b.owners.Current}).Workload(p)
}

// allowTriesNow lets the next tries be made at once: something has changed that may be the cure. The lock is held.
func (b *Book) allowTriesNow() {
	b.tries.Allow(b.now())
	b.slots.Allow(b.now())
}

// slotEnd is what is known about the end of a claim that fills a slot. The lock is held.
func (b *Book) slotEnd(c *cluster.Claim) tries.SlotEnd {
	if c.Slot.Try == 0 {
		return tries.SlotEnd{}
	}
	return tries.SlotEnd{Node: b.nodeOf(c), InstanceGone: b.instancesGone.Has(c.UID), Refused: b.launches.WasRefused(c)}
}

// eachClaim yields the claims in no order. The lock is held.
func (b *machineState) eachClaim(yield func(*cluster.Claim) bool) {
	for _, e := range b.claims {
		if !yield(e.Claim) {
			return
		}
	}
}

// claimOfNode is the claim whose machine a node runs on; nil if it is not known. The lock is held.
func (b *machineState) claimOfNode(node string) *cluster.Claim {
	if n := b.nodes[node]; n != nil {
		return b.claims[b.claimBy[n.Node.ProviderID]].Value()
	}
	return nil
}

// nodeOf is the node of a claim, if it is known.
func (b *machineState) nodeOf(c *cluster.Claim) *cluster.Node {
	if e := b.nodes[b.nodeBy[c.ProviderID]]; e != nil {
		return e.Node
	}
	return nil
}
