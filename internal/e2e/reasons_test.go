package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestEveryReasonIsSaid makes a pod for each reason why there can be no node; the pod's event names it.
func TestEveryReasonIsSaid(t *testing.T) {
	w := newWorld(t)
	w.apply("reasons/pools", "reasons/pods")
	w.run()
	for pod, words := range map[string][]string{
		"too-large":     {`NodePool "open"`, "is large enough", "cpu: the pod needs 500", "the largest of them leaves"},
		"no-such-label": {`NodePool "closed"`, "label team In [red]; this pool has blue", "neither sets nor allows"},
		"no-such-zone": {`NodePool "open"`, "matches the pod's topology.kubernetes.io/zone In [",
			"(this pool has us-west-2a, us-west-2b)"},
		"not-tolerated": {`NodePool "closed"`, "does not tolerate taint dedicated=blue:NoSchedule"},
		"beyond-limit":  {`NodePool "open"`, "limit of cpu 40"},
		"port-taken":    {`NodePool "open"`, "host port"},
		"no-volume":     {"persistent volume claim nowhere does not exist"},
		"no-company":    {"topology.kubernetes.io/zone", "its affinity asks for"},
	} {
		w.eventually(func() string { return w.toldAll(words, pod) })
	}
	// Of those that are alike, kube-scheduler chooses who stays behind.
	w.eventually(func() string {
		return w.toldAll([]string{"topology.kubernetes.io/zone", "its anti-affinity avoids"}, "crowd-0",
			"crowd-1", "crowd-2")
	})
	w.eventually(func() string {
		return w.toldAll([]string{"solo", "may be used by one pod at a time"}, "solo-0", "solo-1")
	})
	// The others have their nodes all the same, and none of them is unused.
	w.eventually(func() string { return w.running("crowd", 2) })
	w.eventually(func() string { return w.running("solo", 1) })
	w.eventually(w.tally)
	if empty := w.empty(); len(empty) > 0 {
		t.Error(strings.Join(empty, " and "))
	}
}

// toldAll says what is missing: an event on one of the pods has all the words.
func (w *world) toldAll(words []string, pods ...string) string {
	var texts []string
	for _, pod := range pods {
		texts = append(texts, w.messages("FailedScheduling", pod)...)
	}
	for _, text := range texts {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
			return ""
		}
	}
	return fmt.Sprintf("no event of %v has the words %q; they say\n%s", pods, words, strings.Join(texts, "\n"))
}

// running says what keeps n pods of an application from running.
func (w *world) running(app string, n int) string {
	running := 0
	for _, p := range w.pods() {
		if p.Labels["app"] == app && p.Status.Phase == corev1.PodRunning {
			running++
		}
	}
	if running != n {
		return fmt.Sprintf("%d pods of %s run, want %d", running, app, n)
	}
	return ""
}
