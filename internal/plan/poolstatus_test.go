package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/resource"
)

// status is what a plan writes about the pool.
func (x *scene) status(t *testing.T) *cluster.PoolStatus {
	t.Helper()
	p := plan.Make(x.s.Seal(), defaultPolicy(), nil, nil)
	for _, c := range p.Commands {
		if set, ok := c.(command.SetPool); ok {
			status := asWritten(set.Status)
			return &status
		}
	}
	return nil
}

// unusedNodes has nodes of the pool be of no use to a workload.
func (x *scene) unusedNodes(pool string, owners ...string) {
	x.s.WorkloadTries = make(map[string]*cluster.WorkloadTries)
	for _, o := range owners {
		x.s.WorkloadTries[o] = &cluster.WorkloadTries{Owner: o, Kind: "Deployment", Name: "shop/" + o, FailedTries: 2,
			NextTry: x.s.Now.Add(time.Minute),
			Failures: []cluster.UnusedNode{{Pool: pool, Claim: "v", Node: "v",
				Cause: cluster.Cause{Kind: cluster.CauseCordon}}}}
	}
}

// What the conditions of a pool say, by what is wrong with it.
func TestWhatAPoolTells(t *testing.T) {
	const inVain = "pods cannot run on the nodes created for them, so new nodes are tried less and less often: "
	cordoned := func(name string) string { return "Deployment shop/" + name + ": node v is cordoned" }
	for _, c := range []struct {
		name    string
		change  func(x *scene)
		kind    string
		status  cluster.ConditionStatus
		reason  string
		message string
	}{
		{"all is well", func(*scene) {}, cluster.Ready, cluster.True, "Ready", ""},
		{"the class is not ready", func(x *scene) {
			x.pool.NodeClass = cluster.NodeClassState{Reason: "X", Message: "no subnets"}
		}, cluster.Ready, cluster.False, "UnhealthyDependents", "NodeClassReady: no subnets"},
		{"class and pool are wrong", func(x *scene) {
			x.pool.NodeClass = cluster.NodeClassState{Reason: "X", Message: "no subnets"}
			x.pool.Problems = []cluster.Problem{{Field: "spec.limits", Text: "no number"}}
		}, cluster.Ready, cluster.False, "UnhealthyDependents", "ValidationSucceeded: spec.limits: no number"},
		{"nothing was launched", func(*scene) {}, cluster.RegistrationHealthy, cluster.Unknown,
			"AwaitingReconciliation", "no node has been launched since the pool or its NodeClass last changed"},
		{"launches become nodes", func(x *scene) {
			x.pool.RegistrationHealth = cluster.True
		}, cluster.RegistrationHealthy, cluster.True, "NodeRegistrationHealthy", ""},
		{"launches don't become nodes", func(x *scene) {
			x.pool.RegistrationHealth = cluster.False
		}, cluster.RegistrationHealthy, cluster.False, "RegistrationFailed",
			"at least half of the latest launches did not become nodes; see the events of the pool's NodeClaims and " +
				"the logs of its machines"},
		{"it can launch", func(*scene) {}, cluster.CanLaunch, cluster.True, "CanLaunch", ""},
		{"it is being deleted", func(x *scene) {
			x.pool.Deleting = true
		}, cluster.CanLaunch, cluster.False, "NodePoolDeleting", "the NodePool is being deleted"},
		{"it is static and the gate is off", func(x *scene) {
			x.pool.Static = true
		}, cluster.CanLaunch, cluster.False, "StaticCapacityDisabled",
			"spec.replicas makes the pool static; turn the feature gate StaticCapacity on, or make another NodePool " +
				"without the field to let pods decide"},
		{"it is wrong", func(x *scene) {
			x.pool.Problems = []cluster.Problem{{Field: "spec.limits", Text: "no number"}}
		}, cluster.CanLaunch, cluster.Unknown, "NotReady", "the NodePool is not ready"},
		{"its class is not ready", func(x *scene) {
			x.pool.NodeClass.Ready = false
		}, cluster.CanLaunch, cluster.Unknown, "NotReady", "the NodePool is not ready"},
		{"the limits leave nothing", func(x *scene) {
			x.pool.Limits = cluster.Limits{HasNodes: true}
		}, cluster.CanLaunch, cluster.False, "LimitsAllowNoNode", "spec.limits.nodes is 0; raise the limit or remove " +
			"it to let the pool make nodes"},
		{"launches are refused", func(x *scene) {
			x.pool.InBackoff = true
		}, cluster.CanLaunch, cluster.False, "LaunchesRefused", "the cloud has refused the pool's launches; see the " +
			"events of its NodeClaims"},
		{"launches are refused, and why", func(x *scene) {
			x.pool.InBackoff, x.pool.BackoffCause = true, "no quota"
		}, cluster.CanLaunch, cluster.False, "LaunchesRefused",
			"the pool's launches fail and are tried less and less often; the last answer: no quota"},
		{"nobody knows what is sold", func(x *scene) {
			x.pool.Catalog = nil
		}, cluster.CanLaunch, cluster.Unknown, "InstanceTypesUnknown", "the cloud has not said yet what it sells"},
		{"nobody knows what is sold, and why", func(x *scene) {
			x.pool.Catalog, x.pool.CatalogError = nil, "denied"
		}, cluster.CanLaunch, cluster.False, "InstanceTypesUnknown", "denied"},
		{"what is sold was known before", func(x *scene) {
			x.pool.CatalogError = "denied"
		}, cluster.CanLaunch, cluster.True, "CanLaunch", ""},
		{"it is not meant so", func(x *scene) {
			x.pool.Warnings = []cluster.Problem{{Field: "spec.weight", Text: "is it?"}}
		}, cluster.CanLaunch, cluster.True, "CanLaunch", "spec.weight: is it?"},
		{"nodes are of use", func(*scene) {}, cluster.NodesUsable, cluster.True, "NodesUsable", ""},
		{"nodes of another pool are not", func(x *scene) {
			x.unusedNodes("other", "a")
		}, cluster.NodesUsable, cluster.True, "NodesUsable", ""},
		{"nodes were not of use", func(x *scene) {
			x.unusedNodes("default", "a")
			x.s.WorkloadTries["a"].RunsAgain = true
		}, cluster.NodesUsable, cluster.True, "NodesUsable", ""},
		{"nodes are of no use", func(x *scene) {
			x.unusedNodes("default", "a")
		}, cluster.NodesUsable, cluster.False, "MadeInVain", inVain + cordoned("a")},
		{"nodes are of no use to three", func(x *scene) {
			x.unusedNodes("default", "a", "b", "c")
		}, cluster.NodesUsable, cluster.False, "MadeInVain",
			inVain + cordoned("a") + "; " + cordoned("b") + "; " + cordoned("c")},
		{"the nodes of a static pool end too soon", func(x *scene) {
			x.pool.Static, x.pool.LostSlots = true, []cluster.LostSlot{{Tries: 2, EndedBy: "an agent"}}
		}, cluster.NodesUsable, cluster.False, "NodesEndTooSoon",
			"nodes of the pool end within 10m0s, so new ones are created less and less often; the last one was ended " +
				"by an agent"},
		{"the pool was static", func(x *scene) {
			x.pool.LostSlots = []cluster.LostSlot{{Tries: 2, EndedBy: "an agent"}}
		}, cluster.NodesUsable, cluster.True, "NodesUsable", ""},
		{"nodes are of no use to four", func(x *scene) {
			x.unusedNodes("default", "a", "b", "c", "d")
		}, cluster.NodesUsable, cluster.False, "MadeInVain",
			inVain + cordoned("a") + "; " + cordoned("b") + "; " + cordoned("c") + "; and 1 more workloads"},
	} {
		x := newScene()
		c.change(x)
		got := x.status(t)
		if got == nil {
			t.Errorf("%s: nothing is written", c.name)
			continue
		}
		at := slices.IndexFunc(got.Conditions, func(o cluster.Condition) bool { return o.Type == c.kind })
		if at < 0 {
			t.Errorf("%s: no condition %s", c.name, c.kind)
			continue
		}
		if o := got.Conditions[at]; o.Status != c.status || o.Reason != c.reason || o.Message != c.message ||
			o.Generation != 3 {
			t.Errorf("%s: %+v, want %s %s %q of generation 3", c.name, o, c.status, c.reason, c.message)
		}
	}
}

// A pool counts its nodes and what they have, and what is coming, but not what nobody has seen yet. What is told
// already is not told again.
func TestPoolCountsItsNodes(t *testing.T) {
	x := newScene()
	x.pool.NodeClass.Generation, x.claim.Capacity = 9, x.claim.Allocatable
	x.s.Claims = append(x.s.Claims,
		&cluster.Claim{Name: "coming", UID: "x", Pool: "default", Capacity: x.claim.Capacity, Labels: x.claim.Labels},
		&cluster.Claim{Name: "expected", UID: "y", Pool: "default", Expected: true, Capacity: x.claim.Capacity,
			Labels: x.claim.Labels})
	got := x.status(t)
	if got == nil || got.Nodes != 1 || got.ClassGeneration != 9 || got.Resources[resource.CPU] != 8000 ||
		got.Resources[resource.Memory] != 16<<30 {
		t.Fatalf("%+v", got)
	}
	x.pool.Status = *got
	if again := x.status(t); again != nil {
		t.Errorf("what is told is told again: %+v", again)
	}
	for name, change := range map[string]func(*cluster.PoolStatus){
		"nodes":      func(s *cluster.PoolStatus) { s.Nodes = 2 },
		"resources":  func(s *cluster.PoolStatus) { s.Resources[resource.CPU] = 1 },
		"class":      func(s *cluster.PoolStatus) { s.ClassGeneration = 8 },
		"conditions": func(s *cluster.PoolStatus) { s.Conditions = s.Conditions[1:] },
		"a message": func(s *cluster.PoolStatus) {
			s.Conditions = slices.Clone(s.Conditions)
			s.Conditions[0].Message = "x"
		},
	} {
		x.pool.Status = *got
		change(&x.pool.Status)
		if x.status(t) == nil {
			t.Errorf("%s have changed, and nobody is told", name)
		}
	}
	x.pool.Status = *got
	x.pool.Status.Conditions = slices.Clone(got.Conditions)
	for i := range x.pool.Status.Conditions {
		x.pool.Status.Conditions[i].Since = x.s.Now // which nobody is told of
	}
	if again := x.status(t); again != nil {
		t.Errorf("since when something is so is told again: %+v", again)
	}
}

// That many instances were nobody's is remembered by the pool: the condition stays as long as it can't be told whether
// any are left, and is taken off when none is.
func TestPoolRemembersManyOrphans(t *testing.T) {
	many := cluster.Condition{Type: cluster.OrphansHeld, Status: cluster.True, Reason: cluster.ManyOrphans,
		Message: "many", Generation: 2}
	other := cluster.Condition{Type: "Other", Status: cluster.True, Reason: "Other"}
	over := cluster.Condition{Type: cluster.OrphansHeld, Status: cluster.Absent}
	for _, c := range []struct {
		name   string
		have   []cluster.Condition
		census bool
		want   []cluster.Condition
	}{
		{"there were none, and nobody has counted", nil, false, nil},
		{"there were none", nil, true, nil},
		{"there were many, and nobody has counted since, so it stays as it is", []cluster.Condition{many}, false, nil},
		{"there were many, and nobody has counted since; other things are told, too", []cluster.Condition{other, many},
			false, nil},
		{"none is left", []cluster.Condition{many}, true, []cluster.Condition{over}},
		{"none is left; other things are told, too", []cluster.Condition{other, many}, true, []cluster.Condition{over}},
	} {
		x := newScene()
		x.pool.Status.Conditions = c.have
		if c.census {
			x.s.Inventory = &cluster.Inventory{At: x.s.Now, Instances: []cluster.Instance{{ProviderID: "cloud://c",
				Claim: "c", ClaimUID: "u"}}}
		}
		got := slices.DeleteFunc(slices.Clone(x.status(t).Conditions), func(o cluster.Condition) bool {
			return o.Type != cluster.OrphansHeld
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
