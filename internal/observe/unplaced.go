package observe

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// cannot begins the text of every FailedScheduling.
const cannot = "Failed to schedule pod: "

// sentence is why a pod has no place, with the hashes under which it is remembered.
type sentence struct {
	text        string
	event, line uint64
}

// misfit is a pod without a place. Pods of one class share a sentence.
type misfit struct {
	pod *cluster.Pod
	why *sentence
}

// spoken tells sentences apart: by the first of the reasons, which pods of a class share, and by the volume that is named.
type spoken struct {
	reasons any
	volume  string
}

// deferred and taken stand for reasons that are no list: the pod waits for its turn, or for a volume that another pod uses.
type (
	deferred struct{}
	taken    struct{}
)

// explain puts the reasons of the pods into words, once for each class: the pods of a class share the list of reasons,
// so its first item stands for it.
func (e *events) explain(unplaced []schedule.Unplaced) []misfit {
	said := make(map[spoken]*sentence)
	out := make([]misfit, len(unplaced))
	for i := range unplaced {
		u := &unplaced[i]
		var class spoken
		switch {
		case u.Failed != nil:
			class.reasons = u.Failed
		case len(u.Unsupported) > 0:
			class.reasons = &u.Unsupported[0]
		case u.Held.Setback != nil:
			class.reasons = u.Held
		case u.Deferred:
			class.reasons = deferred{}
		case u.Taken != "":
			class = spoken{taken{}, u.Taken}
		case len(u.Pools) > 0:
			class = spoken{&u.Pools[0], u.Volume()}
		}
		why := said[class]
		if why == nil {
			text := u.String()
			why = &sentence{text: text, event: e.told.hash(failedScheduling + cannot + text), line: e.logged.hash(text)}
			said[class] = why
		}
		out[i] = misfit{pod: u.Pod, why: why}
	}
	return out
}

// refusedByScheduler lists the pods that are meant for a node on which kube-scheduler does not put them: they are placed as far as a plan
// can see, and wait.
func refusedByScheduler(s *cluster.Snapshot, assigned []schedule.Assignment) []schedule.Unplaced {
	if len(s.Setbacks) == 0 {
		return nil
	}
	var out []schedule.Unplaced
	for _, a := range assigned {
		b, f := s.HeldBy(a.Pod)
		if b != nil && f.Cause.Kind == cluster.CauseScheduler && f.Node == a.Host {
			out = append(out, schedule.Unplaced{Pod: a.Pod, Held: schedule.Hold{Setback: b, Failure: f, Sent: true}})
		}
	}
	return out
}

// unplaced tells pods why they have no place. Who was turned away for now is first the next time: with more pods than
// events, the first ones would otherwise be told again before the last ones are told at all.
func (e *events) unplaced(list []misfit) {
	if len(list) == 0 {
		return
	}
	start := e.turn % len(list)
	for i := range list {
		at := (start + i) % len(list)
		m := &list[at]
		if e.told.knows(m.pod.UID, m.why.event) {
			continue
		}
		if !e.failures.take(e.now()) {
			e.turn = at
			return
		}
		e.tell(podRef(m.pod), warning, failedScheduling, "Scheduling", cannot+m.why.text)
	}
}

// group is the pods that have no place for one reason and have not been in the log lately.
type group struct {
	first *cluster.Pod
	pods  int
	why   string
}

// groups sorts the pods that the log has not named lately by reason, in the order of the plan.
func (e *events) groups(list []misfit) []group {
	var out []group
	at := make(map[*sentence]int)
	for _, m := range list {
		if !e.logged.learn(m.pod.UID, m.why.line) {
			continue
		}
		i, ok := at[m.why]
		if !ok {
			i = len(out)
			at[m.why] = i
			out = append(out, group{first: m.pod, why: m.why.text})
		}
		out[i].pods++
	}
	return out
}
