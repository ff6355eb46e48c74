package events

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/observe/series"
	"github.com/tenon-sh/tenon/internal/render"
)

const (
	normal = corev1.EventTypeNormal
	// Terminating is the contract's word for the end of a node that a rule of its pool asked for.
	Terminating = "DisruptionTerminating"
	// The contract's words for the replacement of a node that goes: it is launched, and awaited.
	disruptionLaunching = "DisruptionLaunching"
	disruptionWaiting   = "DisruptionWaitingReadiness"
	// DryRun is our own word for what would be done if the NodePool did not only want to be told.
	DryRun = string(disrupt.DryRun)
)

// TellDone tells about acts that succeeded.
func (e *Teller) TellDone(s *cluster.Snapshot, out command.Outcome) {
	switch c := out.Command.(type) {
	case command.DeleteClaim:
		e.tellDeleted(s, c)
	case command.DeleteNode:
		if n := s.Node(c.Node); n != nil {
			e.tell(nodeRef(n), warning, string(c.Reason), "Terminating", because(c.Reason, render.Text(c.Text)))
		}
	case command.LaunchInstance:
		if claim := s.Claim(c.Claim); claim != nil && !out.Refused {
			e.tellReplaces(s, claim, disruptionLaunching, "Launching NodeClaim")
		}
	case command.Register:
		if claim := s.Claim(c.Claim); claim != nil {
			e.tellReplaces(s, claim, disruptionWaiting, "Waiting until the node is ready for pods")
		}
		if claim := s.Claim(c.Claim); claim != nil && c.Untainted {
			e.tell(claimRef(claim.Name, claim.UID), warning, "UnregisteredTaintMissing", "Registering", fmt.Sprintf(
				"Node %s came without the taint %s:NoExecute, so pods may have reached it before it was set up; let "+
					"the kubelet register with it", c.Node, cluster.UnregisteredTaint))
		}
	case command.Evict:
		e.tellLeft(s, c)
	case command.Release:
		e.tellReleased(s, c)
	case command.SetPool:
		e.tellPool(s, c)
	}
}

// tellReplaces tells a claim that was made to replace others what is going on.
func (e *Teller) tellReplaces(s *cluster.Snapshot, c *cluster.Claim, reason, what string) {
	members := s.MoveClaims(c.Replaces)
	if c.Replaces == "" || len(members) == 0 || !e.limiters[reason].allow(e.now()) {
		return
	}
	whom := members[0].Name
	if len(members) > 1 {
		whom += fmt.Sprintf(" and %d more", len(members)-1)
	}
	e.tell(claimRef(c.Name, c.UID), normal, reason, "Disrupting", fmt.Sprintf("%s: %s, it takes the place of "+
		"NodeClaim %s", what, disrupt.MoveReason(c.Replaces), whom))
}

// tellLeft tells a pod why it has to leave its node.
func (e *Teller) tellLeft(s *cluster.Snapshot, c command.Evict) {
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: c.Namespace, Name: c.Name,
		UID: types.UID(c.UID)}
	if c.Delete {
		e.tell(ref, normal, "Disrupted", "Draining", fmt.Sprintf("Deleted pod with a grace period of %s: the time of "+
			"node %s is up, disruption budgets and do-not-disrupt no longer count", c.Grace.Round(time.Second), c.Node))
		return
	}
	e.tell(ref, normal, "Evicted", "Draining", fmt.Sprintf("Evicted pod: node %s is being drained, reason %s", c.Node,
		series.DrainReason(s, c.Node)))
}

// tellDeleted tells why a claim, and with it its node, has to go.
func (e *Teller) tellDeleted(s *cluster.Snapshot, c command.DeleteClaim) {
	claim := claimRef(c.Claim, c.UID)
	var node *corev1.ObjectReference
	if n := s.Node(c.Node); n != nil {
		node = nodeRef(n)
	} else if n := s.NodeOf(c.Claim); n != nil {
		node = nodeRef(n)
	}
	kind, reason, note := warning, string(c.Reason), because(c.Reason, render.Text(c.Text))
	switch c.Reason {
	case command.Requested: // whoever asked knows
		return
	case command.InsufficientCapacity:
		reason, note = insufficientCapacity, render.Text(c.Text)
		e.tellNoCapacity(s, c)
	case command.ClassNotReady:
		reason, note = "NodeClassNotReady", render.Text(c.Text)
	case command.Empty, command.Underutilized, command.Drifted, command.Expired, command.Unhealthy, command.ScaledDown:
		kind, reason = normal, Terminating
	case command.Interrupted:
		reason = "TerminatingOnInterruption"
	}
	for _, ref := range []*corev1.ObjectReference{claim, node} {
		switch {
		case ref == nil:
		case reason == Terminating:
			e.tell(ref, kind, reason, "Disrupting", "Disrupting "+ref.Kind+": "+note)
		default:
			e.tell(ref, kind, reason, "Terminating", note)
		}
	}
}

// tellReleased tells that the finalizer is gone that kept a claim and its node, or a node without a claim.
func (e *Teller) tellReleased(s *cluster.Snapshot, c command.Release) {
	var refs []*corev1.ObjectReference
	n := s.NodeOf(c.Claim)
	if c.Claim != "" {
		refs = append(refs, claimRef(c.Claim, c.UID))
	} else {
		n = s.Node(c.Node)
	}
	if n != nil && n.Finalized {
		refs = append(refs, nodeRef(n))
	}
	for _, ref := range refs {
		if e.transitions.allow(e.now()) {
			e.tell(ref, normal, "Finalized", "Terminating", "Finalized "+v1.TerminationFinalizer)
		}
	}
}

// because joins a reason and what there is to say about it.
func because(reason command.Reason, message string) string {
	if message == "" {
		return string(reason)
	}
	return string(reason) + ", " + message
}

// TellNotes tells the notes that are news, as long as there is room for more events; it returns those that it told. Who
// finds no room is news the next time, too.
func (e *rationed) TellNotes(notes []cluster.Note) []cluster.Note {
	var told []cluster.Note
	for _, n := range notes {
		if n.Reason == DryRun {
			if e.tellDryRun(n) {
				told = append(told, n)
			}
			continue
		}
		text := render.Text(n.Text)
		if e.recentEvents.knows(n.UID, e.recentEvents.Hash(n.Reason+text)) {
			continue
		}
		if !e.notes.allow(e.now()) {
			break
		}
		kind := normal
		if n.Warning {
			kind = warning
		}
		e.tell(noteRef(n), kind, n.Reason, "Checking", text)
		told = append(told, n)
	}
	return told
}

// tellDryRun tells what a dry run would do, once for as long as nothing but its figures changes; it reports whether it
// did.
func (e *rationed) tellDryRun(n cluster.Note) bool {
	text := render.Text(n.Text)
	summary := e.LongEvents.Hash(n.Reason + withoutFigures(text))
	if e.LongEvents.knows(n.UID, summary) || !e.limiters[DryRun].allow(e.now()) {
		return false
	}
	e.LongEvents.Learn(n.UID, summary)
	e.write(noteRef(n), normal, n.Reason, "Disrupting", text)
	return true
}

// withoutFigures is a text without its digits: prices change a little all the time, which is no news.
func withoutFigures(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}

func noteRef(n cluster.Note) *corev1.ObjectReference {
	version := "v1"
	switch n.Kind {
	case "NodeClaim", "NodePool":
		version = v1.GroupVersion().String()
	case "DaemonSet", "ReplicaSet", "StatefulSet":
		version = "apps/v1"
	case "PodDisruptionBudget":
		version = "policy/v1"
	}
	return &corev1.ObjectReference{APIVersion: version, Kind: n.Kind, Namespace: n.Namespace, Name: n.Name,
		UID: types.UID(n.UID)}
}

// TellClaimCondition tells a claim that one of its conditions has changed.
func (e *rationed) TellClaimCondition(c *cluster.Claim, from, to cluster.Condition) {
	if c.UID == "" || !e.transitions.allow(e.now()) {
		return
	}
	e.tell(claimRef(c.Name, c.UID), normal, to.Type, "Checking", wentTo(from, to))
}

// TellPoolCondition is the same for a pool and the contract's conditions. What a condition says of a pool that is new
// is no change, and that the pool is ready has been told when that was written.
func (e *rationed) TellPoolCondition(p *cluster.Pool, from, to cluster.Condition) {
	if from.Since.IsZero() || strings.Contains(to.Type, "/") || to.Type == cluster.Ready && to.Status == cluster.True ||
		!e.transitions.allow(e.now()) {
		return
	}
	e.tell(poolRef(p.Name, p.UID), normal, to.Type, "Checking", wentTo(from, to))
}

func wentTo(from, to cluster.Condition) string {
	note := fmt.Sprintf("Condition %s went from %s to %s, reason %s", to.Type, from.Status, to.Status, to.Reason)
	if to.Message != "" {
		note += ": " + to.Message
	}
	return note
}
