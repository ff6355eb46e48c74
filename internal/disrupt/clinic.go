package disrupt

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// Clinic knows which nodes of one snapshot are to be replaced for their health.
type Clinic struct {
	s   *cluster.Snapshot
	set RepairSettings
	// crowded are the pools so many nodes of which are sick that the cause is elsewhere, as far as somebody has asked.
	crowded map[string]bool
}

// NewClinic looks at nobody yet.
func NewClinic(s *cluster.Snapshot, set RepairSettings) *Clinic {
	return &Clinic{s: s, set: set, crowded: make(map[string]bool)}
}

// StillSick reports whether the node of a claim that was to be replaced for its health still is to be.
func (k *Clinic) StillSick(c *cluster.Claim) bool {
	_, sick := beyondHope(k.s, k.set, c)
	return sick && k.set.Enabled && !k.Crowded(c.Pool)
}

// Grace is how long the pods of a sick node have to leave once it goes: the least that one of the policies says which call for its
// replacement, and at most the node's own terminationGracePeriod. has is false if nobody says anything.
func (k *Clinic) Grace(c *cluster.Claim) (grace time.Duration, has bool) {
	grace, has = c.TerminationGrace, c.HasTerminationGrace
	n := k.s.NodeOf(c.Name)
	if n == nil {
		return grace, has
	}
	for _, policy := range k.set.Policies {
		for _, cond := range n.Conditions {
			ill := illness{policy, cond.Since}
			if !policy.HasGrace || cond.Type != policy.Type || cond.Status != policy.Status || k.s.Now.Before(ill.due()) {
				continue
			}
			if !has || policy.Grace < grace {
				grace, has = policy.Grace, true
			}
		}
	}
	return grace, has
}

// Bounded reports whether there is a time after which the pods of a sick node are not asked any more.
func (k *Clinic) Bounded(c *cluster.Claim) bool {
	_, has := k.Grace(c)
	return has
}

// Crowded reports whether so many nodes of the pool, or of those without one, are sick that none is to be touched.
func (k *Clinic) Crowded(pool string) bool {
	if crowded, known := k.crowded[pool]; known {
		return crowded
	}
	total, sick := 0, 0
	for _, c := range k.s.ClaimsOf(pool) {
		n := k.s.NodeOf(c.Name)
		if !inWard(c, n) {
			continue
		}
		total++
		if _, is := diagnose(n, k.set.Policies); is {
			sick++
		}
	}
	k.crowded[pool] = sick > k.set.bearable(total)
	return k.crowded[pool]
}

// bearable is how many of so many nodes may be sick at the same time.
func (s RepairSettings) bearable(total int) int { return (total*s.MaxUnhealthy + 99) / 100 }
