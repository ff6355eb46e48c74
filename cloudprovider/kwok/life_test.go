package kwok_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

var errDead = errors.New("the controller is dead")

// launchCalls is what a launch asks of the API: read the NodeClass, write the record, make the Node, note that it
// joined.
const launchCalls = 4

// TestDeathAtAnyMoment kills the controller before and after each of its calls to the API, lets another one take over,
// and wants one instance and one node.
func TestDeathAtAnyMoment(t *testing.T) {
	for call := range launchCalls {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("call %d done=%v", call, lost), func(t *testing.T) {
				a := newAPI(nodeClass(0, nil))
				first := provider(t, a)
				stop := start(t, first)
				eventually(t, "Start has looked for instances", func() bool { return a.calls.Load() > 0 })
				dead := make(chan struct{})
				a.interfere(deathAt(call, lost, dead))
				_, _ = first.Create(t.Context(), claim("general-1"))
				<-dead
				stop()

				a.interfere(nil)
				second := provider(t, a)
				start(t, second)
				instance := create(t, second, claim("general-1"))
				n := waitForNode(t, a, "general-1")
				if n.Spec.ProviderID != instance.ProviderID {
					t.Errorf("the node is %s, the instance %s", n.Spec.ProviderID, instance.ProviderID)
				}
				wantCounts(t, a, 1, 1)
			})
		}
	}
}

// deathAt fails the call of that number, before it does anything or by losing its answer, and all that come later.
func deathAt(call int, lost bool, dead chan struct{}) ask {
	count := -1
	return func(string, runtime.Object) (error, error) {
		count++
		if count == call {
			close(dead)
		}
		switch {
		case count < call:
			return nil, nil
		case count == call && lost:
			return nil, errDead
		default:
			return errDead, nil
		}
	}
}

func wantCounts(t *testing.T, a *api, instances, nodes int) {
	t.Helper()
	records := &corev1.ConfigMapList{}
	joined := &corev1.NodeList{}
	if err := errors.Join(a.List(t.Context(), records), a.List(t.Context(), joined)); err != nil {
		t.Fatal(err)
	}
	if len(records.Items) != instances || len(joined.Items) != nodes {
		t.Errorf("%d instances and %d nodes, want %d and %d", len(records.Items), len(joined.Items), instances, nodes)
	}
}

func TestNodeJoinsAfterTheDelay(t *testing.T) {
	const delay = 300 * time.Millisecond
	a := newAPI(nodeClass(delay, nil))
	p := provider(t, a)
	start(t, p)
	begin := time.Now()
	create(t, p, claim("general-1"))
	if took := time.Since(begin); took > delay {
		t.Errorf("Create took %s: it waited for the node", took)
	}
	waitForNode(t, a, "general-1")
	if took := time.Since(begin); took < delay {
		t.Errorf("the node joined after %s, want at least %s", took, delay)
	}
}

func TestNodeJoinsAfterARestart(t *testing.T) {
	a := newAPI(nodeClass(time.Hour, nil))
	first := provider(t, a)
	stop := start(t, first)
	late := create(t, first, claim("late"))
	stop()
	if getNode(t, a, "late") != nil {
		t.Fatal("the node joined an hour early")
	}
	second := provider(t, a)
	start(t, second)
	if got, err := second.Get(t.Context(), late.ProviderID); err != nil || got.Type != late.Type {
		t.Errorf("after a restart, before the node joined: %+v, %v", got, err)
	}
	// An instance whose time came while no controller ran joins as soon as one does.
	idle := provider(t, newAPIWith(t, a, 0))
	create(t, idle, claim("due"))
	start(t, provider(t, a))
	waitForNode(t, a, "due")
	if getNode(t, a, "late") != nil {
		t.Error("the node joined an hour early after a restart")
	}
}

// newAPIWith is the same API server after the NodeClass got another delay.
func newAPIWith(t *testing.T, a *api, delay time.Duration) *api {
	t.Helper()
	class := nodeClass(delay, nil)
	if err := a.Client.Delete(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	class.ResourceVersion = ""
	if err := a.Client.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestJoiningIsTriedAgain(t *testing.T) {
	a := newAPI(nodeClass(0, nil))
	var failures atomic.Int32
	a.interfere(func(verb string, obj runtime.Object) (error, error) {
		if _, ok := obj.(*corev1.Node); ok && verb == "create" && failures.Add(1) <= 2 {
			return errors.New("the API server is busy"), nil
		}
		return nil, nil
	})
	p := provider(t, a)
	start(t, p)
	create(t, p, claim("general-1"))
	waitForNode(t, a, "general-1")
}

func TestANodeDeletedByHandLeavesTheInstance(t *testing.T) {
	a := newAPI(nodeClass(0, nil))
	p := provider(t, a)
	stop := start(t, p)
	instance := create(t, p, claim("general-1"))
	n := waitForNode(t, a, "general-1")
	stop() // and with it, the note that the node has joined is written
	if err := a.Delete(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	again := provider(t, a)
	start(t, again)
	if _, err := again.Get(t.Context(), instance.ProviderID); err != nil {
		t.Errorf("the instance went with its node: %v", err)
	}
	// Another instance's node shows that Start has gone through all of them.
	create(t, again, claim("general-2"))
	waitForNode(t, a, "general-2")
	if getNode(t, a, "general-1") != nil {
		t.Error("a node that was deleted by hand came back")
	}
}

func TestDeleteDoesNotWaitForFinalizers(t *testing.T) {
	a := newAPI(nodeClass(0, nil))
	p := provider(t, a)
	start(t, p)
	instance := create(t, p, claim("general-1"))
	n := waitForNode(t, a, "general-1")
	n.Finalizers = []string{v1.TerminationFinalizer}
	if err := a.Client.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), instance.ProviderID, instance.Owner()); err != nil {
		t.Fatalf("first Delete: %v", err)
	}
	if err := p.Delete(t.Context(), instance.ProviderID, instance.Owner()); !cloudprovider.IsNotFound(err) {
		t.Errorf("second Delete: %v, want NotFound although the node is held by its finalizer", err)
	}
	if n := getNode(t, a, "general-1"); n == nil || n.DeletionTimestamp.IsZero() {
		t.Errorf("node %v, want it deleting", n)
	}
}

func TestDeleteBeforeTheNodeJoins(t *testing.T) {
	a := newAPI(nodeClass(time.Hour, nil))
	p := provider(t, a)
	stop := start(t, p)
	instance := create(t, p, claim("general-1"))
	if err := p.Delete(t.Context(), instance.ProviderID, instance.Owner()); err != nil {
		t.Fatal(err)
	}
	stop()
	wantCounts(t, a, 0, 0)
}

// TestDeleteWhileTheNodeJoins deletes, as another controller would, in the moment in which the node is being made.
func TestDeleteWhileTheNodeJoins(t *testing.T) {
	a := newAPI(nodeClass(0, nil))
	p := provider(t, a)
	a.interfere(func(verb string, obj runtime.Object) (error, error) {
		if _, ok := obj.(*corev1.Node); ok && verb == "create" {
			if err := a.Client.DeleteAllOf(context.Background(), &corev1.ConfigMap{}); err != nil {
				return err, nil
			}
		}
		return nil, nil
	})
	stop := start(t, p)
	create(t, p, claim("general-1"))
	eventually(t, "no node is left", func() bool {
		records := &corev1.ConfigMapList{}
		return a.Client.List(t.Context(), records) == nil && len(records.Items) == 0 &&
			getNode(t, a, "general-1") == nil
	})
	stop()
	wantCounts(t, a, 0, 0)
}

func TestAnotherMachinesNodeIsLeftAlone(t *testing.T) {
	foreign := &corev1.Node{}
	foreign.Name, foreign.Spec.ProviderID = "general-1", "aws:///us-west-2a/i-0123"
	a := newAPI(nodeClass(0, nil), foreign)
	p := provider(t, a)
	start(t, p)
	instance := create(t, p, claim("general-1"))
	if err := p.Delete(t.Context(), instance.ProviderID, instance.Owner()); err != nil {
		t.Fatal(err)
	}
	if n := getNode(t, a, "general-1"); n == nil || n.Spec.ProviderID != foreign.Spec.ProviderID ||
		!n.DeletionTimestamp.IsZero() {
		t.Errorf("another machine's node was changed: %+v", n)
	}
}
