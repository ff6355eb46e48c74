package ingest

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// startCountingEvictions notes from when on evictions, and nodes in vain, are ours to count: a replica may stand by for
// days before it leads.
func (b *Book) startCountingEvictions() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.evictions.Restart(b.now())
	b.tries.Restart(b.now())
}

// noteEviction remembers that a pod was evicted, if it was to save money. The pod itself may be gone by now.
func (b *Book) noteEviction(c command.Evict, at time.Time) {
	if c.Owner == "" || !b.leavesToSaveMoney(c.Node) {
		return
	}
	b.evictions.Add(c.Owner, c.UID, at)
}

// leavesToSaveMoney reports whether a node is taken away to save money.
func (b *machineState) leavesToSaveMoney(node string) bool {
	c := b.claimOfNode(node)
	if c == nil {
		return false
	}
	reason := c.Condition(cluster.DisruptionReason)
	return reason.Status == cluster.True && reason.Reason == string(command.Underutilized)
}

// readEvictionCost reads what a pod's eviction costs: 1, more or less by what it says of itself and by its priority,
// within bounds. The contract's own annotation comes before the one for ReplicaSets. One that can't be read is ignored,
// and its author is told.
func (b *Book) readEvictionCost(p *cluster.Pod, pod *corev1.Pod) {
	const most = 10
	b.notes.forget("PodCost", p.UID)
	cost := 1.0
	for _, key := range []string{v1.DisruptionCostAnnotationKey, corev1.PodDeletionCost} {
		text, set := pod.Annotations[key]
		if !set {
			continue
		}
		own, err := strconv.ParseInt(text, 10, 32)
		if err == nil {
			cost += float64(own) / (1 << 27)
			break
		}
		note := p.Note("InvalidDisruptionCost", fmt.Sprintf(
			"annotation %s: %q is not a whole number between -2147483648 and 2147483647, and is ignored; correct or "+
				"remove it", key, text))
		note.Warning = true
		b.notes["PodCost"+p.UID] = note
	}
	if priority := pod.Spec.Priority; priority != nil {
		cost += float64(*priority) / (1 << 25)
	}
	p.EvictionCost = min(max(cost, -most), most)
}
