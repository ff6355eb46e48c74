// Package lifecycle says what a NodeClaim needs next: one claim, its node and the time give the next commands.
//
// Floor 2: pure. It remembers nothing; everything it needs to know is in the snapshot, so it can pick up after a crash
// at any point.
package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Settings are how long a node may take to come.
type Settings struct {
	LaunchTimeout       time.Duration
	RegistrationTimeout time.Duration
	// InitializationTimeout is how long a registered node may take to be ready for pods; zero for as long as it likes.
	InitializationTimeout time.Duration
}

// podEventEvery bounds how often the time of the last pod event is written to a claim.
const podEventEvery = 10 * time.Second

// Step is what to do now, and when to look again if nothing happens before.
type Step struct {
	Commands []command.Command
	WakeAt   time.Time
	// Notes are what stands in the way, for people.
	Notes []cluster.Note
}

func do(c ...command.Command) Step { return Step{Commands: c} }

// Next moves one claim a step further.
func Next(s *cluster.Snapshot, c *cluster.Claim, set Settings) Step {
	node := s.NodeOf(c.Name)
	switch {
	case c.Expected, c.Foreign:
		return Step{}
	case !c.Deleting.IsZero():
		return end(s, c, node)
	case node != nil && !node.Deleting.IsZero():
		return do(deletion(c, node, command.Requested, fmt.Sprintf("node %s was deleted", node.Name)))
	case !c.Finalized:
		return do(command.Adopt{Claim: c.Name})
	case !c.Is(cluster.Launched):
		return launch(s, c, set)
	case !c.Is(cluster.Registered):
		return register(s, c, node, set)
	}
	if node == nil {
		// The finalizer was taken off by hand: nobody will bring the node back, and its instance must not run on.
		return do(deletion(c, nil, command.NodeMissing, fmt.Sprintf("its node %s was removed", c.NodeName)))
	}
	step := savePodEvent(s, c)
	if !c.Is(cluster.Initialized) {
		initialize(s, c, node, &step)
	}
	return step
}

// tellAfter is how long a node may take to become ready for pods before its claim says what it is waiting for: most take
// less, and a write for each would only be in the way.
const tellAfter = 2 * time.Second

// initialize marks the node as soon as nothing stands between it and its pods; what does is told on the claim.
func initialize(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node, step *Step) {
	reason, message := hurdle(s, c, n)
	if reason == "" {
		step.Commands = append(step.Commands, command.Initialize{Claim: c.Name, Node: n.Name})
		return
	}
	told := c.Condition(cluster.Initialized)
	if told.Reason == reason && told.Message == message {
		return
	}
	if due := c.Condition(cluster.Registered).Since.Add(tellAfter); s.Now.Before(due) {
		step.WakeAt = cluster.Earlier(step.WakeAt, due)
		return
	}
	step.Commands = append(step.Commands, command.SetClaim{Claim: c.Name, Conditions: []cluster.Condition{
		{Type: cluster.Initialized, Status: cluster.Unknown, Reason: reason, Message: message}}})
}

func deletion(c *cluster.Claim, n *cluster.Node, why command.Reason, message string) command.DeleteClaim {
	d := command.DeleteClaim{Claim: c.Name, UID: c.UID, Reason: why, Message: message}
	if n != nil {
		d.Node = n.Name
	}
	return d
}

func launch(s *cluster.Snapshot, c *cluster.Claim, set Settings) Step {
	if cond := c.Condition(cluster.Launched); cond.Status == cluster.False {
		return do(deletion(c, nil, command.Reason(cond.Reason), cond.Message))
	}
	deadline := c.Created.Add(set.LaunchTimeout)
	if !s.Now.Before(deadline) {
		if s.Busy[command.LaunchInstance{Claim: c.Name}.Key()] {
			return Step{} // deleting the claim now could leave an instance behind; the launch's end wakes us
		}
		return do(deletion(c, nil, command.LaunchTimeout, fmt.Sprintf("no instance could be launched within %s", set.LaunchTimeout)))
	}
	return Step{Commands: []command.Command{command.LaunchInstance{Claim: c.Name, UID: c.UID}}, WakeAt: deadline}
}

func register(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node, set Settings) Step {
	deadline := c.Condition(cluster.Launched).Since.Add(set.RegistrationTimeout)
	if s.Now.Before(deadline) {
		step := Step{WakeAt: deadline}
		if n != nil {
			step.Commands = []command.Command{command.Register{Claim: c.Name, Node: n.Name}}
		}
		return step
	}
	return do(deletion(c, n, command.RegistrationTimeout, fmt.Sprintf("its node did not register within %s", set.RegistrationTimeout)))
}

// hurdle is what stands between the node and its pods; empty if nothing does.
func hurdle(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) (reason, message string) {
	if !n.Ready {
		return "NodeNotReady", fmt.Sprintf("node %s is not Ready", n.Name)
	}
	for _, taint := range n.Taints {
		if slices.ContainsFunc(c.StartupTaints, func(s cluster.Taint) bool { return s.Key == taint.Key && s.Effect == taint.Effect }) {
			return "StartupTaintsExist", fmt.Sprintf("startup taint %s is still on node %s", taint, n.Name)
		}
		if ephemeral(taint) {
			return "KnownEphemeralTaintsExist", fmt.Sprintf("taint %s is still on node %s", taint, n.Name)
		}
	}
	for _, dim := range c.Wants {
		if n.Allocatable[dim] <= 0 {
			return "ResourceNotRegistered", fmt.Sprintf("node %s does not show resource %s yet", n.Name, s.Names.Name(dim))
		}
	}
	return "", ""
}

// ephemeral taints are put on by Kubernetes while a node starts and go away by themselves.
func ephemeral(t cluster.Taint) bool {
	switch t.Key {
	case "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.cloudprovider.kubernetes.io/uninitialized", cluster.UnregisteredTaint:
		return true
	}
	return strings.HasPrefix(t.Key, "readiness.k8s.io/")
}

func savePodEvent(s *cluster.Snapshot, c *cluster.Claim) Step {
	// Kubernetes keeps times to the second: within it there is nothing new to write.
	if !c.LastPodEvent.Truncate(time.Second).After(c.SavedPodEvent) {
		return Step{}
	}
	if due := c.SavedPodEvent.Add(podEventEvery); c.SavedPodEvent.IsZero() || !s.Now.Before(due) {
		return do(command.SetClaim{Claim: c.Name, LastPodEvent: c.LastPodEvent})
	}
	return Step{WakeAt: c.SavedPodEvent.Add(podEventEvery)}
}
