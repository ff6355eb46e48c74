package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/resource"
)

var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// leaving is a claim that has been deleted a minute ago, with a fenced node.
func leaving() (*cluster.Snapshot, *cluster.Claim, *cluster.Node) {
	c := &cluster.Claim{Name: "a", UID: "u", NodeName: "a", ProviderID: "cloud://a", Finalized: true,
		Deleting: noon.Add(-time.Minute), Conditions: []cluster.Condition{
			{Type: cluster.Launched, Status: cluster.True, Since: noon.Add(-time.Hour)}, {Type: cluster.Registered,
				Status: cluster.True, Since: noon.Add(-time.Hour)}}}
	n := &cluster.Node{Name: "a", UID: "n", ProviderID: "cloud://a", Ready: true, Ours: true, Finalized: true,
		Created: noon.Add(-time.Hour),
		Taints:  []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}}
	s := &cluster.Snapshot{Now: noon, Names: &resource.Names{}, Claims: []*cluster.Claim{c}, Nodes: []*cluster.Node{n},
		InFlight: map[string]bool{}, Retry: map[string]cluster.Retry{}, InstancesGone: map[string]bool{},
		Attached: map[string][]string{}}
	return s, c, n
}

// keys are the commands of a step, for comparison.
func keys(s Step) string {
	out := make([]string, len(s.Commands))
	for i, c := range s.Commands {
		out[i] = c.Key()
	}
	return strings.Join(out, " ")
}

func TestEndOfAClaim(t *testing.T) {
	web := func() *cluster.Pod {
		return &cluster.Pod{UID: "p", Namespace: "ns", Name: "web", Node: "a", Grace: 30 * time.Second}
	}
	gone := &cluster.Inventory{At: noon}
	for _, x := range []struct {
		name string
		set  func(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node)
		want string
	}{
		{"an empty node is ended", func(*cluster.Snapshot, *cluster.Claim, *cluster.Node) {},
			"terminate/a/cloud://a/a"},
		{"a pod is evicted, and the claim tells", func(s *cluster.Snapshot, _ *cluster.Claim, _ *cluster.Node) {
			s.Pods = []*cluster.Pod{web()}
		}, "claim/a evict/p"},
		{"a pod that we are binding may be elsewhere, and is waited for", func(s *cluster.Snapshot, _ *cluster.Claim,
			_ *cluster.Node) {
			p := web()
			p.Binding = true
			s.Pods = []*cluster.Pod{p}
		}, "claim/a"},
		{"also if the machine is no more", func(s *cluster.Snapshot, _ *cluster.Claim, n *cluster.Node) {
			p := web()
			p.Binding = true
			n.Ready, s.Inventory, s.Pods = false, gone, []*cluster.Pod{p}
		}, "terminate/a/cloud://a/a"},
		{"or its time is up", func(s *cluster.Snapshot, c *cluster.Claim, _ *cluster.Node) {
			p := web()
			p.Binding, c.Deadline = true, noon
			s.Pods = []*cluster.Pod{p}
		}, "claim/a terminate/a/cloud://a/a"},
		{"a pod that asks for peace is left alone", func(s *cluster.Snapshot, _ *cluster.Claim, _ *cluster.Node) {
			p := web()
			p.DoNotDisrupt, p.DoNotDisruptUntil = true, noon.Add(time.Second)
			s.Pods = []*cluster.Pod{p}
		}, "claim/a"},
		{"until its time is over", func(s *cluster.Snapshot, _ *cluster.Claim, _ *cluster.Node) {
			p := web()
			p.DoNotDisrupt, p.DoNotDisruptUntil = true, noon
			s.Pods = []*cluster.Pod{p}
		}, "claim/a evict/p"},
		{"or the annotation's deadline nears", func(s *cluster.Snapshot, c *cluster.Claim, _ *cluster.Node) {
			p := web()
			p.DoNotDisrupt = true
			c.Deadline = noon.Add(30 * time.Second)
			s.Pods = []*cluster.Pod{p}
		}, "claim/a delete-pod/p"},
		{"an earlier annotation rules over the grace period", func(s *cluster.Snapshot, c *cluster.Claim,
			_ *cluster.Node) {
			c.HasTerminationGrace, c.TerminationGrace, c.Deadline = true, time.Hour, noon
			s.Pods = []*cluster.Pod{web()}
		}, "claim/a delete-pod/p terminate/a/cloud://a/a"},
		{"volumes are waited for", func(s *cluster.Snapshot, _ *cluster.Claim, _ *cluster.Node) {
			s.Attached["a"] = []string{"v"}
		}, "claim/a"},
		{"those of pods that stay are not", func(s *cluster.Snapshot, _ *cluster.Claim, _ *cluster.Node) {
			p := web()
			p.StaysThroughDrain, p.Volumes = true, []cluster.Volume{{Handle: "v"}}
			s.Attached["a"], s.Pods = []string{"v"}, []*cluster.Pod{p}
		}, "terminate/a/cloud://a/a"},
		{"nor those of stuck pods", func(s *cluster.Snapshot, _ *cluster.Claim, _ *cluster.Node) {
			p := web()
			p.Deleting, p.Volumes = noon.Add(-91*time.Second), []cluster.Volume{{Handle: "v"}}
			s.Attached["a"], s.Pods = []string{"v"}, []*cluster.Pod{p}
		}, "terminate/a/cloud://a/a"},
		{"a pod may be younger than its whole seconds say", func(s *cluster.Snapshot, _ *cluster.Claim,
			_ *cluster.Node) {
			p := web()
			p.Deleting = noon.Add(-91*time.Second + time.Millisecond)
			s.Pods = []*cluster.Pod{p}
		}, "claim/a"},
		{"a machine that is no more is not drained, but its pods are replaced", func(s *cluster.Snapshot,
			_ *cluster.Claim, n *cluster.Node) {
			n.Ready, s.Inventory, s.Pods = false, gone, []*cluster.Pod{web()}
		}, "delete-pod/p terminate/a/cloud://a/a"},
		{"one whose kubelet speaks is", func(s *cluster.Snapshot, _ *cluster.Claim, _ *cluster.Node) {
			s.Inventory, s.Pods = gone, []*cluster.Pod{web()}
		}, "claim/a evict/p"},
		{"what has been begun is finished, whoever came since", func(s *cluster.Snapshot, c *cluster.Claim,
			_ *cluster.Node) {
			c.Conditions = append(c.Conditions, cluster.Condition{Type: cluster.InstanceTerminating,
				Status: cluster.True})
			s.Pods = []*cluster.Pod{web()}
		}, "terminate/a/cloud://a/a"},
		{"an instance that is gone is let go", func(s *cluster.Snapshot, c *cluster.Claim, _ *cluster.Node) {
			c.InstanceGone, s.InstancesGone["cloud://a"], s.Pods = true, true, []*cluster.Pod{web()}
		}, "release/a"},
		{"one that came after we were told that there was none is ended", func(_ *cluster.Snapshot, c *cluster.Claim,
			_ *cluster.Node) {
			c.InstanceGone = true
		}, "terminate/a/cloud://a/a"},
	} {
		s, c, n := leaving()
		x.set(s, c, n)
		if step := Next(s.Seal(), Settings{}); keys(step) != x.want {
			t.Errorf("%s: %s, want %s", x.name, keys(step), x.want)
		}
	}
}

// What the claim is told about its end is told once.
func TestTheEndIsToldOnce(t *testing.T) {
	s, c, _ := leaving()
	s.Attached["a"] = []string{"v"}
	told := Next(s.Seal(), Settings{}).Commands[0].(command.SetClaim)
	if len(told.Conditions) != 2 || told.Conditions[0].Type != cluster.Drained ||
		told.Conditions[1].Status != cluster.Unknown {
		t.Fatalf("told %+v", told)
	}
	for _, cond := range told.Conditions {
		c.Conditions = append(c.Conditions, render.Condition(cond))
	}
	step := Next(s, Settings{})
	if len(step.Commands) != 0 || len(step.Notes) != 1 || step.Notes[0].Reason != "AwaitingVolumeDetachment" {
		t.Errorf("told again: %+v", step)
	}
	c.HasTerminationGrace, c.TerminationGrace = true, 2*time.Minute
	step = Next(s, Settings{})
	if d := step.Commands[0].(command.SetClaim); !d.Deadline.Equal(noon.Add(time.Minute)) || len(d.Conditions) != 0 ||
		!step.WakeAt.Equal(d.Deadline) {
		t.Errorf("%+v, want the deadline written and waited for", step)
	}
}

// A node that nobody claims goes only when it is certain that nobody will.
func TestNodeThatNobodyClaims(t *testing.T) {
	here := func(i cluster.Instance) *cluster.Inventory {
		i.ProviderID = "cloud://a"
		return &cluster.Inventory{At: noon, Instances: []cluster.Instance{i}}
	}
	for _, x := range []struct {
		name string
		set  func(s *cluster.Snapshot, n *cluster.Node)
		want string
	}{
		{"nobody claims it", func(*cluster.Snapshot, *cluster.Node) {}, "delete-node/a"},
		{"it is none of ours", func(_ *cluster.Snapshot, n *cluster.Node) { n.Ours = false }, ""},
		{"it has just come", func(_ *cluster.Snapshot, n *cluster.Node) {
			n.Created = noon.Add(-29 * time.Second)
		}, ""},
		{"its instance has just come", func(s *cluster.Snapshot, _ *cluster.Node) {
			s.Inventory = here(cluster.Instance{Created: noon.Add(-29 * time.Second)})
		}, ""},
		{"a claim names it", func(s *cluster.Snapshot, _ *cluster.Node) {
			s.Claims = []*cluster.Claim{{Name: "b", NodeName: "a"}}
		}, ""},
		{"its instance's claim is there", func(s *cluster.Snapshot, _ *cluster.Node) {
			s.Claims, s.Inventory = []*cluster.Claim{{Name: "b", UID: "u"}},
				here(cluster.Instance{Claim: "b", ClaimUID: "u"})
		}, ""},
		{"a namesake's launch is under way", func(s *cluster.Snapshot, _ *cluster.Node) {
			s.InFlight["launch/b"], s.Inventory = true, here(cluster.Instance{Claim: "b", ClaimUID: "u"})
		}, ""},
		{"it was never registered", func(_ *cluster.Snapshot, n *cluster.Node) { n.Finalized = false }, ""},
		{"nor will it be: its machine is no more", func(s *cluster.Snapshot, n *cluster.Node) {
			n.Finalized, n.Ready, s.Inventory = false, false, &cluster.Inventory{At: noon}
		}, "delete-node/a"},
		{"it has no machine yet", func(s *cluster.Snapshot, n *cluster.Node) {
			n.Finalized, n.Ready, n.ProviderID, s.Inventory = false, false, "", &cluster.Inventory{At: noon}
		}, ""},
	} {
		s, _, n := leaving()
		s.Claims = nil
		x.set(s, n)
		if step, _ := Orphans(s.Seal()); keys(step) != x.want {
			t.Errorf("%s: %q, want %q", x.name, keys(step), x.want)
		}
	}
}

func TestOrphans(t *testing.T) {
	old := noon.Add(-time.Minute)
	orphan := cluster.Instance{ProviderID: "cloud://x", Claim: "x", ClaimUID: "ux", Created: old}
	for _, x := range []struct {
		name string
		set  func(s *cluster.Snapshot, i *cluster.Instance)
		want bool
	}{
		{"nobody's", func(*cluster.Snapshot, *cluster.Instance) {}, true},
		{"a claim's", func(s *cluster.Snapshot, _ *cluster.Instance) {
			s.Claims = []*cluster.Claim{{Name: "y", UID: "ux"}}
		}, false},
		{"its namesake is another claim", func(s *cluster.Snapshot, _ *cluster.Instance) {
			s.Claims = []*cluster.Claim{{Name: "x", UID: "new"}}
		}, true},
		{"its namesake is not there yet", func(s *cluster.Snapshot, _ *cluster.Instance) {
			s.Claims = []*cluster.Claim{{Name: "x", Expected: true}}
		}, false},
		{"young", func(_ *cluster.Snapshot, i *cluster.Instance) { i.Created = noon.Add(-29 * time.Second) }, false},
		{"ending", func(_ *cluster.Snapshot, i *cluster.Instance) { i.Terminating = true }, false},
		{"gone", func(s *cluster.Snapshot, _ *cluster.Instance) { s.InstancesGone["cloud://x"] = true }, false},
		{"being launched", func(s *cluster.Snapshot, _ *cluster.Instance) { s.InFlight["launch/x"] = true }, false},
		{"with a node of ours that is being deleted", func(s *cluster.Snapshot, _ *cluster.Instance) {
			s.Nodes = []*cluster.Node{{Name: "x", ProviderID: "cloud://x", Ours: true, Finalized: true, Deleting: noon}}
		}, false},
		{"with a node that never joined", func(s *cluster.Snapshot, _ *cluster.Instance) {
			s.Nodes = []*cluster.Node{{Name: "x", ProviderID: "cloud://x", Ours: true}}
		}, true},
	} {
		i := orphan
		s := &cluster.Snapshot{Now: noon, InFlight: map[string]bool{}, InstancesGone: map[string]bool{}}
		x.set(s, &i)
		s.Inventory = &cluster.Inventory{At: noon, Instances: []cluster.Instance{i}}
		step, _ := Orphans(s.Seal())
		if want := map[bool]string{true: "terminate//cloud://x/", false: ""}[x.want]; keys(step) != want {
			t.Errorf("%s: %q, want %q", x.name, keys(step), want)
		}
	}
	if step, _ := Orphans((&cluster.Snapshot{Now: noon}).Seal()); len(step.Commands) > 0 {
		t.Errorf("before the cloud has said anything: %+v", step)
	}
}

// What a node says of its machine proves nothing: a machine that is a claim's is never ended with another node.
func TestNodeThatSaysItIsAnothersMachine(t *testing.T) {
	here := &cluster.Inventory{At: noon, Instances: []cluster.Instance{{ProviderID: "cloud://a", Claim: "b",
		ClaimUID: "ub"}}}
	for _, x := range []struct {
		name string
		set  func(s *cluster.Snapshot)
		want string
	}{
		{"the claim has the machine and another node", func(s *cluster.Snapshot) {
			s.Claims = []*cluster.Claim{{Name: "b", UID: "ub", ProviderID: "cloud://a", NodeName: "b"}}
			s.Nodes = append(s.Nodes, &cluster.Node{Name: "b", ProviderID: "cloud://a"})
		}, "release/node/a"},
		{"the machine was launched for a claim that does not know it yet", func(s *cluster.Snapshot) {
			s.Claims, s.Inventory = []*cluster.Claim{{Name: "b", UID: "ub"}}, here
		}, "release/node/a"},
		{"the launch for the claim is under way", func(s *cluster.Snapshot) {
			s.InFlight["launch/b"], s.Inventory = true, here
		}, ""},
		{"the claim has another machine", func(s *cluster.Snapshot) {
			s.Claims, s.Inventory = []*cluster.Claim{{Name: "b", UID: "ub", ProviderID: "cloud://b"}}, here
		}, "terminate//cloud://a/a"},
		{"nobody claims it", func(s *cluster.Snapshot) { s.Inventory = here }, "terminate//cloud://a/a"},
	} {
		s, _, n := leaving()
		s.Claims, n.Deleting = nil, noon
		x.set(s)
		if step := EndNode(s.Seal(), n, false); keys(step) != x.want {
			t.Errorf("%s: %q, want %q", x.name, keys(step), x.want)
		}
	}
}

// Many orphans at once are left alone until a person has said, not long ago and not before they were launched, that
// they may go.
func TestManyOrphansAreHeld(t *testing.T) {
	for _, x := range []struct {
		orphans, others, spare, unproven int
		said                             time.Duration // before now; zero for never
		ended, held                      int
	}{
		{orphans: 3, ended: 3},
		{orphans: 4, held: 4},
		{orphans: 20, others: 180, ended: 20},
		{orphans: 21, others: 179, held: 21},
		{orphans: 200, held: 200},
		{orphans: 200, said: time.Minute, ended: 200},
		{orphans: 200, said: time.Hour, held: 200},
		{orphans: 200, said: -time.Minute, ended: 200},
		{orphans: 200, said: -6 * time.Minute, held: 200},
		{spare: 50, ended: 50},
		{spare: 50, orphans: 6, ended: 50, held: 6},
		{unproven: 1, held: 1},
		{unproven: 50, orphans: 2, ended: 2, held: 50},
		{unproven: 50, said: time.Minute, ended: 50},
	} {
		s := &cluster.Snapshot{Now: noon, Inventory: &cluster.Inventory{At: noon}}
		if x.said != 0 {
			s.EndOrphans = noon.Add(-x.said)
		}
		add := func(kind string, count int, unproven bool, has string) {
			for i := range count {
				name := fmt.Sprintf("%s-%03d", kind, i)
				s.Inventory.Instances = append(s.Inventory.Instances, cluster.Instance{ProviderID: "cloud://" + name,
					Claim: name, ClaimUID: name,
					Created: noon.Add(-2 * time.Hour), Unproven: unproven})
				if has != "" {
					s.Claims = append(s.Claims, &cluster.Claim{Name: name, UID: name, ProviderID: "cloud://" +
						has + name,
						Conditions: []cluster.Condition{{Type: cluster.Launched, Status: cluster.True}}})
				}
			}
		}
		add("a", x.orphans, false, "")
		add("b", x.unproven, true, "")
		add("c", x.spare, false, "other-")
		for i := range x.others {
			name := fmt.Sprintf("d-%03d", i)
			s.Inventory.Instances = append(s.Inventory.Instances, cluster.Instance{ProviderID: "cloud://" + name,
				Claim: name, ClaimUID: name})
			s.Claims = append(s.Claims, &cluster.Claim{Name: name, UID: name, ProviderID: "cloud://" + name})
		}
		step, status := Orphans(s.Seal())
		if len(step.Commands) != x.ended || status.Held != x.held || status.Orphans != x.orphans+x.spare+x.unproven ||
			(render.Text(status.Text()) != "") != (x.held > 0) {
			t.Errorf("%+v: %d ended, %+v, %q", x, len(step.Commands), status, render.Text(status.Text()))
		}
	}
}

// Two settings for the same thing: the pool's own wins, and what it does not say stands.
func TestTimeoutsOfAPool(t *testing.T) {
	c := &cluster.Claim{Name: "a", Pool: "p"}
	s := (&cluster.Snapshot{Pools: []*cluster.Pool{{Name: "p", Timeouts: cluster.Timeouts{Registration: time.Hour}}},
		Claims: []*cluster.Claim{c}}).Seal()
	w := &claimsPass{s: s, set: Settings{LaunchTimeout: 1, RegistrationTimeout: 2, InitializationTimeout: 3}}
	if got, want := fmt.Sprint((&claimStep{claimsPass: w, claim: c}).timeouts()),
		fmt.Sprint(cluster.Timeouts{Launch: 1, Registration: time.Hour, Initialization: 3}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Whoever counts evictions by workload may learn of one when the pod is gone: the command says whose it was.
func TestEvictionsNameTheWorkload(t *testing.T) {
	s, c, _ := leaving()
	s.Pods = []*cluster.Pod{{UID: "p", Namespace: "ns", Name: "web", Node: "a", Owner: "rs"}}
	for _, at := range []time.Time{{}, noon} { // asked, and told
		c.Deadline = at
		found := false
		for _, cmd := range Next(s.Seal(), Settings{}).Commands {
			if evict, ok := cmd.(command.Evict); ok {
				found = evict.Owner == "rs" && evict.Delete == !at.IsZero()
			}
		}
		if !found {
			t.Errorf("by %v: no eviction of the workload's pod", at)
		}
	}
}

// What makes a node look empty is to be looked at once more, unless its end does not wait for anybody or has begun.
func TestEndIsLookedAtOnceMore(t *testing.T) {
	stays := &cluster.Pod{UID: "p", Namespace: "ns", Name: "agent", Node: "a", StaysThroughDrain: true}
	for _, x := range []struct {
		name string
		set  func(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node)
		want string
	}{
		{"an empty node", func(*cluster.Snapshot, *cluster.Claim, *cluster.Node) {}, "on a: true [p], missing: "},
		{"time is up", func(_ *cluster.Snapshot, c *cluster.Claim, _ *cluster.Node) {
			c.Deadline = noon
		}, "on a: false [], missing: "},
		{"time is up in a minute", func(_ *cluster.Snapshot, c *cluster.Claim, _ *cluster.Node) {
			c.Deadline = noon.Add(time.Minute)
		}, "on a: true [p], missing: "},
		{"another machine has a node of that name", func(_ *cluster.Snapshot, _ *cluster.Claim, n *cluster.Node) {
			n.ProviderID = "cloud://b"
		}, "on : false [], missing: a"},
		{"the end has begun", func(_ *cluster.Snapshot, c *cluster.Claim, _ *cluster.Node) {
			c.Conditions = append(c.Conditions, cluster.Condition{Type: cluster.InstanceTerminating,
				Status: cluster.True})
		}, "on a: false [], missing: "},
		{"the machine is no more", func(s *cluster.Snapshot, _ *cluster.Claim, n *cluster.Node) {
			n.Ready, s.Inventory = false, &cluster.Inventory{At: noon}
		}, "on a: false [], missing: "},
		{"a node that we don't know of", func(s *cluster.Snapshot, _ *cluster.Claim, _ *cluster.Node) {
			s.Nodes = nil
		}, "on : false [], missing: a"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s, c, n := leaving()
			s.Pods = []*cluster.Pod{stays}
			x.set(s, c, n)
			s.Seal()
			for _, cmd := range Next(s, Settings{}).Commands {
				if end, ok := cmd.(command.Terminate); ok {
					if got := fmt.Sprintf("on %s: %v %v, missing: %s", end.Node, end.Drained, end.StayingPods,
						end.Missing); got != x.want {
						t.Errorf("got %s, want %s", got, x.want)
					}
					return
				}
			}
			t.Error("the instance is not ended")
		})
	}
}
