package ingest

import (
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

const (
	// longestMessage is how many bytes are kept of what others say about a pod.
	longestMessage = 256
	// messageSettled is for how long kube-scheduler must have had nothing else to say about the pods that wait for a
	// node that is open, until its words are taken for the reason why none is there. It looks at a pod again within ten
	// seconds of a change of a node.
	messageSettled = 30 * time.Second
)

// schedulerMessage is what kube-scheduler says of a pod that it finds no place for, and since when.
type schedulerMessage struct {
	text  string
	since time.Time
}

// noteSchedulerMessage notes what kube-scheduler says of a pod. It stands beside the pod: a count of nodes that differs
// is no reason to plan. The lock is held.
func (b *Book) noteSchedulerMessage(p *cluster.Pod, refused bool, message string) {
	if !refused || message == "" || p.Node != "" {
		delete(b.schedulerMessages, p.UID)
		return
	}
	message, _, _ = strings.Cut(message, " preemption: ") // what it finds about preemption repeats the rest
	message = shortText(message)
	if had, known := b.schedulerMessages[p.UID]; known && had.text == message {
		return
	}
	b.schedulerMessages[p.UID] = schedulerMessage{text: message, since: b.now()}
}

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

// notePodEnd remembers why a pod has to leave a node that was made for its owner, and who says so. The lock is held.
func (b *Book) notePodEnd(p *cluster.Pod, pod *corev1.Pod) {
	end := decode.PodEndCondition(pod)
	if end == nil || p.Node == "" || len(b.trackers) == 0 {
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
	t := b.trackers[e.claim.UID]
	if t == nil {
		return
	}
	message := end.Reason
	if end.Message != "" {
		message += ": " + end.Message
	}
	for i := range t.owners {
		if outcome := &t.owners[i]; outcome.Owner == b.workloadOf(p) {
			outcome.evictionCause = cluster.Cause{Kind: cluster.CauseEvicted, By: decode.AuthorOf(pod.ManagedFields,
				decode.WroteEnd),
				Message: shortText(message)}
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
func (ur *usageReview) addMessage(p *cluster.Pod) {
	of := ownerAndClass{ur.s.Workload(p), p.Class.Key}
	h, v := ur.messages[of], ur.book.schedulerMessages[p.UID]
	h.silent = h.silent || v.text == ""
	h.oldest = cluster.Earlier(h.oldest, v.since)
	if v.since.After(h.newest) {
		h.text, h.newest = v.text, v.since
	}
	ur.messages[of] = h
}

// refusedByScheduler is what kube-scheduler says of the pods of an owner that wait for a node, if it has spoken of each
// of them anew since the node opened and has had nothing else to say for a while; empty if not. Had it only been slow,
// a pod would be there.
func (ur *usageReview) refusedByScheduler(c *cluster.Claim, owner string) string {
	var newest schedulerMessages
	for _, seat := range c.Seats {
		h, waits := ur.messages[ownerAndClass{owner, seat.Class}]
		switch {
		case !waits:
		case h.silent || !h.oldest.After(c.Condition(cluster.Initialized).Since) ||
			ur.s.Now.Before(h.newest.Add(messageSettled)):
			return ""
		case h.newest.After(newest.newest):
			newest = h
		}
	}
	return newest.text
}
