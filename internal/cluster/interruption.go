package cluster

import "time"

// Interruption is the end of a claim's instance that its cloud has announced, or that has come already.
type Interruption struct {
	// Kind is a word for people; empty if there is no interruption.
	Kind string
	// Deadline is when the instance stops to work; zero if nobody has set a time.
	Deadline time.Time
	// Force says that nothing on the node is worth waiting for.
	Force bool
}

// Urgent reports whether the node goes whatever anybody on it says: there is a time by which the machine is gone, or it is of
// no use any more.
func (i Interruption) Urgent() bool { return i.Force || !i.Deadline.IsZero() }

// end is when a claim that is being deleted since a time must be gone because of the interruption; has is false if that says
// nothing about it.
func (i Interruption) end(deleting time.Time) (at time.Time, has bool) {
	if i.Force {
		return deleting, true
	}
	return i.Deadline, !i.Deadline.IsZero()
}

// Advised reports whether the cloud would like the claim's node to go, without a deadline, and nobody has begun to let it: its pods
// may keep it.
func (c *Claim) Advised() bool { return c.Interrupted() && !c.Interruption.Urgent() && c.Move == "" }

// Interrupted reports whether the cloud has announced the end of the claim's instance.
func (c *Claim) Interrupted() bool { return c.Interruption.Kind != "" }
