package cloud

import (
	"hash/fnv"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Prices gives what an instance costs in an hour; false if it isn't sold.
type Prices interface {
	OnDemand(kind string) (float64, bool)
	Spot(kind, zone string) (float64, bool)
}

// SpotPrice is a price from a time on.
type SpotPrice struct {
	Type, Zone string
	Dollars    float64
	From       time.Time
}

// OnDemandPrice is the hourly price of a type.
func (w *World) OnDemandPrice(kind string) (float64, bool) {
	if w.cfg.Prices != nil {
		return w.cfg.Prices.OnDemand(kind)
	}
	info := w.types[kind]
	if info == nil {
		return 0, false
	}
	return sizePrice(info), true
}

// sizePrice is a price for a type that nobody gave one: so much for a virtual CPU, so much for a GiB, as it is about
// for general purpose machines in us-west-2.
func sizePrice(info *ec2types.InstanceTypeInfo) float64 {
	gib := 0.0
	if info.MemoryInfo != nil {
		gib = float64(aws.ToInt64(info.MemoryInfo.SizeInMiB)) / 1024
	}
	return math.Round(1e4*(0.03*float64(vcpusOf(info))+0.0045*gib)) / 1e4
}

// spotNow is the price of a pool now. The lock is held.
func (w *World) spotNow(kind, zone string) (float64, bool) {
	if changes := w.spot[poolID{kind, zone, Spot}]; len(changes) > 0 {
		return changes[len(changes)-1].Dollars, true
	}
	return w.spotAtFirst(kind, zone)
}

// spotAtFirst is the price of a pool before anybody changed it: what the table says, or between 25 and 45 percent of
// the on-demand price, another part for each pool but always the same for one.
func (w *World) spotAtFirst(kind, zone string) (float64, bool) {
	if w.cfg.Prices != nil {
		return w.cfg.Prices.Spot(kind, zone)
	}
	full, ok := w.OnDemandPrice(kind)
	if !ok || !sells(w.types[kind], ec2types.UsageClassTypeSpot) {
		return 0, false
	}
	h := fnv.New32a()
	h.Write([]byte(kind + "/" + zone))
	return math.Round(1e6*full*(0.25+0.2*float64(h.Sum32()%1000)/1000)) / 1e6, true
}

// SpotPriceNow is the price of a pool.
func (w *World) SpotPriceNow(kind, zone string) (float64, bool) {
	defer w.enter()()
	return w.spotNow(kind, zone)
}

// SetSpotPrice changes the price of a pool from now on. The old price stays in the history.
func (w *World) SetSpotPrice(kind, zone string, dollars float64) {
	defer w.enter()()
	p := poolID{kind, zone, Spot}
	w.spot[p] = append(w.spot[p], SpotPrice{Type: kind, Zone: zone, Dollars: dollars, From: w.clock.Now()})
}

// SpotHistory lists the prices that held at some time from start to end, newest first in each pool: the changes in
// between, and before them the price that held at the start. No kinds means all.
func (w *World) SpotHistory(kinds []string, start, end time.Time) []SpotPrice {
	defer w.enter()()
	if len(kinds) == 0 {
		for kind := range w.types {
			kinds = append(kinds, kind)
		}
	}
	sort.Strings(kinds)
	var all []SpotPrice
	for _, kind := range kinds {
		for _, z := range w.cfg.Zones {
			if w.types[kind] != nil && w.sold(kind, z.Name) {
				all = append(all, w.poolHistory(poolID{kind, z.Name, Spot}, start, end)...)
			}
		}
	}
	return all
}

func (w *World) poolHistory(p poolID, start, end time.Time) []SpotPrice {
	dollars, ok := w.spotAtFirst(p.kind, p.zone)
	if !ok {
		return nil
	}
	// A price that nobody changed was published at midnight, like most prices of real pools are some hours old.
	all := []SpotPrice{{Type: p.kind, Zone: p.zone, Dollars: dollars, From: start.UTC().Truncate(24 * time.Hour)}}
	for _, c := range w.spot[p] {
		switch {
		case c.From.After(end):
		case !c.From.After(start):
			all[0] = c
		default:
			all = append([]SpotPrice{c}, all...)
		}
	}
	return all
}

// Text is the price as EC2 writes it.
func (p SpotPrice) Text() string {
	return strings.TrimSpace(strconv.FormatFloat(p.Dollars, 'f', 6, 64))
}
