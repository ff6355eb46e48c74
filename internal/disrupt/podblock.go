package disrupt

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// phasePending is the phase of a pod that has not begun: no disruption budget protects it.
const phasePending = "Pending"

// overridesPods reports whether the disruption may go ahead although pods object: it must come about in the end, and
// the node has a time after which nobody is asked.
func (ec *eligibilityCheck) overridesPods() bool {
	switch ec.reason {
	case command.Drifted, command.Expired, command.Unhealthy, command.Interrupted:
		return ec.candidate.Claim.HasTerminationGrace
	}
	return false
}

// podsAllow: each pod may keep its node, itself or through a disruption budget. It also counts what disturbing them
// costs.
func (ec *eligibilityCheck) podsAllow() bool {
	c, bounded := &ec.candidate, ec.overridesPods()
	c.Cost = nodeCost
	there := ec.s.PodsOn(c.Node.Name)
	if !c.Empty {
		c.Pods = make([]*cluster.Pod, 0, len(there))
	}
	for _, p := range there {
		pdbs := ec.pdbsOf(p)
		if !bounded && ec.podBlocks(p, pdbs) {
			return false
		}
		if !p.IsWorkload() {
			continue
		}
		c.Cost += podCost(p)
		if !p.StaysThroughDrain {
			c.Evicted++
		}
		holds := func(b *cluster.PDB) bool { return b.Holds(ec.s, p) }
		if p.NeedsNewPlace() && (p.StaysThroughDrain || !slices.ContainsFunc(pdbs, holds)) {
			c.Pods = append(c.Pods, p)
		}
	}
	return true
}

// podBlocks reports whether the pod keeps its node where it is, and why. Pods of daemons and of the kubelet count, too,
// if they say so; one that is on its way out has nothing to say.
func (ec *eligibilityCheck) podBlocks(p *cluster.Pod, pdbs []*cluster.PDB) bool {
	switch {
	case !p.Deleting.IsZero():
		return false
	case p.DoNotDisrupt:
		ec.blocked.Pod = p.ID()
		return !ec.blockUntil(PodDoNotDisrupt, p.DoNotDisruptUntil)
	case SavesMoney(ec.reason) && p.Owner == "" && p.IsWorkload() && !p.StaysThroughDrain:
		// no saving is worth a pod that is lost for good
		ec.blocked.Pod = p.ID()
		return !ec.block(PodUnowned)
	case len(pdbs) == 0 || p.Mirror || p.StaysThroughDrain || p.Phase == phasePending: // no budget is asked
		return false
	case len(pdbs) > 1:
		ec.blocked.Pod, ec.blocked.PDB = p.ID(), pdbs[0].ID()+" and "+pdbs[1].ID()
		return !ec.block(SeveralPDBs)
	case (pdbs[0].Allowed <= 0 || pdbs[0].NeverAllows()) && !pdbs[0].AllowsFreely(p):
		// if one wants all, those that are too many are not worth a move
		ec.blocked.Pod, ec.blocked.PDB = p.ID(), pdbs[0].ID()
		return !ec.block(PDBBlocks)
	}
	return false
}

// pdbsOf lists the budgets that count the pod. Pods with equal labels share one value, so that each is asked about
// once.
func (e *Eligibility) pdbsOf(p *cluster.Pod) []*cluster.PDB {
	if len(e.s.PDBs) == 0 {
		return nil
	}
	key := podLabelsKey{namespace: p.Namespace, count: len(p.Labels)}
	if len(p.Labels) > 0 {
		key.firstLabel = &p.Labels[0]
	}
	pdbs, known := e.pdbsByLabels[key]
	if !known {
		pdbs = e.s.PDBsOf(p)
		e.pdbsByLabels[key] = pdbs
	}
	return pdbs
}
