package operator

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tenon-sh/tenon/internal/require"
)

// Gates are feature gates that a flag turns on and off: Name=true,Other=false. Gates that do not exist are told and
// ignored, so that a deployment of a newer version starts.
type Gates struct {
	flag, usage string
	defaults    map[string]bool

	text string
	on   map[string]bool // what read has read of the text
}

// NewGates returns gates with their defaults, and the flag that sets them.
func NewGates(flag, usage string, defaults map[string]bool) *Gates {
	return &Gates{flag: flag, usage: usage, defaults: maps.Clone(defaults), on: maps.Clone(defaults)}
}

// Enabled says whether a gate is on.
func (g *Gates) Enabled(name string) bool { return g.on[name] }

func (g *Gates) register(f *pflag.FlagSet) { f.StringVar(&g.text, g.flag, "", g.usage) }

// parts are what the flag was given.
func (g *Gates) parts() []string {
	return strings.FieldsFunc(g.text, func(r rune) bool { return r == ',' })
}

// read reads what the flag was given over the defaults.
func (g *Gates) read() error {
	g.on = maps.Clone(g.defaults)
	for _, part := range g.parts() {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		on, err := strconv.ParseBool(value)
		if !ok || err != nil {
			return fmt.Errorf("--%s: %q is not Name=true or Name=false", g.flag, part)
		}
		if _, known := g.on[name]; known {
			g.on[name] = on
		}
	}
	return nil
}

// unknownGate is a gate of a setting that does not exist.
type unknownGate struct {
	// text names the gate that is probably meant, or all that there are.
	text string
	// needed says that whoever wrote the setting relies on it: the gate is turned on, or a gate that is on by default
	// is probably meant. A gate that is turned off is off here anyway; the values of a newer Karpenter have such gates.
	needed bool
}

// unknown lists the gates that were given and do not exist.
func (g *Gates) unknown() []unknownGate {
	known := slices.Sorted(maps.Keys(g.defaults))
	var out []unknownGate
	for _, part := range g.parts() {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if slices.Contains(known, name) {
			continue
		}
		needed, _ := strconv.ParseBool(value) // read has refused what is neither true nor false
		fix := "the gates are " + strings.Join(known, ", ")
		if meant := require.Nearest(name, known); meant != "" {
			fix = "did you mean " + meant + "?"
			needed = needed || g.defaults[meant]
		}
		out = append(out, unknownGate{fmt.Sprintf("--%s: %q is not a gate of this version; %s", g.flag, name, fix),
			needed})
	}
	return out
}

// The feature gates of the contract that the core reads. A cloud says which others it reads.
const (
	gateNodeRepair     = "NodeRepair"
	gateStaticCapacity = "StaticCapacity"
	gateSpotToSpot     = "SpotToSpotConsolidation"
)

// newFeatureGates are the gates of the contract with their defaults.
func newFeatureGates() *Gates {
	return NewGates("feature-gates", "gates as Name=true,Other=false", map[string]bool{
		gateNodeRepair: false, gateStaticCapacity: false, "ReservedCapacity": true, gateSpotToSpot: false,
		"NodeOverlay": false, "CapacityBuffer": false,
		"TerminateFirstDrift": false, "TerminateFirstRepair": false, "PodDeletionCostManagement": false,
	})
}

// idleGates lists the gates that were turned away from their default and that neither the core nor the cloud reads.
func idleGates(gates *Gates, cloud *Cloud) []string {
	var out []string
	read := append([]string{gateNodeRepair, gateStaticCapacity, gateSpotToSpot}, cloud.Settings.FeatureGates...)
	for _, name := range slices.Sorted(maps.Keys(gates.on)) {
		if !slices.Contains(read, name) && gates.on[name] != gates.defaults[name] {
			out = append(out, fmt.Sprintf("--%s %s=%v", gates.flag, name, gates.on[name])+instead(name))
		}
	}
	return out
}

// instead says what happens in place of what a gate would bring, and what to do; empty if there is nothing to say.
func instead(gate string) string {
	switch gate {
	case "TerminateFirstDrift", "TerminateFirstRepair":
		return ": a node goes only once its replacement is ready; where there is no room for one, raise limits.nodes " +
			"of the NodePool, or delete the NodeClaim"
	case "PodDeletionCostManagement":
		return ": the annotation controller.kubernetes.io/pod-deletion-cost is read and never written; set it yourself"
	}
	return ""
}
