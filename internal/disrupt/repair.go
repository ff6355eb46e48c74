package disrupt

import (
	"fmt"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// RepairSettings say when a node is beyond hope.
type RepairSettings struct {
	// Enabled is the gate NodeRepair.
	Enabled bool
	// Policies name the conditions of a node that call for its replacement.
	Policies []RepairPolicy
	// MaxUnhealthy is the percentage of a pool's nodes, rounded up, above which none is replaced: the cause is elsewhere.
	MaxUnhealthy int
}

// RepairPolicy names a condition that, once it has held for Toleration, means that the node is to be replaced.
type RepairPolicy struct {
	Type, Status string
	Toleration   time.Duration
}

// Repair removes nodes that are beyond hope. What is wrong with many nodes of a pool at the same time, however briefly, is
// not wrong with the nodes: then none is touched.
func Repair(s *cluster.Snapshot, set RepairSettings) Result {
	var out Result
	if !set.Enabled || len(set.Policies) == 0 {
		return out
	}
	for _, p := range s.Pools {
		repairGroup(s, s.ClaimsOf(p.Name), set, p, &out)
	}
	repairGroup(s, s.ClaimsOf(""), set, nil, &out)
	return out
}

// illness is what ails a node, and when that has been tolerated for long enough.
type illness struct {
	policy RepairPolicy
	since  time.Time
}

func (i *illness) due() time.Time { return i.since.Add(i.policy.Toleration) }

// budget is how many of a pool's nodes may be replaced for their health at the same time. Nodes that are not ready don't
// use it up, as they would for other reasons: they are those that it is for.
func budget(p *cluster.Pool, total, leaving int) int {
	allowed := total
	for i := range p.Budgets {
		if p.Budgets[i].Covers(string(command.Unhealthy)) {
			allowed = min(allowed, p.Budgets[i].Allows(total))
		}
	}
	return allowed - leaving
}

// repairGroup looks after the nodes of a pool, or those without one (p is nil).
func repairGroup(s *cluster.Snapshot, claims []*cluster.Claim, set RepairSettings, p *cluster.Pool, out *Result) {
	group := "all standalone NodeClaims"
	leaving, total, sick := 0, 0, make(map[string]illness)
	for _, c := range claims {
		n := s.NodeOf(c.Name)
		if n == nil || c.Foreign || !c.Is(cluster.Registered) {
			continue
		}
		total++
		if !c.Deleting.IsZero() || !n.Deleting.IsZero() || tainted(n) || underWay(s, c, n) {
			leaving++
		}
		if ill, is := diagnose(n, set.Policies); is {
			sick[c.Name] = ill
		}
	}
	allowed, left := (total*set.MaxUnhealthy+99)/100, total
	if p != nil {
		group, left = "NodePool "+p.Name, budget(p, total, leaving)
	}
	for _, c := range claims {
		ill, is := sick[c.Name]
		n := s.NodeOf(c.Name)
		if !is || !c.Deleting.IsZero() || !n.Deleting.IsZero() || n.DoNotRepair || c.DoNotRepair {
			continue
		}
		if s.Now.Before(ill.due()) {
			out.WakeAt = cluster.Earlier(out.WakeAt, ill.due())
			continue
		}
		if len(sick) > allowed {
			out.Notes = append(out.Notes, blocked(s, c, n, fmt.Sprintf("%d of the %d nodes of %s are unhealthy, more than %d%%: the cause is not this node",
				len(sick), total, group, set.MaxUnhealthy))...)
			continue
		}
		if left <= 0 {
			out.Notes = append(out.Notes, blocked(s, c, n, fmt.Sprintf("the disruption budgets of %s allow no more nodes to be replaced now", group))...)
			continue
		}
		left--
		out.Commands = append(out.Commands, command.DeleteClaim{Claim: c.Name, UID: c.UID, Node: n.Name, Reason: command.Unhealthy, Deadline: s.Now, Condition: ill.policy.Type,
			Message: fmt.Sprintf("condition %s of node %s has been %s for %s or longer", ill.policy.Type, n.Name, ill.policy.Status, ill.policy.Toleration)})
	}
}

// blocked tells node, claim and pool why a node is not replaced.
func blocked(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node, why string) []cluster.Note {
	notes := []cluster.Note{n.Note("NodeRepairBlocked", why), c.Note("NodeRepairBlocked", why)}
	if p := s.Pool(c.Pool); p != nil {
		notes = append(notes, p.Note("NodeRepairBlocked", why))
	}
	for i := range notes {
		notes[i].Warning = true
	}
	return notes
}

// diagnose finds the illness of a node that has been tolerated first.
func diagnose(n *cluster.Node, policies []RepairPolicy) (worst illness, sick bool) {
	for _, policy := range policies {
		for _, cond := range n.Conditions {
			if cond.Type != policy.Type || cond.Status != policy.Status {
				continue
			}
			if ill := (illness{policy, cond.Since}); !sick || ill.due().Before(worst.due()) {
				worst, sick = ill, true
			}
		}
	}
	return worst, sick
}
