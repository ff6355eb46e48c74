package operator

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/ingest/pools"
)

// How it is decided whether a spot node may be replaced by a cheaper one.
const (
	spotByTypes = "types"
	spotByRisk  = "risk"
)

// disruptionOptions are the settings that decide which nodes go to save money, and how nodes are replaced.
type disruptionOptions struct {
	minSaving          string
	minSavingPerPod    float64
	evictionsPerHour   int
	balancedK          float64
	spotToSpot         string
	spotMinTypes       int
	spotRisk           string
	replacementTimeout time.Duration
	driftWatch         time.Duration
	interruptionDrain  time.Duration

	// What validate has read of the texts above.
	minShare, riskShare float64
}

func (d *disruptionOptions) register(f *pflag.FlagSet) {
	f.StringVar(&d.minSaving, "consolidation-min-saving", "5%", "what consolidation must save at least, as a share "+
		"of the price of the nodes that go")
	f.Float64Var(&d.minSavingPerPod, "consolidation-min-saving-per-pod", 0.0001, "what consolidation must save at "+
		"least for each pod that it evicts, in dollars per hour")
	f.IntVar(&d.evictionsPerHour, "evictions-per-hour", 2, "how often each pod of a workload is evicted to save "+
		"money within an hour, on average; 0 for no bound")
	f.Float64Var(&d.balancedK, "balanced-k", 2, "the policy Balanced moves pods if the share of its pool's price "+
		"that is saved is at least one k-th of the share of its pods' cost that is disturbed")
	f.StringVar(&d.spotToSpot, "spot-to-spot", spotByTypes, "with the gate SpotToSpotConsolidation, when a spot node "+
		"may be replaced by a cheaper one: types, if there are enough cheaper types; risk, if it is still cheaper "+
		"with a surcharge for few types")
	f.IntVar(&d.spotMinTypes, "spot-to-spot-min-types", 15, "how many cheaper types there must be for a spot node to "+
		"be replaced by one; with --spot-to-spot=risk, from how many types on there is no surcharge")
	f.StringVar(&d.spotRisk, "spot-risk", "10%", "surcharge of --spot-to-spot=risk for each halving of the types "+
		"below --spot-to-spot-min-types")
	f.DurationVar(&d.replacementTimeout, "replacement-timeout", 10*time.Minute, "how long nodes that are to be "+
		"replaced wait for their replacements before it is given up")
	f.DurationVar(&d.driftWatch, "drift-watch", 10*time.Minute, "with the annotation tenon.sh/drift-strategy: "+
		"canary, how long the first replacement must be healthy before others follow")
	f.DurationVar(&d.interruptionDrain, "interruption-drain", 45*time.Second, "how long before the cloud takes an "+
		"instance away the pods of its node are told to leave, even if their new places are not ready")
}

// validate names the flag and the fix for what makes no sense.
func (d *disruptionOptions) validate() error {
	var err error
	if d.minShare, err = pools.ReadShare(d.minSaving); err != nil {
		return fmt.Errorf("--consolidation-min-saving: %q can't be read; %w", d.minSaving, err)
	}
	if d.riskShare, err = pools.ReadShare(d.spotRisk); err != nil {
		return fmt.Errorf("--spot-risk: %q can't be read; %w", d.spotRisk, err)
	}
	if !(d.minSavingPerPod >= 0) || math.IsInf(d.minSavingPerPod, 0) {
		return fmt.Errorf("--consolidation-min-saving-per-pod: %v is not an amount; use dollars per hour of 0 or more",
			d.minSavingPerPod)
	}
	if d.evictionsPerHour < 0 {
		return fmt.Errorf("--evictions-per-hour: %d is less than 0; use 0 for no bound", d.evictionsPerHour)
	}
	if !(d.balancedK > 0) || math.IsInf(d.balancedK, 0) {
		return fmt.Errorf("--balanced-k: %v must be more than 0; the contract has 2", d.balancedK)
	}
	if !slices.Contains([]string{spotByTypes, spotByRisk}, d.spotToSpot) {
		return fmt.Errorf("--spot-to-spot: %q is not one of %s, %s", d.spotToSpot, spotByTypes, spotByRisk)
	}
	if d.spotToSpot == spotByRisk && d.riskShare == 0 {
		return fmt.Errorf("--spot-risk: with --spot-to-spot=%s it must be more than 0%%", spotByRisk)
	}
	if d.spotMinTypes < 1 {
		return fmt.Errorf("--spot-to-spot-min-types: %d is less than 1; the contract has 15", d.spotMinTypes)
	}
	if d.replacementTimeout <= 0 {
		return fmt.Errorf("--replacement-timeout: %s must be more than 0", d.replacementTimeout)
	}
	if d.driftWatch <= 0 {
		return fmt.Errorf("--drift-watch: %s must be more than 0", d.driftWatch)
	}
	if d.interruptionDrain <= 0 {
		return fmt.Errorf("--interruption-drain: %s must be more than 0; use for instance 45s", d.interruptionDrain)
	}
	return nil
}

// settings are the settings as decisions know them. spot is the gate SpotToSpotConsolidation.
func (d *disruptionOptions) settings(spot bool) disrupt.Settings {
	set := disrupt.Settings{
		MinSaving: d.minShare, MinSavingPerPod: d.minSavingPerPod, EvictionsPerHour: d.evictionsPerHour,
		BalancedK:  d.balancedK,
		SpotToSpot: spot, SpotTypes: d.spotMinTypes, ReplacementTimeout: d.replacementTimeout, DriftWatch: d.driftWatch,
		InterruptionDrain: d.interruptionDrain,
	}
	if d.spotToSpot == spotByRisk {
		set.SpotRisk = d.riskShare
	}
	return set
}
