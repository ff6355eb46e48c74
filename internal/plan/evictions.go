package plan

import "github.com/tenon-sh/tenon/internal/cluster"

// shareEvictions lets go of the evictions that a disruption budget would refuse, over all nodes that are being drained.
func (p *Plan) shareEvictions(s *cluster.Snapshot) {
}
