package events

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// toldPods is how many of a claim's pods hear that it could not be created; the pool's event is for the rest.
const toldPods = 3

// TellFailed tells about acts that did not succeed, on the object that a person would look at. A conflict is not told:
// it only says that somebody else was faster, and the next try settles it.
func (e *Teller) TellFailed(s *cluster.Snapshot, out command.Outcome) {
	if apierrors.IsConflict(out.Err) {
		return
	}
	reason := out.Err.Error()
	switch c := out.Command.(type) {
	case command.CreateClaim:
		e.tellNotCreated(s, c, out.Err)
	case command.LaunchInstance:
		if e.failures.allow(e.now()) { // a cloud that is down fails them all
			e.tell(claimRef(c.Claim, c.UID), warning, "LaunchFailed", "Launching", reason)
		}
	case command.Register:
		e.tellClaimFailed(s, c.Claim, c.Node, "RegistrationFailed", "Registering", reason)
	case command.Initialize:
		e.tellClaimFailed(s, c.Claim, c.Node, "InitializationFailed", "Initializing", reason)
	case command.DeleteClaim:
		e.tellClaimFailed(s, c.Claim, c.Node, "FailedTermination", "Terminating", reason)
	case command.Terminate:
		e.tellClaimFailed(s, c.Claim, c.Node, "FailedTermination", "Terminating", reason)
	case command.Release:
		e.tellClaimFailed(s, c.Claim, c.Node, "FailedTermination", "Terminating", reason)
	case command.DeleteNode:
		if n := s.Node(c.Node); n != nil {
			e.tell(nodeRef(n), warning, "FailedTermination", "Terminating", reason)
		}
	case command.Evict:
		if !out.Refused { // a refusal is in the plan's notes
			e.tellNotEvicted(s, c, out.Err)
		}
	case command.SetPool:
		if p := s.Pool(c.Pool); p != nil {
			e.tell(poolRef(p.Name, p.UID), warning, "StatusUpdateFailed", "Updating", reason)
		}
	}
}

// tellClaimFailed tells it on the claim, or on the node if the claim is lost.
func (e *Teller) tellClaimFailed(s *cluster.Snapshot, claim, node, reason, action, why string) {
	var ref *corev1.ObjectReference
	if c := s.Claim(claim); c != nil {
		ref = claimRef(c.Name, c.UID)
	} else if n := s.Node(node); n != nil {
		ref = nodeRef(n)
	}
	if ref != nil {
		e.tell(ref, warning, reason, action, why)
	}
}

// tellNotEvicted tells the node which pod keeps it from being drained, and why.
func (e *Teller) tellNotEvicted(s *cluster.Snapshot, c command.Evict, err error) {
	n := s.Node(c.Node)
	if n == nil {
		return
	}
	note := "Pod " + c.Namespace + "/" + c.Name + " could not be evicted: " + Answer(err)
	if e.recentEvents.knows(string(n.UID), e.recentEvents.Hash("FailedDraining"+note)) || !e.failures.allow(e.now()) {
		return
	}
	e.tell(nodeRef(n), warning, "FailedDraining", "Draining", note)
}

// tellNotCreated tells the pool, and a few of the pods that wait for it, that a claim could not be created. The name of
// the claim is no part of the news: a cause that holds for all claims of a pool is told once.
func (e *Teller) tellNotCreated(s *cluster.Snapshot, c command.CreateClaim, err error) {
	reason := Answer(err)
	cause := strings.ReplaceAll(reason, c.Name, "")
	uid := c.PoolUID
	if p := s.Pool(c.Pool); p != nil {
		uid = p.UID
	}
	if e.recentEvents.Learn(uid, e.recentEvents.Hash("NodeClaimCreationFailed"+cause)) {
		e.write(poolRef(c.Pool, uid), warning, "NodeClaimCreationFailed", "Launching", "Failed to create NodeClaim "+
			c.Name+": "+reason)
	}
	text := e.recentEvents.Hash(failedScheduling + "claim" + cause)
	for _, pod := range c.Pods[:min(toldPods, len(c.Pods))] {
		if e.recentEvents.knows(pod.UID, text) {
			continue
		}
		if !e.failures.allow(e.now()) {
			return
		}
		e.recentEvents.Learn(pod.UID, text)
		e.write(podRef(pod), warning, failedScheduling, "Scheduling", failedPrefix+"creating NodeClaim "+c.Name+
			" for NodePool "+c.Pool+": "+reason)
	}
}

// Answer is what the API server said, without what we said around it; any other error as it is.
func Answer(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return err.Error()
}
