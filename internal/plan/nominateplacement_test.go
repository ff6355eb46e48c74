package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/resource"
)

// While more pods are awaited none is planned for. But a node may be coming for some that were planned for before:
// these are bound to it all the same, and no claim is made meanwhile.
func TestWhoIsGuidedWhileMoreAreAwaited(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(x *scene)
		want   []string
	}{
		{"a node comes that was made for such pods", func(*scene) {}, []string{"bind/w"}},
		{"a node comes that was made for nobody", func(x *scene) { x.claim.Seats = nil }, nil},
		{"the node goes", func(x *scene) { x.claim.Deleting = x.s.Now }, nil},
		{"the node is open", func(x *scene) { x.claim.Conditions[2].Status, x.node.Ready = cluster.True, true }, nil},
		{"there is no node yet", func(x *scene) { x.s.Nodes = x.s.Nodes[1:] }, nil},
		{"nobody waits", func(x *scene) { x.s.Pods = nil }, nil},
	} {
		x := newScene()
		x.s.Pods = x.s.Pods[1:]
		x.node.Ready, x.claim.Conditions[2].Status = false, cluster.Unknown
		x.claim.Created, x.claim.Seats = x.s.Now.Add(-time.Minute), []cluster.Seat{{Class: "web", Count: 1}}
		x.s.Nodes[1].Allocatable = x.w.Class.Requests.Sub(x.w.Class.Requests)
		x.w.UnschedulableSince, x.s.PlannedAt = x.s.Now, x.s.Now.Add(-time.Hour)
		x.s.Owners["web"] = cluster.Owner{UID: "web", Known: true, Desired: 9}
		c.change(x)
		policy := defaultPolicy()
		policy.Placement = plan.PlaceByBinding
		p := plan.Make(x.s.Seal(), policy, nil, nil)
		got := slices.DeleteFunc(keys(p), func(key string) bool {
			return !strings.HasPrefix(key, "bind/") && !strings.HasPrefix(key, "nominate/") &&
				!strings.HasPrefix(key, "create/")
		})
		if p.Provisioned || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v (planned for: %t), want %v", c.name, got, p.Provisioned, c.want)
		}
	}
}

// The largest pods of a node are bound first, then in the order of their UIDs: a large pod whose place is taken needs a
// node of its own.
func TestLargePodsAreBoundFirst(t *testing.T) {
	for _, c := range []struct {
		name string
		cpu  []int64
		mem  []int64
		want []string
	}{
		{"by processors", []int64{500, 2000, 1000}, []int64{0, 0, 0}, []string{"bind/w1", "bind/w2", "bind/w0"}},
		{"by memory", []int64{500, 500, 500}, []int64{1 << 30, 2 << 30, 3 << 30}, []string{"bind/w2", "bind/w1",
			"bind/w0"}},
		{"by what they take most of", []int64{2000, 500, 100}, []int64{0, 5 << 30, 0}, []string{"bind/w1", "bind/w0",
			"bind/w2"}},
		{"by processors, if the node has not said its memory", []int64{500, 2000, 1000},
			[]int64{3 << 30, 1 << 30, 2 << 30},
			[]string{"bind/w1", "bind/w2", "bind/w0"}},
		{"all alike", []int64{500, 500, 500}, []int64{0, 0, 0}, []string{"bind/w0", "bind/w1", "bind/w2"}},
	} {
		x := newScene()
		x.s.Pods, x.s.Nodes = nil, x.s.Nodes[:1]
		x.node.Ready, x.claim.Conditions[2].Status = false, cluster.Unknown
		x.claim.Created = x.s.Now.Add(-time.Minute)
		if strings.Contains(c.name, "has not said") {
			x.node.Allocatable[resource.Memory] = 0
		}
		for i, cpu := range c.cpu {
			w := *x.w
			w.UID = fmt.Sprint("w", i)
			w.Name, w.Class = w.UID, sized(cpu, c.mem[i])
			w.Class.Key = w.UID
			x.s.Pods = append(x.s.Pods, &w)
		}
		policy := defaultPolicy()
		policy.Placement = plan.PlaceByBinding
		got := slices.DeleteFunc(keys(plan.Make(x.s.Seal(), policy, nil, nil)), func(key string) bool {
			return !strings.HasPrefix(key, "bind/")
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Only pods of nodes that go to save money wait for larger ones, and only for pods of such nodes and for those that are
// between two nodes.
func TestOnlyTheThriftyWaitForLargerPods(t *testing.T) {
	x := newScene()
	d := x.second()
	x.s.Pods = nil
	for _, p := range []struct {
		name, node string
		cpu        int64
	}{{"huge", "m", 3500}, {"large", "n", 1000}, {"small", "n", 100}, {"tiny", "m", 50}} {
		pod := *x.p
		pod.UID, pod.Name, pod.Node, pod.Class = p.name, p.name, p.node, sized(p.cpu, 0)
		x.s.Pods = append(x.s.Pods, &pod)
	}
	x.fenced(command.Underutilized)
	d.Move = "drifted-x"
	x.s.Nodes[2].Taints = x.node.Taints
	for _, c := range []*cluster.Claim{x.claim, d} {
		c.Deleting, c.Finalized = x.s.Now.Add(-6*time.Second), true
	}
	evicted := func() []string {
		got := slices.DeleteFunc(keys(plan.Make(x.s.Seal(), defaultPolicy(), nil, nil)), func(key string) bool {
			return !strings.HasPrefix(key, "evict/")
		})
		slices.Sort(got)
		return got
	}
	if got, want := evicted(), []string{"evict/huge", "evict/large", "evict/tiny"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	away := *x.w
	away.UID, away.Name, away.Class, away.Unschedulable, away.SchedulerSeen = "away", "away", sized(3000, 0),
		false, false
	x.s.Pods = []*cluster.Pod{&away, x.s.Pods[2]}
	if got := evicted(); len(got) != 0 {
		t.Errorf("%v leave, and a larger pod is between two nodes", got)
	}
}
