package pods

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/reason"
)

// ReadDoNotDisrupt reads how long a pod keeps its node from being disrupted: for ever, or for a while from its start. A
// value that says neither protects nothing, and its author is told. The name from the time of Provisioners counts, too.
func ReadDoNotDisrupt(p *cluster.Pod, pod *corev1.Pod, now time.Time) *cluster.Note {
	text, set := pod.Annotations[v1.DoNotDisruptAnnotationKey]
	older := pod.Annotations[v1.DoNotEvictAnnotationKey] == "true"
	if !older && (!set || text == "false") {
		return nil
	}
	if older || text == "true" {
		p.DoNotDisrupt = true
		return nil
	}
	length, err := time.ParseDuration(text)
	if err != nil || length < 0 {
		note := p.Note("InvalidDoNotDisruptAnnotation", reason.Said(fmt.Sprintf(
			"annotation %s: %q is neither true nor a duration, so it protects nothing; use true, or a time from the "+
				"pod's start such as 30m",
			v1.DoNotDisruptAnnotationKey, text)))
		note.Warning = true
		return &note
	}
	p.DoNotDisrupt = true // a pod that has not started has all of its time before it
	if !p.Started.IsZero() {
		p.DoNotDisruptUntil = p.Started.Add(length)
		p.DoNotDisrupt = now.Before(p.DoNotDisruptUntil)
	}
	return nil
}

// ReadEvictionCost reads what a pod's eviction costs: 1, more or less by what it says of itself and by its priority,
// within bounds. The contract's own annotation comes before the one for ReplicaSets. One that can't be read is ignored,
// and its author is told.
func ReadEvictionCost(p *cluster.Pod, pod *corev1.Pod) (told *cluster.Note) {
	const most = 10
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
		note := p.Note("InvalidDisruptionCost", reason.Said(fmt.Sprintf(
			"annotation %s: %q is not a whole number between -2147483648 and 2147483647, and is ignored; correct or "+
				"remove it", key, text)))
		note.Warning = true
		told = &note
	}
	if priority := pod.Spec.Priority; priority != nil {
		cost += float64(*priority) / (1 << 25)
	}
	p.EvictionCost = min(max(cost, -most), most)
	return told
}
