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

// pending adds a pod that looks for a place.
func (x *scene) pending(name string, class *cluster.PodClass, labels cluster.Labels) *cluster.Pod {
	p := *x.w
	p.UID, p.Name, p.Class, p.Labels = name, name, class, labels
	x.s.Pods = append(x.s.Pods, &p)
	return &p
}

// anywhere is a class of pods that run on any node; wanting is one of pods that run on nodes with a label.
func anywhere(key string, cpu int64) *cluster.PodClass {
	return &cluster.PodClass{Key: key, Terms: []require.Set{nil},
		Requests: resource.Vector{resource.CPU: cpu, resource.Pods: 1}}
}

func wanting(key, label, value string) *cluster.PodClass {
	c := anywhere(key, 1000)
	c.Terms = []require.Set{require.Set{}.With(label, require.Only(value))}
	return c
}

// about is a rule over zones about the pods of an app in the namespace of all pods.
func about(kind cluster.RuleKind, app string) *cluster.Rule {
	return &cluster.Rule{Key: fmt.Sprint(kind, app), Kind: kind, TopologyKey: cluster.ZoneLabel, MaxSkew: 1,
		Selectors: []cluster.Selector{{Namespaces: []string{"shop"},
			Labels: require.Set{}.With("app", require.Only(app))}}}
}

// Pods are told the node that was made for them where kube-scheduler could put them so that one is left over: on a node
// that pods of several classes may run on, or pods that ports, volumes or rules keep apart, or whose room DaemonSets
// may take. Pods of one spread are told one after the other.
func TestWhoIsToldANode(t *testing.T) {
	web, db := cluster.Labels{}.With("app", "web"), cluster.Labels{}.With("app", "db")
	port := func(c *cluster.PodClass) *cluster.PodClass {
		c.Ports = []cluster.Port{{IP: "0.0.0.0", Protocol: "TCP", Number: 80}}
		return c
	}
	ruled := func(c *cluster.PodClass, rules ...*cluster.Rule) *cluster.PodClass {
		c.Rules = rules
		return c
	}
	elsewhere := func() *cluster.PodClass { return wanting("elsewhere", "slot", "none") }
	for _, c := range []struct {
		name   string
		change func(x *scene)
		told   []string
	}{
		{"pods of one class", func(x *scene) {
			class := anywhere("a", 1000)
			x.pending("a1", class, nil)
			x.pending("a2", class, nil)
		}, nil},
		{"pods of two classes", func(x *scene) {
			x.pending("a", anywhere("a", 1000), nil)
			x.pending("b", anywhere("b", 2000), nil)
		}, []string{"a", "b"}},
		{"pods of three classes", func(x *scene) {
			x.pending("a", anywhere("a", 1000), nil)
			x.pending("b", anywhere("b", 2000), nil)
			x.pending("c", anywhere("c", 1000), nil)
		}, []string{"a", "b", "c"}},
		{"a port of the node", func(x *scene) { x.pending("a", port(anywhere("a", 1000)), nil) }, []string{"a"}},
		{"a rule",
			func(x *scene) {
				x.pending("a", ruled(anywhere("a", 1000), about(cluster.AntiAffinity, "db")),
					web)
			}, []string{"a"}},
		{"a volume of its own",
			func(x *scene) {
				x.pending("a", anywhere("a", 1000), nil).ExclusiveVolumes = []string{"disk"}
			}, []string{"a"}},
		{"pods of another class can't run there", func(x *scene) {
			class := anywhere("a", 1000)
			x.pending("a", class, nil)
			x.pending("b", elsewhere(), nil)
			x.pending("c", class, nil)
		}, nil},
		{"pods of another class can't run there, and a port", func(x *scene) {
			x.pending("a", port(anywhere("a", 1000)), nil)
			x.pending("b", elsewhere(), nil)
		}, []string{"a"}},
		{"pods of another class don't tolerate its taint", func(x *scene) {
			x.claim.Taints = []cluster.Taint{{Key: "dedicated", Effect: cluster.NoSchedule}}
			a := anywhere("a", 1000)
			a.Tolerations = []cluster.Toleration{{Key: "dedicated", Exists: true}}
			x.pending("a", a, nil)
			x.pending("b", anywhere("b", 1000), nil)
		}, nil},
		{"pods of another class select a label that comes with the registration", func(x *scene) {
			x.pending("a", anywhere("a", 1000), nil)
			x.pending("b", wanting("b", cluster.RegisteredLabel, "true"), nil)
		}, []string{"a", "b"}},
		{"pods of another class select a label that only the claim has yet", func(x *scene) {
			x.claim.Labels = x.claim.Labels.With("team", "a")
			x.pending("a", anywhere("a", 1000), nil)
			x.pending("b", wanting("b", "team", "a"), nil)
		}, []string{"a", "b"}},
		{"another's rule is about them", func(x *scene) {
			x.pending("a", anywhere("a", 1000), web)
			x.pending("b", ruled(elsewhere(), about(cluster.AntiAffinity, "web")), db)
		}, []string{"a"}},
		{"another's rule is about some of them", func(x *scene) {
			class := anywhere("a", 1000)
			x.pending("a1", class, web)
			x.pending("a2", class, db)
			x.pending("b", ruled(elsewhere(), about(cluster.AntiAffinity, "web")), nil)
		}, []string{"a1", "a2"}},
		{"another's rule is about others", func(x *scene) {
			x.pending("a", anywhere("a", 1000), web)
			x.pending("b", ruled(elsewhere(), about(cluster.AntiAffinity, "db")), nil)
		}, nil},

		{"a DaemonSet that leaves them their room",
			func(x *scene) { x.daemonset(1000); x.pending("a", anywhere("a", 3000), nil) }, nil},
		{"a DaemonSet that takes their room",
			func(x *scene) { x.daemonset(1001); x.pending("a", anywhere("a", 3000), nil) }, []string{"a"}},
		{"a DaemonSet that takes the room of two", func(x *scene) {
			class := anywhere("a", 1500)
			x.daemonset(1001)
			x.pending("a1", class, nil)
			x.pending("a2", class, nil)
		}, []string{"a1", "a2"}},
		{"pods that go elsewhere need room, too", func(x *scene) {
			x.daemonset(1000)
			x.pending("a", wanting("a", "slot", "n00"), nil)
			x.pending("b", wanting("b", "slot", "n01"), nil).Class.Requests[resource.CPU] = 3000
		}, nil},
		{"a DaemonSet that is too large for the node",
			func(x *scene) { x.daemonset(4001); x.pending("a", anywhere("a", 3000), nil) }, nil},
		{"a DaemonSet of other nodes", func(x *scene) {
			x.daemonset(1001).Class.Terms = elsewhere().Terms
			x.pending("a", anywhere("a", 3000), nil)
		}, nil},
		{"a node that is smaller than was promised", func(x *scene) {
			x.daemonset(1000)
			x.node.Allocatable[resource.CPU] = 3500
			x.pending("a", anywhere("a", 3000), nil)
		}, []string{"a"}},
		{"a node that has not said its size", func(x *scene) {
			x.daemonset(1000)
			x.node.Allocatable = resource.Vector{}
			x.pending("a", anywhere("a", 3000), nil)
		}, nil},

		{"two pods of one spread", func(x *scene) {
			class := ruled(anywhere("a", 1000), about(cluster.Spread, "web"))
			x.pending("a1", class, web)
			x.pending("a2", class, web)
		}, []string{"a1"}},
		{"one of a spread has been told", func(x *scene) {
			class := ruled(anywhere("a", 1000), about(cluster.Spread, "web"))
			x.pending("a1", class, web)
			x.pending("a2", class, web).Nominated = "n00"
		}, nil},
		{"the first is spread over pods like the second", func(x *scene) {
			x.pending("a", ruled(anywhere("a", 1000), about(cluster.Spread, "db")), web)
			x.pending("b", anywhere("b", 1000), db)
		}, []string{"a"}},
		{"the second is spread over pods like the first", func(x *scene) {
			x.pending("a", anywhere("a", 1000), db)
			x.pending("b", ruled(anywhere("b", 1000), about(cluster.Spread, "db")), web)
		}, []string{"a"}},
		{"the third is spread over pods like the second", func(x *scene) {
			x.pending("a", anywhere("a", 1000), web)
			x.pending("b", anywhere("b", 1000), db)
			x.pending("c", ruled(anywhere("c", 1000), about(cluster.Spread, "db")), web)
		}, []string{"a", "b"}},
		{"a place on a node that was there before",
			func(x *scene) { x.pending("a", wanting("a", "slot", "other"), nil) }, nil},
		{"a place on a node that was there before, and told so", func(x *scene) {
			x.pending("a", wanting("a", "slot", "other"), nil).Nominated = "other"
		}, nil},
		{"a place on a node that was there before, and told another", func(x *scene) {
			x.pending("a", wanting("a", "slot", "other"), nil).Nominated = "n00"
		}, []string{"a"}},
		{"no place, and told a node", func(x *scene) { x.pending("a", elsewhere(), nil).Nominated = "n00" },
			[]string{"a nothing"}},

		{"pods that want to be together", func(x *scene) {
			class := ruled(anywhere("a", 1000), about(cluster.Affinity, "web"))
			x.pending("a1", class, web)
			x.pending("a2", class, web)
		}, []string{"a1", "a2"}},
	} {
		x := closedNodes(2, 0, false)
		for i, n := range x.s.Nodes {
			n.Allocatable[resource.CPU], x.s.Claims[i].Allocatable[resource.CPU] = 4000, 4000
		}
		x.s.Nodes[1].Cordoned = true
		x.s.Nodes = append(x.s.Nodes,
			&cluster.Node{Name: "other", Ready: true, Allocatable: x.node.Allocatable,
				Labels: cluster.Labels{}.With("slot", "other"),
				Taints: []cluster.Taint{{Key: "old", Effect: cluster.PreferNoSchedule}}})
		c.change(x)
		for i, claim := range x.s.Claims {
			seats := make(map[string]int)
			for _, p := range x.s.Pods {
				if slot, ok := p.Class.Terms[0].Get("slot"); !ok && i == 0 || ok && slot.Matches(x.s.Nodes[i].Name,
					true) {
					seats[p.Class.Key]++
				}
			}
			for key, n := range seats {
				claim.Seats = append(claim.Seats, cluster.Seat{Class: key, Count: n})
			}
		}
		if _, nominated, _ := x.guided(defaultPolicy()); !slices.Equal(nominated, c.told) {
			t.Errorf("%s: %v are told, want %v", c.name, nominated, c.told)
		}
	}
}

// daemonset has a DaemonSet run on every node that is open.
func (x *scene) daemonset(cpu int64) *cluster.Daemon {
	class := anywhere("daemon", cpu)
	d := &cluster.Daemon{UID: "d", Namespace: "kube-system", Name: "agent", Class: class}
	x.s.Daemons = append(x.s.Daemons, d)
	return d
}

// While more pods are awaited none is planned for. But a node may be coming for some that were planned for before:
// these are told so where they have to know.
func TestWhoIsToldWhileMoreAreAwaited(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(x *scene, a1, a2 *cluster.Pod)
		told   []string
	}{
		{"pods of one class", func(*scene, *cluster.Pod, *cluster.Pod) {}, nil},
		{"pods of two classes", func(_ *scene, _, a2 *cluster.Pod) { a2.Class = anywhere("b", 2000) },
			[]string{"a1", "a2"}},
		{"a port", func(_ *scene, a1, _ *cluster.Pod) {
			a1.Class.Ports = []cluster.Port{{IP: "0.0.0.0", Protocol: "TCP", Number: 80}}
		}, []string{"a1"}},
		{"a rule", func(_ *scene, a1, _ *cluster.Pod) {
			a1.Class.Rules = []*cluster.Rule{about(cluster.AntiAffinity, "db")}
		}, []string{"a1", "a2"}},
		{"a volume", func(_ *scene, a1, _ *cluster.Pod) {
			a1.ExclusiveVolumes = []string{"disk"}
		}, []string{"a1", "a2"}},
		{"volumes", func(_ *scene, a1, a2 *cluster.Pod) {
			a1.ExclusiveVolumes, a2.ExclusiveVolumes = []string{"disk1"}, []string{"disk2"}
		}, []string{"a1", "a2"}},
		{"one has no place, and was told a node", func(x *scene, _, a2 *cluster.Pod) {
			x.node.Allocatable[resource.CPU], a2.Nominated = 1000, "gone"
		}, []string{"a2 nothing"}},
		{"a DaemonSet that takes their room", func(x *scene, _, _ *cluster.Pod) { x.daemonset(2001) },
			[]string{"a1", "a2"}},
		{"one has no place, and was told a node, and no node comes", func(x *scene, _, a2 *cluster.Pod) {
			x.node.Allocatable[resource.CPU], a2.Nominated = 1000, "gone"
			x.open()
			x.claim.Conditions = append(x.claim.Conditions,
				cluster.Condition{Type: cluster.Initialized, Status: cluster.True})
		}, nil},
	} {
		x := closedNodes(1, 0, false)
		x.node.Allocatable[resource.CPU], x.claim.Allocatable[resource.CPU] = 4000, 4000
		x.claim.Seats = []cluster.Seat{{Class: "a", Count: 2}}
		x.s.PlannedAt = x.s.Now.Add(-time.Hour)
		x.s.Owners["web"] = cluster.Owner{UID: "web", Known: true, Desired: 9}
		class := anywhere("a", 1000)
		a1, a2 := x.pending("a1", class, nil), x.pending("a2", class, nil)
		a1.UnschedulableSince, a2.UnschedulableSince = x.s.Now, x.s.Now
		c.change(x, a1, a2)
		if _, nominated, _ := x.guided(defaultPolicy()); !slices.Equal(nominated, c.told) {
			t.Errorf("%s: %v are told, want %v", c.name, nominated, c.told)
		}
	}
}

// Of pods that are alike each keeps the node that it has been told, as long as one of them is to go there; the others
// share what is left.
func TestInterchangeablePodsKeepTheirNodes(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(x *scene, a, b, c *cluster.Pod)
		want   string
	}{
		{"nobody has been told", func(*scene, *cluster.Pod, *cluster.Pod, *cluster.Pod) {}, "a→n00 b→n01 c→n02"},
		{"the first has been told the last", func(_ *scene, a, _, _ *cluster.Pod) { a.Nominated = "n02" },
			"a→n02 b→n01 c→n00"},
		{"all have been told",
			func(_ *scene, a, b, c *cluster.Pod) {
				a.Nominated, b.Nominated, c.Nominated = "n01", "n02",
					"n00"
			}, "a→n01 b→n02 c→n00"},
		{"two have been told the same",
			func(_ *scene, a, b, _ *cluster.Pod) { a.Nominated, b.Nominated = "n02", "n02" }, "a→n02 b→n01 c→n00"},
		{"the last has been told a node that is not for them",
			func(_ *scene, _, _, c *cluster.Pod) { c.Nominated = "other" }, "a→n00 b→n01 c→n02"},
		{"the second is of another kind", func(x *scene, _, b, _ *cluster.Pod) {
			class := *b.Class
			class.Key, b.Class, b.Nominated = "b", &class, "n00"
		}, "a→n00 b→n02 c→n01"},
		{"another pod of theirs leaves a node", func(x *scene, a, b, _ *cluster.Pod) {
			x.leaves("_", a.Class)
			b.Nominated = "n03"
		}, "a→n01 b→n03 c→n02"},
		{"another pod of theirs leaves a node, and the first has been told the last",
			func(x *scene, a, _, _ *cluster.Pod) {
				x.leaves("_", a.Class)
				a.Nominated = "n03"
			}, "a→n03 b→n02 c→n01"},
	} {
		x := closedNodes(4, 0, false)
		for i := range x.s.Nodes {
			x.claim, x.node = x.s.Claims[i], x.s.Nodes[i]
			x.open()
			x.node.Ready = false
		}
		class := anywhere("a", 1000)
		class.Ports = []cluster.Port{{IP: "0.0.0.0", Protocol: "TCP", Number: 80}}
		c.change(x, x.pending("a", class, nil), x.pending("b", class, nil), x.pending("c", class, nil))
		if got := x.bound(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Where several pods have a place on a node, each place is given away once.
func TestInterchangeablePodsShareWhatIsLeft(t *testing.T) {
	x := closedNodes(3, 0, false)
	for i := range x.s.Nodes {
		x.claim, x.node = x.s.Claims[i], x.s.Nodes[i]
		x.open()
		x.node.Ready, x.node.Allocatable[resource.CPU] = false, 2000
	}
	class := anywhere("a", 1000)
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		x.pending(name, class, nil)
	}
	if got, want := x.bound(), "a→n00 b→n00 c→n01 d→n01 e→n02 f→n02"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	x.s.Pods[0].Nominated, x.s.Pods[2].Nominated = "n02", "n02"
	if got, want := x.bound(), "a→n02 b→n00 c→n02 d→n01 e→n00 f→n01"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// leaves adds a pod whose node is being deleted.
func (x *scene) leaves(name string, class *cluster.PodClass) {
	old, c := *x.node, *x.claim
	old.Name, old.UID, old.ProviderID, old.Ready, c.ProviderID = "old", "old", "cloud://old", true, "cloud://old"
	c.Name, c.UID, c.NodeName, c.Deleting = "old", "old", "old", x.s.Now.Add(-time.Minute)
	x.s.Nodes, x.s.Claims = append(x.s.Nodes, &old), append(x.s.Claims, &c)
	p := *x.p
	p.UID, p.Name, p.Class, p.Node = name, name, class, "old"
	x.s.Pods = append(x.s.Pods, &p)
}

// bound says which pods a plan binds to which nodes.
func (x *scene) bound() string {
	policy := defaultPolicy()
	policy.Placement = plan.PlaceByBinding
	var out []string
	for _, c := range plan.Make(x.s.Seal(), policy, nil, nil).Commands {
		if b, ok := c.(command.Bind); ok {
			out = append(out, b.Name+"→"+b.Node)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
