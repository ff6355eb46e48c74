package drift

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

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

// Drifted are the nodes that are no longer what their pool or class asks for and may go: as many of a pool as its
// rollout lets begin, those first that carry nothing, then those that have drifted first. wake is when the answer may
// change by itself. removed are nodes that go for other reasons.
func Drifted(s *cluster.Snapshot, set disrupt.Settings, e *disrupt.Eligibility, removed map[string]bool,
	static bool) (due []disrupt.Due,
	wake time.Time) {
	var rollouts *Rollouts
	for _, p := range s.Pools {
		if p.Deleting || p.Static && !static {
			continue
		}
		candidates, at := driftedCandidates(s, e, removed, p)
		wake = cluster.Earlier(wake, at)
		if len(candidates) == 0 {
			continue
		}
		if rollouts == nil {
			rollouts = NewRollouts(s, set)
		}
		r := rollouts.rolloutOf(p)
		wake = cluster.Earlier(wake, r.wakeAt)
		if r.probing { // who has failed most often rests longest: it is the one to try again
			slices.SortStableFunc(candidates, func(a, b disrupt.Candidate) int { return b.Claim.Rests - a.Claim.Rests })
		}
		for i := range p.Budgets {
			wake = cluster.Earlier(wake, p.Budgets[i].ChangesAt)
		}
		due = append(due, disrupt.Due{Pool: p, Reason: command.Drifted,
			Candidates: candidates[:max(0, min(len(candidates), r.mayBegin))]})
	}
	return due, wake
}

// driftedCandidates lists the pool's nodes that have drifted and may go, in the order in which they do.
func driftedCandidates(s *cluster.Snapshot, e *disrupt.Eligibility, removed map[string]bool,
	p *cluster.Pool) (out []disrupt.Candidate, wake time.Time) {
	for _, c := range s.ClaimsOf(p.Name) {
		if c.Is(cluster.Drifted) && Of(s, c) != "" {
			out, wake = addDue(out, wake, e, c, command.Drifted, removed)
		}
	}
	slices.SortFunc(out, func(a, b disrupt.Candidate) int {
		return cmp.Or(disrupt.TrueFirst(a.Empty, b.Empty),
			a.Claim.Condition(cluster.Drifted).Since.Compare(b.Claim.Condition(cluster.Drifted).Since),
			strings.Compare(a.Claim.Name, b.Claim.Name))
	})
	return out, wake
}

// addDue adds a node that is to be replaced if it may be; or else when it may.
func addDue(due []disrupt.Candidate, wake time.Time, e *disrupt.Eligibility, c *cluster.Claim, reason command.Reason,
	removed map[string]bool) ([]disrupt.Candidate, time.Time) {
	candidate, blocked := e.MayDisrupt(c, reason)
	switch {
	case blocked != nil:
		wake = cluster.Earlier(wake, blocked.Until)
	case !removed[candidate.Node.Name]:
		due = append(due, candidate)
	}
	return due, wake
}
