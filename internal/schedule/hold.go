package schedule

import (
	"fmt"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// String is a sentence a person can act on: what keeps the pod away, since when, when the next try is and what to do.
func (h Hold) String() string {
	b, f := h.Setback, h.Failure
	tries := "1 try has"
	if b.Tries != 1 {
		tries = fmt.Sprintf("%d tries have", b.Tries)
	}
	text := fmt.Sprintf("nodes that are made for it are of no use to it: %s; %s failed since %s UTC", Away(f), tries, b.Since.UTC().Format("15:04:05"))
	switch {
	case h.Sent:
		text += ", and the node is kept for it"
	case h.Trying || b.Coming > 0:
		text += ", another node is being tried"
	case b.InVain() > cluster.MayStand:
		text += fmt.Sprintf(", the next follows when no more than %d of the %d such nodes is left", cluster.MayStand, b.InVain())
	default:
		text += ", the next is at " + b.Next.UTC().Format("15:04:05") + " UTC"
	}
	return text + "; " + remedy(&f.Cause)
}

// Away says what keeps pods off a node that was made for them.
func Away(f *cluster.VainNode) string {
	c, node := &f.Cause, "node "+f.Node
	if f.Node == "" {
		node = "NodeClaim " + f.Claim
	}
	switch c.Kind {
	case cluster.CauseTaint:
		return fmt.Sprintf("taint %s%s keeps it off %s", c.Taint, writtenBy(c.By), node)
	case cluster.CauseCordon:
		return fmt.Sprintf("%s is cordoned%s", node, writtenBy(c.By))
	case cluster.CauseLabel:
		return fmt.Sprintf("label %s of %s is %s%s and was to be %s", c.Label, node, orAbsent(c.Is), writtenBy(c.By), orAbsent(c.Was))
	case cluster.CauseShrunk:
		return fmt.Sprintf("%s has %s of %s for pods%s instead of %s, and the pod needs %s", node, c.Left, c.Resource, writtenBy(c.By), c.Promised, c.Need)
	case cluster.CausePort:
		return fmt.Sprintf("port %s of %s is taken by %s", c.Resource, node, c.Takers)
	case cluster.CauseScheduler:
		return fmt.Sprintf("kube-scheduler does not put it on %s: %q", node, c.Words)
	case cluster.CauseRoom:
		text := fmt.Sprintf("%s has %s of %s left, and the pod needs %s", node, c.Left, c.Resource, c.Need)
		if c.Takers != "" {
			text += " (there are " + c.Takers + ")"
		}
		return text
	case cluster.CauseEvicted:
		text := "pods had to leave " + node + " before they had run there for " + cluster.RanFor.String()
		if c.Words != "" {
			text += fmt.Sprintf(": %q", c.Words) + writtenBy(c.By)
		}
		return text
	case cluster.CauseDeleted:
		text := node + " went before the pod had run there"
		if c.By != "" {
			text += " (" + c.By + ")"
		}
		return text
	}
	return node + " does not take it"
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
			return "see the conditions of the node for why it has the taint"
		}
		return "let the pod tolerate it, stop who writes it, or list it in the NodePool's startupTaints if it is taken off again"
	case cluster.CauseCordon:
		return "uncordon the node, and stop who cordons new nodes"
	case cluster.CauseLabel:
		return "set the label back, and stop who changes it, or change what the pod asks for"
	case cluster.CauseShrunk:
		return "see the kubelet's reservations, or ask for less"
	case cluster.CauseRoom:
		return "see which pods take the room (DaemonSets of higher priority may preempt others), or ask for less"
	case cluster.CausePort:
		return "free the port on new nodes, or give the pod another"
	case cluster.CauseScheduler:
		return "see the pod's events of kube-scheduler for what it misses on the node"
	case cluster.CauseEvicted:
		return "find out who evicts, preempts or deletes the pods: see their events"
	}
	return "find out who ends new nodes"
}
