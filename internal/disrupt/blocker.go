package disrupt

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// pending is the phase of a pod that has not begun: no disruption budget protects it.
const pending = "Pending"

// bounded reports whether the disruption may go ahead although pods object: it must come about in the end, and the node has
// a time after which nobody is asked.
func (v *verdict) bounded() bool {
	switch v.reason {
	case command.Drifted, command.Expired, command.Unhealthy, command.Interrupted:
		return v.candidate.Claim.HasTerminationGrace
	}
	return false
}

// pods: each pod may keep its node, itself or through a disruption budget. It also counts what disturbing them costs.
func (v *verdict) pods() bool {
	c, bounded := &v.candidate, v.bounded()
	c.Cost = nodeCost
	there := v.s.PodsOn(c.Node.Name)
	if !c.Idle {
		c.Pods = make([]*cluster.Pod, 0, len(there))
	}
	for _, p := range there {
		guards := v.guardsOf(p)
		if !bounded && v.blocks(p, guards) {
			return false
		}
		if !p.Workload() {
			continue
		}
		c.Cost += podCost(p)
		if !p.StaysThroughDrain {
			c.Evicted++
		}
		if p.Moves() && (p.StaysThroughDrain || !slices.ContainsFunc(guards, (*cluster.Guard).Holds)) {
			c.Pods = append(c.Pods, p)
		}
	}
	return true
}

// blocks reports whether the pod keeps its node where it is, and why. Pods of daemons and of the kubelet count, too, if they
// say so; one that is on its way out has nothing to say.
func (v *verdict) blocks(p *cluster.Pod, guards []*cluster.Guard) bool {
	switch {
	case !p.Deleting.IsZero():
		return false
	case p.DoNotDisrupt:
		v.stay.Pod = p.ID()
		return !v.noUntil(PodDoNotDisrupt, p.DoNotDisruptUntil)
	case saves(v.reason) && p.Owner == "" && p.Workload() && !p.StaysThroughDrain: // no saving is worth a pod that is lost for good
		v.stay.Pod = p.ID()
		return !v.no(PodUnowned)
	case len(guards) == 0 || p.Mirror || p.StaysThroughDrain || p.Phase == pending: // no budget is asked
		return false
	case len(guards) > 1:
		v.stay.Pod, v.stay.Guard = p.ID(), guards[0].ID()+" and "+guards[1].ID()
		return !v.no(SeveralGuards)
	case (guards[0].Allowed <= 0 || guards[0].Never()) && !guards[0].Spares(p): // if one wants all, those that are too many are not worth a move
		v.stay.Pod, v.stay.Guard = p.ID(), guards[0].ID()
		return !v.no(GuardBlocks)
	}
	return false
}

// guardsOf lists the budgets that count the pod. Pods with equal labels share one value, so that each is asked about once.
func (j *Judge) guardsOf(p *cluster.Pod) []*cluster.Guard {
	if len(j.s.Guards) == 0 {
		return nil
	}
	key := labelled{namespace: p.Namespace, count: len(p.Labels)}
	if len(p.Labels) > 0 {
		key.first = &p.Labels[0]
	}
	guards, known := j.kept[key]
	if !known {
		guards = j.s.GuardsOf(p)
		j.kept[key] = guards
	}
	return guards
}
