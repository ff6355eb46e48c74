package lifecycle

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// A drain with a deadline wakes up for the next pod that must be told to go, whatever its turn.
func TestADrainWakesForTheNextLastCall(t *testing.T) {
	deadline := noon.Add(10 * time.Minute)
	web := &cluster.Pod{UID: "p", Namespace: "ns", Name: "web", Node: "a", Grace: 30 * time.Second}
	agent := func(grace time.Duration) *cluster.Pod {
		return &cluster.Pod{UID: "d", Namespace: "ns", Name: "agent", Node: "a", Daemon: true, Grace: grace}
	}
	gone := agent(5 * time.Minute)
	gone.Deleting = noon
	for _, x := range []struct {
		name string
		pods []*cluster.Pod
		want time.Time
	}{
		{"of the pod that is asked", []*cluster.Pod{web}, deadline.Add(-30 * time.Second)},
		{"of one that is not asked yet", []*cluster.Pod{web, agent(5 * time.Minute)}, deadline.Add(-5 * time.Minute)},
		{"not of one that leaves already", []*cluster.Pod{web, gone}, deadline.Add(-30 * time.Second)},
	} {
		s, c, _ := leaving()
		c.Deadline, s.Pods = deadline, x.pods
		if step := Next(s.Seal(), Settings{}); keys(step) != "claim/a evict/p" || !step.WakeAt.Equal(x.want) {
			t.Errorf("%s: %s until %s, want an eviction until %s", x.name, keys(step), step.WakeAt, x.want)
		}
	}
}

// An empty node is given a moment in which pods may arrive that kube-scheduler had bound. To one that is not ready none
// comes.
func TestAnEmptyNodeIsWatchedForAMoment(t *testing.T) {
	for _, ready := range []bool{true, false} {
		s, c, n := leaving()
		n.Ready, c.Deleting = ready, noon.Add(-time.Millisecond)
		s.Inventory = &cluster.Inventory{At: noon, Instances: []cluster.Instance{{ProviderID: "cloud://a"}}}
		step := Next(s.Seal(), Settings{})
		if ended := keys(step) == "terminate/a/cloud://a/a"; ended == ready || ready &&
			!step.WakeAt.Equal(c.Deleting.Add(leastDrain)) {
			t.Errorf("ready %v: %s until %s", ready, keys(step), step.WakeAt)
		}
		if len(step.Notes) != 0 {
			t.Errorf("a node without volumes is told to wait for them: %+v", step.Notes)
		}
	}
}

// A node that joins without the first taint took pods too early, unless it has joined before.
func TestANodeThatJoinsBareIsToldOf(t *testing.T) {
	registered := cluster.LabelsOf(map[string]string{cluster.RegisteredLabel: "true"})
	for _, x := range []struct {
		name string
		set  func(*cluster.Node)
		bare bool
	}{
		{"bare", func(*cluster.Node) {}, true},
		{"with the taint", func(n *cluster.Node) {
			n.Taints = []cluster.Taint{{Key: cluster.UnregisteredTaint, Effect: cluster.NoExecute}}
		}, false},
		{"it has joined before", func(n *cluster.Node) { n.Labels = registered }, false},
	} {
		s, c, n := starting()
		c.Conditions = c.Conditions[:1]
		x.set(n)
		step := Next(s.Seal(), Settings{RegistrationTimeout: 2 * time.Hour})
		if r, ok := step.Commands[0].(command.Register); !ok || r.Untainted != x.bare {
			t.Errorf("%s: %+v, want bare %v", x.name, step.Commands, x.bare)
		}
	}
}

// A node that takes the place of others is kept from other pods as long as it saves money and none of the others goes.
func TestANodeIsKeptForItsMove(t *testing.T) {
	for _, x := range []struct {
		name string
		set  func(s *cluster.Snapshot, old *cluster.Claim)
		want string
	}{
		{"it saves money", func(*cluster.Snapshot, *cluster.Claim) {}, "m"},
		{"no reason is known yet", func(_ *cluster.Snapshot, old *cluster.Claim) { old.Conditions = nil }, "m"},
		{"the other has drifted", func(_ *cluster.Snapshot, old *cluster.Claim) {
			old.Conditions[0].Reason = string(command.Drifted)
		}, ""},
		{"the other is about to go", func(s *cluster.Snapshot, _ *cluster.Claim) {
			s.InFlight["delete/old"] = true
		}, ""},
		{"the other goes", func(_ *cluster.Snapshot, old *cluster.Claim) { old.Deleting = noon }, ""},
	} {
		s, c, _ := starting()
		c.Conditions, c.Replaces, c.Created = c.Conditions[:1], "m", noon
		old := &cluster.Claim{Name: "old", Move: "m", Finalized: true, Conditions: []cluster.Condition{
			{Type: cluster.DisruptionReason, Status: cluster.True, Reason: string(command.Underutilized)}}}
		s.Claims = append(s.Claims, old)
		x.set(s, old)
		w := &claimsPass{s: s.Seal()}
		if got := (&claimStep{claimsPass: w, claim: c, node: s.NodeOf("a")}).keptFor(); got != x.want {
			t.Errorf("%s: kept for %q, want %q", x.name, got, x.want)
		}
	}
}

// What holds a node up is told anew when it changes.
func TestAnotherHurdleIsTold(t *testing.T) {
	boot, shoe := cluster.Taint{Key: "boot", Effect: cluster.NoSchedule}, cluster.Taint{Key: "shoe",
		Effect: cluster.NoSchedule}
	s, c, n := starting()
	c.StartupTaints, n.Taints = []cluster.Taint{boot, shoe}, []cluster.Taint{shoe}
	c.Conditions = append(c.Conditions, cluster.Condition{Type: cluster.Initialized, Status: cluster.Unknown,
		Reason:  "StartupTaintsExist",
		Message: "startup taint boot:NoSchedule is still on node a"})
	if step := Next(s.Seal(), Settings{}); keys(step) != "claim/a" {
		t.Errorf("%s, want the other taint told", keys(step))
	}
}

// How many volumes a node may have is not what its kubelet says of its capacity.
func TestVolumesAreNotMissing(t *testing.T) {
	s, c, n := starting()
	dim, _ := s.Names.Index(resource.AttachPrefix + "disks.example")
	c.Requests[dim], c.Capacity[dim] = 1, 25
	step := claimStep{claimsPass: &claimsPass{s: s}, claim: c, node: n}
	if step.checkCapacity(true); len(step.Notes) != 0 {
		t.Errorf("%+v", step.Notes)
	}
}

// onSale is a pool with one offering, and two claims that wait for an instance of it.
func onSale(change func(*cluster.Pool, *cluster.Offering)) *cluster.Snapshot {
	p, o := &cluster.Pool{Name: "p"}, cluster.Offering{Zone: "z", CapacityType: "spot", Available: true}
	change(p, &o)
	if p.Catalog == nil {
		p.Catalog = cluster.NewCatalog([]cluster.Type{{Name: "t"}}, []cluster.Offering{o})
	}
	s := &cluster.Snapshot{Now: noon, Pools: []*cluster.Pool{p}, InFlight: map[string]bool{},
		Retry: map[string]cluster.Retry{}}
	for _, name := range []string{"a", "b"} {
		s.Claims = append(s.Claims, &cluster.Claim{Name: name, Pool: "p", Finalized: true, Created: noon,
			Requirements: require.Set{}})
	}
	return s
}

func TestWhoMayLaunch(t *testing.T) {
	hold := func(left time.Duration) func(*cluster.Pool, *cluster.Offering) {
		return func(p *cluster.Pool, _ *cluster.Offering) { p.InBackoff, p.BackoffUntil = true, noon.Add(left) }
	}
	settings := Settings{LaunchTimeout: time.Hour}
	invalid := []cluster.Condition{{Type: cluster.Launched, Status: cluster.False, Reason: string(command.Invalid)}}
	for _, x := range []struct {
		name   string
		change func(*cluster.Pool, *cluster.Offering)
		set    func(*cluster.Snapshot)
		want   string
		wake   time.Duration
	}{
		{"what is sold", func(*cluster.Pool, *cluster.Offering) {}, func(*cluster.Snapshot) {}, "launch/a launch/b",
			time.Hour},
		{"what nobody has asked the cloud about", func(p *cluster.Pool, _ *cluster.Offering) {
			p.Probing = false
		}, func(s *cluster.Snapshot) { s.Pools[0].Catalog = nil }, "launch/a launch/b", time.Hour},
		{"nothing that is sold out", func(_ *cluster.Pool, o *cluster.Offering) {
			o.Available = false
		}, func(*cluster.Snapshot) {}, "delete/a delete/b", 0},
		{"not even what was refused before for its text", func(_ *cluster.Pool, o *cluster.Offering) {
			o.Available = false
		}, func(s *cluster.Snapshot) {
			s.Claims[0].Conditions = invalid
		}, "delete/a delete/b", 0},
		{"but what the cloud may have launched is asked about", func(_ *cluster.Pool, o *cluster.Offering) {
			o.Available = false
		}, func(s *cluster.Snapshot) {
			s.Claims[0].Conditions = []cluster.Condition{{Type: cluster.Launched, Status: cluster.Unknown,
				Reason: "Throttled"}}
		}, "launch/a delete/b", time.Hour},
		{"one whose text was wrong and is right now", func(*cluster.Pool, *cluster.Offering) {},
			func(s *cluster.Snapshot) {
				s.Claims[0].Conditions = invalid
			}, "launch/a launch/b", time.Hour},
		{"one tries for all", func(_ *cluster.Pool, o *cluster.Offering) {
			o.Probing = true
		}, func(*cluster.Snapshot) {}, "launch/a", time.Hour},
		{"one of a pool that is gone tries, too", func(_ *cluster.Pool, o *cluster.Offering) {
			o.Probing = true
		}, func(s *cluster.Snapshot) {
			s.Claims = append(s.Claims, &cluster.Claim{Name: "z", Pool: "gone", Finalized: true, Created: noon})
			s.InFlight["launch/z"] = true
		}, "launch/a", time.Hour},
		{"a short hold is waited for", hold(9 * time.Second), func(*cluster.Snapshot) {}, "", 9 * time.Second},
		{"at a long one the first waits", hold(10 * time.Second), func(*cluster.Snapshot) {}, "delete/b",
			10 * time.Second},
		{"after it the first that is due tries", func(p *cluster.Pool, _ *cluster.Offering) {
			p.Probing = true
		}, func(s *cluster.Snapshot) {
			s.Retry["launch/a"] = cluster.Retry{NotBefore: noon.Add(time.Minute)}
		}, "launch/b", time.Hour},
	} {
		s := onSale(x.change)
		x.set(s)
		step := Next(s.Seal(), settings)
		if got := keys(step); got != x.want || x.wake > 0 && !step.WakeAt.Equal(noon.Add(x.wake)) {
			t.Errorf("%s: %q until %s, want %q after %s", x.name, got, step.WakeAt, x.want, x.wake)
		}
	}
}

// A claim that is launched and does not say as what has lost nothing.
func TestAClaimWithoutAnInstanceHasLostNone(t *testing.T) {
	s, c, _ := starting()
	c.ProviderID, c.NodeName, s.Nodes, s.Inventory = "", "", nil, &cluster.Inventory{At: noon}
	c.Conditions = c.Conditions[:1]
	for _, cmd := range Next(s.Seal(), Settings{RegistrationTimeout: 2 * time.Hour}).Commands {
		t.Errorf("%s", cmd.Key())
	}
}

// Only a node of ours that waits for us is ended, and only if its machine is nobody's.
func TestNodesThatAreNotOursToEnd(t *testing.T) {
	launched := func(uid string) *cluster.Inventory {
		return &cluster.Inventory{At: noon, Instances: []cluster.Instance{{ProviderID: "cloud://a", Claim: "c",
			ClaimUID: uid, Created: noon.Add(-time.Hour)}}}
	}
	for _, x := range []struct {
		name string
		set  func(s *cluster.Snapshot, n *cluster.Node)
		want string
	}{
		{"ours", func(*cluster.Snapshot, *cluster.Node) {}, "terminate//cloud://a/a"},
		{"somebody else's", func(_ *cluster.Snapshot, n *cluster.Node) { n.Ours = false }, ""},
		{"one that does not wait for us", func(_ *cluster.Snapshot, n *cluster.Node) { n.Finalized = false }, ""},
		{"one that stays", func(_ *cluster.Snapshot, n *cluster.Node) { n.Deleting = time.Time{} }, ""},
		{"its machine was launched for a claim that does not know it yet", func(s *cluster.Snapshot, _ *cluster.Node) {
			s.Inventory, s.Claims = launched("u"), []*cluster.Claim{{Name: "c", UID: "u"}}
		}, "release/node/a"},
		{"its machine was launched for a claim with another", func(s *cluster.Snapshot, _ *cluster.Node) {
			s.Inventory, s.Claims = launched("u"), []*cluster.Claim{{Name: "c", UID: "u", ProviderID: "cloud://b"}}
		}, "terminate//cloud://a/a"},
		{"a claim that knows no machine yet has nothing to do with it", func(s *cluster.Snapshot, _ *cluster.Node) {
			s.Inventory, s.Claims = launched("u"), []*cluster.Claim{{Name: "d", UID: "v"}}
		}, "terminate//cloud://a/a"},
		{"nobody knows for whom it was launched", func(s *cluster.Snapshot, _ *cluster.Node) {
			s.Inventory, s.Claims = launched(""), []*cluster.Claim{{Name: "d"}}
		}, "terminate//cloud://a/a"},
	} {
		s, n := lone()
		x.set(s, n)
		if got := keys(EndNode(s.Seal(), n, false)); got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

// A node of a machine that its claim has no use for is nobody's, although the claim is there.
func TestANodeOfASecondMachineGoes(t *testing.T) {
	s, n := lone()
	n.Deleting = time.Time{}
	s.Inventory = &cluster.Inventory{At: noon, Instances: []cluster.Instance{{ProviderID: "cloud://a", Claim: "c",
		ClaimUID: "u", Created: noon.Add(-time.Hour)}}}
	s.Claims = []*cluster.Claim{{Name: "c", UID: "u", ProviderID: "cloud://b",
		Conditions: []cluster.Condition{{Type: cluster.Launched, Status: cluster.True}}}}
	if step, _ := Orphans(s.Seal()); keys(step) != "delete-node/a" {
		t.Errorf("%q, want the node deleted", keys(step))
	}
}
