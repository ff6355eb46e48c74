package aws_test

import (
	"math/rand/v2"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	simec2 "github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// busyEC2 has launches take as long as EC2 takes for them: a second or more, longer for many, and never the same.
func busyEC2(seed uint64) wire.Gate {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, seed))
	return wire.GateFunc(func(c *wire.Call) *wire.Error {
		if c.Action != "CreateFleet" {
			return nil
		}
		form, err := url.ParseQuery(string(c.Body))
		if err != nil {
			return wire.Errorf("MalformedQueryString", "%v", err)
		}
		count, err := strconv.Atoi(form.Get("TargetCapacitySpecification.TotalTargetCapacity"))
		if err != nil {
			return wire.Errorf("MissingParameter", "%v", err)
		}
		mu.Lock()
		takes := time.Second + time.Duration(count)*15*time.Millisecond +
			time.Duration(rnd.Int64N(int64(1500*time.Millisecond)))
		mu.Unlock()
		time.Sleep(takes)
		return nil
	})
}

// packed are claims as packing makes them: of a few kinds, filled with whatever pods there were, so that no two ask for
// the same.
func packed(n int, rnd *rand.Rand) []*v1.NodeClaim {
	list := claims(n, in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand))
	kinds := []struct{ milli, mebi int64 }{{7600, 13000}, {15600, 28000}, {15600, 58000}, {31000, 58000}, {7600, 28000}}
	for _, c := range list {
		k := kinds[rnd.IntN(len(kinds))]
		shaped(c, k.milli-rnd.Int64N(k.milli/10), k.mebi-rnd.Int64N(k.mebi/10))
	}
	return list
}

// sellOut takes away two of three offerings.
func (w *world) sellOut() {
	n := 0
	for _, info := range w.sim.World.InstanceTypes() {
		for _, zone := range w.sim.World.Zones() {
			for _, market := range []cloud.Market{cloud.OnDemand, cloud.Spot} {
				if n++; n%3 != 0 {
					w.sim.World.SetCapacity(cloud.CapacityRule{Type: string(info.InstanceType), Zone: zone.Name,
						Market: market})
				}
			}
		}
	}
}

// TestAThousandNodesAtOnce holds the promise of at most 40 CreateFleet calls for a thousand nodes, none of which EC2
// finds too many, under the limits that AWS documents and with as many launches at a time as the loop makes. Every
// claim gets a node in the round in which it is first asked for, even if two thirds of what EC2 sells are not to be
// had.
func TestAThousandNodesAtOnce(t *testing.T) {
	for _, tc := range []struct {
		name          string
		mixed, scarce bool
	}{{"equal", false, false}, {"equal, two thirds sold out", false, true}, {"mixed", true, false},
		{"mixed, two thirds sold out", true, true}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := setup{limits: simec2.AWSLimits(), families: manyFamilies(), gates: []wire.Gate{busyEC2(1)}}
			inBubble(t, s, func(t *testing.T, w *world, p *aws.Provider) {
				if tc.scarce {
					w.sellOut()
				}
				list := claims(1000, in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand))
				if tc.mixed {
					list = packed(1000, rand.New(rand.NewPCG(7, 7)))
				}
				began := time.Now()
				got, errs := launchAll(t, p, list, coreHands)
				distinct(t, list, got, errs)
				calls := w.sim.Calls()["ec2:CreateFleet"]
				t.Logf("%d nodes, %s: %d CreateFleet calls, %d throttled, %s", len(list), tc.name, calls, throttled(w),
					time.Since(began).Round(100*time.Millisecond))
				if calls > 40 {
					t.Errorf("%d CreateFleet calls, want at most 40", calls)
				}
				if n := throttled(w); n > 0 || len(w.alive()) != len(list) {
					t.Errorf("%d calls were throttled, EC2 runs %d instances", n, len(w.alive()))
				}
			})
		})
	}
}
