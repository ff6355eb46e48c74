package onlab

import (
	"flag"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// firstPodWithin is how long TestFirstPod may take to its first pod. Without it any time is good: tests are not about
// how busy a machine is.
var firstPodWithin = flag.Duration("first-pod-within", 0,
	"fail if the first pod takes longer (0: it may take any time)")

// TestFirstPod: on a fresh cluster one command and one manifest are enough for a pod on a new node. "make first-pod"
// prints how long it takes, and fails if that is more than 30 s.
func TestFirstPod(t *testing.T) {
	w := newWorld(t)
	shell := w.shell("EXAMPLES=" + w.path(root+"/examples"))
	began := time.Now()
	shell("helm install karpenter $CHART --namespace karpenter --create-namespace --set settings.cloudProvider=kwok " +
		"--wait")
	installed := time.Since(began)
	shell("kubectl apply -f $EXAMPLES/first-pod.yaml")
	var pod corev1.Pod
	w.eventually("the pod runs", func() string {
		var list corev1.PodList
		if err := w.c.List(t.Context(), &list, client.InNamespace("default")); err != nil || len(list.Items) != 1 {
			return "there is no pod yet"
		}
		if pod = list.Items[0]; pod.Status.Phase != corev1.PodRunning {
			return "it is " + string(pod.Status.Phase)
		}
		return ""
	})
	took := time.Since(began)
	t.Logf("from helm install to the first pod Running on a new node: %.1f s, of which %.1f s until the controller "+
		"was ready", took.Seconds(), installed.Seconds())
	if *firstPodWithin > 0 && took > *firstPodWithin {
		t.Errorf("the first pod took %.1f s, and may take %s", took.Seconds(), *firstPodWithin)
	}
	var node corev1.Node
	if err := w.c.Get(t.Context(), client.ObjectKey{Name: pod.Spec.NodeName}, &node); err != nil ||
		node.Labels[v1.NodePoolLabelKey] != "default" {
		t.Errorf("the pod is on node %s with the labels %v (%v)", pod.Spec.NodeName, node.Labels, err)
	}
	shell("kubectl delete nodepools,nodeclaims --all --timeout 2m") // waits until the nodes are drained and ended
	w.runHelm("uninstall", release, "--namespace", release, "--wait", "--timeout", "2m")
	if claims := w.claims(); len(claims) > 0 {
		t.Errorf("left are %s", strings.Join(claims, ", "))
	}
}
