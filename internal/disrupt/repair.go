package disrupt

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
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

// Repair removes nodes that are beyond hope.
func Repair(s *cluster.Snapshot, set RepairSettings) Result {
	return Result{}
}
