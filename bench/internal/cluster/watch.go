package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/tenon-sh/tenon/bench/internal/report"
)

// tellEvery is how often a wait says how far things are.
const tellEvery = 10 * time.Second

// unregistered is the taint of a node that its controller has not accepted yet.
const unregistered = "karpenter.sh/unregistered"

// Watch follows pods, nodes and claims.
type Watch struct {
	timeline *timeline
	// roll is there once the nodes are to be replaced.
	roll atomic.Pointer[roll]
}

// Watch begins to follow the objects of the lab; it ends with ctx. Claims are left out where their kind is not served.
func (c *Client) Watch(ctx context.Context, claims bool) (*Watch, error) {
	w := &Watch{timeline: newTimeline()}
	typed := informers.NewSharedInformerFactory(c.typed, 0)
	all := []cache.SharedIndexInformer{typed.Core().V1().Pods().Informer(), typed.Core().V1().Nodes().Informer()}
	other := dynamicinformer.NewDynamicSharedInformerFactory(c.dynamic, 0)
	if claims {
		resource, _ := resourceOf("NodeClaim")
		all = append(all, other.ForResource(resource).Informer())
	}
	for _, informer := range all {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    w.saw,
			UpdateFunc: func(_, object any) { w.saw(object) },
			DeleteFunc: w.lost,
		})
		if err != nil {
			return nil, fmt.Errorf("watch the lab: %w", err)
		}
	}
	typed.Start(ctx.Done())
	other.Start(ctx.Done())
	for _, informer := range all {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return nil, fmt.Errorf("watch the lab: %w", context.Cause(ctx))
		}
	}
	return w, nil
}

func (w *Watch) saw(object any) {
	now := time.Now()
	switch o := object.(type) {
	case *corev1.Pod:
		w.timeline.step("pod/"+string(o.UID), now, podSteps(o)...)
	case *corev1.Node:
		w.timeline.step("node/"+string(o.UID), now, nodeSteps(o)...)
	case *unstructured.Unstructured:
		if r := w.roll.Load(); r != nil {
			r.saw("claim/"+string(o.GetUID()), phaseOf(o), now)
		}
		w.timeline.step("claim/"+string(o.GetUID()), now, claimSteps(o)...)
	}
}

func (w *Watch) lost(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	now := time.Now()
	switch o := object.(type) {
	case *corev1.Pod:
		w.timeline.gone("pod/"+string(o.UID), now)
	case *corev1.Node:
		w.timeline.gone("node/"+string(o.UID), now)
	case metav1.Object:
		if r := w.roll.Load(); r != nil {
			r.lost("claim/"+string(o.GetUID()), now)
		}
		w.timeline.gone("claim/"+string(o.GetUID()), now)
	}
}

func podSteps(pod *corev1.Pod) []string {
	steps := []string{podCreated}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
			c.Reason == corev1.PodReasonUnschedulable {
			steps = append(steps, podUnschedulable)
		}
	}
	if pod.Spec.NodeName != "" {
		steps = append(steps, podBound)
	}
	if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
		steps = append(steps, podRunning)
	}
	return steps
}

// nodeSteps tells an admitted node, which the controller has let in, from an open one, from which the node controller
// of Kubernetes has also taken its own taint: that takes seconds where the machine is busy, and no contestant can hurry
// it.
func nodeSteps(node *corev1.Node) []string {
	steps := []string{nodeCreated}
	ready := false
	for _, c := range node.Status.Conditions {
		ready = ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}
	if !ready {
		return steps
	}
	steps = append(steps, nodeReady)
	tainted := func(key string) bool {
		return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
	}
	if tainted(unregistered) {
		return steps
	}
	steps = append(steps, nodeAdmitted)
	if tainted(corev1.TaintNodeNotReady) {
		return steps
	}
	return append(steps, nodeOpen)
}

func claimSteps(claim *unstructured.Unstructured) []string {
	steps := []string{claimCreated}
	for _, c := range []struct{ condition, step string }{
		{"Launched", claimLaunched}, {"Registered", claimRegistered}, {"Initialized", claimInitialized},
	} {
		if isTrue(claim, c.condition) {
			steps = append(steps, c.step)
		}
	}
	return steps
}

// Begin sets the zero of the clock.
func (w *Watch) Begin(at time.Time) { w.timeline.restart(at) }

// BeginRoll sets the zero of the clock and calls all nodes that are there old. So many of them may go at a time.
func (w *Watch) BeginRoll(at time.Time, budget int) {
	w.Begin(at)
	w.roll.Store(newRoll(at, budget, w.timeline.objects(claimCreated)))
}

// Roll says how the replacement of the nodes went so far.
func (w *Watch) Roll() report.Roll { return w.roll.Load().result() }

// Stages says when the steps were taken.
func (w *Watch) Stages() map[string]report.Span { return w.timeline.stages() }

// Created counts the pods that have come since the beginning. Where owners want no more than they had, each stands for
// one that was made to leave.
func (w *Watch) Created() int { return w.timeline.stages()[podCreated].Count }

// Still is when something last changed, and the smallest number of Running pods since the beginning.
func (w *Watch) Still() (since time.Time, least int) { return w.timeline.still() }

// Wait is something to wait for: whether it has come about, and how far things are, in words.
type Wait func() (done bool, state string)

// Running waits for so many pods to be Running.
func (w *Watch) Running(pods int) Wait {
	return func() (bool, string) {
		n := w.timeline.now(podRunning)
		return n >= pods, fmt.Sprintf("%d of %d pods are Running, %d bound, on %d nodes", n, pods,
			w.timeline.now(podBound), w.timeline.now(nodeCreated))
	}
}

// ReadyNodes waits for so many nodes that take pods.
func (w *Watch) ReadyNodes(nodes int) Wait {
	return func() (bool, string) {
		n := w.timeline.now(nodeOpen)
		return n >= nodes, fmt.Sprintf("%d of %d nodes take pods", n, nodes)
	}
}

// Initialized waits for so many nodes that the contestant calls ready for pods.
func (w *Watch) Initialized(nodes int) Wait {
	return func() (bool, string) {
		n := w.timeline.now(claimInitialized)
		return n >= nodes && w.timeline.now(nodeOpen) >= nodes, fmt.Sprintf("%d of %d nodes are initialized", n, nodes)
	}
}

// Only waits for so many pods to be Running and none else to be there.
func (w *Watch) Only(pods int) Wait {
	return func() (bool, string) {
		n, all := w.timeline.now(podRunning), w.timeline.now(podCreated)
		return n == pods && all == pods, fmt.Sprintf("%d of %d pods are Running, and %d in all, on %d nodes", n, pods,
			all, w.timeline.now(nodeCreated))
	}
}

// Settled waits until only so many pods are there, all Running, and nothing has changed for a while.
func (w *Watch) Settled(pods int, quiet time.Duration) Wait {
	only := w.Only(pods)
	return func() (bool, string) {
		done, state := only()
		since, _ := w.timeline.still()
		return done && time.Since(since) >= quiet, fmt.Sprintf("%s; %.0f s without a change", state,
			time.Since(since).Seconds())
	}
}

// Rolled waits until no old node is left and so many pods run.
func (w *Watch) Rolled(pods int) Wait {
	only := w.Only(pods)
	return func() (bool, string) {
		done, state := only()
		left := w.roll.Load().left()
		return done && left == 0, fmt.Sprintf("%d old nodes are left; %s", left, state)
	}
}

// NoNodes waits until the last node is gone.
func (w *Watch) NoNodes() (bool, string) {
	n := w.timeline.now(nodeCreated)
	return n == 0, fmt.Sprintf("%d nodes and %d pods are left", n, w.timeline.now(podCreated))
}

// Await looks whenever something has changed, and now and then tells how far things are.
func (w *Watch) Await(ctx context.Context, wait Wait, tell func(state string)) error {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		done, state := wait()
		if done {
			return nil
		}
		select {
		case <-w.timeline.changed:
		case <-tick.C:
			_, state = wait()
			tell(state)
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", state, context.Cause(ctx))
		}
	}
}
