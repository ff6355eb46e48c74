package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestEveryConstraintInOneCluster gives one cluster pods with every kind of constraint. kube-scheduler is the judge: it
// places all of them, and in the end none of the nodes is left empty. It is free to put a pod where room was meant for
// another, which then gets a node of its own; so the number of nodes is certain only until the first of them opens.
func TestEveryConstraintInOneCluster(t *testing.T) {
	t.Parallel()
	t.Run("all at once", func(t *testing.T) {
		w := newWorld(t)
		pods := w.createEveryConstraint()
		w.boot(`"10s"`)
		w.pending(pods)
		c := w.run()
		// While the nodes boot, every new look at the cluster must find that all pods have their seats.
		w.eventually(func() string { return w.launched(c) })
		// One go is what it should take. Two have been seen now and then, for a reason that is not known yet; more
		// would be a circle.
		if n := strings.Count(c.log.String(), planning); n > 2 {
			t.Errorf("the nodes were planned in %d goes, want one or two:\n%s", n, planned(c))
		}
		first := len(w.claims())
		w.boot("null")
		w.finish(pods)
		t.Logf("%d nodes were planned at first, %d were made in the end, with that of the gated pod", first,
			strings.Count(c.log.String(), creation))
	})
	t.Run("as they come", func(t *testing.T) {
		w := newWorld(t)
		w.run()
		w.finish(w.createEveryConstraint())
	})
}

// finish waits for the pods, the gated one at last, and checks what came of it.
func (w *world) finish(pods int) {
	w.Helper()
	w.everyPodRuns(pods)
	w.checkRules()
	w.liftGate()
	w.everyPodRuns(pods + 1)
	w.eventually(func() string { return strings.Join(w.empty(), " and ") })
	w.everyPodRuns(pods + 1)
	w.checkRules()
}

// createEveryConstraint makes all of it and returns the number of pods that are to run, without those of daemons and
// without the gated one.
func (w *world) createEveryConstraint() (pods int) {
	w.Helper()
	w.play(w.provisioner)
	w.play(w.starter)
	w.apply("constraints/pools", "constraints/requests", "constraints/nodes", "constraints/spread",
		"constraints/affinity",
		"constraints/ports", "constraints/volumes", "constraints/gated")
	var deployments appsv1.DeploymentList
	w.must(w.c.List(w.ctx, &deployments))
	for _, d := range deployments.Items {
		pods += int(*d.Spec.Replicas)
	}
	var sets appsv1.StatefulSetList
	w.must(w.c.List(w.ctx, &sets))
	for _, s := range sets.Items {
		pods += int(*s.Spec.Replicas)
	}
	return pods
}

// planning is what the controller writes of new nodes before it creates their claims.
const planning = "planned new nodes"

// launched says which claims have no instance yet.
func (w *world) launched(c *controller) string {
	if !strings.Contains(c.log.String(), planning) {
		return "nothing is planned yet"
	}
	claims := w.claims()
	for _, claim := range claims {
		if !meta.IsStatusConditionTrue(claim.Status.Conditions, v1.ConditionTypeLaunched) {
			return claim.Name + " is not launched"
		}
	}
	if made := strings.Count(c.log.String(), creation); made == 0 || made != len(claims) {
		return fmt.Sprintf("%d of %d claims are there", len(claims), made)
	}
	return ""
}

// boot sets how long the machines that are launched from now on take to join.
func (w *world) boot(delay string) {
	w.Helper()
	patch := fmt.Sprintf(`{"spec":{"nodeRegistrationDelay":%s}}`, delay)
	w.must(w.c.Patch(w.ctx, nodeClass("default"), client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// workers are the pods of all namespaces that no daemonset made.
func (w *world) workers() []corev1.Pod {
	var list corev1.PodList
	w.must(w.c.List(w.ctx, &list))
	var out []corev1.Pod
	for _, p := range list.Items {
		if p.Labels["app"] != "agent" {
			out = append(out, p)
		}
	}
	return out
}

// pending waits until kube-scheduler has found no place for n pods, which are all that there are without gates. A
// controller that starts then sees all of them at its first look. Otherwise it may look between two of them, and plans
// other nodes for them than for all together.
func (w *world) pending(n int) {
	w.Helper()
	w.eventually(func() string { return w.judged(n) })
}

// judged says whom kube-scheduler has yet to look at: n pods must have no place and the gated one its gate.
func (w *world) judged(n int) string {
	hopeless, rest := 0, []string{}
	for _, p := range w.workers() {
		if reason, message := verdict(&p); reason == corev1.PodReasonUnschedulable {
			hopeless++
		} else {
			rest = append(rest, p.Name+": "+reason+" "+message)
		}
	}
	if hopeless != n {
		return fmt.Sprintf("kube-scheduler has given up on %d of %d pods; the rest is\n%s", hopeless, n,
			strings.Join(rest, "\n"))
	}
	return ""
}

// everyPodRuns waits until n pods run and the books are right.
func (w *world) everyPodRuns(n int) {
	w.Helper()
	w.eventually(func() string {
		running, waiting := 0, []string{}
		for _, p := range w.workers() {
			switch {
			case p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil:
				running++
			case len(p.Spec.SchedulingGates) == 0:
				reason, message := verdict(&p)
				waiting = append(waiting, fmt.Sprintf("%s on %q, %s, deleted at %v: %s %s", p.Name, p.Spec.NodeName,
					p.Status.Phase, p.DeletionTimestamp, reason, message))
			}
		}
		if running != n || len(waiting) > 0 {
			if len(waiting) == 0 {
				waiting = w.lacking()
			}
			return fmt.Sprintf("%d of %d pods run; waiting are\n%s", running, n, strings.Join(waiting, "\n"))
		}
		return ""
	})
	w.eventually(w.tally)
}

// lacking says which owners have fewer pods than they want, and the latest events about them: a pod that nobody has
// made is in no list of pods.
func (w *world) lacking() []string {
	w.Helper()
	var replicaSets appsv1.ReplicaSetList
	w.must(w.c.List(w.ctx, &replicaSets))
	var statefulSets appsv1.StatefulSetList
	w.must(w.c.List(w.ctx, &statefulSets))
	var events corev1.EventList
	w.must(w.c.List(w.ctx, &events))
	var out []string
	tell := func(kind, name string, want *int32, have int32) {
		if want == nil || have >= *want {
			return
		}
		out = append(out, fmt.Sprintf("%s %s has %d of %d pods", kind, name, have, *want))
		for _, e := range events.Items {
			if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name {
				out = append(out, fmt.Sprintf("  %s %s: %s", e.LastTimestamp.Format(time.TimeOnly), e.Reason,
					e.Message))
			}
		}
	}
	for _, s := range replicaSets.Items {
		tell("ReplicaSet", s.Name, s.Spec.Replicas, s.Status.Replicas)
	}
	for _, s := range statefulSets.Items {
		tell("StatefulSet", s.Name, s.Spec.Replicas, s.Status.Replicas)
	}
	return out
}

// verdict is what kube-scheduler says about a pod that it has not placed.
func verdict(p *corev1.Pod) (reason, message string) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Reason, c.Message
		}
	}
	return "", "not looked at"
}

// planned are the controller's words about new nodes.
func planned(c *controller) string {
	var out []string
	for _, line := range strings.Split(c.log.String(), "\n") {
		if strings.Contains(line, planning) || strings.Contains(line, creation) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// empty lists the nodes that have no pod but those of daemons.
func (w *world) empty() []string {
	home := map[string]int{}
	for _, p := range w.workers() {
		home[p.Spec.NodeName]++
	}
	var out []string
	for _, n := range w.nodes() {
		if home[n.Name] == 0 {
			out = append(out, "node "+n.Name+" is empty")
		}
	}
	return out
}

// liftGate takes the gate off the last pod, of which nobody may have taken notice before.
func (w *world) liftGate() {
	w.Helper()
	gated := &corev1.Pod{}
	w.must(w.c.Get(w.ctx, client.ObjectKey{Namespace: w.lab.Namespace(), Name: "gated"}, gated))
	if gated.Spec.NodeName != "" || len(w.messages("FailedScheduling", "gated"))+
		len(w.messages("Nominated", "gated")) > 0 {
		w.Error("something was done for a pod that is gated")
	}
	w.must(w.c.Patch(w.ctx, gated, client.RawPatch("application/json-patch+json",
		[]byte(`[{"op":"remove","path":"/spec/schedulingGates"}]`))))
}
