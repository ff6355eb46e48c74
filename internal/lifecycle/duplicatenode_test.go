package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// readyTwin is another node of the machine of the claim in leaving.
func readyTwin() *cluster.Node {
	return &cluster.Node{
		Name: "twin", UID: "t", ProviderID: "cloud://a", Ready: true, Ours: true, Created: noon.Add(-time.Minute),
	}
}

// A node that is drained must not fill its duplicate, which is the same machine: the duplicate is fenced before the
// first pod is asked to leave.
func TestADuplicateNodeIsFencedBeforeTheDrain(t *testing.T) {
	s, _, n := leaving()
	s.Nodes = append(s.Nodes, readyTwin())
	n.Taints = nil
	if got := keys(Next(s.Seal(), Settings{})); got != "fence/a fence/twin" {
		t.Errorf("%q, want both fenced", got)
	}
	s.Claims, n.Deleting = nil, noon
	if got := keys(EndNode(s.Seal(), n, false)); got != "fence/a fence/twin" {
		t.Errorf("without a claim: %q, want both fenced", got)
	}
}

// When the machine's time is up nobody on the duplicate is waited for either.
func TestATwinHasNoMoreTimeThanTheClaim(t *testing.T) {
	for _, x := range []struct {
		left time.Duration
		want string
	}{{0, "delete-pod/p terminate/a/cloud://a/a"}, {time.Hour, "evict/p"}} {
		s, c, _ := leaving()
		c.Deadline = noon.Add(x.left)
		duplicate := readyTwin()
		duplicate.Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
		s.Nodes = append(s.Nodes, duplicate)
		s.Pods = []*cluster.Pod{{UID: "p", Namespace: "ns", Name: "web", Node: "twin", Grace: 30 * time.Second,
			Phase: "Running"}}
		if got := keys(Next(s.Seal(), Settings{})); got != x.want {
			t.Errorf("%s before the deadline: %q, want %q", x.left, got, x.want)
		}
	}
}

// Pods that stay on the duplicate are named when the machine is ended, so that whoever came since is noticed.
func TestWhoStaysOnATwinIsNamed(t *testing.T) {
	s, _, _ := leaving()
	duplicate := readyTwin()
	duplicate.Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
	s.Nodes = append(s.Nodes, duplicate)
	for _, node := range []string{"a", "twin"} {
		s.Pods = append(s.Pods, &cluster.Pod{UID: "on-" + node, Namespace: "ns", Name: node, Node: node,
			StaysThroughDrain: true})
	}
	step := Next(s.Seal(), Settings{})
	end, ok := step.Commands[len(step.Commands)-1].(command.Terminate)
	if got := fmt.Sprint(end.StayingPods, end.DuplicateNodes); !ok || got != "[on-a on-twin] [twin]" {
		t.Errorf("%s: %s stay", keys(step), got)
	}
}

// Whoever is about to end an instance asks whether that is still to be done.
func TestWhichInstanceIsToBeEnded(t *testing.T) {
	s, c, _ := leaving()
	s.Seal()
	if !ShouldTerminate(s, c, "cloud://a") || ShouldTerminate(s, c, "cloud://b") || ShouldTerminate(s, c, "") {
		t.Errorf("of cloud://a, another and none: %t, %t, %t", ShouldTerminate(s, c, "cloud://a"),
			ShouldTerminate(s, c, "cloud://b"), ShouldTerminate(s, c, ""))
	}
	c.InstanceGone, s.InstancesGone["cloud://a"] = true, true
	if ShouldTerminate(s, c, "cloud://a") || ShouldTerminate(s, c, "") {
		t.Error("it is gone, and is to be ended")
	}
}

// A duplicate whose kubelet is gone, because it runs under the other name now, must not keep the machine for ever.
func TestPodsOfADeadTwinDontKeepTheMachine(t *testing.T) {
	s, _, _ := leaving()
	dead := readyTwin()
	dead.Ready, dead.Created = false, noon.Add(-time.Hour)
	dead.Taints = []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
	s.Nodes = append(s.Nodes, dead)
	s.Pods = []*cluster.Pod{{
		UID: "p", Namespace: "ns", Name: "web", Node: "twin",
		Grace: 30 * time.Second, Phase: "Running", Deleting: noon.Add(-20 * time.Minute),
	}}
	if got := keys(Next(s.Seal(), Settings{})); got != "terminate/a/cloud://a/a" {
		t.Errorf("%q: the machine is not ended", got)
	}
}

// A kubelet that joins once more under another name makes a second node of the same machine. Both are fenced and
// drained before the machine is ended, with a claim and without.
func TestDuplicateNodesAreDrainedToo(t *testing.T) {
	fenced := []cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}}
	pod := &cluster.Pod{UID: "p", Namespace: "ns", Name: "web", Node: "twin", Grace: 30 * time.Second, Phase: "Running"}
	for _, x := range []struct {
		name string
		set  func(*cluster.Snapshot, *cluster.Node)
		want string
	}{
		{"it is open", func(*cluster.Snapshot, *cluster.Node) {}, "fence/twin"},
		{"it is fenced, and a pod is there", func(s *cluster.Snapshot, n *cluster.Node) {
			n.Taints, s.Pods = fenced, []*cluster.Pod{pod}
		}, "evict/p"},
		{"it is fenced, and nobody is there", func(_ *cluster.Snapshot, n *cluster.Node) {
			n.Taints = fenced
		}, "terminate"},
		{"it is fenced and being deleted, and a pod is there", func(s *cluster.Snapshot, n *cluster.Node) {
			n.Taints, n.Deleting, n.Finalized, s.Pods = fenced, noon, true, []*cluster.Pod{pod}
		}, ""},
		{"it is fenced and waits for us, and a pod is there", func(s *cluster.Snapshot, n *cluster.Node) {
			n.Taints, n.Finalized, s.Pods = fenced, true, []*cluster.Pod{pod}
		}, "evict/p"},
		{"it is fenced and being deleted, does not wait for us, and a pod is there", func(s *cluster.Snapshot,
			n *cluster.Node) {
			n.Taints, n.Deleting, s.Pods = fenced, noon, []*cluster.Pod{pod}
		}, "evict/p"},
		{"it is not ours", func(_ *cluster.Snapshot, n *cluster.Node) { n.Ours = false }, "terminate"},
	} {
		for _, claimed := range []bool{true, false} {
			s, c, n := leaving()
			other := readyTwin()
			x.set(s, other)
			s.Nodes = append(s.Nodes, other)
			want := x.want
			var step Step
			if claimed {
				step = Next(s.Seal(), Settings{})
			} else {
				s.Claims, n.Deleting = nil, noon
				step = EndNode(s.Seal(), n, false)
			}
			if want == "terminate" {
				end := command.Terminate{Node: "a", ProviderID: "cloud://a"}
				if claimed {
					end.Claim = c.Name
				}
				want = end.Key()
			}
			if got := keys(step); got != want {
				t.Errorf("%s, with a claim %v: %q, want %q", x.name, claimed, got, want)
			}
		}
	}
}
