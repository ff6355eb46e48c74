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
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// closedNodes are nodes n00, n01… that joined a second ago, one a millisecond after the other. Their kubelets are up,
// and only their registration keeps them closed. Each has pods of two classes that can run nowhere else, and that have
// been told so if told is set.
func closedNodes(nodes, pods int, nominated bool) *scene {
	x := newScene()
	claim, node, pod := *x.claim, *x.node, *x.w
	x.s.Claims, x.s.Nodes, x.s.Pods = nil, nil, nil
	for i := range nodes {
		c, n := claim, node
		n.Name = fmt.Sprintf("n%02d", i)
		c.Name, c.UID, c.ProviderID, c.NodeName = "c-"+n.Name, "u-"+n.Name, "cloud://"+n.Name, ""
		c.Labels = claim.Labels.With("slot", n.Name)
		c.Created, c.Finalized = x.s.Now.Add(-time.Minute), true
		c.Conditions = []cluster.Condition{{Type: cluster.Launched, Status: cluster.True, Since: c.Created}}
		n.UID, n.ProviderID, n.Created = "nu-"+n.Name, c.ProviderID,
			x.s.Now.Add(-time.Second+time.Duration(i)*time.Millisecond)
		n.Labels = cluster.Labels{}.With("slot", n.Name)
		n.Taints = []cluster.Taint{{Key: cluster.UnregisteredTaint, Effect: cluster.NoExecute}}
		n.Allocatable[resource.CPU], n.Allocatable[resource.Pods] = 1<<20, 1<<10
		c.Allocatable = n.Allocatable
		x.s.Claims, x.s.Nodes = append(x.s.Claims, &c), append(x.s.Nodes, &n)
		classes := []*cluster.PodClass{slotClass(n.Name, 1000), slotClass(n.Name, 2000)}
		for k := range pods {
			p := pod
			p.Name, p.Class = fmt.Sprintf("%s-%d", n.Name, k), classes[k%2]
			if p.UID = p.Name; nominated {
				p.Nominated = n.Name
			}
			x.s.Pods = append(x.s.Pods, &p)
		}
	}
	x.claim, x.node = x.s.Claims[0], x.s.Nodes[0]
	return x
}

// slotClass are pods that run on one node only.
func slotClass(slot string, cpu int64) *cluster.PodClass {
	return &cluster.PodClass{Key: fmt.Sprint(slot, "/", cpu),
		Terms:    []require.Set{require.Set{}.With("slot", require.Only(slot))},
		Requests: resource.Vector{resource.CPU: cpu, resource.Pods: 1}}
}

// classes gives the pods of a node other classes: copies of their own, changed.
func (x *scene) classes(node string, change func(*cluster.PodClass)) {
	changed := make(map[*cluster.PodClass]*cluster.PodClass)
	for _, p := range x.s.Pods {
		if !strings.HasPrefix(p.Name, node+"-") {
			continue
		}
		if changed[p.Class] == nil {
			c := *p.Class
			change(&c)
			changed[p.Class] = &c
		}
		p.Class = changed[p.Class]
	}
}

// guided are the nodes that a plan opens and the pods that it tells a node, sorted, each by its name; and when it is to
// be made again.
func (x *scene) guided(policy plan.Policy) (opened, nominated []string, wake time.Duration) {
	if policy.Placement == "" {
		policy.Placement = plan.PlaceByNomination
	}
	p := plan.Make(x.s.Seal(), policy, nil, nil)
	for _, c := range p.Commands {
		switch c := c.(type) {
		case command.Register:
			opened = append(opened, c.Node)
		case command.Nominate:
			nominated = append(nominated, c.Name)
			if c.Node == "" {
				nominated[len(nominated)-1] += " nothing"
			}
		case command.Bind:
			nominated = append(nominated, c.Name+" bound")
		}
	}
	slices.Sort(opened)
	slices.Sort(nominated)
	return opened, nominated, p.WakeAt.Sub(x.s.Now)
}

// Nodes whose pods have been told open one after the other. The more of them wait the more open together, so that the
// last one does not wait for longer than some seconds; and beyond 500 pods nobody waits. Nodes with pods of different
// importance open together.
func TestHowManyNodesOpenTogether(t *testing.T) {
	priority := func(node string, high, low int32) func(*scene) {
		return func(x *scene) {
			next := high
			x.classes(node, func(c *cluster.PodClass) { c.Priority, c.Key, next = next, c.Key+"!", low })
		}
	}
	all := func(x *scene) {
		for i := range x.s.Nodes {
			priority(x.s.Nodes[i].Name, 5, 5)(x)
		}
	}
	for _, c := range []struct {
		name        string
		nodes, pods int
		change      func(*scene)
		opened      int
	}{
		{"two nodes", 2, 2, nil, 1},
		{"ten nodes with 40 pods", 10, 4, nil, 1},
		{"eleven nodes with 44 pods", 11, 4, nil, 2},
		{"twenty nodes with 200 pods", 20, 10, nil, 5},
		{"twenty nodes with 500 pods", 20, 25, nil, 10},
		{"167 nodes with 501 pods", 167, 3, nil, 167},
		{"167 nodes with 501 pods, and one whose kubelet is not up", 168, 3, func(x *scene) { x.node.Ready = false },
			167},
		{"two nodes with 502 pods", 2, 251, nil, 2},
		{"one node with 501 pods", 1, 501, nil, 1},
		{"one node with 501 pods that have not been told", 1, 501, func(x *scene) {
			for _, p := range x.s.Pods {
				p.Nominated, x.s.InFlight["nominate/"+p.UID] = "", true
			}
		}, 0},
		{"all are of the same importance", 3, 2, all, 1},
		{"a pod of the first is more important", 3, 2, priority("n00", 10, 0), 3},
		{"a pod of the last is more important", 3, 2, priority("n02", 0, 10), 3},
		{"a pod of the last is less important", 3, 2, func(x *scene) { all(x); priority("n02", 5, 0)(x) }, 3},
		{"the pods of the last are less important", 3, 2, priority("n02", -1, -1), 3},
	} {
		x := closedNodes(c.nodes, c.pods, true)
		if c.change != nil {
			c.change(x)
		}
		opened, nominated, _ := x.guided(defaultPolicy())
		if len(opened) != c.opened || len(nominated) != 0 {
			t.Errorf("%s: %d nodes open and %d pods are told, want %d and none", c.name, len(opened), len(nominated),
				c.opened)
		}
		if c.opened == 1 && c.nodes > 1 && !slices.Equal(opened, []string{"n00"}) {
			t.Errorf("%s: %v opens, want the one that came first", c.name, opened)
		}
	}
}

// A node is kept closed until its pods have been told, while kube-scheduler is busy, and while the node before it
// opens; but for no longer than that is worth, and only if nothing but its registration keeps pods off.
func TestWhichNodesStayClosed(t *testing.T) {
	const never = time.Duration(0)
	ms := time.Millisecond
	notReady := cluster.Taint{Key: "node.kubernetes.io/not-ready", Effect: cluster.NoSchedule}
	both := []string{"n00", "n01"}
	told0 := []string{"n00-0", "n00-1"}
	untold := func(node string) func(*scene) {
		return func(x *scene) {
			for _, p := range x.s.Pods {
				if strings.HasPrefix(p.Name, node) {
					p.Nominated = ""
				}
			}
		}
	}
	up := func(ago time.Duration) func(*scene) {
		return func(x *scene) { x.node.Created = x.s.Now.Add(-ago) }
	}
	cold := func(ago time.Duration) func(*scene) {
		return func(x *scene) {
			x.node.Created, x.node.Ready = x.s.Now.Add(-ago), false
			x.node.Taints = append(slices.Clone(x.node.Taints), notReady)
		}
	}
	busy := func(began, last time.Duration) func(*scene) {
		return func(x *scene) {
			x.s.SchedulerActivity = cluster.SchedulerActivity{Began: x.s.Now.Add(-began), Last: x.s.Now.Add(-last)}
		}
	}
	daemon := func(taints ...string) func(*scene) {
		return func(x *scene) {
			cold(5 * time.Second)(x)
			class := &cluster.PodClass{Key: "daemon", Terms: []require.Set{nil}}
			for _, key := range taints {
				class.Tolerations = append(class.Tolerations, cluster.Toleration{Key: key, Exists: true})
			}
			x.s.Daemons = []*cluster.Daemon{{UID: "d", Namespace: "kube-system", Name: "network", Class: class}}
		}
	}
	then := func(steps ...func(*scene)) func(*scene) {
		return func(x *scene) {
			for _, s := range steps {
				s(x)
			}
		}
	}
	dedicated := func(x *scene) {
		taint := cluster.Taint{Key: "dedicated", Effect: cluster.NoSchedule}
		x.claim.Taints = []cluster.Taint{taint}
		x.node.Taints = append(slices.Clone(x.node.Taints), taint)
		x.classes("n00",
			func(c *cluster.PodClass) { c.Tolerations = []cluster.Toleration{{Key: "dedicated", Exists: true}} })
	}
	for _, c := range []struct {
		name         string
		nodes        int
		change       func(*scene)
		opened, told []string
		wake         time.Duration // from now, if it matters
	}{
		{"the pods have been told", 1, nil, both[:1], nil, 0},
		{"the pods have not been told", 1, untold("n00"), nil, told0, 9 * time.Second},
		{"one of them has not been told", 1, func(x *scene) { x.s.Pods[1].Nominated = "" }, nil, told0[1:],
			9 * time.Second},
		{"one of them can't be told", 1, func(x *scene) {
			x.s.Pods[1].Nominated = ""
			x.s.Retry["nominate/n00-1"] = cluster.Retry{Attempts: 1, NotBefore: x.s.Now.Add(time.Minute)}
		}, both[:1], nil, 0},
		{"the pods of the second have not been told", 2, untold("n01"), both[:1], nil, 0},
		{"the pods of the first have not been told", 2, untold("n00"), nil, told0, 0},
		{"the first is being opened", 2, then(untold("n01"), func(x *scene) {
			x.s.InFlight["register/c-n00"] = true
		}), nil,
			nil, 0},
		{"the first is being opened, and the pods of the second have been told", 2, func(x *scene) {
			x.s.InFlight["register/c-n00"] = true
		}, nil, nil, 0},
		{"the second came first", 2, func(x *scene) { x.s.Nodes[1].Created = x.s.Nodes[0].Created.Add(-ms) }, both[1:],
			nil, 0},
		{"both came at the same time", 2, func(x *scene) { x.s.Nodes[1].Created = x.s.Nodes[0].Created }, both[:1], nil,
			0},

		{"it came without the taint that keeps it closed", 1,
			then(untold("n00"), func(x *scene) { x.node.Taints = nil }), both[:1], told0, 0},

		{"it has been up for almost ten seconds", 1, then(untold("n00"), up(10*time.Second-ms)), nil, told0, ms},
		{"it has been up for ten seconds", 1, then(untold("n00"), up(10*time.Second)), both[:1], told0, 0},
		{"it is older, and has been up for less", 1, then(untold("n00"), up(time.Minute), func(x *scene) {
			x.node.ReadySince = x.s.Now.Add(-4 * time.Second)
		}), nil, told0, 6 * time.Second},
		{"it has been up before it came, as clocks differ", 1, then(untold("n00"), up(4*time.Second), func(x *scene) {
			x.node.ReadySince = x.s.Now.Add(-time.Minute)
		}), nil, told0, 6 * time.Second},
		{"its kubelet is not up yet", 1, then(untold("n00"), cold(20*time.Second)), nil, nil, 40 * time.Second},
		{"its kubelet is not up, and no taint says so", 1, then(untold("n00"), func(x *scene) { x.node.Ready = false }),
			nil, nil, 59 * time.Second},
		{"its kubelet is not up after a minute", 1, then(untold("n00"), cold(time.Minute)), both[:1], told0, 0},
		{"its kubelet is not up, and nobody has to be told", 1,
			then(untold("n00"), cold(20*time.Second), func(x *scene) { x.s.Pods = x.s.Pods[:1] }),
			both[:1], nil, 0},
		{"it comes a minute from now, as clocks differ", 1, then(untold("n00"), cold(-time.Minute)), nil, nil,
			2 * time.Minute},
		{"it comes later than that", 1, then(untold("n00"), cold(-time.Minute-ms)), both[:1], told0, 0},
		{"half of the time to register is over", 1, then(untold("n00"), cold(20*time.Second), func(x *scene) {
			x.pool.Timeouts.Registration = 2 * time.Minute
		}), both[:1], told0, 0},
		{"half of the time to register is over in a second", 1,
			then(untold("n00"), cold(20*time.Second), func(x *scene) {
				x.pool.Timeouts.Registration = 2*time.Minute + 2*time.Second
			}), nil, nil, time.Second},
		{"startup taints keep pods off", 1, then(untold("n00"), func(x *scene) {
			x.claim.StartupTaints = []cluster.Taint{{Key: "agent", Effect: cluster.NoSchedule}}
		}), both[:1], told0, 0},

		{"another taint keeps pods off", 1, func(x *scene) {
			x.node.Taints = append(slices.Clone(x.node.Taints),
				cluster.Taint{Key: "node.kubernetes.io/network-unavailable", Effect: cluster.NoSchedule})
		}, nil, nil, 9 * time.Second},
		{"another taint keeps few pods off", 1, func(x *scene) {
			x.node.Taints = append(slices.Clone(x.node.Taints),
				cluster.Taint{Key: "crowded", Effect: cluster.PreferNoSchedule})
		}, both[:1], nil, 0},
		{"a taint of its pool keeps others off", 1, dedicated, both[:1], nil, 0},

		{"kube-scheduler is busy", 1, busy(time.Second, 40*ms), nil, nil, 60 * ms},
		{"kube-scheduler is busy, and the pods have not been told", 1, then(untold("n00"), busy(time.Second, 40*ms)),
			nil, nil, 60 * ms},
		{"kube-scheduler has been idle for almost 100 ms", 1, busy(time.Second, 100*ms-1), nil, nil, 1},
		{"kube-scheduler has been idle for 100 ms", 1, busy(time.Second, 100*ms), both[:1], nil, 0},
		{"kube-scheduler has been busy for almost two seconds", 1, busy(2*time.Second-1, 40*ms), nil, nil, 60 * ms},
		{"kube-scheduler has been busy for two seconds", 1, busy(2*time.Second, 40*ms), both[:1], nil, 0},
		{"it has waited for kube-scheduler for almost two seconds", 1,
			then(up(2*time.Second-1), busy(time.Second, 40*ms)), nil, nil, 60 * ms},
		{"it has waited for kube-scheduler for two seconds", 1, then(up(2*time.Second), busy(time.Second, 40*ms)),
			both[:1], nil, 0},
		{"kube-scheduler is busy, and a pod is told another node", 1,
			then(busy(time.Second, 40*ms), func(x *scene) { x.s.Pods[1].Nominated = "other" }),
			nil, told0[1:], 60 * ms},
		{"kube-scheduler is busy, and a pod is told a node that is gone", 1,
			then(busy(time.Second, 40*ms), func(x *scene) {
				gone := *x.s.Pods[1]
				gone.UID, gone.Name, gone.Class, gone.Nominated = "z", "z", slotClass("gone", 1), "gone"
				x.s.Pods = append(x.s.Pods, &gone)
			}), nil, []string{"z nothing"}, 60 * ms},
		{"kube-scheduler is busy, and the node is open", 1,
			then(untold("n00"), busy(time.Second, 40*ms), func(x *scene) {
				x.open()
			}), nil, nil, 60 * ms},
		{"kube-scheduler is busy, and one pod of a node that is open has not been told", 1,
			then(busy(time.Second, 40*ms), func(x *scene) {
				x.open()
				x.s.Pods[0].Nominated = ""
			}), nil, nil, 60 * ms},
		{"the node is open", 1, then(untold("n00"), func(x *scene) { x.open() }), nil, told0, 0},
		{"the node is open, and another waits for its turn", 2, then(untold("n00"), func(x *scene) { x.open() }),
			both[1:], nil, 0},
		{"the node is open, and another is being opened", 2, then(untold("n00"), func(x *scene) {
			x.open()
			x.s.InFlight["register/c-n01"] = true
		}), nil, nil, 0},

		{"a daemon that the kubelet may need waits for the registration", 1,
			then(untold("n00"), daemon("node.kubernetes.io/not-ready")), both[:1], told0, 0},
		{"a daemon that the kubelet may need runs already", 1,
			then(untold("n00"), daemon("node.kubernetes.io/not-ready", cluster.UnregisteredTaint)), nil, nil, 0},
		{"a daemon that waits for the kubelet", 1, then(untold("n00"), daemon()), nil, nil, 0},
		{"a daemon that does not tolerate the pool's taint", 1,
			then(untold("n00"), dedicated, daemon("node.kubernetes.io/not-ready")), nil, nil, 0},
		{"a daemon that the kubelet may need selects a label that comes with the registration", 1,
			then(untold("n00"), daemon("node.kubernetes.io/not-ready", cluster.UnregisteredTaint), func(x *scene) {
				x.s.Daemons[0].Class.Terms = []require.Set{require.Set{}.With("team", require.Only("a"))}
				x.claim.Labels = x.claim.Labels.With("team", "a")
			}), both[:1], told0, 0},
	} {
		x := closedNodes(c.nodes, 2, true)
		if c.change != nil {
			c.change(x)
		}
		opened, nominated, wake := x.guided(defaultPolicy())
		if !slices.Equal(opened, c.opened) || !slices.Equal(nominated, c.told) {
			t.Errorf("%s: %v open and %v are told, want %v and %v", c.name, opened, nominated, c.opened, c.told)
		}
		if c.wake != never && wake != c.wake {
			t.Errorf("%s: looks again in %s, want %s", c.name, wake, c.wake)
		}
	}
}

// That kube-scheduler is busy matters only if a node or a pod waits for it.
func TestBusySchedulerThatNobodyWaitsFor(t *testing.T) {
	x := closedNodes(1, 2, false)
	x.open()
	x.s.Pods, x.s.SchedulerActivity = x.s.Pods[:1], cluster.SchedulerActivity{Began: x.s.Now, Last: x.s.Now}
	if _, nominated, wake := x.guided(defaultPolicy()); len(nominated) != 0 || wake == 100*time.Millisecond {
		t.Errorf("%v are told, and it looks again in %s", nominated, wake)
	}
}

// The largest pods of a node are told first, and those of one size in the order of their UIDs.
func TestOrderInWhichPodsAreTold(t *testing.T) {
	x := closedNodes(1, 4, false)
	for i, uid := range []string{"d", "c", "b", "a"} {
		x.s.Pods[i].UID, x.s.Pods[i].Name = uid, uid
	}
	policy := defaultPolicy()
	policy.Placement = plan.PlaceByNomination
	got := slices.DeleteFunc(keys(plan.Make(x.s.Seal(), policy, nil, nil)),
		func(key string) bool { return !strings.HasPrefix(key, "nominate/") })
	if want := []string{"nominate/a", "nominate/c", "nominate/b", "nominate/d"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Where pods are bound, a node is opened before its kubelet is up; they are bound then, however busy kube-scheduler is.
// A node that comes with its kubelet up opens when its pods have been told.
func TestNodesOpenBeforePodsAreBound(t *testing.T) {
	for _, c := range []struct {
		name         string
		change       func(*scene)
		opened, told []string
	}{
		{"the kubelet is not up", func(x *scene) { x.node.Ready = false }, []string{"n00"}, nil},
		{"the kubelet is up", func(*scene) {}, nil, []string{"n00-0", "n00-1"}},
		{"the kubelet is not up, and one pod can't be bound", func(x *scene) {
			x.node.Ready, x.s.Pods[0].UnboundClaims = false, []string{"claim"}
		}, []string{"n00"}, []string{"n00-0"}},
		{"it is registered", func(x *scene) { x.open(); x.node.Ready = false }, nil,
			[]string{"n00-0 bound", "n00-1 bound"}},
		{"it is registered, and kube-scheduler is busy", func(x *scene) {
			x.open()
			x.node.Ready = false
			x.s.SchedulerActivity = cluster.SchedulerActivity{Began: x.s.Now, Last: x.s.Now}
		}, nil, []string{"n00-0 bound", "n00-1 bound"}},
	} {
		x := closedNodes(1, 2, false)
		c.change(x)
		policy := defaultPolicy()
		policy.Placement = plan.PlaceByBinding
		if opened, nominated, _ := x.guided(policy); !slices.Equal(opened, c.opened) ||
			!slices.Equal(nominated, c.told) {
			t.Errorf("%s: %v open and %v are told, want %v and %v", c.name, opened, nominated, c.opened, c.told)
		}
	}
}

// open has the first node be registered, but not initialized yet.
func (x *scene) open() {
	x.node.Taints, x.node.Finalized, x.claim.NodeName = nil, true, x.node.Name
	x.node.Labels = x.node.Labels.With(cluster.RegisteredLabel, "true")
	x.claim.Conditions = append(x.claim.Conditions,
		cluster.Condition{Type: cluster.Registered, Status: cluster.True, Since: x.s.Now})
}
