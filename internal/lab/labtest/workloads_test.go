package labtest

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// template is that of a pod that pauses.
func template(app string) corev1.PodTemplateSpec {
	out := deployment("", 0).Spec.Template
	out.Labels = map[string]string{"app": app}
	return out
}

func daemonSet(namespace, name string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: template(name),
		},
	}
}

// job has two pods, one after the other.
func job(namespace, name string, annotations map[string]string) *batchv1.Job {
	twice := int32(2)
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	j.Spec.Completions = &twice
	j.Spec.Template = template(name)
	j.Spec.Template.Annotations = annotations
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return j
}

// phases counts the pods of a workload by phase.
func phases(t *testing.T, c client.Client, namespace, app string) map[corev1.PodPhase]int {
	t.Helper()
	var list corev1.PodList
	if err := c.List(t.Context(), &list, client.InNamespace(namespace), client.MatchingLabels{"app": app}); err != nil {
		t.Fatal(err)
	}
	out := map[corev1.PodPhase]int{}
	for _, p := range list.Items {
		out[p.Status.Phase]++
	}
	return out
}

// Every controller of Kubernetes works: a DaemonSet has a pod on each node, Jobs complete, at once or after the time
// that they say, and a CronJob makes a Job each minute.
func TestEveryKindOfWorkloadRuns(t *testing.T) {
	l := New(t)
	c := l.Client(scheme.Scheme)
	namespace := l.Namespace()
	quick := job(namespace, "quick", nil)
	short := job(namespace, "short", map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": "100ms"})
	long := job(namespace, "long", map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": "1h"})
	every := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "every"}}
	every.Spec.Schedule = "* * * * *"
	every.Spec.JobTemplate.Spec = job("", "every", nil).Spec
	once := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "once", Labels: map[string]string{"app": "once"},
			Annotations: map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": "100ms"},
		},
		Spec: template("once").Spec,
	}
	once.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	create(t, c, daemonSet(namespace, "agent"), quick, short, long, every, once, simulatedNode("one", "8"),
		simulatedNode("two", "8"))
	for what, of := range map[string]struct {
		app   string
		phase corev1.PodPhase
		n     int
	}{
		"a DaemonSet's pod on each node": {"agent", corev1.PodRunning, 2}, "a Job to complete": {"quick",
			corev1.PodSucceeded, 2},
		"a Job with a short delay to complete": {"short", corev1.PodSucceeded, 2}, "a pod that is told to end": {"once",
			corev1.PodSucceeded, 1},
		"the CronJob's Job": {"every", corev1.PodSucceeded, 2},
	} {
		within(t, 2*time.Minute, what, func() bool { return phases(t, c, namespace, of.app)[of.phase] >= of.n })
	}
	within(t, time.Minute, "the Job to be complete", func() bool {
		return c.Get(t.Context(), client.ObjectKeyFromObject(quick), quick) == nil &&
			quick.Status.CompletionTime != nil && quick.Status.Succeeded == 2
	})
	if got := phases(t, c, namespace, "long"); got[corev1.PodRunning] != 1 || len(got) != 1 {
		t.Errorf("the pods of the Job that takes an hour are %v", got)
	}
}

// zonedNode is a node of a zone that takes so many volumes.
func zonedNode(name, zone string, volumes int) *corev1.Node {
	n := simulatedNode(name, "8")
	n.Finalizers = nil
	n.Labels[corev1.LabelTopologyZone] = zone
	n.Labels["lab.tenon.sh/volume-limit"] = fmt.Sprint(volumes)
	return n
}

// statefulSet has a volume of the class for each of its pods; without a class they are of the default one.
func statefulSet(namespace, name, class string, replicas int32) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.Spec.Replicas, s.Spec.ServiceName, s.Spec.PodManagementPolicy = &replicas, name, appsv1.ParallelPodManagement
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	s.Spec.Template = template(name)
	now := int64(0)
	s.Spec.Template.Spec.TerminationGracePeriodSeconds = &now
	s.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("8Gi")}
	if class != "" {
		claim.Spec.StorageClassName = &class
	}
	s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	return s
}
