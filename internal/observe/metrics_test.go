package observe

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/resource"
)

// gathered lists the series of the metrics with the prefix, with their values but without help.
func gathered(t *testing.T, registry *prometheus.Registry, prefix string) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), prefix) {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount()) +
				float64(m.GetSummary().GetSampleCount())
			fmt.Fprintf(&b, "%s{%s} %v\n", f.GetName(), strings.Join(labels, ","), value)
		}
	}
	return b.String()
}

// ended is a world with a node and its claim, both ours.
func ended() *cluster.Snapshot {
	labels := cluster.LabelsOf(map[string]string{cluster.CapacityTypeLabel: "spot", cluster.ZoneLabel: "z1",
		cluster.PoolLabel: "default"})
	return (&cluster.Snapshot{
		Names: &resource.Names{},
		Pools: []*cluster.Pool{{Name: "default", Policy: cluster.WhenEmptyOrUnderutilized}},
		Claims: []*cluster.Claim{{Name: "a", UID: "u", Pool: "default", ProviderID: "p", Finalized: true,
			Labels: labels}},
		Nodes: []*cluster.Node{{Name: "a", UID: "n", ProviderID: "p", Finalized: true, Labels: labels}},
	}).Seal()
}

func TestMetricsKeepTheContractsLabels(t *testing.T) {
	now := time.Now()
	o, _, registry, _ := newObserver(&now)
	s := ended()
	s.Nodes[0].Created = now.Add(-time.Minute)
	o.Planned(s, &plan.Plan{Provisioned: true}, time.Millisecond)
	for _, c := range []command.Command{
		command.CreateClaim{Name: "b", Pool: "default", Reason: command.Provisioned}, command.Register{Claim: "a",
			Node: "a"},
		command.DeleteClaim{Claim: "a", Reason: command.Empty}, command.Release{Claim: "a", Node: "a"},
		command.Evict{UID: "x"},
	} {
		o.Done(s, command.Outcome{Command: c}, 0)
	}
	for prefix, want := range map[string]string{
		"karpenter_nodeclaims_": `karpenter_nodeclaims_created_total{min_values_relaxed=false,` +
			`nodepool=default,reason=provisioned} 1
karpenter_nodeclaims_disrupted_total{capacity_type=spot,consolidation_policy=when_empty_or_underutilized,nodepool=default,reason=empty,termination_mode=graceful} 1
karpenter_nodeclaims_terminated_total{capacity_type=spot,nodepool=default,zone=z1} 1
`,
		"karpenter_nodes_c": `karpenter_nodes_created_total{nodepool=default,zone=z1} 1
karpenter_nodes_current_lifetime_seconds{arch=,capacity_type=spot,instance_type=,managed=true,node_name=a,nodepool=default,os=,phase=,region=,windows_build=,zone=z1} 60
`,
		"karpenter_nodes_t": `karpenter_nodes_terminated_total{nodepool=default,zone=z1} 1
`,
		"karpenter_scheduler_": `karpenter_scheduler_ignored_pods_count{} 0
karpenter_scheduler_queue_depth{controller=provisioner,scheduling_id=} 0
karpenter_scheduler_scheduling_duration_seconds{controller=provisioner} 1
karpenter_scheduler_unfinished_work_seconds{controller=provisioner,scheduling_id=} 0
karpenter_scheduler_unschedulable_pods_count{controller=provisioner} 0
`,
		"karpenter_pods_e": "karpenter_pods_eviction_requests_total{code=200} 1\n",
		"karpenter_cluster_": "karpenter_cluster_state_node_count{} 1\nkarpenter_cluster_state_synced{} " +
			"1\nkarpenter_cluster_state_unsynced_time_seconds{} 0\n",
	} {
		if got := gathered(t, registry, prefix); got != want {
			t.Errorf("%s*:\n%swant:\n%s", prefix, got, want)
		}
	}
}

func TestLimitsAndUsage(t *testing.T) {
	now := time.Now()
	o, _, registry, _ := newObserver(&now)
	world := func(limits cluster.Limits) *cluster.Snapshot {
		return (&cluster.Snapshot{
			Names:  &resource.Names{},
			Pools:  []*cluster.Pool{{Name: "default", Limits: limits}},
			Claims: []*cluster.Claim{{Name: "a", Pool: "default", Capacity: resource.Vector{resource.CPU: 4500}}},
		}).Seal()
	}
	both := cluster.Limits{HasNodes: true, Nodes: 7}
	both.Set[resource.CPU], both.Amount[resource.CPU] = true, 1000000
	both.Set[resource.Storage], both.Amount[resource.Storage] = true, 1<<30
	steps := []struct {
		limits cluster.Limits
		want   string
	}{
		{both, `karpenter_nodepools_limit{nodepool=default,resource_type=cpu} 1000
karpenter_nodepools_limit{nodepool=default,resource_type=ephemeral_storage} 1.073741824e+09
karpenter_nodepools_limit{nodepool=default,resource_type=nodes} 7
`},
		{cluster.Limits{HasNodes: true, Nodes: 8},
			"karpenter_nodepools_limit{nodepool=default,resource_type=nodes} 8\n"},
		{cluster.Limits{}, ""},
	}
	for i, step := range steps {
		o.Planned(world(step.limits), &plan.Plan{}, 0)
		if got := gathered(t, registry, "karpenter_nodepools_limit"); got != step.want {
			t.Errorf("step %d: limits\n%swant\n%s", i, got, step.want)
		}
	}
	usage := gathered(t, registry, "karpenter_nodepools_usage")
	for _, want := range []string{"resource_type=cpu} 4.5\n", "resource_type=nodes} 1\n"} {
		if !strings.Contains(usage, want) {
			t.Errorf("usage\n%swant %s", usage, want)
		}
	}
	o.Planned((&cluster.Snapshot{Names: &resource.Names{}}).Seal(), &plan.Plan{}, 0)
	if left := gathered(t, registry, "karpenter_nodepools_"); left != "" {
		t.Errorf("series of a pool that is gone are left:\n%s", left)
	}
}

func TestRepeatsAreNotCounted(t *testing.T) {
	now := time.Now()
	o, _, registry, _ := newObserver(&now)
	s := ended()
	s.Claims[0].Finalized, s.Nodes[0].Finalized = false, false
	s.Claims[0].Deleting = now
	s.Claims[0].Conditions = []cluster.Condition{{Type: cluster.Registered, Status: cluster.True}}
	for _, out := range []command.Outcome{
		{Command: command.CreateClaim{Name: "a", Pool: "default"}},
		{Command: command.CreateClaim{Name: "b", Pool: "default"}, Writes: []command.Write{{Kind: command.KindClaim,
			Name: "b"}}},
		{Command: command.Register{Claim: "a", Node: "a"}},
		{Command: command.DeleteClaim{Claim: "a", Reason: command.Empty}},
		{Command: command.Release{Claim: "a", Node: "a"}},
		{Command: command.Release{Claim: "gone", Node: "gone"}},
	} {
		o.Done(s, out, 0)
	}
	if got := gathered(t, registry, "karpenter_nodeclaims_") + gathered(t, registry, "karpenter_nodes_"); got != "" {
		t.Errorf("counted what was done before:\n%s", got)
	}
}

func TestDisruptedLabels(t *testing.T) {
	grace := func(d time.Duration) func(*cluster.Claim) {
		return func(c *cluster.Claim) { c.HasTerminationGrace, c.TerminationGrace = true, d }
	}
	for _, c := range []struct {
		reason command.Reason
		change func(*cluster.Claim)
		want   string
	}{
		{command.Empty, grace(time.Hour),
			"consolidation_policy=when_empty_or_underutilized,nodepool=default,reason=empty,termination_mode=eventual"},
		{command.Empty, grace(0), "reason=empty,termination_mode=forceful"},
		{command.InsufficientCapacity, nil,
			"consolidation_policy=,nodepool=default,reason=insufficient_capacity,termination_mode=graceful"},
		{command.ClassNotReady, nil, "reason=nodeclass_not_ready"},
		{command.LaunchTimeout, nil, "reason=launch_timeout"},
		{command.RegistrationTimeout, nil, "reason=registration_timeout"},
		{command.NodeMissing, nil, "reason=garbage_collected"},
		{command.Requested, nil, ""},
	} {
		now := time.Now()
		o, _, registry, _ := newObserver(&now)
		s := ended()
		if c.change != nil {
			c.change(s.Claims[0])
		}
		o.Done(s, command.Outcome{Command: command.DeleteClaim{Claim: "a", Reason: c.reason}}, 0)
		got := gathered(t, registry, "karpenter_nodeclaims_disrupted_total")
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

func TestEvictionsAreCountedByStatus(t *testing.T) {
	now := time.Now()
	o, _, registry, _ := newObserver(&now)
	for _, out := range []command.Outcome{
		{Command: command.Evict{}},
		{Command: command.Evict{}, Err: fmt.Errorf("evicting: %w", apierrors.NewTooManyRequests("budget", 1))},
		{Command: command.Evict{}, Err: fmt.Errorf("evicting: %w",
			apierrors.NewInternalError(errors.New("two budgets")))},
		{Command: command.Evict{}, Err: errors.New("connection refused")},
		{Command: command.Evict{Delete: true}},
	} {
		o.Done(ended(), out, 0)
	}
	const name = "karpenter_pods_eviction_requests_total"
	want := name + "{code=0} 1\n" + name + "{code=200} 1\n" + name + "{code=429} 1\n" + name + "{code=500} 1\n"
	if got := gathered(t, registry, name); got != want {
		t.Errorf("evictions\n%swant\n%s", got, want)
	}
}

// What a provider decides about its nodes is on their series, too, by the last part of the label's key, as dashboards
// ask for it.
func TestNodeSeriesCarryTheProvidersLabels(t *testing.T) {
	now := time.Now()
	registry := prometheus.NewRegistry()
	o := New(logr.Discard(), nil, registry, func() time.Time { return now }, Options{
		ClusterState: true,
		NodeClasses:  []schema.GroupVersionKind{{Group: "cloud.example", Kind: "BoxClass"}},
		// The last three are told already: which class a node has is not, and a name can stand only once.
		NodeLabels: []string{"cloud.example/instance-family", "topology.cloud.example/zone-id",
			"cloud.example/boxclass", corev1.LabelWindowsBuild, "cloud.example/zone"},
	})
	s := ended()
	s.Nodes[0].Created = now.Add(-time.Minute)
	s.Nodes[0].Labels = cluster.LabelsOf(map[string]string{cluster.PoolLabel: "default", cluster.ZoneLabel: "z1",
		"cloud.example/instance-family":  "m5",
		"topology.cloud.example/zone-id": "id1", "cloud.example/boxclass": "c", "cloud.example/zone": "other"})
	o.Planned(s.Seal(), &plan.Plan{}, time.Millisecond)
	want := "karpenter_nodes_current_lifetime_seconds{arch=,capacity_type=,instance_family=m5,instance_type=,managed=true,node_name=a,nodepool=default,os=,phase=,region=,windows_build=,zone=z1,zone_id=id1} 60\n"
	if got := gathered(t, registry, "karpenter_nodes_c"); got != want {
		t.Errorf("%swant:\n%s", got, want)
	}
}
