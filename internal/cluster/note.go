package cluster

import "github.com/tenon-sh/tenon/internal/reason"

// Note is something about an object that people should be told. It is data like every other "no"; whoever writes it
// does not decide whether it was told before.
type Note struct {
	// Kind is that of any object that is watched, such as Pod, NodePool or LimitRange.
	Kind, Namespace, Name, UID string
	// Reason is that of an event.
	Reason  string
	Text    reason.Text
	Warning bool
}

// Note is a note about the pod.
func (p *Pod) Note(event string, text reason.Text) Note {
	return Note{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, Reason: event, Text: text}
}

// Note is a note about the node.
func (n *Node) Note(event string, text reason.Text) Note {
	return Note{Kind: "Node", Name: n.Name, UID: n.UID, Reason: event, Text: text}
}

// Note is a note about the claim.
func (c *Claim) Note(event string, text reason.Text) Note {
	return Note{Kind: "NodeClaim", Name: c.Name, UID: c.UID, Reason: event, Text: text}
}

// Note is a note about the pool.
func (p *Pool) Note(event string, text reason.Text) Note {
	return Note{Kind: "NodePool", Name: p.Name, UID: p.UID, Reason: event, Text: text}
}
