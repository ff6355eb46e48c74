package catalog

import (
	"hash/fnv"
	"math"
	"strings"

	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
)

// PriceList is what a region asks for its types, in dollars per hour for Linux. It never changes.
type PriceList struct {
	table *price.Table
	// of a region that asks the same, for types that the table is too old to know; nil if there is none
	newer  *price.Table
	prefix string // of the region's zone ids
	recent map[string]bool
	listed bool // whether the source lists zones, and so spot prices, for the region
}

// Prices opens the price list of a region.
func Prices(region string) (*PriceList, error) {
	prefix, err := known(region)
	if err != nil {
		return nil, err
	}
	table, err := price.Embedded(region)
	if err != nil {
		return nil, err
	}
	var newer *price.Table
	if region == "us-east-2" || region == "us-west-2" {
		// all 900 types that they share with us-east-1 cost the same there
		if newer, err = price.Embedded("us-east-1"); err != nil {
			return nil, err
		}
	}
	listed := strings.Contains(typesCSV, " "+prefix+"=") || strings.Contains(typesCSV, ","+prefix+"=")
	return &PriceList{table: table, newer: newer, recent: recentTypes(), prefix: prefix, listed: listed}, nil
}

// OnDemand is the on-demand price; false if the region doesn't sell the type for Linux.
func (l *PriceList) OnDemand(instanceType string) (float64, bool) {
	if p, ok := l.table.OnDemand(instanceType); ok || l.newer == nil || !l.recent[instanceType] {
		return p, ok
	}
	return l.newer.OnDemand(instanceType)
}

// spotShare is what a spot price is of the on-demand price in regions for which the source has no spot prices at all,
// and of types that are newer than it.
const spotShare = 0.4

// Spot is the spot price of a type in one zone; false if it isn't sold as spot. The prices are real where the source
// has them; it does not say which zone has which, so they are dealt out in an order that depends on the type's name
// only.
func (l *PriceList) Spot(instanceType, zone string) (float64, bool) {
	if zone == "" {
		return 0, false
	}
	if zones := l.table.SpotZones(instanceType); len(zones) > 0 {
		hash := fnv.New32a()
		hash.Write([]byte(instanceType))
		return zones[(int(hash.Sum32()%64)+int(zone[len(zone)-1]))%len(zones)], true
	}
	onDemand, ok := l.OnDemand(instanceType)
	if !ok || l.listed && !l.recent[instanceType] {
		return 0, false
	}
	return math.Round(onDemand*spotShare*1e6) / 1e6, true
}

// recentTypes are those that the source of zones and spot prices is too old to know: their list of zones is empty.
func recentTypes() map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(typesCSV) {
		if line = strings.TrimRight(line, "\n"); strings.HasSuffix(line, ",") {
			name, _, _ := strings.Cut(line, ",")
			out[name] = true
		}
	}
	return out
}
