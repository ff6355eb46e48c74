package events

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// reporter is who our events are from, in the words of the contract.
	reporter = "karpenter"
	// waitingEvents bounds how many events may wait to be written; more are dropped, since they are only news.
	waitingEvents = 1000
	writeTimeout  = 10 * time.Second
	// warnAgain is how long after a warning that events are lost the next one may come: they are lost by the hundred.
	warnAgain = time.Minute
)

// Creator creates objects.
type Creator interface {
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
}

// Writer writes each event as an object of its own. The client library's recorder would fold events of the same
// reason into the first one and lose the later texts, and it is in the texts that the cause is named. Repetition is
// kept down before events come here.
type Writer struct {
	api   Creator
	log   logr.Logger
	now   func() time.Time
	host  string
	queue chan *corev1.Event
	// dropped counts events that found no room in the queue since that was last told, which was at toldDropped.
	dropped     atomic.Int64
	toldDropped time.Time
	number      atomic.Int64
	// lost counts events that could not be written since the last warning, which was at warned.
	lost   int
	warned time.Time
}

// NewWriter returns a writer. It writes while Start runs.
func NewWriter(api Creator, log logr.Logger, now func() time.Time) *Writer {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &Writer{api: api, log: log, now: now, host: host, queue: make(chan *corev1.Event, waitingEvents)}
}

// Eventf puts an event in the queue; it never waits.
func (w *Writer) Eventf(regarding, _ runtime.Object, kind, reason, action, note string, args ...any) {
	ref, ok := regarding.(*corev1.ObjectReference)
	if !ok {
		return
	}
	namespace := ref.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	at := w.now()
	// The newer form of events, of events.k8s.io, may not have the count and the times by which people sort and
	// dashboards count.
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%.200s.%x%x", ref.Name,
			at.UnixNano(), w.number.Add(1))},
		FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at), Count: 1,
		Source: corev1.EventSource{Component: reporter}, ReportingController: reporter, ReportingInstance: w.host,
		Action: action, Reason: reason, InvolvedObject: *ref, Message: shortened(fmt.Sprintf(note, args...)),
		Type: kind,
	}
	select {
	case w.queue <- event:
	default:
		w.dropped.Add(1)
	}
}

// NeedLeaderElection says that events are written on every replica: the webhook of each has something to tell.
func (*Writer) NeedLeaderElection() bool { return false }

// Start writes events until the context ends. An event that can't be written is lost: it is news, not state.
func (w *Writer) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-w.queue:
			w.write(ctx, event)
		}
		w.tellDropped()
	}
}

// tellDropped says how many events found no room since it was last said. A full queue stays full for a while.
func (w *Writer) tellDropped() {
	now := w.now()
	if !w.toldDropped.IsZero() && now.Sub(w.toldDropped) < warnAgain {
		return
	}
	if n := w.dropped.Swap(0); n > 0 {
		w.log.Info("dropped events because too many were waiting", "events", n)
		w.toldDropped = now
	}
}

func (w *Writer) write(ctx context.Context, event *corev1.Event) {
	limited, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := w.api.Create(limited, event)
	if err == nil || ctx.Err() != nil {
		return
	}
	about := []any{"reason", event.Reason, "object", event.InvolvedObject.Name}
	if isGoing(err) {
		w.log.V(1).Info("could not write an event", append(about, "error", err.Error())...)
		return
	}
	w.lost++
	now := w.now()
	if !w.warned.IsZero() && now.Sub(w.warned) < warnAgain {
		w.log.V(1).Info("could not write an event", append(about, "error", err.Error())...)
		return
	}
	w.log.Error(err, "events can't be written, and what they tell is lost; check that the controller may create "+
		"events, and the API server", append(about, "lost", w.lost)...)
	w.lost, w.warned = 0, now
}

// isGoing reports whether the event is about something in a namespace that is being deleted: nobody misses it.
func isGoing(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
