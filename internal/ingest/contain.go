package ingest

import (
	"fmt"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// TellBreakdowns has failures told that were contained while the world was taken in. It is called before anything is
// watched.
func (b *Book) TellBreakdowns(tell func(plan.PlannerFailure)) { b.tellBreakdown = tell }

// contain runs what takes in one object, or one answer of the cloud. Were a panic in it to end the process, the same
// object would end it again after each restart; so it becomes an error about this one. client-go would end the process.
// The lock is not held.
func (b *Book) contain(what string, f func()) (err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		err = fmt.Errorf("taking in %s failed, which is a mistake in Tenon: %.200s", what, fmt.Sprint(r))
		if b.tellBreakdown != nil {
			b.tellBreakdown(plan.PlannerFailure{Step: plan.StepWatch, Panic: err.Error(), Stack: string(debug.Stack())})
		}
	}()
	f()
	return nil
}

// setPodSafely takes in a pod, or what is plain about it if it can't be read.
func (b *Book) setPodSafely(pod *corev1.Pod) {
	err := b.contain("pod "+pod.Namespace+"/"+pod.Name, func() {
		_, _ = decode.Strip(pod) // it returns the same pod
		if b.onRead != nil {
			b.onRead(pod)
		}
		b.SetPod(pod)
	})
	if err != nil {
		b.setUnreadable(pod, err.Error())
	}
}

// setUnreadable takes in that a pod is there which can't be read. What it was known for stands, but for where it is and
// whether it is on its way out. One that was not known is never given a node, and its event says why.
func (b *Book) setUnreadable(pod *corev1.Pod, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, known := b.pods.Get(string(pod.UID))
	p := &cluster.Pod{UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name,
		Created: pod.CreationTimestamp.Time, FirstSeen: b.now(), Grace: 30 * time.Second}
	if known {
		copied := *old
		p = &copied
	} else {
		p.Class = &cluster.PodClass{Key: "unreadable-" + p.UID, Terms: []require.Set{nil},
			Requests: resource.Vector{resource.Pods: 1}, Unsupported: []string{why}}
	}
	p.Node = b.sharedNodeName(pod.Spec.NodeName)
	p.Finished = pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if pod.DeletionTimestamp != nil {
		p.Deleting = pod.DeletionTimestamp.Time
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			p.SchedulerSeen = true
			p.Unschedulable = c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	if p.Unschedulable && p.UnschedulableSince.IsZero() {
		p.UnschedulableSince = b.now()
	}
	b.pods.Set(p.UID, p)
	b.noteAndWake(change.Demand | change.Room)
}
