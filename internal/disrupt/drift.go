package disrupt

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// beginDrift begins the replacement of nodes that are no longer what their pool or class asks for: as many at the same
// time as the budgets allow, those first that carry nothing, then those that have drifted first. As soon as one is gone
// the next begins.
func (ex *executor) beginDrift() {
	var rollouts *Rollouts
	for _, p := range ex.s.Pools {
		if p.Deleting || p.Static && !ex.input.Static {
			continue
		}
		candidates := ex.driftedCandidates(p)
		if len(candidates) == 0 {
			continue
		}
		if rollouts == nil {
			rollouts = NewRollouts(ex.s, ex.set)
		}
		rollout := rollouts.rolloutOf(p)
		ex.wake(rollout.wakeAt)
		if rollout.probing { // who has failed most often rests longest: it is the one to try again
			slices.SortStableFunc(candidates, func(a, b Candidate) int { return b.Claim.Rests - a.Claim.Rests })
		}
		if p.Static {
			candidates = candidates[:min(len(candidates), ex.freeStaticNodes(p))]
		}
		for i := range candidates {
			if rollout.mayBegin <= 0 {
				break
			}
			if !ex.queueRequired(candidates[i], command.Drifted) {
				ex.noteWaiting(p, command.Drifted)
				break
			}
			rollout.mayBegin--
		}
		for i := range p.Budgets {
			ex.wake(p.Budgets[i].ChangesAt)
		}
	}
}

// noteWaiting notes that nodes wait for room in a budget, if nodes that are on their way out will make some.
func (ex *executor) noteWaiting(p *cluster.Pool, reason command.Reason) {
	ex.PlanSoon = ex.PlanSoon || ex.allowedUnavailable(p, reason) > 0
}

// StartRequired begins the replacement of nodes that have to go whatever it costs while pods are still being counted:
// only fences are put up, which can be taken down again. Where the pods that are counted go is not known yet, so that
// everything else waits; but where pods come and go all the time, whoever waits for a budget would hardly ever find a
// moment otherwise.
func StartRequired(s *cluster.Snapshot, set Settings, o ExecuteInput) Result {
	if !anyRequired(s, o) { // there are rushes in which every pass counts
		return Result{}
	}
	counted := s.Pending()
	o.Proposal, o.Placement = nil, &schedule.Placement{Unplaced: make([]schedule.Unplaced, len(counted))}
	for i, pod := range counted {
		o.Placement.Unplaced[i].Pod = pod
	}
	x := newExecutor(s, set, o)
	x.gatherActive()
	x.revalidate()
	x.fitBudgets()
	under := len(x.moves)
	x.beginRepairs()
	x.beginDrift()
	x.beginSoftExpiry()
	if len(x.moves) > under {
		x.verify()
	}
	for _, m := range x.moves[under:] {
		if m.isStatic || m.farthest() != nowhere {
			x.fence(m)
		}
	}
	return Result{Commands: x.Commands, Begun: x.Begun, WakeAt: x.WakeAt, PlanSoon: x.PlanSoon}
}

// anyRequired reports whether there may be nodes that have to go whatever it costs.
func anyRequired(s *cluster.Snapshot, o ExecuteInput) bool {
	return o.Repair.Enabled || slices.ContainsFunc(s.Pools, func(p *cluster.Pool) bool {
		return p.Overrides.SoftExpiry > 0
	}) ||
		slices.ContainsFunc(s.Claims, func(c *cluster.Claim) bool {
			return c.Is(cluster.Drifted) && c.Move == "" && c.Deleting.IsZero()
		})
}

// driftedCandidates lists the pool's nodes that have drifted and may go, in the order in which they do.
func (ex *executor) driftedCandidates(p *cluster.Pool) []Candidate {
	var out []Candidate
	for _, c := range ex.s.ClaimsOf(p.Name) {
		if !c.Is(cluster.Drifted) || DriftOf(ex.s, c) == "" {
			continue
		}
		candidate, blocked := ex.eligibility.MayDisrupt(c, command.Drifted)
		if blocked != nil {
			ex.wake(blocked.Until)
			continue
		}
		if !ex.removedNodes[candidate.Node.Name] {
			out = append(out, candidate)
		}
	}
	slices.SortFunc(out, func(a, b Candidate) int {
		if a.Empty != b.Empty {
			if a.Empty {
				return -1
			}
			return 1
		}
		return cmp.Or(a.Claim.Condition(cluster.Drifted).Since.Compare(b.Claim.Condition(cluster.Drifted).Since),
			strings.Compare(a.Claim.Name, b.Claim.Name))
	})
	return out
}

// TemplateHashes writes the hash of each pool's template on the pool, and on claims that carry none or one that was
// computed in another way. Such a claim counts as made from the template as it is now: whoever takes a cluster over
// does not roll all its nodes. One that is known to have drifted from the template stays so.
func TemplateHashes(s *cluster.Snapshot) []command.Command {
	var out []command.Command
	for _, p := range s.Pools {
		if p.Hash == "" || p.Deleting {
			continue
		}
		if (p.WrittenHash != cluster.TemplateHash{Hash: p.Hash, Version: p.HashVersion}) {
			out = append(out, command.WritePoolHash{Pool: p.Name, UID: p.UID, Hash: p.Hash, Version: p.HashVersion})
		}
		for _, c := range s.ClaimsOf(p.Name) {
			if c.Expected || !c.Deleting.IsZero() || c.Hash != "" && c.HashVersion == p.HashVersion {
				continue
			}
			hash := p.Hash
			if described := c.Condition(cluster.Drifted); c.Hash != "" && described.Status == cluster.True &&
				described.Reason == PoolDrifted {
				hash = c.Hash
			}
			out = append(out, command.WriteClaimHash{Claim: c.Name, UID: c.UID, Hash: hash, Version: p.HashVersion})
		}
	}
	return out
}
