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

// IsUrgent reports whether the node goes whatever anybody on it says: there is a time by which the machine is gone, or
// it is of no use any more.
func (i Interruption) IsUrgent() bool { return i.Force || !i.Deadline.IsZero() }

// endsBy is when a claim that is being deleted since a time must be gone because of the interruption; has is false if
// that says nothing about it.
func (i Interruption) endsBy(deleting time.Time) (at time.Time, has bool) {
	if i.Force {
		return deleting, true
	}
	return i.Deadline, !i.Deadline.IsZero()
}

// IsAdvisedToGo reports whether the cloud would like the claim's node to go, without a deadline, and nobody has begun
// to let it: its pods may keep it.
func (c *Claim) IsAdvisedToGo() bool {
	return c.IsInterrupted() && !c.Interruption.IsUrgent() && c.Move == ""
}

// IsInterrupted reports whether the cloud has announced the end of the claim's instance.
func (c *Claim) IsInterrupted() bool { return c.Interruption.Kind != "" }
