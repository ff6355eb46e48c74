package events

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
)

const (
	// LongestNote is the API server's limit for the text of an event.
	LongestNote = 1024
	// Nominations come in bursts of thousands; a steady few tell as much and leave the API server to the pods.
	nominationsPerSecond, nominationsBurst = 5, 10
	// A pod that can't be placed should hear of it soon, but thousands may fail at once.
	FailuresPerSecond, FailuresBurst = 20, 100
	// Every claim passes through half a dozen conditions; in a burst of claims the log and the metrics must do.
	transitionsPerSecond, transitionsBurst = 10, 100
	// What disruption does and why nodes stay concerns every node of a cluster: each kind of event has a ration of its
	// own.
	DisruptionsPerSecond, DisruptionsBurst = 5, 100

	warning          = corev1.EventTypeWarning
	failedScheduling = "FailedScheduling"
	// insufficientCapacity tells claims, and the pods that they were made for, that the cloud has none of what they
	// could become.
	insufficientCapacity = "InsufficientCapacityError"
)

// Recorder writes events: EventWriter, or a test's own.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Teller tells what is decided and done as events.
type Teller struct {
	rationed
	blockTeller blockTeller
	// PlannedPods are the pods that each claim was planned for and that is not launched yet.
	PlannedPods plannedPods
	// nextTurn is where the next round of unplaced pods begins; only the loop's own goroutine touches it.
	nextTurn int
}

// rationed writes events, each piece of news once, and of a kind no more than there is room for.
type rationed struct {
	recorder Recorder
	now      func() time.Time
	// Buckets ration the kinds of news of which there may be thousands at once.
	nominations, failures, notes, transitions, noCapacity *eventLimiter
	// limiters are those of what disruption tells, by reason.
	limiters map[string]*eventLimiter
	// recentEvents is what events have said, RecentLogs what the log has. LongEvents is for what holds for hours, and
	// LongLogs for what the log says of it to those who look closer.
	recentEvents, RecentLogs, LongEvents, LongLogs *News
}

// New returns a teller that writes to the recorder.
func New(recorder Recorder, now func() time.Time) *Teller {
	e := &Teller{rationed: rationed{
		recorder: recorder, now: now, recentEvents: NewNews(now), RecentLogs: NewNews(now),
		limiters:   make(map[string]*eventLimiter),
		LongEvents: newRecentNewsFor(now, toldAgain), LongLogs: newRecentNewsFor(now, toldAgain),
		nominations: newEventLimiter(nominationsPerSecond, nominationsBurst, now()),
		noCapacity:  newEventLimiter(nominationsPerSecond, nominationsBurst, now()),
		failures:    newEventLimiter(FailuresPerSecond, FailuresBurst, now()),
		notes:       newEventLimiter(FailuresPerSecond, FailuresBurst, now()),
		transitions: newEventLimiter(transitionsPerSecond, transitionsBurst, now()),
	}}
	for _, reason := range LimitedReasons() {
		e.limiters[reason] = newEventLimiter(DisruptionsPerSecond, DisruptionsBurst, now())
	}
	return e
}

// LimitedReasons are the reasons of events that have a ration of their own.
func LimitedReasons() []string {
	return []string{unconsolidatable, disruptionBlocked, consolidationCandidate, consolidationRejected,
		consolidationApproved,
		disruptionLaunching, disruptionWaiting, DryRun}
}

// TellPlaced tells pods where they go, as long as there is room for more events.
func (e *Teller) TellPlaced(p *plan.Plan) {
	for _, c := range p.Commands {
		if create, ok := c.(command.CreateClaim); ok && !e.tellNominated(create.Pods, "NodeClaim "+create.Name) {
			return
		}
	}
	for _, a := range p.Placement.Assigned {
		to := "Node " + a.Host
		if a.Claim == a.Host {
			to = "NodeClaim " + a.Claim
		}
		if !e.tellNominated([]*cluster.Pod{a.Pod}, to) {
			return
		}
	}
}

// tellNominated reports false once no more events may be written.
func (e *rationed) tellNominated(pods []*cluster.Pod, to string) bool {
	const reason = "Nominated"
	note := "Pod should schedule on " + to
	text := e.recentEvents.Hash(reason + note)
	for _, pod := range pods {
		if e.recentEvents.knows(pod.UID, text) {
			continue
		}
		if !e.nominations.allow(e.now()) {
			return false
		}
		e.tell(podRef(pod), corev1.EventTypeNormal, reason, "Scheduling", note)
	}
	return true
}

// tell writes an event unless it was told lately.
func (e *rationed) tell(ref *corev1.ObjectReference, kind, reason, action, note string) {
	if e.recentEvents.Learn(string(ref.UID), e.recentEvents.Hash(reason+note)) {
		e.write(ref, kind, reason, action, note)
	}
}

func (e *rationed) write(ref *corev1.ObjectReference, kind, reason, action, note string) {
	e.recorder.Eventf(ref, nil, kind, reason, action, "%s", shortened(note))
}

// shortened is the text of an event as long as the API server takes it: one that is too long would be refused.
func shortened(note string) string {
	if len(note) > LongestNote {
		note = strings.ToValidUTF8(note[:LongestNote-3], "") + "..."
	}
	return note
}

func podRef(p *cluster.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name,
		UID: types.UID(p.UID)}
}

func nodeRef(n *cluster.Node) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: types.UID(n.UID)}
}

func claimRef(name, uid string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: v1.GroupVersion().String(), Kind: "NodeClaim", Name: name,
		UID: types.UID(uid)}
}

func poolRef(name, uid string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: v1.GroupVersion().String(), Kind: "NodePool", Name: name,
		UID: types.UID(uid)}
}
