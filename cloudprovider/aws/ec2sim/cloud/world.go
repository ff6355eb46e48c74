// Package cloud is the state of the simulated EC2: networks, images, launch templates, reservations, prices, and the
// machines with their lives. It knows no protocol: package ec2 puts the wire format around it, and tests, the lab and
// the control endpoint use it directly to make things happen (take capacity away, warn a spot instance, publish an
// image).
//
// Time is what the clock says. What is due happens on the next call, or on Tick.
package cloud

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Config is what a world is made of.
type Config struct {
	Clock   wire.Clock // nil: the machine's
	Region  string     // us-west-2 if empty
	Account string     // 12 digits; 123456789012 if empty
	Zones   []Zone     // three of the region if empty

	// Types is what can be bought. TypeZones says in which zones (by name); a type that it does not name is sold in
	// all.
	Types     []ec2types.InstanceTypeInfo
	TypeZones map[string][]string
	// Prices gives dollars per hour; a nil one derives them from the type's size.
	Prices Prices

	Timing Timing
	Quotas Quotas
	// Profiles says whether IAM has an instance profile (by name or ARN). Nil: every profile exists.
	Profiles func(nameOrARN string) bool
	// Seed makes the ids of two worlds differ, or be the same.
	Seed uint64
}

// Zone is an availability zone.
type Zone struct {
	Name string // us-west-2a
	ID   string // usw2-az1
}

// Timing says how long things take. Zero durations are instant, except where a default is given.
type Timing struct {
	Boot     time.Duration // from pending to running
	Shutdown time.Duration // from shutting-down to terminated
	Forget   time.Duration // how long a terminated instance is still described; an hour if zero
	// Visibility is how long a new instance is unknown to every call but the one that made it, at the longest. Those of
	// one launch come to be seen one after the other, from half of that time on.
	Visibility time.Duration
	// StateLag is how long describing calls go on to tell an instance's old state after it changed.
	StateLag time.Duration
	// TemplateVisibility is Visibility for launch templates.
	TemplateVisibility time.Duration
	// AddressLag is how old the count of a subnet's free addresses may be.
	AddressLag time.Duration
	// Warning is the time between a spot interruption's warning and the interruption; two minutes if zero.
	Warning time.Duration
}

// shows is how long the instance is unknown.
func (t Timing) shows(id string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return t.Visibility/2 + time.Duration(float64(t.Visibility-t.Visibility/2)*float64(h.Sum32())/math.MaxUint32)
}

// Lagging is the timing with the delays, of some hundred milliseconds, after which EC2 shows what it has done.
func (t Timing) Lagging() Timing {
	t.Visibility, t.StateLag, t.TemplateVisibility, t.AddressLag = 400*time.Millisecond, 200*time.Millisecond,
		150*time.Millisecond, time.Second
	return t
}

// Quotas are the account's limits; zero means none.
type Quotas struct {
	SpotInstances int // MaxSpotInstanceCountExceeded beyond
	OnDemandVCPUs int // VcpuLimitExceeded beyond
}

// World is one account in one region.
type World struct {
	cfg   Config
	clock wire.Clock

	mu        sync.Mutex
	ids       *rand.Rand
	tags      map[string]map[string]string // by resource id; a resource that exists has an entry
	vpcs      map[string]*ec2types.Vpc
	subnets   map[string]*subnet
	removed   map[string]removedSubnet
	snapshots map[string]int32 // GiB
	groups    map[string]*ec2types.SecurityGroup
	images    map[string]*ec2types.Image
	types     map[string]*ec2types.InstanceTypeInfo
	templates map[string]*Template
	reserves  map[string]*ec2types.CapacityReservation
	placings  map[string]*ec2types.PlacementGroup
	instances map[string]*Instance
	capacity  []CapacityRule
	spot      map[poolID][]SpotPrice
	tokens    map[string]token
	due       dueHeap

	hooks   []func(Change)
	pending []Change   // what the hooks have not heard of yet
	telling sync.Mutex // keeps changes in order while hooks run without mu
}

// New makes an empty world: zones and instance types, but no network and no image.
func New(cfg Config) *World {
	cfg = withDefaults(cfg)
	w := &World{
		cfg: cfg, clock: cfg.Clock, ids: rand.New(rand.NewPCG(cfg.Seed, 0x7e6e)),
		tags: map[string]map[string]string{}, vpcs: map[string]*ec2types.Vpc{}, subnets: map[string]*subnet{},
		removed: map[string]removedSubnet{}, snapshots: map[string]int32{},
		groups: map[string]*ec2types.SecurityGroup{}, images: map[string]*ec2types.Image{},
		types: map[string]*ec2types.InstanceTypeInfo{}, templates: map[string]*Template{},
		reserves: map[string]*ec2types.CapacityReservation{}, placings: map[string]*ec2types.PlacementGroup{},
		instances: map[string]*Instance{}, spot: map[poolID][]SpotPrice{}, tokens: map[string]token{},
	}
	for i := range cfg.Types {
		w.types[string(cfg.Types[i].InstanceType)] = &cfg.Types[i]
	}
	return w
}

func withDefaults(cfg Config) Config {
	if cfg.Clock == nil {
		cfg.Clock = wire.RealClock{}
	}
	if cfg.Region == "" {
		cfg.Region = "us-west-2"
	}
	if cfg.Account == "" {
		cfg.Account = "123456789012"
	}
	if len(cfg.Zones) == 0 {
		cfg.Zones = ZonesOf(cfg.Region, 3)
	}
	if cfg.Timing.Forget == 0 {
		cfg.Timing.Forget = time.Hour
	}
	if cfg.Timing.Warning == 0 {
		cfg.Timing.Warning = 2 * time.Minute
	}
	return cfg
}

// Region is where the world is.
func (w *World) Region() string { return w.cfg.Region }

// Account is whose the world is.
func (w *World) Account() string { return w.cfg.Account }

// Zones lists the availability zones.
func (w *World) Zones() []Zone { return append([]Zone(nil), w.cfg.Zones...) }

// Now is the world's time.
func (w *World) Now() time.Time { return w.clock.Now() }

// enter takes the lock and lets happen what is due. The returned function releases the lock and tells the hooks.
func (w *World) enter() func() {
	w.mu.Lock()
	w.advance(w.clock.Now())
	return func() {
		w.mu.Unlock()
		w.tell()
	}
}

// Tick lets happen what is due.
func (w *World) Tick() { w.enter()() }

// Run ticks until the context ends, so that machines boot and die in real time with nobody asking.
func (w *World) Run(ctx context.Context, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			w.Tick()
		}
	}
}

// newID makes an id as EC2 does: a prefix and 17 hexadecimal digits.
func (w *World) newID(prefix string) string {
	id := fmt.Sprintf("%s-0%016x", prefix, w.ids.Uint64())
	w.tags[id] = map[string]string{}
	return id
}
