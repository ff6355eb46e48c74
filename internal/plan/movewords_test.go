package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// poolMoveWord: policy=NAME, hash=TEXT (of its template; hash-version= how it was computed), dry-run=true,
// canary=WATCH, soft=FOR (soft expiry), registering=STATUS.
func (n *storyRunner) poolMoveWord(p *cluster.Pool, key, value string) bool {
	switch key {
	case "policy":
		p.Policy = cluster.Policy(value)
	case "hash":
		p.Hash = value
		if p.HashVersion == "" {
			p.HashVersion = "v3"
		}
	case "hash-version":
		p.HashVersion = value
	case "dry-run":
		p.Overrides.DryRun = value == "true"
	case "canary":
		p.Overrides.Canary, p.Overrides.CanaryWatch = true, n.duration(value)
	case "soft":
		p.Overrides.SoftExpiry = n.duration(value)
	case "registering":
		p.RegistrationHealth = cluster.ConditionStatus(value)
	default:
		return false
	}
	p.Template.Hash = cluster.TemplateHash{Hash: p.Hash, Version: p.HashVersion}
	return true
}

// moveHappens: propose NODE... (a search has found that these can go together), search, drifts NODE WORD, unhashed
// NODE, undrifts NODE, age NODE FOR, up NODE FOR (since it was initialized), protect NODE (its pods), unprotect NODE;
// and what plannerFails knows.
func (n *storyRunner) moveHappens(words []string) bool {
	w := n.w
	switch words[0] {
	case "propose":
		n.propose(words[1:])
	case "search":
		found := plan.Search(w.snapshot(nil), n.policy)
		n.found = &found
	case "drifts":
		w.claims[w.realName(words[1])].DriftedFrom = words[2]
	case "undrifts":
		w.claims[w.realName(words[1])].DriftedFrom = ""
	case "unhashed":
		c := w.claims[w.realName(words[1])]
		c.Hash, c.HashVersion = "", ""
	case "age":
		c := w.claims[w.realName(words[1])]
		c.Created = w.now.Add(-n.duration(words[2]))
	case "up":
		c := w.claims[w.realName(words[1])]
		for i := range c.Conditions {
			if c.Conditions[i].Type == cluster.Initialized {
				c.Conditions[i].Since = w.now.Add(-n.duration(words[2]))
			}
		}
	case "protect", "unprotect":
		for _, p := range w.pods {
			if p.Node == w.realName(words[1]) {
				p.DoNotDisrupt = words[0] == "protect"
			}
		}
	case "fails", "mended":
		n.plannerFails(words)
	default:
		return n.interruptHappens(words)
	}
	return true
}

// plannerFails: fails pods NAME (the planner fails on their class and leaves it out), fails node NODE, fails part WORD,
// mended.
func (n *storyRunner) plannerFails(words []string) {
	if words[0] == "mended" {
		n.w.failed = cluster.Quarantine{}
		return
	}
	f := cluster.Failure{Since: n.w.now, Until: n.w.now.Add(10 * time.Minute), Message: "boom"}
	q := cluster.Quarantine{}
	switch words[1] {
	case "pods":
		q.Classes = map[string]cluster.Failure{n.w.pods[words[2]+"-001"].Class.Key: f}
	case "node":
		q.Claims = map[string]cluster.Failure{n.w.realName(words[2]): f}
	case "part":
		q.Parts = map[cluster.Part]cluster.Failure{cluster.Part(words[2]): f}
	default:
		n.fail("fails: unknown word %q", words[1])
	}
	n.w.failed = n.w.failed.With(q)
}

// propose has a search find a move of the nodes.
func (n *storyRunner) propose(names []string) {
	m := disrupt.Move{Reason: command.Underutilized}
	for _, name := range names {
		m.Claims = append(m.Claims, n.w.realName(name))
		m.Before += n.w.claims[n.w.realName(name)].Price
		for _, p := range n.w.pods {
			if p.Node == n.w.realName(name) && p.IsWorkload() {
				m.Evicted++
			}
		}
	}
	placed := schedule.Place(n.w.snapshot(nil).Without(m.Claims...), n.policy.Schedule)
	m.Bins, m.Assigned = placed.Bins, placed.Assigned
	for i := range m.Bins {
		m.After += m.Bins[i].Price
	}
	m.ID = disrupt.MoveID(m.Reason, m.Claims)
	if n.found == nil {
		n.found = &disrupt.Proposal{Rev: n.w.rev, Now: n.w.now}
	}
	n.found.Moves = append(n.found.Moves, m)
}

// givenUpLines tells which moves don't come about.
func (w *world) givenUpLines(p *plan.Plan) string {
	out := new(strings.Builder)
	for _, g := range p.GivenUp {
		names := make([]string, len(g.Claims))
		for i, name := range g.Claims {
			names[i] = w.called(name)
		}
		fmt.Fprintf(out, "give up the move of %s (%s): %s\n", strings.Join(names, ", "), g.Reason, g.BlockReason)
	}
	return out.String()
}

// fenceOnly leaves only the first so many fences of a plan: a crash in the middle.
func (w *world) fenceOnly(p *plan.Plan, count int) {
	p.Commands = slices.DeleteFunc(slices.Clone(p.Commands), func(c command.Command) bool {
		if _, ok := c.(command.Fence); ok {
			count--
		}
		return count < 0
	})
}
