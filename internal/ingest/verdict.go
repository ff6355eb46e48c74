package ingest

import (
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// longestWords is how many bytes are kept of what others say about a pod.
	longestWords = 256
	// heardOut is for how long kube-scheduler must have had nothing else to say about the pods that wait for a node that is open, until
	// its words are taken for the reason why none is there. It looks at a pod again within ten seconds of a change of a node.
	heardOut = 30 * time.Second
	// endField is how the fields of a pod name the condition that it has to end.
	endField = `"k:{\"type\":\"DisruptionTarget\"}"`
)

// verdict is what kube-scheduler says of a pod that it finds no place for, and since when.
type verdict struct {
	words string
	since time.Time
}

// hear notes what kube-scheduler says of a pod. It stands beside the pod: a count of nodes that differs is no reason to plan. The lock
// is held.
func (b *Book) hear(p *cluster.Pod, refused bool, words string) {
	if !refused || words == "" || p.Node != "" {
		delete(b.verdicts, p.UID)
		return
	}
	words, _, _ = strings.Cut(words, " preemption: ") // what it finds about preemption repeats the rest
	words = shortWords(words)
	if had, known := b.verdicts[p.UID]; known && had.words == words {
		return
	}
	b.verdicts[p.UID] = verdict{words: words, since: b.now()}
}

// shortWords is a text in one line, cut to a length that is safe to keep and to repeat.
func shortWords(text string) string {
	if len(text) > 4*longestWords {
		text = text[:4*longestWords]
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longestWords {
		text = strings.ToValidUTF8(text[:longestWords-3], "") + "..."
	}
	return unique.Make(strings.ToValidUTF8(text, "")).Value()
}

// endOf is the condition that says why a pod has to end, if it does.
func endOf(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// noteEnd remembers why a pod has to leave a node that was made for its owner, and who says so. The lock is held.
func (b *Book) noteEnd(p *cluster.Pod, pod *corev1.Pod) {
	end := endOf(pod)
	if end == nil || p.Node == "" || len(b.trials) == 0 {
		return
	}
	n := b.nodes[p.Node]
	if n == nil {
		return
	}
	e := b.claims[b.claimBy[n.node.ProviderID]]
	if e == nil {
		return
	}
	t := b.trials[e.claim.UID]
	if t == nil {
		return
	}
	words := end.Reason
	if end.Message != "" {
		words += ": " + end.Message
	}
	for i := range t.fates {
		if f := &t.fates[i]; f.Owner == b.rootOf(p) {
			f.end = cluster.Cause{Kind: cluster.CauseEvicted, By: authorOf(pod.ManagedFields, wroteEnd), Words: shortWords(words)}
		}
	}
}

// kin are the pods of an owner and a class.
type kin struct{ owner, class string }

// heard is what kube-scheduler says of such pods: the newest words, since when, and since when at least it says what it says of the
// others. It is silent if it has said nothing of one of them.
type heard struct {
	words         string
	first, newest time.Time
	silent        bool
}

// hear adds what kube-scheduler says of a pod that waits.
func (l *look) hear(p *cluster.Pod) {
	of := kin{l.s.Root(p), p.Class.Key}
	h, v := l.heard[of], l.b.verdicts[p.UID]
	h.silent = h.silent || v.words == ""
	h.first = cluster.Earlier(h.first, v.since)
	if v.since.After(h.newest) {
		h.words, h.newest = v.words, v.since
	}
	l.heard[of] = h
}

// refusedByScheduler is what kube-scheduler says of the pods of an owner that wait for a node, if it has spoken of each of them anew
// since the node opened and has had nothing else to say for a while; empty if not. Had it only been slow, a pod would be there.
func (l *look) refusedByScheduler(c *cluster.Claim, owner string) string {
	var newest heard
	for _, seat := range c.Seats {
		h, waits := l.heard[kin{owner, seat.Class}]
		switch {
		case !waits:
		case h.silent || !h.first.After(c.Condition(cluster.Initialized).Since) || l.s.Now.Before(h.newest.Add(heardOut)):
			return ""
		case h.newest.After(newest.newest):
			newest = h
		}
	}
	return newest.words
}
