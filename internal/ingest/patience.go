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

// ending is when a pod ceases to keep its node from being disrupted.
type ending struct {
	at  time.Time
	uid string
}

// endings is a heap, the earliest first. A pod whose time has changed is in it more than once: an ending counts only if
// the pod still has that time when it comes.
type endings []ending

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(ending)) }
func (e *endings) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// readDoNotDisrupt reads how long a pod keeps its node from being disrupted: for ever, or for a while from its start. A
// value that says neither protects nothing, and its author is told. The name from the time of Provisioners counts, too. The lock is held.
func (b *Book) readDoNotDisrupt(p *cluster.Pod, pod *corev1.Pod) {
	text, set := pod.Annotations[v1.DoNotDisruptAnnotationKey]
	b.forgetNote("Pod", p.UID)
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
			"annotation %s: %q is neither true nor a duration, so it protects nothing; use true, or a time from the pod's start such as 30m",
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

// keeps reports whether the annotations of a node or claim keep it from being disrupted, by today's name or by the one from the time of
// Provisioners.
func keeps(annotations map[string]string) bool {
	return annotations[v1.DoNotDisruptAnnotationKey] == "true" || annotations[v1.DoNotConsolidateAnnotationKey] == "true"
}

// awaitEnding remembers when a pod's protection ends, if that is news. The lock is held.
func (b *Book) awaitEnding(old, now *cluster.Pod) {
	until := now.DoNotDisruptUntil
	if !now.DoNotDisrupt || until.IsZero() || old != nil && old.DoNotDisrupt && old.DoNotDisruptUntil.Equal(until) {
		return
	}
	heap.Push(&b.endings, ending{at: until, uid: now.UID})
	if len(b.endings) > 2*b.endingsKept+sweepFrom {
		b.sweepEndings()
	}
}

// sweepEndings drops the endings of pods that are gone or have another time by now. The lock is held.
func (b *Book) sweepEndings() {
	b.endings = slices.DeleteFunc(b.endings, func(e ending) bool {
		p, found := b.pods.get(e.uid)
		return !found || !p.DoNotDisrupt || !p.DoNotDisruptUntil.Equal(e.at)
	})
	heap.Init(&b.endings)
	b.endingsKept = len(b.endings)
}

// endProtection lets go of the pods whose time is up. The lock is held.
func (b *Book) endProtection(now time.Time) {
	for len(b.endings) > 0 && !b.endings[0].at.After(now) {
		e := heap.Pop(&b.endings).(ending)
		old, found := b.pods.get(e.uid)
		if !found || !old.DoNotDisrupt || !old.DoNotDisruptUntil.Equal(e.at) {
			continue
		}
		p := *old
		p.DoNotDisrupt = false
		b.pods.set(p.UID, &p)
		b.note(podChange(old, &p))
	}
}

// forgetNote drops what was to be told about an object. The lock is held.
func (b *Book) forgetNote(kind, uid string) {
	if len(b.notes) > 0 {
		delete(b.notes, kind+uid)
	}
}
