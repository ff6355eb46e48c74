package plan

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/lifecycle"
)

// Bare is what is left to do when Make fails whatever is left out. NodeClaims take their next step: they are launched,
// registered, drained and ended. Nodes that the cloud takes away are replaced. Nothing else begins: no pod gets a new
// node, no node is removed to save money, and no instance ends because nobody claims it.
func Bare(s *cluster.Snapshot, policy Policy) Plan {
	p := empty(s, policy)
	p.add(lifecycle.Next(s, policy.Lifecycle))
	p.shareEvictions(s)
	if !s.Quarantine.Leaves(cluster.Interrupting) {
		p.interrupt(s, policy, true)
	}
	p.hold(s)
	return p
}

// empty is a plan that says nothing yet.
func empty(s *cluster.Snapshot, policy Policy) Plan {
	return Plan{
		Rev: s.Rev, Now: s.Now, set: policy.disruption(), demand: s.Demand, supply: s.Supply, repair: policy.Repair,
		admission: newAdmission(s),
	}
}
