package observe

import (
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
)

const (
	// repeatAfter is how long the same news about the same object is not told again.
	repeatAfter = 5 * time.Minute
	// longestNote is the API server's limit for the text of an event.
	longestNote = 1024
	// Nominations come in bursts of thousands; a steady few tell as much and leave the API server to the pods.
	nominationsPerSecond, nominationsBurst = 5, 10
)

// Recorder writes events; controller-runtime's manager has one.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// events writes events, each piece of news once.
type events struct {
	recorder    Recorder
	now         func() time.Time
	nominations flowcontrol.RateLimiter

	mu   sync.Mutex
	told map[uint64]time.Time
	logs map[uint64]time.Time
}

func newEvents(recorder Recorder, now func() time.Time) *events {
	return &events{
		recorder: recorder, now: now, told: make(map[uint64]time.Time), logs: make(map[uint64]time.Time),
		nominations: flowcontrol.NewTokenBucketRateLimiter(nominationsPerSecond, nominationsBurst),
	}
}

// placement tells pods where they go, or why they can't.
func (e *events) placement(p *plan.Plan) {
	for i := range p.Placement.Unplaced {
		u := &p.Placement.Unplaced[i]
		e.tell(podRef(u.Pod), corev1.EventTypeWarning, "FailedScheduling", "Scheduling", "Failed to schedule pod: "+u.String())
	}
	for _, c := range p.Commands {
		if create, ok := c.(command.CreateClaim); ok {
			e.nominate(create.Pods, "NodeClaim "+create.Name)
		}
	}
	for _, a := range p.Placement.Assigned {
		to := "Node " + a.Host
		if a.Claim == a.Host {
			to = "NodeClaim " + a.Claim
		}
		e.nominate([]*cluster.Pod{a.Pod}, to)
	}
}

func (e *events) nominate(pods []*cluster.Pod, to string) {
	for _, pod := range pods {
		if !e.fresh(e.told, pod.UID, "Nominated"+to, false) {
			continue
		}
		if !e.nominations.TryAccept() {
			return
		}
		e.tell(podRef(pod), corev1.EventTypeNormal, "Nominated", "Scheduling", "Pod should schedule on "+to)
	}
}

// done tells about acts that succeeded.
func (e *events) done(s *cluster.Snapshot, out command.Outcome) {
	switch c := out.Command.(type) {
	case command.DeleteClaim:
		e.deleted(s, c)
	case command.Evict:
		ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: c.Namespace, Name: c.Name, UID: types.UID(c.UID)}
		e.tell(ref, corev1.EventTypeNormal, "Evicted", "Draining", fmt.Sprintf("Evicted pod: node %s is being drained", c.Node))
	}
}

func (e *events) deleted(s *cluster.Snapshot, c command.DeleteClaim) {
	claim := claimRef(c.Claim, c.UID)
	switch c.Reason {
	case command.InsufficientCapacity:
		e.tell(claim, corev1.EventTypeWarning, "InsufficientCapacityError", "Launching", c.Message)
	case command.ClassNotReady:
		e.tell(claim, corev1.EventTypeWarning, "NodeClassNotReady", "Launching", c.Message)
	case command.LaunchTimeout, command.RegistrationTimeout:
		e.tell(claim, corev1.EventTypeWarning, string(c.Reason), "Launching", c.Message)
	case command.Empty:
		e.tell(claim, corev1.EventTypeNormal, "DisruptionTerminating", "Disrupting", "Disrupting NodeClaim: Empty, "+c.Message)
		if n := s.Node(c.Node); n != nil {
			e.tell(nodeRef(n), corev1.EventTypeNormal, "DisruptionTerminating", "Disrupting", "Disrupting Node: Empty, "+c.Message)
		}
	}
}

// failed tells about acts that did not succeed, on the object that a person would look at.
func (e *events) failed(s *cluster.Snapshot, out command.Outcome) {
	var ref *corev1.ObjectReference
	reason, action := "", ""
	switch c := out.Command.(type) {
	case command.LaunchInstance:
		ref, reason, action = claimRef(c.Claim, c.UID), "LaunchFailed", "Launching"
	case command.Terminate:
		if claim := s.Claim(c.Claim); claim != nil {
			ref, reason, action = claimRef(c.Claim, claim.UID), "FailedTermination", "Terminating"
		}
	case command.Evict:
		if n := s.Node(c.Node); n != nil {
			ref, reason, action = nodeRef(n), "FailedDraining", "Draining"
		}
	}
	if ref != nil {
		e.tell(ref, corev1.EventTypeWarning, reason, action, out.Err.Error())
	}
}

func (e *events) tell(ref *corev1.ObjectReference, kind, reason, action, note string) {
	if !e.fresh(e.told, string(ref.UID), reason+note, true) {
		return
	}
	if len(note) > longestNote {
		note = strings.ToValidUTF8(note[:longestNote-3], "") + "..."
	}
	e.recorder.Eventf(ref, nil, kind, reason, action, "%s", note)
}

// news reports whether the text is worth a line in the log, and remembers it.
func (e *events) news(uid, text string) bool { return e.fresh(e.logs, uid, text, true) }

// fresh reports whether the text has not been told of the object lately.
func (e *events) fresh(told map[uint64]time.Time, uid, text string, remember bool) bool {
	h := fnv.New64a()
	h.Write([]byte(uid))
	h.Write([]byte{0})
	h.Write([]byte(text))
	key, now := h.Sum64(), e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if at, ok := told[key]; ok && now.Sub(at) < repeatAfter {
		return false
	}
	if !remember {
		return true
	}
	if len(told) > 10000 {
		for old, at := range told {
			if now.Sub(at) >= repeatAfter {
				delete(told, old)
			}
		}
	}
	told[key] = now
	return true
}

func podRef(p *cluster.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.UID)}
}

func nodeRef(n *cluster.Node) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: types.UID(n.UID)}
}

func claimRef(name, uid string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: v1.GroupVersion().String(), Kind: "NodeClaim", Name: name, UID: types.UID(uid)}
}
