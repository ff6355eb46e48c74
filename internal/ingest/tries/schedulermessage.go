package tries

import (
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// longestMessage is how many bytes are kept of what others say about a pod.
	longestMessage = 256
	// MessageSettled is for how long kube-scheduler must have had nothing else to say about the pods that wait for a
	// node that is open, until its words are taken for the reason why none is there. It looks at a pod again within ten
	// seconds of a change of a node.
	MessageSettled = 30 * time.Second
)

// schedulerMessage is what kube-scheduler says of a pod that it finds no place for, and since when.
type schedulerMessage struct {
	text  string
	since time.Time
}

// NoteMessage notes what kube-scheduler says of a pod. It stands beside the pod: a count of nodes that differs
// is no reason to plan.
func (tr *Tracker) NoteMessage(p *cluster.Pod, refused bool, message string, now time.Time) {
	if !refused || message == "" || p.Node != "" {
		delete(tr.messages, p.UID)
		return
	}
	message, _, _ = strings.Cut(message, " preemption: ") // what it finds about preemption repeats the rest
	message = shortText(message)
	if had, known := tr.messages[p.UID]; known && had.text == message {
		return
	}
	tr.messages[p.UID] = schedulerMessage{text: message, since: now}
}

// ForgetMessage forgets what kube-scheduler said of a pod that is gone.
func (tr *Tracker) ForgetMessage(pod string) { delete(tr.messages, pod) }

// shortText is a text in one line, cut to a length that is safe to keep and to repeat.
func shortText(text string) string {
	if len(text) > 4*longestMessage {
		text = text[:4*longestMessage]
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longestMessage {
		text = strings.ToValidUTF8(text[:longestMessage-3], "") + "..."
	}
	return unique.Make(strings.ToValidUTF8(text, "")).Value()
}

// NotePodEnd remembers why a pod of the owner has to leave the claim's node, and who says so.
func (tr *Tracker) NotePodEnd(claim, owner string, end *corev1.PodCondition, author string) {
	t := tr.trackers[claim]
	if t == nil {
		return
	}
	message := end.Reason
	if end.Message != "" {
		message += ": " + end.Message
	}
	for i := range t.owners {
		if outcome := &t.owners[i]; outcome.Owner == owner {
			outcome.evictionCause = cluster.Cause{Kind: cluster.CauseEvicted, By: author, Message: shortText(message)}
		}
	}
}

// ownerAndClass are the pods of an owner and a class.
type ownerAndClass struct{ owner, class string }

// schedulerMessages is what kube-scheduler says of such pods: the newest words, since when, and since when at least it
// says what it says of the others. It is silent if it has said nothing of one of them.
type schedulerMessages struct {
	text           string
	oldest, newest time.Time
	silent         bool
}

// addMessage adds what kube-scheduler says of a pod that waits.
func (w *waiting) addMessage(p *cluster.Pod, v schedulerMessage) {
	of := ownerAndClass{w.s.Workload(p), p.Class.Key}
	h := w.messages[of]
	h.silent = h.silent || v.text == ""
	h.oldest = cluster.Earlier(h.oldest, v.since)
	if v.since.After(h.newest) {
		h.text, h.newest = v.text, v.since
	}
	w.messages[of] = h
}

// refusedByScheduler is what kube-scheduler says of the pods of an owner that wait for a node, if it has spoken of each
// of them anew since the node opened and has had nothing else to say for a while; empty if not. Had it only been slow,
// a pod would be there.
func (w *waiting) refusedByScheduler(c *cluster.Claim, owner string) string {
	var newest schedulerMessages
	for _, seat := range c.Seats {
		h, waits := w.messages[ownerAndClass{owner, seat.Class}]
		switch {
		case !waits:
		case h.silent || !h.oldest.After(c.Condition(cluster.Initialized).Since) ||
			w.s.Now.Before(h.newest.Add(MessageSettled)):
			return ""
		case h.newest.After(newest.newest):
			newest = h
		}
	}
	return newest.text
}
