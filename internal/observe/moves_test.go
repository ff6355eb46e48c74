package observe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/observe/measure"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// leavingWorld is a world whose only node is drained, with a pod that will move and one that will not.
func leavingWorld(now time.Time, change func(*cluster.Claim)) *cluster.Snapshot {
	s := ended()
	c, n := s.Claims[0], s.Nodes[0]
	c.Deleting, n.Deleting, n.Created = now.Add(-20*time.Second), now.Add(-20*time.Second), now.Add(-2*time.Hour)
	class := &cluster.PodClass{Requests: resource.Vector{resource.Pods: 1}}
	s.Pods = []*cluster.Pod{{UID: "1", Namespace: "ns", Name: "p", Node: "a", Owner: "o", Class: class},
		{UID: "2", Node: "a", Owner: "d", Daemon: true, Class: class}}
	if change != nil {
		change(c)
	}
	return s.Seal()
}

func condition(kind, reason string, since time.Time) cluster.Condition {
	return cluster.Condition{Type: kind, Status: cluster.True, Reason: reason, Since: since}
}

func TestActsMoveTheirMetrics(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	alive := func(c *cluster.Claim) { c.Deleting = time.Time{} }
	unhealthy := command.DeleteClaim{Claim: "a", Reason: command.Unhealthy, Condition: "Ready", Deadline: now}
	for name, c := range map[string]struct {
		change func(*cluster.Claim)
		out    command.Outcome
		want   string
	}{
		"a node is drained": {nil, command.Outcome{Command: command.SetClaim{Claim: "a",
			Conditions: []command.Condition{{Type: cluster.Drained, Status: cluster.True}}}},
			"karpenter_nodes_drained_total{nodepool=default} 1"},
		"a pod is evicted": {func(c *cluster.Claim) {
			c.Conditions = []cluster.Condition{condition(cluster.DisruptionReason, "Empty", now)}
		},
			command.Outcome{Command: command.Evict{Node: "a"}}, "karpenter_pods_drained_total{reason=Empty} 1"},
		"a pod is deleted": {nil, command.Outcome{Command: command.Evict{Node: "a", Delete: true}},
			"karpenter_pods_drained_total{reason=Forceful Termination} 1"},
		"the cloud has ended the instance": {func(c *cluster.Claim) {
			c.Conditions = []cluster.Condition{condition(cluster.InstanceTerminating, "", now.Add(-time.Second))}
		}, command.Outcome{Command: command.Terminate{Claim: "a"}, InstanceGone: true},
			"karpenter_nodeclaims_instance_termination_duration_seconds{nodepool=default} 1"},
		"the claim is gone": {nil, command.Outcome{Command: command.Release{Claim: "a", Node: "a"}},
			"karpenter_nodeclaims_termination_duration_seconds{nodepool=default} 1"},
		"the node is gone": {nil, command.Outcome{Command: command.Release{Claim: "a", Node: "a"}},
			"karpenter_nodes_lifetime_duration_seconds{nodepool=default} 1"},
		"a pod has to move": {alive, command.Outcome{Command: command.DeleteClaim{Claim: "a",
			Reason: command.Expired}}, "karpenter_pods_disruption_initiated_total{capacity_type=spot,consolidation_policy=,nodepool=default,reason=expired,termination_mode=graceful} 1"},
		"an instance is missing": {alive, command.Outcome{Command: command.DeleteClaim{Claim: "a",
			Reason: command.InstanceMissing}},
			"karpenter_nodeclaims_disrupted_total{capacity_type=spot,consolidation_policy=,nodepool=default,reason=garbage_collected,termination_mode=graceful} 1"},
		"a static pool has shrunk": {alive, command.Outcome{Command: command.DeleteClaim{Claim: "a",
			Reason: command.ScaledDown}}, "reason=scaled_down,"},
		"it never got ready": {alive, command.Outcome{Command: command.DeleteClaim{Claim: "a",
			Reason: command.InitializationTimeout}}, "reason=initialization_timeout,"},
		"a node is beyond repair": {alive, command.Outcome{Command: unhealthy},
			"karpenter_nodeclaims_unhealthy_disrupted_total{capacity_type=spot,condition=ready,image_id=,nodepool=default,termination_mode=forceful} 1"},
		"repair is a decision": {alive, command.Outcome{Command: unhealthy},
			"karpenter_voluntary_disruption_decisions_total{consolidation_type=,decision=delete,reason=unhealthy} 1"},
		"emptiness is a decision": {alive, command.Outcome{Command: command.DeleteClaim{Claim: "a",
			Reason: command.Empty}}, "karpenter_voluntary_disruption_decisions_by_nodepool_total{consolidation_type=empty,decision=delete,nodepool=default,reason=empty} 1"},
		"a decision fails": {alive, command.Outcome{Command: command.DeleteClaim{Claim: "a",
			Reason: command.Empty}, Err: errors.New("boom")},
			"karpenter_voluntary_disruption_queue_failures_total{consolidation_type=empty,decision=delete," +
				"reason=empty} 1"},
		"a decision is taken back": {alive, command.Outcome{Command: command.Unfence{Claim: "a", Node: "a"}},
			"karpenter_voluntary_disruption_failed_validations_total{consolidation_type=empty} 1"},
		"minValues were relaxed": {nil, command.Outcome{Command: command.CreateClaim{Name: "b", Pool: "default",
			Reason: command.Provisioned, Relaxed: true}},
			"karpenter_nodeclaims_created_total{min_values_relaxed=true,nodepool=default,reason=provisioned} 1"},
	} {
		o, _, registry, _ := newObserver(&now)
		s := leavingWorld(now, c.change)
		before := gathered(t, registry, "karpenter_")
		o.Done(s, c.out, 0)
		if after := gathered(t, registry, "karpenter_"); strings.Contains(before, c.want) ||
			!strings.Contains(after, c.want) {
			t.Errorf("%s: no %s in\n%s", name, c.want, after)
		}
	}
}

func TestADrainThatNeededNoTimeIsCountedOnce(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	o, _, registry, _ := newObserver(&now)
	out := command.Outcome{Command: command.Terminate{Claim: "a"}}
	o.Done(leavingWorld(now, nil), out, 0) // a pod is still there: its time was up
	if got := gathered(t, registry, "karpenter_nodes_drained_total"); got != "" {
		t.Errorf("with a pod left: %s", got)
	}
	o.Done(ended(), out, 0)
	again := ended()
	again.Claims[0].Conditions = []cluster.Condition{condition(cluster.InstanceTerminating, "", now)}
	o.Done(again, out, 0)
	if got := gathered(t, registry, "karpenter_nodes_drained_total"); got !=
		"karpenter_nodes_drained_total{nodepool=default} 1\n" {
		t.Errorf("drained: %s", got)
	}
}

// pending is a world with pods, all of one class, that are as the test says.
func pending(pods ...*cluster.Pod) *cluster.Snapshot {
	class := &cluster.PodClass{Requests: resource.Vector{resource.Pods: 1},
		Terms: []require.Set{require.Set{}.With(cluster.ZoneLabel, require.Only("z1"))}}
	for _, p := range pods {
		p.Class, p.Namespace = class, "ns"
	}
	return (&cluster.Snapshot{Names: &resource.Names{}, Pods: pods}).Seal()
}

func TestPodsAreTimedFromCreationToReady(t *testing.T) {
	start := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	now := start
	o, _, registry, _ := newObserver(&now)
	expect := func(step string, want ...string) {
		t.Helper()
		got := gathered(t, registry, "karpenter_")
		for _, w := range want {
			if !strings.Contains(got, w+"\n") {
				t.Errorf("%s: no %s in\n%s", step, w, gathered(t, registry, "karpenter_pods_"))
			}
		}
	}
	old := &cluster.Pod{UID: "0", Name: "old", Node: "n", Created: start.Add(-time.Hour)}
	o.Planned(pending(old), &plan.Plan{}, 0)

	now = start.Add(2 * time.Second)
	fresh := &cluster.Pod{UID: "1", Name: "new", Created: start.Add(time.Second), Unschedulable: true,
		UnschedulableSince: now}
	s := pending(old, fresh)
	o.Planned(s, &plan.Plan{}, 0)
	now = start.Add(3 * time.Second)
	expect("waits", "karpenter_scheduler_queue_depth{controller=provisioner,scheduling_id=} 1",
		"karpenter_pods_unbound_time_seconds{dynamic_resources=false,name=new,namespace=ns} 2",
		"karpenter_pods_provisioning_scheduling_undecided_time_seconds{name=new,namespace=ns} 1",
		"karpenter_scheduler_pending_pods_by_effective_zone_count{controller=provisioner,zone=z1} 1")

	o.Planned(s, &plan.Plan{Provisioned: true, Now: start.Add(time.Second)}, 0) // a plan that did not know of it
	expect("is not known to the plan", "karpenter_pods_scheduling_decision_duration_seconds{} 0")
	o.Planned(s, &plan.Plan{Provisioned: true,
		Placement: schedule.Placement{Unplaced: []schedule.Unplaced{{Pod: fresh}}}}, 0)
	expect("finds no place", "karpenter_pods_scheduling_decision_duration_seconds{} 1",
		"karpenter_scheduler_unschedulable_pods_count{controller=provisioner} 1")
	if got := gathered(t, registry, "karpenter_pods_provisioning_un"); got != "" {
		t.Errorf("counted as placed:\n%s", got)
	}
	o.Planned(s, &plan.Plan{Provisioned: true}, 0)
	now = start.Add(5 * time.Second)
	expect("has a place",
		"karpenter_pods_provisioning_unbound_time_seconds{dynamic_resources=false,name=new,namespace=ns} 2",
		"karpenter_pods_provisioning_unstarted_time_seconds{name=new,namespace=ns} 2")

	bound := &cluster.Pod{UID: "1", Name: "new", Created: fresh.Created, Node: "n"}
	o.Planned(pending(old, bound), &plan.Plan{}, 0)
	expect("is bound", "karpenter_pods_bound_duration_seconds{dynamic_resources=false} 1",
		"karpenter_pods_provisioning_bound_duration_seconds{dynamic_resources=false} 1",
		"karpenter_pods_unstarted_time_seconds{name=new,namespace=ns} 4")
	for range 3 { // ready, not ready, ready: only the first counts
		ready := &cluster.Pod{UID: "1", Name: "new", Created: fresh.Created, Node: "n", Ready: true}
		o.Planned(pending(old, ready), &plan.Plan{}, 0)
		o.Planned(pending(old, bound), &plan.Plan{}, 0)
	}
	expect("is ready", "karpenter_pods_startup_duration_seconds{} 1",
		"karpenter_pods_provisioning_startup_duration_seconds{} 1")
	if got := gathered(t, registry, "karpenter_pods_un"); got != "" {
		t.Errorf("still waits for something:\n%s", got)
	}
	// A pod that came, was bound and got ready between two looks counts; the one that was there before us never does.
	o.Planned(pending(&cluster.Pod{UID: "0", Name: "old", Node: "n", Created: old.Created, Ready: true},
		&cluster.Pod{UID: "2", Name: "quick", Created: now, Node: "n", Ready: true}), &plan.Plan{}, 0)
	expect("quick", "karpenter_pods_startup_duration_seconds{} 2",
		"karpenter_pods_bound_duration_seconds{dynamic_resources=false} 2")
}

func TestPlansInTheMakingAndStalePictures(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	o, _, registry, _ := newObserver(&now)
	if got := gathered(t, registry, "karpenter_cluster_state_"); got != "" {
		t.Errorf("a replica that does not lead shows\n%s", got)
	}
	o.Planned(snapshot(), &plan.Plan{}, 0)
	o.Planning()
	now = now.Add(time.Minute)
	for _, want := range []string{"karpenter_cluster_state_synced{} 0\n",
		"karpenter_cluster_state_unsynced_time_seconds{} 60\n",
		"karpenter_scheduler_unfinished_work_seconds{controller=provisioner,scheduling_id=} 60\n"} {
		if got := gathered(t, registry, "karpenter_"); !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
	o.Planned(snapshot(), &plan.Plan{}, 0)
	for _, want := range []string{"karpenter_cluster_state_synced{} 1\n",
		"karpenter_scheduler_unfinished_work_seconds{controller=provisioner,scheduling_id=} 0\n"} {
		if got := gathered(t, registry, "karpenter_"); !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestPoolGauges(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	o, registry := townObserver(&now, Options{})
	s := town(now, 20, 0)
	s.Nodes[0].Ready = false
	o.Planned(s, &plan.Plan{}, 0)
	got := gathered(t, registry, "karpenter_")
	for _, want := range []string{
		"karpenter_nodepools_cost_total{nodepool=default} 10",
		"karpenter_nodepools_allowed_disruptions{nodepool=default,reason=empty} 2",
		"karpenter_nodepools_nodes_consuming_budgets{nodepool=default,reason=empty} 1",
		"karpenter_voluntary_disruption_eligible_nodes{reason=empty} 20",
		"karpenter_cluster_utilization_percent{resource_type=cpu} 0", "karpenter_build_info{commit=,goarch=",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
}

// cloud answers every call with the same error.
type cloud struct {
	cloudprovider.Provider
	err error
}

func (cloud) Name() string { return "test" }
func (c cloud) Create(context.Context, *v1.NodeClaim) (*cloudprovider.Instance, error) {
	return nil, c.err
}
func (c cloud) Get(context.Context, string) (*cloudprovider.Instance, error) { return nil, c.err }
func (c cloud) List(context.Context) ([]*cloudprovider.Instance, error)      { return nil, c.err }
func (c cloud) Delete(context.Context, string, cloudprovider.Owner) error    { return c.err }
func (c cloud) Drifted(context.Context, *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	return "", c.err
}
func (c cloud) InstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return nil, c.err
}

func TestCallsToTheCloudAreCounted(t *testing.T) {
	for want, err := range map[string]error{
		"": nil, "InsufficientCapacityError": &cloudprovider.NoCapacityError{},
		"NodeClaimNotFoundError": &cloudprovider.NotFoundError{},
		"NodeClassNotReadyError": &cloudprovider.NotReadyError{}, "unknown": errors.New("boom"),
	} {
		registry, ctx := prometheus.NewRegistry(), t.Context()
		c := measure.NewCloud(cloud{err: err}, registry, time.Now)
		claim, pool := &v1.NodeClaim{}, &v1.NodePool{}
		claim.Labels, pool.Name = map[string]string{v1.NodePoolLabelKey: "default"}, "default"
		_, e1 := c.Create(ctx, claim)
		_, e2 := c.Get(ctx, "x")
		_, e3 := c.List(ctx)
		_, e4 := c.InstanceTypes(ctx, pool)
		_, e5 := c.Drifted(ctx, claim)
		for _, e := range []error{e1, e2, e3, e4, e5, c.Delete(ctx, "x", cloudprovider.Owner{})} {
			if !errors.Is(e, err) {
				t.Errorf("%v came back as %v", err, e)
			}
		}
		got := gathered(t, registry, "karpenter_")
		for _, method := range []string{"Create", "Get", "List", "Delete", "GetInstanceTypes", "IsDrifted"} {
			if !strings.Contains(got, "method="+method+",provider=test} 1\n") {
				t.Errorf("%s was not timed:\n%s", method, got)
			}
			if failed := strings.Contains(got, "error="+want+",method="+method+","); failed != (err != nil) {
				t.Errorf("%v: %s counted as failed: %v", err, method, failed)
			}
		}
	}
}

func TestARefusedEvictionIsNoError(t *testing.T) {
	now := time.Now()
	o, r, _, logs := newObserver(&now)
	refused := command.Outcome{Command: command.Evict{Pod: "ns/p", UID: "1", Namespace: "ns", Name: "p", Node: "a"},
		Refused: true, Err: apierrors.NewTooManyRequests("budget ns/b is used up", 1)}
	for range 5 {
		o.Done(ended(), refused, 0)
	}
	if len(*logs) != 1 || strings.Contains((*logs)[0], `"error"`) || !strings.Contains((*logs)[0], "ns/p") ||
		!strings.Contains((*logs)[0], "budget ns/b is used up") {
		t.Errorf("log %q, want one line of information that names pod and cause", *logs)
	}
	if len(r.lines) != 0 {
		t.Errorf("events %q: the plan's notes tell that", r.lines)
	}
}
