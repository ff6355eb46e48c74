package ingest

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/cloud"
	"github.com/tenon-sh/tenon/internal/ingest/daemons"
	"github.com/tenon-sh/tenon/internal/ingest/defaultspread"
	"github.com/tenon-sh/tenon/internal/ingest/drift"
	"github.com/tenon-sh/tenon/internal/ingest/evictions"
	"github.com/tenon-sh/tenon/internal/ingest/inflight"
	"github.com/tenon-sh/tenon/internal/ingest/machines"
	"github.com/tenon-sh/tenon/internal/ingest/offerings"
	"github.com/tenon-sh/tenon/internal/ingest/ordered"
	"github.com/tenon-sh/tenon/internal/ingest/pods"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
	"github.com/tenon-sh/tenon/internal/ingest/pools"
	"github.com/tenon-sh/tenon/internal/ingest/quarantine"
	"github.com/tenon-sh/tenon/internal/ingest/tries"
	"github.com/tenon-sh/tenon/internal/ingest/volumes"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/validate"
)

// Book is what is known of the world. It is safe for concurrent use: each of its exported methods holds the lock, and
// hands what it takes in to the owners that it is made of, which know neither the lock nor each other.
type Book struct {
	mu sync.Mutex
	revisions
	wakes
	now    func() time.Time
	labels validate.Labels
	notes  notes

	specs     podspec.Specs
	collectAt collectThreshold      // how much may be remembered before what is unused is dropped
	spreads   *defaultspread.Spread // nil without default constraints
	daemons   daemons.Daemons
	podState
	volumeState
	references

	machineState
	poolState
	market   offerings.Market
	launches offerings.Launches

	commands    inflight.Commands
	evictions   evictions.Count
	quarantined quarantine.List
	tryState
	drift drift.States
	cloudState
	activity
	observers
}

// wakes wake those who ask the cloud.
type wakes struct{ catalogWake, inventoryWake, driftWake chan struct{} }

// podState is what is known of pods.
type podState struct {
	pods        *ordered.Map[*cluster.Pod] // by UID
	protections pods.Protections
	nominees    pods.Nominees
	podEvents   map[string]time.Time // by node
	lastBound   time.Time            // when a pod that we knew was bound last
}

// volumeState is what is known of volumes.
type volumeState struct {
	storage      volumes.Storage
	mounts       volumes.Mounts
	attachments  volumes.Attachments
	attachLimits volumes.AttachLimits
}

// references are objects that pods are told apart by.
type references struct {
	pdbs       map[string]*cluster.PDB // by namespace/name
	pdbList    []*cluster.PDB
	owners     *ordered.Shared[cluster.Owner]
	namespaces *ordered.Shared[cluster.Labels]
}

// machineState is what is known of nodes and claims.
type machineState struct {
	nodes            map[string]*machines.NodeEntry
	claims           map[string]*machines.ClaimEntry
	nodeBy, claimBy  map[string]string // nodes and claims by provider id
	healthConditions map[string]bool   // the conditions of nodes that matter
	// when a claim vanished that was not being deleted, or when we began to look
	claimLost time.Time
}

// poolState is what is known of pools and their NodeClasses.
type poolState struct {
	pools          map[string]*pools.Entry
	nodeClasses    map[cluster.ClassRef]cluster.NodeClassState
	nodeClassKinds map[cluster.ClassRef]bool // kinds of NodeClass that the provider knows, without a name
}

// cloudState is what the cloud runs, and what people say about the cluster.
type cloudState struct {
	inventory     cloud.Inventory
	others        cloud.Others
	orphanEnds    cloud.OrphanEnds
	orphanMemory  cloud.OrphanMemory // whether the pools can be relied on to remember held orphans
	instancesGone cloud.Gone
	identity      string    // the UID of kube-system
	endOrphans    time.Time // what it says about orphans
}

// tryState is which nodes were made in vain.
type tryState struct {
	tries tries.Tracker
	slots tries.Slots
}

// activity is what kube-scheduler and the planner did last.
type activity struct {
	lastPlanned       time.Time
	schedulerActivity cluster.SchedulerActivity
}

// observers are told what happens while the world is taken in.
type observers struct {
	tellBreakdown func(plan.PlannerFailure) // nil if nobody is to be told
	onRead        func(*corev1.Pod)         // told of each pod before it is read; nil but in tests
	podsLoaded    signal                    // the pods that were there at the start are known
}

// New returns an empty book. now is the clock; labels and kinds are what the provider adds to the contract.
func New(now func() time.Time, labels validate.Labels, kinds []cluster.ClassRef) *Book {
	b := &Book{
		now: now, labels: labels, notes: make(notes), specs: podspec.New(), daemons: daemons.New(),
		launches: offerings.NewLaunches(), commands: inflight.New(), evictions: evictions.New(now()),
		quarantined: quarantine.New(), tryState: tryState{tries: tries.New(now()), slots: tries.NewSlots()},
		drift:     drift.New(),
		revisions: revisions{changed: make(chan struct{}, 1)},
		wakes: wakes{catalogWake: make(chan struct{}, 1), inventoryWake: make(chan struct{}, 1),
			driftWake: make(chan struct{}, 1)},
		podState: podState{pods: ordered.NewMap[*cluster.Pod](), nominees: make(pods.Nominees),
			podEvents: make(map[string]time.Time)},
		volumeState: volumeState{storage: volumes.NewStorage(), mounts: volumes.NewMounts(),
			attachments: volumes.NewAttachments(), attachLimits: volumes.NewAttachLimits()},
		references: references{pdbs: make(map[string]*cluster.PDB), owners: ordered.NewShared[cluster.Owner](),
			namespaces: ordered.NewShared[cluster.Labels]()},
		machineState: machineState{nodes: make(map[string]*machines.NodeEntry),
			claims: make(map[string]*machines.ClaimEntry),
			nodeBy: make(map[string]string), claimBy: make(map[string]string),
			healthConditions: make(map[string]bool), claimLost: now()},
		poolState: poolState{pools: make(map[string]*pools.Entry),
			nodeClasses:    make(map[cluster.ClassRef]cluster.NodeClassState),
			nodeClassKinds: make(map[cluster.ClassRef]bool)},
		cloudState: cloudState{others: cloud.NewOthers(), orphanEnds: make(cloud.OrphanEnds),
			instancesGone: make(cloud.Gone)},
		observers: observers{podsLoaded: signal{done: make(chan struct{})}},
	}
	b.market = offerings.NewMarket(b.measureType)
	for _, kind := range kinds {
		b.nodeClassKinds[cluster.ClassRef{Group: kind.Group, Kind: kind.Kind}] = true
	}
	return b
}

// Rev is the number of the latest change.
func (b *Book) Rev() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rev
}

// Planned notes that pods were planned for, from a snapshot taken at the given time.
func (b *Book) Planned(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lastPlanned = at
}

// Snapshot is the world as it is known now.
func (b *Book) Snapshot() *cluster.Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.expireOld(now)
	b.refreshStaleVolumes()
	b.remakeForOffered()
	b.reclaimDimensions(now)
	b.remeasure()
	b.collectGarbage()
	left, ended := b.quarantined.Now(now)
	if ended {
		b.noteChange(change.Demand | change.Room | change.Disruption)
	}
	s := &cluster.Snapshot{
		Rev: b.rev, Now: now, DemandRev: b.revs.demand, SupplyRev: b.revs.supply, RoomRev: b.revs.room,
		DisruptionRev: b.revs.disruption, Names: b.specs.Dims.Names.Clone(), PlannedAt: b.lastPlanned,
		LastBound:         b.lastBound,
		SchedulerActivity: b.schedulerActivity,
		Pods:              b.podsNow(), Daemons: b.daemonsNow(), Owners: b.owners.Share(),
		Namespaces: b.namespaces.Share(), PDBs: b.pdbsNow(), Attached: b.attachedNow(),
		Inventory:  b.others.Without(b.inventory.Now()),
		OtherPools: b.others.Pools(), Notes: valuesByKey(b.notes),
		InFlight: b.commands.Keys(), Retry: b.commands.Retries(),
		InstancesGone: b.instancesGone.Keys(), Quarantine: left,
		Cluster: b.identity, EndOrphans: b.endOrphans, ClaimLostAt: b.claimLost,
		OrphansUnknown: b.orphanMemory.IsUnknown(now), OrphansEnded: map[string]time.Time(maps.Clone(b.orphanEnds)),
	}
	s.EvictedToSave, s.EvictionsDropAt = b.evictions.Now()
	for _, e := range valuesByKey(b.nodes) {
		s.Nodes = append(s.Nodes, e.Node)
	}
	for _, e := range valuesByKey(b.pools) {
		s.Pools = append(s.Pools, b.poolNow(e, now))
	}
	s.Claims = b.claimsNow(s.Pools)
	s.Seal()
	s.WorkloadTries = b.tries.Review(s, tries.Known{Pod: b.pods.Get, Class: b.specs.KnownClass,
		AddAuthor: b.addCauseAuthor})
	s.RemovedEarly = b.tries.RemovedEarly(now)
	return s
}

// valuesByKey lists the values of a map by rising key.
func valuesByKey[V any](m map[string]V) []V {
	out := make([]V, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[key])
	}
	return out
}

// claimsNow lists the claims with what only the book knows about them, and those that are expected to appear.
func (b *Book) claimsNow(pools []*cluster.Pool) []*cluster.Claim {
	byName := make(map[string]*cluster.Pool, len(pools))
	for _, p := range pools {
		byName[p.Name] = p
	}
	out := make([]*cluster.Claim, 0, len(b.claims))
	for _, e := range b.claims {
		out = append(out, b.claimNow(e, byName[e.Claim.Pool]))
	}
	for create := range b.asked {
		out = append(out, expectedClaim(create, b.now()))
	}
	slices.SortFunc(out, func(x, y *cluster.Claim) int { return cmp.Compare(x.Name, y.Name) })
	return out
}

// claimNow is the claim with what only the book knows about it. Snapshots share it until that changes. The lock is
// held.
func (b *Book) claimNow(e *machines.ClaimEntry, pool *cluster.Pool) *cluster.Claim {
	c, event, price, estimated := e.Claim, e.Claim.LastPodEvent, e.Claim.Price, e.Claim.Estimated
	if at := b.podEvents[c.NodeName]; c.NodeName != "" && at.After(event) {
		event = at
	}
	if pool != nil && pool.Catalog != nil {
		kind, _ := c.Labels.Get(cluster.InstanceTypeLabel)
		zone, _ := c.Labels.Get(cluster.ZoneLabel)
		terms, _ := c.Labels.Get(cluster.CapacityTypeLabel)
		if o := pool.Catalog.Offering(kind, zone, terms); o != nil {
			price, estimated = o.Price, o.Estimated
		}
	}
	gone, drifted := b.instancesGone.Has(c.UID), b.drift.Of(c)
	refused, isRefused := b.launches.RefusalCondition(c)
	if last := e.InSnapshot; last != nil && e.MadeFrom == c && !isRefused && last.LastPodEvent == event &&
		last.Price == price && last.Estimated == estimated && last.InstanceGone == gone && last.DriftedFrom == drifted {
		return last
	}
	now := *c
	now.LastPodEvent, now.Price, now.Estimated, now.InstanceGone, now.DriftedFrom = event, price, estimated,
		gone, drifted
	if isRefused {
		now.Conditions = append(slices.DeleteFunc(slices.Clone(c.Conditions), func(have cluster.Condition) bool {
			return have.Type == refused.Type
		}), refused)
		return &now
	}
	e.InSnapshot, e.MadeFrom = &now, c
	return &now
}

// expectedClaim is a claim that we have asked for and the watch has not shown.
func expectedClaim(c command.CreateClaim, now time.Time) *cluster.Claim {
	return &cluster.Claim{
		Name: c.Name, Pool: c.Pool, Created: now, Finalized: true, Expected: true, Labels: c.Labels,
		Requirements: c.Requirements, Taints: c.Template.Taints, StartupTaints: c.Template.StartupTaints,
		Requests: c.Requests, Seats: c.Seats, MadeFor: c.MadeFor, Slot: c.Slot, DriftReplacement: c.DriftReplacement,
		Price: c.Price, Estimated: c.Estimated,
		Hash: c.Template.Hash.Hash, HashVersion: c.Template.Hash.Version, Replaces: c.Replaces,
	}
}

// remeasure converts resource lists anew after a resource has been named that nobody had asked for before. The lock
// is held.
func (b *Book) remeasure() {
	if !b.specs.Dims.TakeMeasureDue() {
		return
	}
	b.noteChange(change.Supply)
	for _, e := range b.nodes {
		n := *e.Node
		n.Capacity, n.Allocatable = b.specs.Dims.Measure(e.Capacity), b.allocatableOf(&n, e.Allocatable)
		e.Node = &n
	}
	for _, e := range b.claims {
		c := *e.Claim
		c.Capacity, c.Allocatable = b.specs.Dims.Measure(e.Capacity), b.claimAllocatable(&c, e.Allocatable)
		e.Claim = &c
	}
	b.market.Remeasure()
}

// Names numbers the resources that are known now.
func (b *Book) Names() *resource.Names {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.specs.Dims.Names.Clone()
}
