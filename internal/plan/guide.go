package plan

import "github.com/tenon-sh/tenon/internal/cluster"

// guide sees to it that pods get to the nodes that were made for them.
func (p *Plan) guide(s *cluster.Snapshot, policy Policy) {
}
