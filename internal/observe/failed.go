package observe

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

// failed tells about acts that did not succeed, on the object that a person would look at. A conflict is not told: it
// only says that somebody else was faster, and the next try settles it.
func (e *events) failed(s *cluster.Snapshot, out command.Outcome) {
	if apierrors.IsConflict(out.Err) {
		return
	}
	why := out.Err.Error()
	switch c := out.Command.(type) {
	case command.CreateClaim:
		e.notCreated(s, c, out.Err)
	case command.LaunchInstance:
		if e.failures.take(e.now()) { // a cloud that is down fails them all
			e.tell(claimRef(c.Claim, c.UID), warning, "LaunchFailed", "Launching", why)
		}
	case command.Register:
		e.claimFailed(s, c.Claim, c.Node, "RegistrationFailed", "Registering", why)
	case command.Initialize:
		e.claimFailed(s, c.Claim, c.Node, "InitializationFailed", "Initializing", why)
	case command.DeleteClaim:
		e.claimFailed(s, c.Claim, c.Node, "FailedTermination", "Terminating", why)
	case command.Terminate:
		e.claimFailed(s, c.Claim, c.Node, "FailedTermination", "Terminating", why)
	case command.Release:
		e.claimFailed(s, c.Claim, c.Node, "FailedTermination", "Terminating", why)
	case command.DeleteNode:
		if n := s.Node(c.Node); n != nil {
			e.tell(nodeRef(n), warning, "FailedTermination", "Terminating", why)
		}
	case command.Evict:
		if !out.Refused { // a refusal is in the plan's notes
			e.notEvicted(s, c, out.Err)
		}
	case command.SetPool:
		if p := s.Pool(c.Pool); p != nil {
			e.tell(poolRef(p.Name, p.UID), warning, "StatusUpdateFailed", "Updating", why)
		}
	}
}

// claimFailed tells it on the claim, or on the node if the claim is lost.
func (e *events) claimFailed(s *cluster.Snapshot, claim, node, reason, action, why string) {
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

// notEvicted tells the node which pod keeps it from being drained, and why.
func (e *events) notEvicted(s *cluster.Snapshot, c command.Evict, err error) {
	n := s.Node(c.Node)
	if n == nil {
		return
	}
	note := "Pod " + c.Namespace + "/" + c.Name + " could not be evicted: " + answer(err)
	if e.told.knows(string(n.UID), e.told.hash("FailedDraining"+note)) || !e.failures.take(e.now()) {
		return
	}
	e.tell(nodeRef(n), warning, "FailedDraining", "Draining", note)
}

// notCreated tells the pool, and a few of the pods that wait for it, that a claim could not be created. The name of the
// claim is no part of the news: a cause that holds for all claims of a pool is told once.
func (e *events) notCreated(s *cluster.Snapshot, c command.CreateClaim, err error) {
	why := answer(err)
	cause := strings.ReplaceAll(why, c.Name, "")
	uid := c.PoolUID
	if p := s.Pool(c.Pool); p != nil {
		uid = p.UID
	}
	if e.told.learn(uid, e.told.hash("NodeClaimCreationFailed"+cause)) {
		e.write(poolRef(c.Pool, uid), warning, "NodeClaimCreationFailed", "Launching", "Failed to create NodeClaim "+c.Name+": "+why)
	}
	text := e.told.hash(failedScheduling + "claim" + cause)
	for _, pod := range c.Pods[:min(toldPods, len(c.Pods))] {
		if e.told.knows(pod.UID, text) {
			continue
		}
		if !e.failures.take(e.now()) {
			return
		}
		e.told.learn(pod.UID, text)
		e.write(podRef(pod), warning, failedScheduling, "Scheduling", cannot+"creating NodeClaim "+c.Name+" for NodePool "+c.Pool+": "+why)
	}
}

// answer is what the API server said, without what we said around it; any other error as it is.
func answer(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return err.Error()
}
