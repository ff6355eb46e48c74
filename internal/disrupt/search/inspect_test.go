package search_test

import (
	"math"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/resource"
)

// step is a proposal with the snapshots before it and after it was carried out.
type step struct {
	set           disrupt.Settings
	proposal      *disrupt.Proposal
	before, after *cluster.Snapshot
}

// inspect holds a proposal against what must hold for each.
func inspect(t *testing.T, w *town, s *step) {
	t.Helper()
	inspectMoves(t, s)
	inspectParts(t, s)
	inspectBudgets(t, s)
	inspectStays(t, s)
	inspectNodes(t, s)
	inspectRules(t, s)
}

// inspectMoves: every pod of a node that goes has one place, nobody is moved who may not be, and the saving is what it
// says.
func inspectMoves(t *testing.T, s *step) {
	t.Helper()
	gone := make(map[string]bool)
	for i := range s.proposal.Moves {
		m := &s.proposal.Moves[i]
		places := make(map[string]int)
		for _, a := range m.Assigned {
			places[a.Pod.UID]++
		}
		after := 0.0
		for j := range m.Bins {
			after += m.Bins[j].Price
			for _, p := range m.Bins[j].Pods {
				places[p.UID]++
			}
		}
		ids := make([]string, len(m.Claims))
		for j, name := range m.Claims {
			ids[j] = disrupt.ClaimIdentity(s.before.Claim(name))
		}
		if m.ID != disrupt.MoveID(command.Underutilized, ids) || math.Abs(m.After-after) > 1e-9 {
			t.Errorf("move %s of %v says that it costs %v, and its nodes cost %v", m.ID, m.Claims, m.After, after)
		}
		if saving := m.Before - m.After; saving < m.NeededSaving-1e-9 || m.NeededSaving <= 0 ||
			saving < s.set.MinSaving*m.Before-1e-9 {
			t.Errorf("move %s saves %v of %v and must save %v", m.ID, saving, m.Before, m.NeededSaving)
		}
		for _, name := range m.Claims {
			if gone[name] {
				t.Errorf("%s goes in two moves", name)
			}
			gone[name] = true
			n := s.before.Node(name)
			if n.DoNotDisrupt || s.before.Pool(s.before.Claim(name).Pool).Policy == cluster.WhenEmpty {
				t.Errorf("%s may not be disturbed", name)
			}
			for _, p := range s.before.PodsOn(name) {
				if p.DoNotDisrupt {
					t.Errorf("%s on %s may not be disturbed", p.Name, name)
				}
				if want := s.before.NeedsNewPlace(p); want != (places[p.UID] == 1) {
					t.Errorf("%s on %s has %d places", p.Name, name, places[p.UID])
				}
				delete(places, p.UID)
			}
		}
		for uid := range places {
			t.Errorf("%s is moved and need not be", uid)
		}
	}
	for i := range s.proposal.Moves {
		for _, a := range s.proposal.Moves[i].Assigned {
			if n := s.before.Node(a.Host); gone[a.Host] || n == nil || !n.Ready {
				t.Errorf("%s is sent to %s, which goes or is not at work", a.Pod.Name, a.Host)
			}
		}
	}
}

// inspectBudgets: no pool loses more nodes at a time than its budgets allow.
func inspectBudgets(t *testing.T, s *step) {
	t.Helper()
	count := make(map[string]int)
	for i := range s.proposal.Moves {
		for _, name := range s.proposal.Moves[i].Claims {
			count[s.before.Claim(name).Pool]++
		}
	}
	for pool, n := range count {
		if allowed, out := disrupt.AllowedAndUnavailable(s.before, s.before.Pool(pool),
			string(command.Underutilized)); n > allowed-out {
			t.Errorf("%d nodes of %s go and budgets allow %d, of which %d are out", n, pool, allowed, out)
		}
	}
}

// inspectFigures: a reason that is about money does not contradict itself.
func inspectFigures(t *testing.T, blocked *disrupt.BlockedNode) {
	t.Helper()
	enough := blocked.CertainSaving >= blocked.NeededSaving
	switch blocked.Reason {
	case disrupt.NotBalanced:
		enough = blocked.Saving >= blocked.NeededSaving
	case disrupt.NothingCheaper:
		enough = enough && blocked.NeededSaving > 0
	case disrupt.SavesTooLittle, disrupt.MinValuesTooDear:
	default:
		return
	}
	if enough || blocked.CertainSaving > blocked.Saving {
		t.Errorf("%s stays because of %s, with %v to be saved, %v of it for sure, and %v needed: that is not so",
			blocked.Claim, blocked.Reason, blocked.Saving, blocked.CertainSaving, blocked.NeededSaving)
	}
}

// inspectStays: every node is in a move, idle, or told why it stays.
func inspectStays(t *testing.T, s *step) {
	t.Helper()
	described := make(map[string]int)
	for i := range s.proposal.Moves {
		for _, name := range s.proposal.Moves[i].Claims {
			described[name]++
		}
	}
	for _, blocked := range s.proposal.Blocked {
		described[blocked.Claim]++
		if blocked.Reason == "" || blocked.Node == "" {
			t.Errorf("%s stays, and nobody knows why: %+v", blocked.Claim, blocked)
		}
		inspectFigures(t, &blocked)
	}
	for _, c := range s.before.Claims {
		if described[c.Name] != 1 && !idle(s.before, c.Name) {
			t.Errorf("%s is spoken of %d times", c.Name, described[c.Name])
		}
	}
}

func idle(s *cluster.Snapshot, node string) bool {
	for _, p := range s.PodsOn(node) {
		if p.IsWorkload() {
			return false
		}
	}
	return true
}

// inspectNodes: no node holds more than it can, nor pods that it does not suit, and limits hold.
func inspectNodes(t *testing.T, s *step) {
	t.Helper()
	for _, n := range s.after.Nodes {
		var sum resource.Vector
		for _, p := range s.after.PodsOn(n.Name) {
			sum = sum.Add(p.Class.Requests)
			if !cluster.MayRunOn(p.Class, n.Labels, n.Taints) {
				t.Errorf("%s does not suit %s", n.Name, p.Name)
			}
		}
		if !sum.Fits(n.Allocatable) {
			t.Errorf("%s holds %v and has %v", n.Name, sum, n.Allocatable)
		}
	}
}

// inspectRules: the pods that were moved are where their rules, and those of others, let them be. What was wrong before
// may still be wrong.
func inspectRules(t *testing.T, s *step) {
	t.Helper()
	for _, p := range s.after.Pods {
		was := s.pod(p.UID)
		if was == nil || was.Node == p.Node {
			continue
		}
		at := s.after.Node(p.Node)
		for _, rule := range p.Class.Rules {
			domain, _ := at.Labels.Get(rule.TopologyKey)
			have := s.selected(s.after, rule)
			switch rule.Kind {
			case cluster.AntiAffinity:
				if have[domain] > 1 {
					t.Errorf("%s shares %s with %d of those that it avoids", p.Name, domain, have[domain]-1)
				}
			case cluster.Affinity:
				if others := total(have) - have[domain]; others > 0 && have[domain] <= 1 {
					t.Errorf("%s is alone in %s, %d of its company are elsewhere", p.Name, domain, others)
				}
			case cluster.Spread:
				if rule.TopologyKey != cluster.ZoneLabel {
					continue
				}
				if now, then := s.skew(have, rule), s.skew(s.selected(s.before, rule), rule); now > max(then,
					rule.MaxSkew) {
					t.Errorf("%s: the skew was %d and is %d", p.Name, then, now)
				}
			}
		}
	}
}

func (s *step) pod(uid string) *cluster.Pod {
	for _, p := range s.before.Pods {
		if p.UID == uid {
			return p
		}
	}
	return nil
}

// selected counts the pods that a rule selects, by domain.
func (s *step) selected(in *cluster.Snapshot, rule *cluster.Rule) map[string]int {
	out := make(map[string]int)
	for _, p := range in.Pods {
		if n := in.Node(p.Node); n != nil && rule.Selectors[0].Selects(p.Namespace, nil, p.Labels) {
			domain, _ := n.Labels.Get(rule.TopologyKey)
			out[domain]++
		}
	}
	return out
}

func total(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

// skew is by how much the fullest exceeds the emptiest of the domains that nodes are in, before and after.
func (s *step) skew(counts map[string]int, rule *cluster.Rule) int {
	there := make(map[string]bool)
	for _, n := range s.before.Nodes {
		domain, _ := n.Labels.Get(rule.TopologyKey)
		there[domain] = true
	}
	least, most := -1, 0
	for _, n := range s.after.Nodes {
		if domain, _ := n.Labels.Get(rule.TopologyKey); there[domain] {
			if most = max(most, counts[domain]); least < 0 || counts[domain] < least {
				least = counts[domain]
			}
		}
	}
	return most - max(least, 0)
}
