package plan

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/lifecycle"
)

// MakeMinimal is what is left to do when Make fails whatever is left out. NodeClaims take their next step: they are
// launched, registered, drained and ended. Nodes that the cloud takes away are replaced. Nothing else begins: no pod
// gets a new node, no node is removed to save money, and no instance ends because nobody claims it.
func MakeMinimal(s *cluster.Snapshot, policy Policy) Plan {
	p := newPlan(s, policy)
	p.addStep(lifecycle.Next(s, policy.Lifecycle))
	p.shareEvictions(s)
	if !s.Quarantine.LeavesOut(cluster.Interrupting) {
		p.handleInterruptions(s, policy, true)
	}
	p.dropBusy(s)
	return p
}

// newPlan is a plan that says nothing yet.
func newPlan(s *cluster.Snapshot, policy Policy) Plan {
	return Plan{
		Rev: s.Rev, Now: s.Now, settings: policy.disruption(), demand: s.DemandRev, supply: s.SupplyRev,
		repair:         policy.Repair,
		staticCapacity: policy.StaticCapacity, claimAdmission: newClaimAdmission(s),
	}
}
