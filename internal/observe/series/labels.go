package series

import (
	"strings"
	"time"
	"unicode"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/resource"
)

// forceful is the contract's reason for pods that leave a node whose end has no other.
const forceful = "Forceful Termination"

// ReasonLabel is the contract's word for a reason in metrics.
func ReasonLabel(r command.Reason) string {
	switch r {
	case command.ClassNotReady:
		return "nodeclass_not_ready"
	case command.NodeMissing, command.InstanceMissing, command.ClaimMissing:
		return "garbage_collected"
	}
	return SnakeCase(string(r))
}

// SnakeCase writes WhenEmpty as when_empty.
func SnakeCase(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Label is the value of an object's label; empty if it has none.
func Label(labels cluster.Labels, key string) string {
	value, _ := labels.Get(key)
	return value
}

// DrainReason is why a node is emptied.
func DrainReason(s *cluster.Snapshot, node string) string {
	if claim := s.ClaimOf(node); claim != nil {
		if cond := claim.Condition(cluster.DisruptionReason); cond.Status == cluster.True && cond.Reason != "" {
			return cond.Reason
		}
	}
	return forceful
}

// ResourceType is how the contract writes a resource in a label.
func ResourceType(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// InUnits is an amount of a resource in the unit that metrics have it in.
func InUnits(dim int, amount int64) float64 {
	if dim == resource.CPU {
		return float64(amount) / 1000
	}
	return float64(amount)
}

// Planner is what the contract calls the part that finds places for pods. scheduling_id, which would make a new series
// for each plan, stays empty.
const Planner = "provisioner"

// Elapsed is a time in seconds, and never less than none.
func Elapsed(from, to time.Time) float64 { return max(0, to.Sub(from).Seconds()) }

// Decision is the contract's word for what is done to the nodes.
func Decision(replaced bool) string {
	if replaced {
		return "replace"
	}
	return "delete"
}

// Saves reports whether a disruption is for money's sake.
func Saves(r command.Reason) bool { return r == command.Underutilized || r == command.Empty }

// Consolidation is the contract's word for the way in which the disruption of so many nodes saves money; empty for
// reasons that are about something else.
func Consolidation(r command.Reason, nodes int) string {
	switch {
	case r == command.Empty:
		return "empty"
	case r == command.Underutilized && nodes > 1:
		return "multi"
	case r == command.Underutilized:
		return "single"
	}
	return ""
}
