package render

import (
	"fmt"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Hold is a sentence a person can act on: what keeps the pod away, since when, when the next try is and what to do.
func Hold(h schedule.PodHold) string {
	b, f := h.Tries, h.Failure
	tries := "1 try has"
	if b.FailedTries != 1 {
		tries = fmt.Sprintf("%d tries have", b.FailedTries)
	}
	text := fmt.Sprintf("pods of this workload cannot run on the nodes created for them: %s; %s failed since %s UTC",
		Cause(f), tries, b.Since.UTC().Format("15:04:05"))
	switch {
	case h.MeantForNode:
		text += ", and the node is kept for the pod"
	case h.TryUnderWay || b.ComingClaims > 0:
		text += ", and another node is being tried"
	case b.CountUnused() > cluster.MaxUnused:
		text += fmt.Sprintf(", and the next try begins when at most %d of the %d unused nodes is left",
			cluster.MaxUnused, b.CountUnused())
	default:
		text += ", and the next try is at " + b.NextTry.UTC().Format("15:04:05") + " UTC"
	}
	return text + "; " + remedy(&f.Cause)
}

// Cause says what keeps pods off a node that was made for them.
func Cause(f *cluster.UnusedNode) string {
	c, node := &f.Cause, "node "+f.Node
	if f.Node == "" {
		node = "NodeClaim " + f.Claim
	}
	switch c.Kind {
	case cluster.CauseTaint:
		return fmt.Sprintf("taint %s%s keeps pods off %s", c.Taint, writtenBy(c.By), node)
	case cluster.CauseCordon:
		return fmt.Sprintf("%s is cordoned%s", node, writtenBy(c.By))
	case cluster.CauseLabel:
		return fmt.Sprintf("label %s of %s is %s%s instead of %s",
			c.Label, node, orAbsent(c.Is), writtenBy(c.By), orAbsent(c.Was))
	case cluster.CauseShrunk:
		return fmt.Sprintf("allocatable %s of %s is %s%s instead of %s, and the pod needs %s",
			c.Resource, node, c.Left, writtenBy(c.By), c.Promised, c.Need)
	case cluster.CausePort:
		return fmt.Sprintf("host port %s of %s is used by %s", c.Resource, node, c.TakenBy)
	case cluster.CauseScheduler:
		return fmt.Sprintf("kube-scheduler does not place the pod on %s: %q", node, c.Message)
	case cluster.CauseRoom:
		text := fmt.Sprintf("%s has %s of %s left, and the pod needs %s", node, c.Left, c.Resource, c.Need)
		if c.TakenBy != "" {
			text += " (the largest pods there: " + c.TakenBy + ")"
		}
		return text
	case cluster.CauseEvicted:
		text := "pods were removed from " + node + " before they had run there for " + cluster.ProvenAfter.String()
		if c.Message != "" {
			text += fmt.Sprintf(": %q", c.Message) + writtenBy(c.By)
		}
		return text
	case cluster.CauseDeleted:
		text := node + " was removed before pods had run there for " + cluster.ProvenAfter.String()
		if c.By != "" {
			text += " (" + c.By + ")"
		}
		return text
	}
	return node + " does not accept the pod"
}

// writtenBy names who wrote something, if that is known.
func writtenBy(who string) string {
	if who == "" {
		return ""
	}
	return fmt.Sprintf(" (written by %q)", who)
}

func orAbsent(value string) string {
	if value == "" {
		return "absent"
	}
	return fmt.Sprintf("%q", value)
}

// remedy says what people can do about it.
func remedy(c *cluster.Cause) string {
	switch c.Kind {
	case cluster.CauseTaint:
		if strings.HasPrefix(c.Taint.Key, "node.kubernetes.io/") {
			return "the conditions of the node say why it has the taint"
		}
		return "add a toleration to the pod, stop what writes the taint, " +
			"or list the taint in the NodePool's startupTaints if it is removed later"
	case cluster.CauseCordon:
		return "uncordon the node, and stop what cordons new nodes"
	case cluster.CauseLabel:
		return "set the label back and stop what changes it, or change what the pod selects"
	case cluster.CauseShrunk:
		return "check the kubelet's reservations, or lower the pod's requests"
	case cluster.CauseRoom:
		return "check the pods on the node (DaemonSets of higher priority may preempt others), or lower the pod's " +
			"requests"
	case cluster.CausePort:
		return "free the port on new nodes, or give the pod another port"
	case cluster.CauseScheduler:
		return "the pod's events from kube-scheduler say what is missing on the node"
	case cluster.CauseEvicted:
		return "check the pods' events for what evicts, preempts or deletes them"
	}
	return "find out what removes new nodes: an agent, a script or another autoscaler"
}
