package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scraped asks the controller for its metrics and says which of the beginnings of lines are not there.
func scraped(port string, lines ...string) func() string {
	return func() string {
		answer, err := http.Get("http://127.0.0.1:" + port + "/metrics")
		if err != nil {
			return err.Error()
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			return fmt.Sprintf("status %d, %v: %.300s", answer.StatusCode, err, text)
		}
		var missing []string
		for _, line := range lines {
			if !strings.Contains("\n"+string(text), "\n"+line) {
				missing = append(missing, line)
			}
		}
		if len(missing) > 0 {
			return "no metric\n" + strings.Join(missing, "\n")
		}
		return ""
	}
}

// TestMetricsTellTheStory follows nodes from their first pod to their end, as a dashboard would see it.
func TestMetricsTellTheStory(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default"))
	d := w.deployment("inflate", 8, "1")
	w.create(d)
	w.pending(8)
	port := freePort(t)
	w.run("--metrics-port", port, "--disable-leader-election=false", "--leader-election-namespace", "kube-system")
	w.eventually(w.allRunning(8))
	w.eventually(scraped(port,
		`karpenter_build_info{`, `karpenter_cluster_state_synced 1`,
		`karpenter_nodeclaims_created_total{min_values_relaxed="false",nodepool="default",reason="provisioned"}`,
		`karpenter_nodes_created_total{nodepool="default"`, `karpenter_nodepools_cost_total{nodepool="default"} `,
		`karpenter_nodepools_usage{nodepool="default",resource_type="cpu"}`,
		`karpenter_nodes_allocatable{arch="amd64"`, `karpenter_nodes_total_pod_requests{`,
		`karpenter_pods_state{arch="amd64"`, `karpenter_pods_startup_duration_seconds_count 8`,
		`karpenter_pods_bound_duration_seconds_count{dynamic_resources="false"} 8`,
		`karpenter_pods_provisioning_startup_duration_seconds_count 8`,
		`karpenter_pods_scheduling_decision_duration_seconds_count 8`,
		`karpenter_cloudprovider_duration_seconds_count{controller="nodeclaim.lifecycle",method="Create",provider="kwok"}`,
		`operator_nodeclaim_status_condition_count{karpenter_kwok_sh_kwoknodeclass="default",karpenter_sh_nodepool="default",`,
		`operator_nodeclaim_status_condition_transition_seconds_count{karpenter_kwok_sh_kwoknodeclass="default",karpenter_sh_nodepool="default",status="Unknown",to_status="True",type="Registered"}`,
		`tenon_commands_total{command="register",result="ok"}`, `leader_election_master_status{`,
		`rest_client_requests_total{`, `workqueue_depth{`, `controller_runtime_reconcile_total{`,
		`process_cpu_seconds_total `, `go_goroutines `))
	w.must(w.c.Delete(w.ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	w.eventually(w.nothingLeft)
	w.eventually(scraped(port,
		`karpenter_nodeclaims_disrupted_total{capacity_type="`,
		`karpenter_voluntary_disruption_decisions_total{consolidation_type="empty",decision="delete",reason="empty"}`,
		`karpenter_nodeclaims_terminated_total{`, `karpenter_nodes_terminated_total{`,
		`karpenter_nodes_lifetime_duration_seconds_count{nodepool="default"}`,
		`karpenter_nodes_termination_duration_seconds_count{nodepool="default"}`,
		`karpenter_nodeclaims_termination_duration_seconds_count{nodepool="default"}`,
		`karpenter_nodeclaims_instance_termination_duration_seconds_count{nodepool="default"}`,
		`karpenter_nodes_drained_total{nodepool="default"}`,
		`karpenter_cluster_state_node_count 0`, `karpenter_nodepools_cost_total{nodepool="default"} 0`))
}
