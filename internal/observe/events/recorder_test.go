package events

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// api hands what is created to the test, or fails.
type api struct {
	created chan *corev1.Event
	fail    int
}

func (a *api) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	if a.fail > 0 {
		a.fail--
		return errors.New("the server is away")
	}
	a.created <- obj.(*corev1.Event)
	return nil
}

// TestEveryTextIsAnEventOfItsOwn is why there is a writer at all: two causes with the same reason must both be read.
func TestEveryTextIsAnEventOfItsOwn(t *testing.T) {
	a := &api{created: make(chan *corev1.Event, 10), fail: 1}
	w := NewWriter(a, logr.Discard(), time.Now)
	go func() { _ = w.Start(t.Context()) }()
	pod := &corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: strings.Repeat("p", 253), UID: "u"}
	for _, note := range []string{"lost: the server is away", "first cause", "second cause, 100%"} {
		w.Eventf(pod, nil, "Warning", "FailedScheduling", "Scheduling", "%s", note)
	}
	w.Eventf(&corev1.ObjectReference{Kind: "NodePool", Name: "default"}, nil, "Normal", "Ready", "Checking", "fine")
	names := map[string]bool{}
	for _, want := range []string{"first cause", "second cause, 100%", "fine"} {
		select {
		case e := <-a.created:
			if e.Message != want || e.Source.Component != "karpenter" || e.Count != 1 || e.LastTimestamp.IsZero() ||
				e.FirstTimestamp != e.LastTimestamp || len(e.Name) > 253 || names[e.Name] {
				t.Errorf("event %+v, want %q under a name of its own", e, want)
			}
			names[e.Name] = true
			if e.InvolvedObject.Kind == "NodePool" && e.Namespace != "default" {
				t.Errorf("an event about a cluster-wide object is in namespace %q", e.Namespace)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no event %q", want)
		}
	}
}

// refusing fails in the way that the test says.
type refusing struct{ err error }

func (r *refusing) Create(context.Context, client.Object, ...client.CreateOption) error { return r.err }

// That events are lost is told to whoever runs the controller, but not of each of them; and nobody is told that those
// in a namespace that is being deleted are.
func TestLostEventsAreTold(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	a := &refusing{err: errors.New("events is forbidden")}
	w := NewWriter(a, log, func() time.Time { return now })
	lose := func(n int) {
		for range n {
			w.write(t.Context(), &corev1.Event{Reason: "R"})
		}
	}
	lose(100)
	now = now.Add(59 * time.Second)
	lose(1)
	if len(lines) != 1 || !strings.Contains(lines[0], "events is forbidden") || !strings.Contains(lines[0],
		`"lost"=1`) {
		t.Fatalf("logged %q", lines)
	}
	now = now.Add(time.Second)
	lose(1)
	if len(lines) != 2 || !strings.Contains(lines[1], `"lost"=101`) {
		t.Fatalf("logged %q", lines)
	}
	now = now.Add(time.Hour)
	gone := apierrors.NewForbidden(corev1.Resource("events"), "e", errors.New("it is being deleted"))
	gone.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	a.err = gone
	lose(1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	a.err = context.Canceled
	w.write(ended, &corev1.Event{Reason: "R"})
	if len(lines) != 2 {
		t.Errorf("logged %q", lines[2:])
	}
}

func TestEventsNeverHoldUpTheLoop(t *testing.T) {
	w := NewWriter(&api{}, logr.Discard(), time.Now) // nobody writes
	for range waitingEvents + 5 {
		w.Eventf(&corev1.ObjectReference{Name: "p"}, nil, "Normal", "R", "A", "n")
	}
	if n := w.dropped.Load(); n != 5 {
		t.Errorf("%d events were dropped, want 5", n)
	}
}

// Events that find no room are counted, and told once a minute however many there are.
func TestDroppedEventsAreToldOnceAMinute(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	w := NewWriter(&api{}, log, func() time.Time { return now })
	for range 3 {
		w.dropped.Add(7)
		w.tellDropped()
	}
	now = now.Add(warnAgain)
	w.tellDropped()
	now = now.Add(warnAgain)
	w.tellDropped()
	if len(lines) != 2 || !strings.Contains(lines[0], `"events"=7`) || !strings.Contains(lines[1], `"events"=14`) {
		t.Errorf("logged %q", lines)
	}
}

// A text that the API server would refuse is shortened, whoever writes it.
func TestLongTextsAreShortened(t *testing.T) {
	a := &api{created: make(chan *corev1.Event, 1)}
	w := NewWriter(a, logr.Discard(), time.Now)
	go func() { _ = w.Start(t.Context()) }()
	w.Eventf(&corev1.ObjectReference{Kind: "EC2NodeClass", Name: "default"}, nil, "Normal", "Ready", "Look", "%s",
		strings.Repeat("é", 1000))
	select {
	case e := <-a.created:
		if len(e.Message) > LongestNote || !strings.HasSuffix(e.Message, "é...") {
			t.Errorf("the text has %d bytes and ends with %q", len(e.Message), e.Message[len(e.Message)-8:])
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no event")
	}
}
