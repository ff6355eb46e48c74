package disrupt

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
)

// UnusedNodes are nodes that stand in vain.
type UnusedNodes struct {
	Tries map[string]*cluster.WorkloadTries // by the claim
	// Retained are those that stay to show what is wrong, one for each owner; YoungUntil are new ones whose taint may
	// go by itself, and until when each stays.
	Retained   map[string]bool
	YoungUntil map[string]time.Time
}

// IsKept reports whether the node of a claim is kept although it stands in vain.
func (u *UnusedNodes) IsKept(claim string) bool {
	_, fresh := u.YoungUntil[claim]
	return fresh || u.Retained[claim]
}

// FindUnusedNodes lists the nodes that stand in vain. One that shows what is wrong does not stay where the next try is
// due and the limits of its pool leave no room for another such node beside it: nothing could ever show then that the
// cause has gone.
func FindUnusedNodes(s *cluster.Snapshot) UnusedNodes {
	v := UnusedNodes{YoungUntil: make(map[string]time.Time)}
	v.Tries, v.Retained = s.UnusedNodes()
	v.keepYoung(s)
	headroom := make(map[*cluster.Pool]*market.Headroom)
	for _, b := range s.WorkloadTries {
		c := s.Claim(b.Retained)
		if c == nil || !b.MayTry(s.Now) {
			continue
		}
		pool := s.Pool(c.Pool)
		if pool == nil || !pool.Limits.Any() || pool.Limits.Broken != "" {
			continue
		}
		if headroom[pool] == nil {
			headroom[pool] = market.HeadroomOf(s, pool)
		}
		if !headroom[pool].Fits(market.ChargeOf(s, pool, c)) {
			delete(v.Retained, c.Name)
		}
	}
	return v
}

// keepYoung keeps nodes whose taint may go by itself.
func (u *UnusedNodes) keepYoung(s *cluster.Snapshot) {
	for name := range u.Tries {
		c := s.Claim(name)
		if c == nil {
			continue
		}
		if until := c.MayClearUntil(s.NodeOf(name)); s.Now.Before(until) {
			u.YoungUntil[name] = until
		}
	}
}
