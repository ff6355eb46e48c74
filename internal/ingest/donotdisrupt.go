package ingest

import (
	"container/heap"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// protectionEnd is when a pod ceases to keep its node from being disrupted.
type protectionEnd struct {
	at  time.Time
	uid string
}

// protectionEnds is a heap, the earliest first. A pod whose time has changed is in it more than once: an ending counts
// only if the pod still has that time when it comes.
type protectionEnds []protectionEnd

func (e protectionEnds) Len() int           { return len(e) }
func (e protectionEnds) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e protectionEnds) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *protectionEnds) Push(x any)        { *e = append(*e, x.(protectionEnd)) }
func (e *protectionEnds) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// readDoNotDisrupt reads how long a pod keeps its node from being disrupted: for ever, or for a while from its start. A
// value that says neither protects nothing, and its author is told. The name from the time of Provisioners counts, too.
// The lock is held.
func (b *Book) readDoNotDisrupt(p *cluster.Pod, pod *corev1.Pod) {
	text, set := pod.Annotations[v1.DoNotDisruptAnnotationKey]
	b.notes.forget("Pod", p.UID)
	older := pod.Annotations[v1.DoNotEvictAnnotationKey] == "true"
	if !older && (!set || text == "false") {
		return
	}
	if older || text == "true" {
		p.DoNotDisrupt = true
		return
	}
	length, err := time.ParseDuration(text)
	if err != nil || length < 0 {
		note := p.Note("InvalidDoNotDisruptAnnotation", fmt.Sprintf(
			"annotation %s: %q is neither true nor a duration, so it protects nothing; use true, or a time from the "+
				"pod's start such as 30m",
			v1.DoNotDisruptAnnotationKey, text))
		note.Warning = true
		b.notes["Pod"+p.UID] = note
		return
	}
	p.DoNotDisrupt = true // a pod that has not started has all of its time before it
	if !p.Started.IsZero() {
		p.DoNotDisruptUntil = p.Started.Add(length)
		p.DoNotDisrupt = b.now().Before(p.DoNotDisruptUntil)
	}
}

// noteProtectionEnd remembers when a pod's protection ends, if that is news. The lock is held.
func (b *podState) noteProtectionEnd(old, now *cluster.Pod) {
	until := now.DoNotDisruptUntil
	if !now.DoNotDisrupt || until.IsZero() || old != nil && old.DoNotDisrupt && old.DoNotDisruptUntil.Equal(until) {
		return
	}
	heap.Push(&b.protectionEnds, protectionEnd{at: until, uid: now.UID})
	if len(b.protectionEnds) > 2*b.protectionEndsKept+collectFrom {
		b.dropOldProtectionEnds()
	}
}

// dropOldProtectionEnds drops the endings of pods that are gone or have another time by now. The lock is held.
func (b *podState) dropOldProtectionEnds() {
	b.protectionEnds = slices.DeleteFunc(b.protectionEnds, func(e protectionEnd) bool {
		p, found := b.pods.get(e.uid)
		return !found || !p.DoNotDisrupt || !p.DoNotDisruptUntil.Equal(e.at)
	})
	heap.Init(&b.protectionEnds)
	b.protectionEndsKept = len(b.protectionEnds)
}

// endProtections lets go of the pods whose time is up. The lock is held.
func (b *Book) endProtections(now time.Time) {
	for len(b.protectionEnds) > 0 && !b.protectionEnds[0].at.After(now) {
		e := heap.Pop(&b.protectionEnds).(protectionEnd)
		old, found := b.pods.get(e.uid)
		if !found || !old.DoNotDisrupt || !old.DoNotDisruptUntil.Equal(e.at) {
			continue
		}
		p := *old
		p.DoNotDisrupt = false
		b.pods.set(p.UID, &p)
		b.noteChange(podChange(old, &p))
	}
}
