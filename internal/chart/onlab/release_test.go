package onlab

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestARelease: install, a leader that goes, an upgrade, a rollback and the end of a release, with nodes and pods that
// nobody touches.
func TestARelease(t *testing.T) {
	w := newWorld(t)
	began := time.Now()
	out := w.runHelm("upgrade", "--install", release, w.helm.Chart("karpenter"), "--namespace", release,
		"--create-namespace", "--set", "settings.cloudProvider=kwok", "--wait", "--timeout", "2m")
	if !strings.Contains(out, "kubectl logs -n karpenter -l karpenter=controller") {
		t.Errorf("the notes do not tell the next step:\n%s", out)
	}
	w.apply("examples/kwok/nodepool.yaml")
	w.apply("examples/kwok/inflate.yaml")
	w.scale(1)
	t.Logf("from helm install to the first pod on a new node: %s", time.Since(began).Round(100*time.Millisecond))
	w.scale(20)
	w.checkReplicas()
	before, certificate := w.claims(), w.certificate()
	if len(certificate["tls.crt"]) == 0 {
		t.Errorf("the Secret holds no certificate: %v", certificate)
	}

	w.loseLeader()
	w.scale(22)

	w.runHelm("upgrade", release, w.helm.Chart("karpenter"), "--namespace", release, "--reuse-values", "--set",
		"logLevel=debug", "--wait", "--timeout", "2m")
	w.checkLevel("debug")
	w.runHelm("rollback", release, "--namespace", release, "--wait", "--timeout", "2m")
	w.checkLevel("info")
	if !reflect.DeepEqual(w.certificate(), certificate) {
		t.Error("the upgrade, or the rollback, has changed the certificate in the Secret")
	}
	for _, claim := range before {
		if !slices.Contains(w.claims(), claim) {
			t.Errorf("node %s has gone while only the controller changed", claim)
		}
	}

	w.scale(0)
	w.eventually("all nodes go", func() string { return strings.Join(w.claims(), ", ") })
	if err := w.c.DeleteAllOf(t.Context(), &v1.NodePool{}); err != nil {
		t.Fatal(err)
	}
	w.runHelm("uninstall", release, "--namespace", release, "--wait", "--timeout", "2m")
	w.checkGone()
}

// certificate is what the chart's Secret holds.
func (w *world) certificate() map[string][]byte {
	w.Helper()
	secret, err := w.core.CoreV1().Secrets(release).Get(w.Context(), "karpenter-cert", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return secret.Data
}

// checkReplicas looks at the two replicas: on two nodes, one of them leading, and their logs as the documents read
// them.
func (w *world) checkReplicas() {
	w.Helper()
	pods := w.controllers()
	if len(pods) != 2 || pods[0].Spec.NodeName == pods[1].Spec.NodeName {
		w.Fatalf("%d replicas, want two on two nodes", len(pods))
	}
	leads := w.leader()
	for i := range pods {
		log := w.logOf(pods[i].Name)
		if !strings.Contains(log, `"message":"starting"`) {
			w.Errorf("the log of %s is\n%s", pods[i].Name, log)
		}
		if strings.Contains(log, "has no effect") || strings.Contains(log, "forbidden") {
			w.Errorf("%s complains about what the chart sets, or may do too little:\n%s", pods[i].Name, log)
		}
		if pods[i].Labels["app.kubernetes.io/name"] != "karpenter" {
			w.Errorf("%s has the labels %v", pods[i].Name, pods[i].Labels)
		}
	}
	if !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == leads }) {
		w.Errorf("the lease is held by %s, which is no replica", leads)
	}
	w.checkConfined(len(pods))
}

// checkConfined makes sure that so many processes run, with no more than the chart's security settings leave them. That
// nothing is written but to volumes is tried where processes are confined, in labpods.
func (w *world) checkConfined(replicas int) {
	w.Helper()
	if runtime.GOOS != "linux" {
		return // no other system can, nor has it /proc
	}
	processes := w.processes()
	for _, status := range processes {
		for _, want := range []string{"\nNoNewPrivs:\t1\n", "\nCapEff:\t0000000000000000\n"} {
			if !strings.Contains(status, want) {
				w.Errorf("a process of the chart lacks %q:\n%s", want, status)
			}
		}
	}
	if len(processes) != replicas {
		w.Errorf("%d processes run, want %d", len(processes), replicas)
	}
}

// loseLeader deletes the replica that leads; another takes over, and a new one comes.
func (w *world) loseLeader() {
	w.Helper()
	old := w.leader()
	began := time.Now()
	if err := w.core.CoreV1().Pods(release).Delete(w.Context(), old, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	w.eventually("another replica leads", func() string {
		if now := w.leader(); now == old || now == "" {
			return fmt.Sprintf("the leader is %q, before it was %q", now, old)
		}
		return ""
	})
	w.Logf("another replica leads after %s", time.Since(began).Round(100*time.Millisecond))
}

// checkLevel makes sure that all replicas are of the revision with this log level.
func (w *world) checkLevel(level string) {
	w.Helper()
	w.eventually("the replicas of the revision before have gone", func() string {
		pods := w.controllers()
		for i := range pods {
			for _, e := range pods[i].Spec.Containers[0].Env {
				if e.Name == "LOG_LEVEL" && e.Value != level {
					return pods[i].Name + " has the level " + e.Value
				}
			}
		}
		if len(pods) != 2 {
			return fmt.Sprintf("%d replicas", len(pods))
		}
		return ""
	})
}

// checkGone makes sure that nothing of the release is left but the definitions.
func (w *world) checkGone() {
	w.Helper()
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Secret"},
		{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, {Group: "rbac.authorization.k8s.io",
			Version: "v1", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	} {
		w.eventually("nothing of the release is left", func() string {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := w.c.List(context.WithoutCancel(w.Context()), list,
				client.MatchingLabels{"app.kubernetes.io/instance": release}); err != nil {
				return err.Error()
			}
			if len(list.Items) > 0 {
				return list.Items[0].GetKind() + " " + list.Items[0].GetName()
			}
			return ""
		})
	}
	if err := w.c.List(w.Context(), &v1.NodePoolList{}); err != nil {
		w.Errorf("the definitions have gone with the release: %v", err)
	}
}
