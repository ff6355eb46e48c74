package events

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// failedPrefix begins the text of every FailedScheduling.
const failedPrefix = "Failed to schedule pod: "

// unplacedReason is why a pod has no place, with the hashes under which it is remembered.
type unplacedReason struct {
	text           string
	event, logHash uint64
}

// UnplacedPod is a pod without a place. Pods of one class share a sentence.
type UnplacedPod struct {
	pod    *cluster.Pod
	reason *unplacedReason
}

// reasonKey tells sentences apart: by the first of the reasons, which pods of a class share, and by the volume that is
// named.
type reasonKey struct {
	reasons any
	volume  string
}

// deferredKey and taken stand for reasons that are no list: the pod waits for its turn, or for a volume that another
// pod uses.
type (
	deferredKey    struct{}
	takenVolumeKey struct{}
)

// ExplainUnplaced puts the reasons of the pods into words, once for each class: the pods of a class share the list of
// reasons, so its first item stands for it.
func (e *Teller) ExplainUnplaced(unplaced []schedule.Unplaced) []UnplacedPod {
	said := make(map[reasonKey]*unplacedReason)
	out := make([]UnplacedPod, len(unplaced))
	for i := range unplaced {
		u := &unplaced[i]
		var class reasonKey
		switch {
		case u.Failed != nil:
			class.reasons = u.Failed
		case len(u.Unsupported) > 0:
			class.reasons = &u.Unsupported[0]
		case u.Held.Tries != nil:
			class.reasons = u.Held
		case u.Deferred:
			class.reasons = deferredKey{}
		case u.TakenVolume != "":
			class = reasonKey{takenVolumeKey{}, u.TakenVolume}
		case len(u.Pools) > 0:
			class = reasonKey{&u.Pools[0], u.Volume()}
		}
		reason := said[class]
		if reason == nil {
			text := render.Unplaced(u)
			reason = &unplacedReason{text: text, event: e.recentEvents.Hash(failedScheduling + failedPrefix + text),
				logHash: e.RecentLogs.Hash(text)}
			said[class] = reason
		}
		out[i] = UnplacedPod{pod: u.Pod, reason: reason}
	}
	return out
}

// RefusedByScheduler lists the pods that are meant for a node on which kube-scheduler does not put them: they are
// placed as far as a plan can see, and wait.
func RefusedByScheduler(s *cluster.Snapshot, assigned []schedule.Assignment) []schedule.Unplaced {
	if len(s.WorkloadTries) == 0 {
		return nil
	}
	var out []schedule.Unplaced
	for _, a := range assigned {
		b, f := s.TriesHolding(a.Pod)
		if b != nil && f.Cause.Kind == cluster.CauseScheduler && f.Node == a.Host {
			out = append(out, schedule.Unplaced{Pod: a.Pod, Held: schedule.PodHold{Tries: b, Failure: f,
				MeantForNode: true}})
		}
	}
	return out
}

// TellUnplaced tells pods why they have no place. Who was turned away for now is first the next time: with more pods
// than events, the first ones would otherwise be told again before the last ones are told at all.
func (e *Teller) TellUnplaced(list []UnplacedPod) {
	if len(list) == 0 {
		return
	}
	start := e.nextTurn % len(list)
	for i := range list {
		at := (start + i) % len(list)
		m := &list[at]
		if e.recentEvents.knows(m.pod.UID, m.reason.event) {
			continue
		}
		if !e.failures.allow(e.now()) {
			e.nextTurn = at
			return
		}
		e.tell(podRef(m.pod), warning, failedScheduling, "Scheduling", failedPrefix+m.reason.text)
	}
}

// unplacedGroup is the pods that have no place for one reason and have not been in the log lately.
type unplacedGroup struct {
	First  *cluster.Pod
	Pods   int
	Reason string
}

// GroupUnplaced sorts the pods that the log has not named lately by reason, in the order of the plan.
func (e *Teller) GroupUnplaced(list []UnplacedPod) []unplacedGroup {
	var out []unplacedGroup
	at := make(map[*unplacedReason]int)
	for _, m := range list {
		if !e.RecentLogs.Learn(m.pod.UID, m.reason.logHash) {
			continue
		}
		i, ok := at[m.reason]
		if !ok {
			i = len(out)
			at[m.reason] = i
			out = append(out, unplacedGroup{First: m.pod, Reason: m.reason.text})
		}
		out[i].Pods++
	}
	return out
}
