package lifecycle

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/resource"
)

// These tests hold one condition each: without it, a mutant of the code survived all other tests.

func TestOnlyPodsThatHaveToLeaveAreDismissed(t *testing.T) {
	pod := func(uid string, change func(*cluster.Pod)) *cluster.Pod {
		p := &cluster.Pod{UID: uid, Namespace: "ns", Name: uid, Node: "a"}
		change(p)
		return p
	}
	s, c, _ := leaving()
	c.Deadline = noon // its time is up
	s.Pods = []*cluster.Pod{pod("1", func(*cluster.Pod) {}), pod("2", func(p *cluster.Pod) {
		p.Mirror = true
	}), pod("3", func(p *cluster.Pod) { p.Daemon = true }),
		pod("4", func(p *cluster.Pod) {
			p.StaysThroughDrain = true
		}), pod("5", func(p *cluster.Pod) { p.Deleting = noon })}
	if got, want := keys(Next(s.Seal(), Settings{})), "claim/a delete-pod/1 terminate/a/cloud://a/a"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestOnlyARefusedLaunchIsNotAskedAbout(t *testing.T) {
	for _, x := range []struct {
		name   string
		id     string
		status cluster.ConditionStatus
		reason command.Reason
		want   string
	}{
		{"the cloud had none", "", cluster.False, command.InsufficientCapacity, "release/a"},
		{"the class was not ready", "", cluster.False, command.ClassNotReady, "release/a"},
		{"it failed for another reason", "", cluster.False, command.LaunchTimeout, "terminate/a//"},
		{"it may have been launched", "", cluster.Unknown, command.InsufficientCapacity, "terminate/a//"},
		{"it has an instance all the same", "cloud://a", cluster.False, command.InsufficientCapacity,
			"terminate/a/cloud://a/"},
	} {
		c := &cluster.Claim{Name: "a", UID: "u", ProviderID: x.id, Finalized: true, Deleting: noon,
			Conditions: []cluster.Condition{{Type: cluster.Launched, Status: x.status, Reason: string(x.reason)}}}
		s := (&cluster.Snapshot{Now: noon, Claims: []*cluster.Claim{c}}).Seal()
		if got := keys(Next(s, Settings{})); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}

// lone is a node of ours that has lost its claim and is being deleted.
func lone() (*cluster.Snapshot, *cluster.Node) {
	s, _, n := leaving()
	s.Claims = nil
	n.Deleting = noon.Add(-time.Minute)
	return s, n
}

func TestEndOfANodeWithoutAClaim(t *testing.T) {
	web := &cluster.Pod{UID: "p", Namespace: "ns", Name: "web", Node: "a"}
	end := command.Terminate{Node: "a", ProviderID: "cloud://a"}
	for _, x := range []struct {
		name string
		set  func(s *cluster.Snapshot, n *cluster.Node)
		want string
	}{
		{"its pods leave first", func(*cluster.Snapshot, *cluster.Node) {}, "evict/p"},
		{"a node that never had a machine is let go", func(_ *cluster.Snapshot, n *cluster.Node) {
			n.ProviderID = ""
		}, "release/node/a"},
		{"what the cloud was asked before is asked again", func(s *cluster.Snapshot, _ *cluster.Node) {
			s.Retry[end.Key()] = cluster.Retry{}
		}, end.Key()},
		{"or is being asked", func(s *cluster.Snapshot, _ *cluster.Node) { s.InFlight[end.Key()] = true }, end.Key()},
		{"a machine that is no more is not drained", func(s *cluster.Snapshot, n *cluster.Node) {
			n.Ready, s.Inventory = false, &cluster.Inventory{At: noon}
		}, end.Key()},
		{"one that speaks is", func(s *cluster.Snapshot, n *cluster.Node) {
			s.Inventory = &cluster.Inventory{At: noon}
		}, "evict/p"},
		{"one that the cloud lists is", func(s *cluster.Snapshot, n *cluster.Node) {
			n.Ready, s.Inventory = false, &cluster.Inventory{At: noon,
				Instances: []cluster.Instance{{ProviderID: "cloud://a"}}}
		}, "evict/p"},
		{"one that is younger than the list is", func(s *cluster.Snapshot, n *cluster.Node) {
			n.Ready, s.Inventory = false, &cluster.Inventory{At: n.Created.Add(lagFor - time.Second)}
		}, "evict/p"},
		{"before the first list nobody knows", func(_ *cluster.Snapshot, n *cluster.Node) {
			n.Ready = false
		}, "evict/p"},
	} {
		s, n := lone()
		s.Pods = []*cluster.Pod{web}
		x.set(s, n)
		if got := keys(EndNode(s.Seal(), n, false)); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}

func TestNodesThatAreStillSomebodysStay(t *testing.T) {
	for _, x := range []struct {
		name string
		set  func(s *cluster.Snapshot, n *cluster.Node)
		want string
	}{
		{"nobody claims it", func(*cluster.Snapshot, *cluster.Node) {}, "delete-node/a"},
		{"it has no machine yet", func(_ *cluster.Snapshot, n *cluster.Node) { n.ProviderID = "" }, ""},
		{"a claim without a machine names it", func(s *cluster.Snapshot, _ *cluster.Node) {
			s.Claims = []*cluster.Claim{{Name: "c", NodeName: "a"}}
		}, ""},
		{"a claim with another machine names it", func(s *cluster.Snapshot, _ *cluster.Node) {
			s.Claims = []*cluster.Claim{{Name: "c", NodeName: "a", ProviderID: "cloud://b"}}
		}, "delete-node/a"},
		{"a claim without a machine names another", func(s *cluster.Snapshot, _ *cluster.Node) {
			s.Claims = []*cluster.Claim{{Name: "c", NodeName: "b"}}
		}, "delete-node/a"},
		{"its machine has just been launched", func(s *cluster.Snapshot, _ *cluster.Node) {
			s.Inventory = &cluster.Inventory{At: noon, Instances: []cluster.Instance{{ProviderID: "cloud://a",
				Created: noon.Add(-time.Second)}}}
		}, ""},
		{"its machine is older than it is", func(s *cluster.Snapshot, n *cluster.Node) {
			n.Created = noon.Add(-time.Second)
			s.Inventory = &cluster.Inventory{At: noon, Instances: []cluster.Instance{{ProviderID: "cloud://a",
				Created: noon.Add(-time.Hour)}}}
		}, ""},
	} {
		s, n := lone()
		n.Deleting = time.Time{}
		x.set(s, n)
		step, _ := Orphans(s.Seal())
		if got := keys(step); got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

func TestInstancesThatAreSomebodysAreNoOrphans(t *testing.T) {
	old := noon.Add(-time.Hour)
	launched := []cluster.Condition{{Type: cluster.Launched, Status: cluster.True}}
	for _, x := range []struct {
		name string
		set  func(s *cluster.Snapshot)
		want string
	}{
		{"nobody's", func(*cluster.Snapshot) {}, "terminate//cloud://a/"},
		{"its claim is there", func(s *cluster.Snapshot) { s.Claims = []*cluster.Claim{{Name: "c", UID: "u"}} }, ""},
		{"its claim has another", func(s *cluster.Snapshot) {
			s.Claims = []*cluster.Claim{{Name: "c", UID: "u", ProviderID: "cloud://b", Conditions: launched}}
		}, "terminate//cloud://a/"},
		{"its claim names another and is not launched", func(s *cluster.Snapshot) {
			s.Claims = []*cluster.Claim{{Name: "c", UID: "u", ProviderID: "cloud://b"}}
		}, ""},
		{"its claim is launched and names none", func(s *cluster.Snapshot) {
			s.Claims = []*cluster.Claim{{Name: "c", UID: "u", Conditions: launched}}
		}, ""},
		{"its claim names it", func(s *cluster.Snapshot) {
			s.Claims = []*cluster.Claim{{Name: "c", UID: "u", ProviderID: "cloud://a", Conditions: launched}}
		}, ""},
		{"a namesake of its claim is there", func(s *cluster.Snapshot) {
			s.Claims = []*cluster.Claim{{Name: "c", UID: "other"}}
		}, "terminate//cloud://a/"},
		{"one that tells no UID goes by name", func(s *cluster.Snapshot) {
			s.Claims, s.Inventory.Instances[0].ClaimUID = []*cluster.Claim{{Name: "c", UID: "other"}}, ""
		}, ""},
		{"a launch of the name is under way", func(s *cluster.Snapshot) {
			s.InFlight = map[string]bool{"launch/c": true}
		}, ""},
		{"a node of ours has it, which will be drained", func(s *cluster.Snapshot) {
			s.Nodes = []*cluster.Node{{Name: "n", ProviderID: "cloud://a", Ours: true, Finalized: true}}
		}, "delete-node/n"},
		{"a node that is not ours has it", func(s *cluster.Snapshot) {
			s.Nodes = []*cluster.Node{{Name: "n", ProviderID: "cloud://a", Finalized: true}}
		}, "terminate//cloud://a/"},
		{"another claim has its node", func(s *cluster.Snapshot) {
			s.Nodes, s.Claims = []*cluster.Node{{Name: "n", ProviderID: "cloud://a"}},
				[]*cluster.Claim{{Name: "d", UID: "v", NodeName: "n", ProviderID: "cloud://a"}}
		}, ""},
		{"it is on its way out", func(s *cluster.Snapshot) { s.Inventory.Instances[0].Terminating = true }, ""},
		{"it is younger than the list", func(s *cluster.Snapshot) {
			s.Inventory.Instances[0].Created = noon.Add(-lagFor + time.Second)
		}, ""},
	} {
		s := &cluster.Snapshot{Now: noon, Inventory: &cluster.Inventory{At: noon,
			Instances: []cluster.Instance{{ProviderID: "cloud://a", Claim: "c", ClaimUID: "u", Created: old}}}}
		x.set(s)
		step, _ := Orphans(s.Seal())
		if got := keys(step); got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

// A claim is not let go of while the cloud lists another instance that was launched for it.
func TestASecondInstanceEndsBeforeItsClaim(t *testing.T) {
	second := cluster.Instance{ProviderID: "cloud://b", Claim: "a", ClaimUID: "u", Created: noon.Add(-time.Second)}
	for _, x := range []struct {
		name string
		set  func(s *cluster.Snapshot, i *cluster.Instance)
		want string
	}{
		{"it is ended", func(*cluster.Snapshot, *cluster.Instance) {}, "terminate/a/cloud://b/"},
		{"the claim tells no UID, like it", func(s *cluster.Snapshot, i *cluster.Instance) {
			s.Claims[0].UID, i.ClaimUID = "", ""
		}, "release/a"},
		{"the claim never had one: it goes as an orphan", func(s *cluster.Snapshot, _ *cluster.Instance) {
			s.Claims[0].ProviderID = ""
		}, "release/a"},
		{"a node that is not ours is no reason to wait", func(s *cluster.Snapshot, _ *cluster.Instance) {
			s.Nodes = append(s.Nodes, &cluster.Node{Name: "b", ProviderID: "cloud://b", Finalized: true, Ready: true})
		}, "terminate/a/cloud://b/"},
		{"it is ending, and waited for", func(_ *cluster.Snapshot, i *cluster.Instance) {
			i.Terminating = true
		}, "terminate/a/cloud://b/"},
		{"it is gone", func(s *cluster.Snapshot, _ *cluster.Instance) {
			s.InstancesGone["cloud://b"] = true
		}, "release/a"},
		{"it is another's", func(_ *cluster.Snapshot, i *cluster.Instance) { i.ClaimUID = "v" }, "release/a"},
		{"it is nobody's that is known", func(_ *cluster.Snapshot, i *cluster.Instance) {
			i.ClaimUID = ""
		}, "release/a"},
		{"it is the claim's own, which the list still has", func(_ *cluster.Snapshot, i *cluster.Instance) {
			i.ProviderID = "cloud://a"
		}, "release/a"},
		{"another claim names it", func(s *cluster.Snapshot, _ *cluster.Instance) {
			s.Claims = append(s.Claims, &cluster.Claim{Name: "o", UID: "o", ProviderID: "cloud://b"})
		}, "release/a adopt/o"},
		{"its node goes first", func(s *cluster.Snapshot, _ *cluster.Instance) {
			s.Nodes = append(s.Nodes, &cluster.Node{Name: "b", ProviderID: "cloud://b", Ours: true, Finalized: true,
				Ready: true})
		}, ""},
		{"a node that was never registered is no reason to wait", func(s *cluster.Snapshot, _ *cluster.Instance) {
			s.Nodes = append(s.Nodes, &cluster.Node{Name: "b", ProviderID: "cloud://b", Ours: true, Ready: true})
		}, "terminate/a/cloud://b/"},
		{"nobody has listed anything", func(s *cluster.Snapshot, _ *cluster.Instance) {
			s.Inventory = nil
		}, "release/a"},
	} {
		s, c, _ := leaving()
		c.InstanceGone, s.InstancesGone["cloud://a"] = true, true
		i := second
		s.Inventory = &cluster.Inventory{At: noon}
		x.set(s, &i)
		if s.Inventory != nil {
			s.Inventory.Instances = []cluster.Instance{i}
		}
		step := Next(s.Seal(), Settings{})
		if keys(step) != x.want {
			t.Errorf("%s: %q, want %q", x.name, keys(step), x.want)
		}
		if x.want == "" && !step.WakeAt.Equal(noon.Add(10*time.Second)) {
			t.Errorf("%s: it is looked at again at %s", x.name, step.WakeAt)
		}
	}
}

// An instance is found among others.
func TestInstanceIsFoundByItsID(t *testing.T) {
	s := &cluster.Snapshot{Inventory: &cluster.Inventory{Instances: []cluster.Instance{{ProviderID: "a"},
		{ProviderID: "b", Claim: "c"}, {ProviderID: "d"}}}}
	if i, found := listedInstance(s, "b"); !found || i.Claim != "c" {
		t.Errorf("b: %+v %v", i, found)
	}
	if _, found := listedInstance(s, "c"); found {
		t.Error("c is found, and not there")
	}
}

// starting is a claim whose node has joined and is not open yet.
func starting() (*cluster.Snapshot, *cluster.Claim, *cluster.Node) {
	s, c, n := leaving()
	c.Deleting, n.Taints = time.Time{}, nil
	return s, c, n
}

func TestWhatStandsBetweenANodeAndItsPods(t *testing.T) {
	names := &resource.Names{}
	gpu, _ := names.Index("nvidia.com/gpu")
	for _, x := range []struct {
		name   string
		set    func(c *cluster.Claim, n *cluster.Node)
		reason string
	}{
		{"nothing", func(*cluster.Claim, *cluster.Node) {}, ""},
		{"its startup taint", func(c *cluster.Claim, n *cluster.Node) {
			c.StartupTaints, n.Taints = []cluster.Taint{{Key: "boot", Effect: cluster.NoSchedule}},
				[]cluster.Taint{{Key: "boot", Effect: cluster.NoSchedule}}
		}, "StartupTaintsExist"},
		{"another effect is another taint", func(c *cluster.Claim, n *cluster.Node) {
			c.StartupTaints, n.Taints = []cluster.Taint{{Key: "boot", Effect: cluster.NoExecute}},
				[]cluster.Taint{{Key: "boot", Effect: cluster.NoSchedule}}
		}, ""},
		{"another key is another taint", func(c *cluster.Claim, n *cluster.Node) {
			c.StartupTaints, n.Taints = []cluster.Taint{{Key: "shoe", Effect: cluster.NoSchedule}},
				[]cluster.Taint{{Key: "boot", Effect: cluster.NoSchedule}}
		}, ""},
		{"a taint of Kubernetes", func(_ *cluster.Claim, n *cluster.Node) {
			n.Taints = []cluster.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized",
				Effect: cluster.NoSchedule}}
		}, "KnownEphemeralTaintsExist"},
		{"a gate of readiness", func(_ *cluster.Claim, n *cluster.Node) {
			n.Taints = []cluster.Taint{{Key: "readiness.k8s.io/x", Effect: cluster.NoSchedule}}
		}, "KnownEphemeralTaintsExist"},
		{"a device that it does not show", func(c *cluster.Claim, _ *cluster.Node) {
			c.AwaitedResources = []int{gpu}
		}, "ResourceNotRegistered"},
		{"one that it shows", func(c *cluster.Claim, n *cluster.Node) {
			c.AwaitedResources, n.Allocatable[gpu] = []int{gpu}, 1
		}, ""},
	} {
		s, c, n := starting()
		s.Names = names
		x.set(c, n)
		if got := notReadyReason(s, c, n); got.Reason != x.reason || got.Text.IsZero() != (got.Reason == "") {
			t.Errorf("%s: %+v, want %q", x.name, got, x.reason)
		}
	}
}

// A node that has less than was promised is told of, in what was asked for alone, and from a tenth on.
func TestWhatANodeLacksIsTold(t *testing.T) {
	names := &resource.Names{}
	for _, x := range []struct {
		name                 string
		asked, promised, has int64
		told                 cluster.ConditionStatus
	}{
		{"all is there", 1, 1000, 1000, cluster.True},
		{"nearly all", 1, 1000, 1000 * expectedPercent / 100, cluster.True},
		{"too little", 1, 1000, 1000*expectedPercent/100 - 1, cluster.False},
		{"nobody asked for it", 0, 1000, 10, cluster.True},
		{"nobody promised it", 1, 0, 0, cluster.True},
	} {
		s, c, n := starting()
		s.Names = names
		c.Requests[resource.CPU], c.Capacity[resource.CPU], n.Capacity[resource.CPU] = x.asked, x.promised, x.has
		step := claimStep{claimsPass: &claimsPass{s: s}, claim: c, node: n}
		step.checkCapacity(true)
		if len(step.status.Conditions) != 1 || step.status.Conditions[0].Status != x.told {
			t.Errorf("%s: %+v, want %s", x.name, step.status.Conditions, x.told)
		}
		if warned := len(step.Notes) == 1 && step.Notes[0].Warning; warned != (x.told == cluster.False) {
			t.Errorf("%s: %+v", x.name, step.Notes)
		}
	}
}

func TestAConditionIsSaidOnce(t *testing.T) {
	for _, x := range []struct {
		name            string
		status          cluster.ConditionStatus
		reason, message string
		said            bool
	}{
		{"as it is", cluster.True, "R", "m", true}, {"another status", cluster.False, "R", "m", false},
		{"another reason", cluster.True, "S", "m", false}, {"another message", cluster.True, "R", "n", false},
	} {
		step := claimStep{claim: &cluster.Claim{Conditions: []cluster.Condition{{Type: "T", Status: cluster.True,
			Reason: "R", Message: "m"}}}}
		if got := step.setCondition("T", x.status, x.reason, reason.Said(x.message)); got != x.said ||
			(len(step.status.Conditions) == 0) != x.said {
			t.Errorf("%s: said already %v, and to be written %+v", x.name, got, step.status.Conditions)
		}
	}
}

func TestClaimsThatStay(t *testing.T) {
	for _, x := range []struct {
		name string
		set  func(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node)
		want string
	}{
		{"as long as it likes", func(_ *cluster.Snapshot, c *cluster.Claim, _ *cluster.Node) {
			c.ExpireAfter = cluster.NillableDuration{Never: true, For: time.Second}
		}, "initialize/a"},
		{"until it expires", func(_ *cluster.Snapshot, c *cluster.Claim, _ *cluster.Node) {
			c.ExpireAfter = cluster.NillableDuration{For: time.Nanosecond}
		}, "delete/a"},
		{"a problem comes too late for what runs", func(_ *cluster.Snapshot, c *cluster.Claim, _ *cluster.Node) {
			c.Problems = []cluster.Problem{{Field: "f", Text: "t"}}
		}, "initialize/a"},
		{"its kubelet has made the node anew", func(_ *cluster.Snapshot, _ *cluster.Claim, n *cluster.Node) {
			n.Finalized = false
		}, "register/a"},
		{"or has put the first taint on again", func(_ *cluster.Snapshot, _ *cluster.Claim, n *cluster.Node) {
			n.Taints = []cluster.Taint{{Key: cluster.UnregisteredTaint, Effect: cluster.NoExecute}}
		}, "register/a"},
		{"its node was deleted", func(_ *cluster.Snapshot, _ *cluster.Claim, n *cluster.Node) {
			n.Deleting = noon
		}, "delete/a"},
	} {
		s, c, n := starting()
		x.set(s, c, n)
		step := Next(s.Seal(), Settings{})
		if got := keys(step); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
		if d, ok := step.Commands[0].(command.DeleteClaim); ok && d.Node != "a" {
			t.Errorf("%s: the command names the node %q", x.name, d.Node)
		}
	}
}

// A claim that has just registered waits for its watch to show the node.
func TestAMissingNodeIsWaitedFor(t *testing.T) {
	s, c, _ := starting()
	s.Nodes = nil
	c.Conditions[1].Since = noon.Add(-time.Second)
	if step := Next(s.Seal(), Settings{}); len(step.Commands) != 0 || !step.WakeAt.Equal(noon.Add(lagFor-time.Second)) {
		t.Errorf("%+v, want to wait", step)
	}
}

// What finds out whether a held pool can launch again is a claim that can be launched, and the one that is due first.
func TestProber(t *testing.T) {
	waits := func(name string, change func(*cluster.Claim)) *cluster.Claim {
		c := &cluster.Claim{Name: name, Pool: "p", Finalized: true,
			Conditions: []cluster.Condition{{Type: cluster.Launched, Status: cluster.Unknown}}}
		change(c)
		return c
	}
	same := func(*cluster.Claim) {}
	for _, x := range []struct {
		name  string
		first func(*cluster.Claim)
		set   func(*cluster.Snapshot)
		want  string
	}{
		{"the first", same, func(*cluster.Snapshot) {}, "a"},
		{"not one that is only expected", func(c *cluster.Claim) {
			c.Expected = true
		}, func(*cluster.Snapshot) {}, "b"},
		{"not one without finalizer", func(c *cluster.Claim) { c.Finalized = false }, func(*cluster.Snapshot) {}, "b"},
		{"not one on its way out", func(c *cluster.Claim) { c.Deleting = noon }, func(*cluster.Snapshot) {}, "b"},
		{"not one that is launched", func(c *cluster.Claim) {
			c.Conditions[0].Status = cluster.True
		}, func(*cluster.Snapshot) {}, "b"},
		{"the one that is being launched", same, func(s *cluster.Snapshot) {
			s.InFlight = map[string]bool{"launch/b": true}
		}, "b"},
		{"the one that is due", same, func(s *cluster.Snapshot) {
			s.Retry = map[string]cluster.Retry{"launch/a": {NotBefore: noon.Add(time.Second)}}
		}, "b"},
		{"one that failed and is due again", same, func(s *cluster.Snapshot) {
			s.Retry = map[string]cluster.Retry{"launch/a": {NotBefore: noon}}
		}, "a"},
		{"the first of those that are not", same, func(s *cluster.Snapshot) {
			s.Retry = map[string]cluster.Retry{"launch/a": {NotBefore: noon.Add(time.Hour)},
				"launch/b": {NotBefore: noon.Add(time.Second)}, "launch/c": {NotBefore: noon.Add(time.Minute)}}
		}, "a"},
	} {
		s := &cluster.Snapshot{Now: noon, Pools: []*cluster.Pool{{Name: "p"}},
			Claims: []*cluster.Claim{waits("a", x.first), waits("b", same), waits("c", same)}}
		x.set(s)
		if got := newLaunchQueue(s.Seal()).findProber(s.Pool("p")); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}
