package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestEC2WalkThrough is the story of the founding documents: classes and pools are applied, pods that ask for all kinds
// of machines get them, and the machines go when the pods do, each after the time that its pool gives. While the
// slowest of them waits, AWS gives every kind of trouble.
func TestEC2WalkThrough(t *testing.T) {
	w := newAWSWorld(t)
	port := freePort(t)
	certificate := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter-cert"}}
	w.must(client.IgnoreNotFound(w.c.Delete(w.ctx, certificate))) // another test's: this controller is to fill its own
	asked := w.noteRequests()
	c := w.run("--kubeconfig", w.asServiceAccount(asked.config()), "--capacity-backoff-first=1s", "--metrics-port",
		port, "--webhook-port", freePort(t))
	w.apply("aws/classes", "aws/pools", "aws/pods")
	w.eventually(w.allRunning(9))
	w.eventually(w.allInitialized)
	w.eventually(w.tally)
	w.step("the pods run")
	w.walkedWell()
	w.tagged()
	w.eventually(scraped(port,
		`aws_sdk_go_request_total{action="CreateFleet",code="200",service="EC2"}`,
		`karpenter_cloudprovider_batcher_batch_size_count{batcher="create_fleet"}`,
		`karpenter_cloudprovider_instance_type_offering_available{`,
		`karpenter_ec2nodeclasses_userdata_bytes{ec2nodeclass="default"}`,
		`operator_ec2nodeclass_status_condition_count{`, `tenon_aws_price_age_seconds{kind="spot"}`,
		`tenon_interruption_queue_readable 1`))

	e := w.record()
	leaving := time.Now()
	w.must(w.c.Delete(w.ctx, w.deployment("spread-me", 0, "1")))
	w.endPods()
	left := time.Now()
	w.step("the pods are gone")
	w.troubleOfAll()
	w.troubleOfOne(e)
	w.endPods()
	w.step("the trouble is over")
	w.eventually(func() string {
		if e.goneAt("default").IsZero() {
			return "the empty node of the pool that waits for 30 s is still there"
		}
		return ""
	})
	// The last pod has left at some time in between, of which a NodeClaim keeps the seconds.
	if gone := e.goneAt("default"); gone.Sub(leaving) < 29*time.Second || gone.Sub(left) > time.Minute {
		t.Errorf("the empty node of the pool that waits for 30 s went %s after the pods began to leave, and %s after "+
			"they had", gone.Sub(leaving), gone.Sub(left))
	}
	w.eventually(w.nothingLeft)
	w.step("nothing is left")
	if log := c.log.String(); strings.Contains(log, "is forbidden") {
		t.Errorf("the roles of charts/karpenter/rbac are not enough:\n%s", tail(log, 40))
	}
	w.compareRoles(asked, roleFiles()...)
}

// endPods deletes all pods at once.
func (w *awsWorld) endPods() {
	w.Helper()
	now := int64(0)
	w.must(w.c.DeleteAllOf(w.ctx, &corev1.Pod{}, client.InNamespace(w.lab.Namespace()),
		&client.DeleteAllOfOptions{DeleteOptions: client.DeleteOptions{GracePeriodSeconds: &now}}))
}

// walkedWell tests that each pod is where it asked to be.
func (w *awsWorld) walkedWell() {
	w.Helper()
	nodes := map[string]corev1.Node{}
	for _, n := range w.nodes() {
		nodes[n.Name] = n
		if !strings.HasPrefix(n.Spec.ProviderID, "aws:///us-west-2") || n.Labels[awsv1.InstanceFamilyLabelKey] == "" {
			w.Errorf("node %s is %s with the labels %v", n.Name, n.Spec.ProviderID, n.Labels)
		}
	}
	zones := map[string]int{}
	for _, p := range w.pods() {
		n := nodes[p.Spec.NodeName]
		if p.Labels["app"] == "my-app" {
			zones[n.Labels[corev1.LabelTopologyZone]]++
			continue
		}
		for key, want := range map[string]map[string]string{
			"gpu-workload": {corev1.LabelInstanceTypeStable: "p3.2xlarge"},
			"gpu-pod": {v1.NodePoolLabelKey: "gpu-nodes", v1.CapacityTypeLabelKey: "on-demand",
				awsv1.InstanceGPUCountLabelKey: "1"},
			"compute-heavy": {awsv1.InstanceFamilyLabelKey: "c5", v1.CapacityTypeLabelKey: "on-demand"},
			"special":       {v1.NodePoolLabelKey: "default"},
			"batch": {v1.NodePoolLabelKey: "batch-processing", v1.CapacityTypeLabelKey: "spot",
				awsv1.InstanceFamilyLabelKey: "c5"},
			"my-app": {corev1.LabelArchStable: "amd64"},
		}[p.Name] {
			if n.Labels[key] != want {
				w.Errorf("pod %s is on a node with %s=%q, want %q", p.Name, key, n.Labels[key], want)
			}
		}
	}
	if len(zones) != 3 {
		w.Errorf("the pods that spread are in %v", zones)
	}
}

// tagged tests that every instance carries the names of its node and claim.
func (w *awsWorld) tagged() {
	w.Helper()
	names := map[string]bool{}
	for _, c := range w.claims() {
		names[c.Name] = true
	}
	w.eventually(func() string {
		for _, i := range w.alive() {
			if i.Tags["Name"] != i.PrivateDNS || !names[i.Tags[awsv1.NodeClaimTagKey]] || i.Tags[awsv1.ClusterTagPrefix+
				"my-cluster"] != "owned" {
				return fmt.Sprintf("instance %s of node %s has the tags %v", i.ID, i.PrivateDNS, i.Tags)
			}
		}
		return ""
	})
}
