package refresh_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/catalog"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
	"github.com/tenon-sh/tenon/cloudprovider/aws/refresh"
)

// few is an account that sells few types, so that its price lists are short.
func few(t *testing.T) account.Options {
	t.Helper()
	all, _, err := catalog.Region("us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	return account.Options{Types: slices.DeleteFunc(all, func(i ec2types.InstanceTypeInfo) bool {
		return !strings.HasPrefix(string(i.InstanceType), "m5.")
	})}
}

// run starts something that a manager would run, and ends it with the test.
func run(t *testing.T, start func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestPricesAreReadAgain(t *testing.T) {
	a, config := simtest.Start(t, few(t))
	book, err := price.NewBook("us-west-2", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	clock := simtest.NewClock()
	var changes atomic.Int32
	a.World.SetSpotPrice("m5.large", "us-west-2a", 0.0123)
	a.Prices.Set("m5.large", 0.321)
	list := pricing.NewFromConfig(config, func(o *pricing.Options) { o.Region = price.EndpointRegion("us-west-2") })
	p := &refresh.Prices{Book: book, Spot: ec2.NewFromConfig(config), OnDemand: list, After: clock.After,
		Changed: func() {
			changes.Add(1)
		}}
	run(t, p.Start)
	clock.AwaitWaiters(2)
	if got, _ := book.Spot("m5.large", "us-west-2a"); got != 0.0123 {
		t.Errorf("spot costs %v", got)
	}
	if got, _ := book.OnDemand("m5.large", "us-west-2a"); got != 0.321 {
		t.Errorf("on demand it costs %v", got)
	}
	if changes.Load() < 2 {
		t.Errorf("changes were told %d times, want both", changes.Load())
	}
	a.World.SetSpotPrice("m5.large", "us-west-2a", 0.0456)
	clock.Advance(price.RefreshEvery(price.Spot))
	clock.AwaitWaiters(2)
	if got, _ := book.Spot("m5.large", "us-west-2a"); got != 0.0456 {
		t.Errorf("after a while spot costs %v", got)
	}
}

func TestPricesAreTriedAgainSoonAfterTrouble(t *testing.T) {
	a, config := simtest.Start(t, few(t))
	book, err := price.NewBook("us-west-2", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	config.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	a.Faults.Add(faults.Fault{Service: "ec2", Action: "DescribeSpotPriceHistory", Code: "InternalError",
		Status: 500, Times: 1})
	a.World.SetSpotPrice("m5.large", "us-west-2a", 0.0123)
	clock := simtest.NewClock()
	run(t, (&refresh.Prices{Book: book, Spot: ec2.NewFromConfig(config), After: clock.After}).Start)
	clock.AwaitWaiters(1)
	if book.Live(price.Spot) {
		t.Fatal("prices were read although the call failed")
	}
	clock.Advance(15 * time.Second)
	clock.AwaitWaiters(1)
	if got, _ := book.Spot("m5.large", "us-west-2a"); got != 0.0123 {
		t.Errorf("after the second try spot costs %v", got)
	}
}

func TestZonesThatAreLeft(t *testing.T) {
	a, config := simtest.Start(t, account.Options{ZonalShift: true})
	clock := simtest.NewClock()
	var changes atomic.Int32
	s := &refresh.Shifts{
		API: arczonalshift.NewFromConfig(config), After: clock.After, Changed: func() { changes.Add(1) },
		Cluster: func(context.Context) (string, error) { return a.EKS.ARN("lab"), nil },
	}
	run(t, s.Start)
	clock.AwaitWaiters(1)
	zone := a.World.Zones()[0].ID
	if s.Away(zone) || changes.Load() != 0 {
		t.Errorf("%s is left: %v, %d changes", zone, s.Away(zone), changes.Load())
	}
	if err := a.Shifts.Shift(zone, time.Hour, false); err != nil {
		t.Fatal(err)
	}
	clock.Advance(30 * time.Second)
	clock.AwaitWaiters(1)
	if !s.Away(zone) || s.Away(a.World.Zones()[1].ID) || changes.Load() != 1 {
		t.Errorf("%s is left: %v, %d changes", zone, s.Away(zone), changes.Load())
	}
	// While nobody answers the last answer holds.
	a.Faults.Deny("arc-zonal-shift:GetManagedResource")
	a.Shifts.Cancel(zone)
	clock.Advance(30 * time.Second)
	clock.AwaitWaiters(1)
	if !s.Away(zone) {
		t.Error("without an answer the zone counts as well")
	}
	a.Faults.Clear()
	a.Faults.Allow("arc-zonal-shift:GetManagedResource")
	clock.Advance(30 * time.Second)
	clock.AwaitWaiters(1)
	if s.Away(zone) || changes.Load() != 2 {
		t.Errorf("%s is left: %v, %d changes", zone, s.Away(zone), changes.Load())
	}
}

func TestTheAgeOfPricesIsTold(t *testing.T) {
	_, config := simtest.Start(t, few(t))
	now := time.Now()
	book, err := price.NewBook("us-west-2", func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	if err := refresh.TellAges(registry, book); err != nil {
		t.Fatal(err)
	}
	if err := book.RefreshSpot(t.Context(), ec2.NewFromConfig(config)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(90 * time.Second)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "tenon_aws_price_age_seconds" {
		t.Fatalf("metrics %v, %v", families, err)
	}
	age := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		age[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
	}
	if age["spot"] != 90 || age["on-demand"] < 86400 {
		t.Errorf("ages %v, want 90 s of spot and that of the built-in table on demand", age)
	}
}

// What panics begins again: here it is whoever is told of the first change.
func TestUpkeepBeginsAgainAfterAPanic(t *testing.T) {
	a, config := simtest.Start(t, account.Options{ZonalShift: true})
	clock := simtest.NewClock()
	var calls, told atomic.Int32
	s := &refresh.Shifts{
		API: arczonalshift.NewFromConfig(config), After: clock.After, Cluster: func(context.Context) (string, error) {
			return a.EKS.ARN("lab"), nil
		},
		Guard: &recovery.Guard{Tell: func(recovery.Failure) { told.Add(1) }},
		Changed: func() {
			if calls.Add(1) == 1 {
				panic("boom")
			}
		},
	}
	zones := a.World.Zones()
	if err := a.Shifts.Shift(zones[0].ID, time.Hour, false); err != nil {
		t.Fatal(err)
	}
	run(t, s.Start)
	clock.AwaitWaiters(1)
	if told.Load() != 1 {
		t.Fatalf("told %d times", told.Load())
	}
	a.Shifts.Cancel(zones[0].ID)
	clock.Advance(time.Second)
	clock.AwaitWaiters(1)
	if calls.Load() != 2 || told.Load() != 1 || s.Away(zones[0].ID) {
		t.Errorf("%d changes, told %d times, %s is left: %v", calls.Load(), told.Load(), zones[0].ID,
			s.Away(zones[0].ID))
	}
}
