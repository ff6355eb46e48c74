package cluster

// Note is something about an object that people should be told, in the words of an event. It is data like every other
// "no"; whoever writes it does not decide whether it was told before.
type Note struct {
	// Kind is that of any object that is watched, such as Pod, NodePool or LimitRange.
	Kind, Namespace, Name, UID string
	Reason, Message            string
	Warning                    bool
}

// Note is a note about the pod.
func (p *Pod) Note(reason, message string) Note {
	return Note{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, Reason: reason, Message: message}
}

// Note is a note about the node.
func (n *Node) Note(reason, message string) Note {
	return Note{Kind: "Node", Name: n.Name, UID: n.UID, Reason: reason, Message: message}
}

// Note is a note about the claim.
func (c *Claim) Note(reason, message string) Note {
	return Note{Kind: "NodeClaim", Name: c.Name, UID: c.UID, Reason: reason, Message: message}
}

// Note is a note about the pool.
func (p *Pool) Note(reason, message string) Note {
	return Note{Kind: "NodePool", Name: p.Name, UID: p.UID, Reason: reason, Message: message}
}
