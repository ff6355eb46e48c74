package disrupt

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// drift begins the replacement of nodes that are no longer what their pool or class asks for: as many at the same time as the
// budgets allow, those first that carry nothing, then those that have drifted first. As soon as one is gone the next begins.
func (d *desk) drift() {
	var rolls *Rolls
	for _, p := range d.s.Pools {
		if p.Deleting || p.Static && !d.orders.Static {
			continue
		}
		candidates := d.drifted(p)
		if len(candidates) == 0 {
			continue
		}
		if rolls == nil {
			rolls = NewRolls(d.s, d.set)
		}
		rollout := rolls.of(p)
		d.wake(rollout.wake)
		if rollout.probing { // who has failed most often rests longest: it is the one to try again
			slices.SortStableFunc(candidates, func(a, b Candidate) int { return b.Claim.Rests - a.Claim.Rests })
		}
		if p.Static {
			candidates = candidates[:min(len(candidates), d.spareSlots(p))]
		}
		for i := range candidates {
			if rollout.left <= 0 {
				break
			}
			if !d.enter(candidates[i], command.Drifted) {
				d.queueUp(p, command.Drifted)
				break
			}
			rollout.left--
		}
		for i := range p.Budgets {
			d.wake(p.Budgets[i].Changes)
		}
	}
}

// queueUp notes that nodes wait for room in a budget, if nodes that are on their way out will make some.
func (d *desk) queueUp(p *cluster.Pool, reason command.Reason) {
	d.Eager = d.Eager || d.allowed(p, reason) > 0
}

// Start begins the replacement of nodes that have to go whatever it costs while pods are still being counted: only fences are put
// up, which can be taken down again. Where the pods that are counted go is not known yet, so that everything else waits; but
// where pods come and go all the time, whoever waits for a budget would hardly ever find a moment otherwise.
func Start(s *cluster.Snapshot, set Settings, o Orders) Result {
	if !anyDue(s, o) { // there are rushes in which every pass counts
		return Result{}
	}
	counted := s.Pending()
	o.Found, o.Placement = nil, &schedule.Placement{Unplaced: make([]schedule.Unplaced, len(counted))}
	for i, pod := range counted {
		o.Placement.Unplaced[i].Pod = pod
	}
	d := newDesk(s, set, o)
	d.gather()
	d.weed()
	d.balance()
	under := len(d.groups)
	d.repair()
	d.drift()
	d.softExpiry()
	if len(d.groups) > under {
		d.verify()
	}
	for _, g := range d.groups[under:] {
		if g.static || g.worst() != none {
			d.fence(g)
		}
	}
	return Result{Commands: d.Commands, Begun: d.Begun, WakeAt: d.WakeAt, Eager: d.Eager}
}

// anyDue reports whether there may be nodes that have to go whatever it costs.
func anyDue(s *cluster.Snapshot, o Orders) bool {
	return o.Repair.Enabled || slices.ContainsFunc(s.Pools, func(p *cluster.Pool) bool { return p.Care.SoftExpiry > 0 }) ||
		slices.ContainsFunc(s.Claims, func(c *cluster.Claim) bool { return c.Is(cluster.Drifted) && c.Move == "" && c.Deleting.IsZero() })
}

// drifted lists the pool's nodes that have drifted and may go, in the order in which they do.
func (d *desk) drifted(p *cluster.Pool) []Candidate {
	var out []Candidate
	for _, c := range d.s.ClaimsOf(p.Name) {
		if !c.Is(cluster.Drifted) || DriftOf(d.s, c) == "" {
			continue
		}
		candidate, stay := d.judge.MayGo(c, command.Drifted)
		if stay != nil {
			d.wake(stay.Until)
			continue
		}
		if !d.gone[candidate.Node.Name] {
			out = append(out, candidate)
		}
	}
	slices.SortFunc(out, func(a, b Candidate) int {
		if a.Idle != b.Idle {
			if a.Idle {
				return -1
			}
			return 1
		}
		return cmp.Or(a.Claim.Condition(cluster.Drifted).Since.Compare(b.Claim.Condition(cluster.Drifted).Since),
			strings.Compare(a.Claim.Name, b.Claim.Name))
	})
	return out
}

// Stamps writes the hash of each pool's template on the pool, and on claims that carry none or one that was computed in another
// way. Such a claim counts as made from the template as it is now: whoever takes a cluster over does not roll all its nodes. One
// that is known to have drifted from the template stays so.
func Stamps(s *cluster.Snapshot) []command.Command {
	var out []command.Command
	for _, p := range s.Pools {
		if p.Hash == "" || p.Deleting {
			continue
		}
		if (p.Stamped != cluster.Stamp{Hash: p.Hash, Version: p.HashVersion}) {
			out = append(out, command.StampPool{Pool: p.Name, UID: p.UID, Hash: p.Hash, Version: p.HashVersion})
		}
		for _, c := range s.ClaimsOf(p.Name) {
			if c.Expected || !c.Deleting.IsZero() || c.Hash != "" && c.HashVersion == p.HashVersion {
				continue
			}
			hash := p.Hash
			if told := c.Condition(cluster.Drifted); c.Hash != "" && told.Status == cluster.True && told.Reason == PoolDrifted {
				hash = c.Hash
			}
			out = append(out, command.StampClaim{Claim: c.Name, UID: c.UID, Hash: hash, Version: p.HashVersion})
		}
	}
	return out
}
