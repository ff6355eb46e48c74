package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sh/tenon/internal/require"
)

// The feature gates that do something here.
const (
	gateNodeRepair     = "NodeRepair"
	gateStaticCapacity = "StaticCapacity"
	gateSpotToSpot     = "SpotToSpotConsolidation"
	// gateReservedCapacity is read by the AWS provider.
	gateReservedCapacity = "ReservedCapacity"
)

// gatesOfContract are the gates of the contract with their defaults. Others may be named and are ignored, so that a
// deployment of a newer version starts.
func gatesOfContract() map[string]bool {
	return map[string]bool{
		gateNodeRepair: false, gateStaticCapacity: false, gateReservedCapacity: true, gateSpotToSpot: false,
		"NodeOverlay": false, "CapacityBuffer": false,
		"TerminateFirstDrift": false, "TerminateFirstRepair": false, "PodDeletionCostManagement": false,
	}
}

// parseGates reads Name=true,Other=false over the defaults.
func parseGates(text string) (map[string]bool, error) {
	gates := gatesOfContract()
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		on, err := strconv.ParseBool(value)
		if !ok || err != nil {
			return nil, fmt.Errorf("--feature-gates: %q is not Name=true or Name=false", part)
		}
		if _, known := gates[name]; known {
			gates[name] = on
		}
	}
	return gates, nil
}

// unknownGate is a gate of a setting that does not exist.
type unknownGate struct {
	// text names the gate that is probably meant, or all that there are.
	text string
	// needed says that whoever wrote the setting relies on it: the gate is turned on, or a gate that is on by default is
	// probably meant. A gate that is turned off is off here anyway; the values of a newer Karpenter have such gates.
	needed bool
}

// unknownGates lists the gates of a setting that do not exist.
func unknownGates(setting, text string, gates map[string]bool) []unknownGate {
	known := slices.Sorted(maps.Keys(gates))
	var out []unknownGate
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if slices.Contains(known, name) {
			continue
		}
		needed, _ := strconv.ParseBool(value) // parseGates has refused what is neither true nor false
		fix := "the gates are " + strings.Join(known, ", ")
		if meant := require.Nearest(name, known); meant != "" {
			fix = "did you mean " + meant + "?"
			needed = needed || gatesOfContract()[meant]
		}
		out = append(out, unknownGate{fmt.Sprintf("%s: %q is not a gate of this version; %s", setting, name, fix), needed})
	}
	return out
}

// idleGates lists the gates that were turned away from their default and that nothing reads yet.
func idleGates(gates map[string]bool, cloud string) []string {
	var out []string
	defaults, read := gatesOfContract(), []string{gateNodeRepair, gateStaticCapacity, gateSpotToSpot}
	if cloud == cloudAWS {
		read = append(read, gateReservedCapacity)
	}
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		if !slices.Contains(read, name) && gates[name] != defaults[name] {
			out = append(out, fmt.Sprintf("--feature-gates %s=%v", name, gates[name])+instead(name))
		}
	}
	return out
}

// instead says what happens in place of what a gate would bring, and what to do; empty if there is nothing to say.
func instead(gate string) string {
	switch gate {
	case "TerminateFirstDrift", "TerminateFirstRepair":
		return ": a node goes only once its replacement is ready; where there is no room for one, raise limits.nodes of the NodePool, or delete the NodeClaim"
	case "PodDeletionCostManagement":
		return ": the annotation controller.kubernetes.io/pod-deletion-cost is read and never written; set it yourself"
	}
	return ""
}
