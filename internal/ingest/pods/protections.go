package pods

import (
	"container/heap"
	"slices"
	"time"

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

// Protections are when pods cease to keep their nodes from being disrupted.
type Protections struct {
	ends protectionEnds
	kept int // how many were left when they were last looked through
}

// Note remembers when a pod's protection ends, if that is news. find finds a pod as it is now.
func (pr *Protections) Note(old, now *cluster.Pod, find func(uid string) (*cluster.Pod, bool)) {
	until := now.DoNotDisruptUntil
	if !now.DoNotDisrupt || until.IsZero() || old != nil && old.DoNotDisrupt && old.DoNotDisruptUntil.Equal(until) {
		return
	}
	heap.Push(&pr.ends, protectionEnd{at: until, uid: now.UID})
	if len(pr.ends) > 2*pr.kept+forgetFrom {
		pr.dropOld(find)
	}
}

// forgetFrom is how many endings may be remembered before they are looked through at all.
const forgetFrom = 4096

// dropOld drops the endings of pods that are gone or have another time by now.
func (pr *Protections) dropOld(find func(uid string) (*cluster.Pod, bool)) {
	pr.ends = slices.DeleteFunc(pr.ends, func(e protectionEnd) bool { return !e.counts(find) })
	heap.Init(&pr.ends)
	pr.kept = len(pr.ends)
}

// counts reports whether the pod still has the time.
func (e *protectionEnd) counts(find func(uid string) (*cluster.Pod, bool)) bool {
	p, found := find(e.uid)
	return found && p.DoNotDisrupt && p.DoNotDisruptUntil.Equal(e.at)
}

// Ended are the pods whose time is up, the earliest first.
func (pr *Protections) Ended(now time.Time, find func(uid string) (*cluster.Pod, bool)) (uids []string) {
	for len(pr.ends) > 0 && !pr.ends[0].at.After(now) {
		if e := heap.Pop(&pr.ends).(protectionEnd); e.counts(find) {
			uids = append(uids, e.uid)
		}
	}
	return uids
}
