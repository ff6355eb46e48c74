// Package ingest is the door: it watches Kubernetes and the cloud, turns what it sees into the values of package
// cluster, and hands out snapshots. Nothing below it knows a Kubernetes object.
//
// It is also the only memory of the program. What commands have done comes back here (Begin, Record) and is part of the
// next snapshot before the watch has shown it. All of it is rebuilt from the API server after a restart.
//
// Floor 3: it reads through informers and asks the cloud what may be bought; it never writes.
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
	"github.com/tenon-sh/tenon/internal/ingest/cloud"
	"github.com/tenon-sh/tenon/internal/ingest/daemons"
	"github.com/tenon-sh/tenon/internal/ingest/defaultspread"
	"github.com/tenon-sh/tenon/internal/ingest/drift"
	"github.com/tenon-sh/tenon/internal/ingest/evictions"
	"github.com/tenon-sh/tenon/internal/ingest/inflight"
	"github.com/tenon-sh/tenon/internal/ingest/offerings"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
	"github.com/tenon-sh/tenon/internal/ingest/quarantine"
	"github.com/tenon-sh/tenon/internal/ingest/tries"
	"github.com/tenon-sh/tenon/internal/ingest/volumes"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/validate"
)

// Book is what is known of the world. It is safe for concurrent use.
type Book struct {
	mu             sync.Mutex
	rev            uint64
	revs           struct{ demand, supply, room, disruption uint64 } // the rev of the last change of each kind
	changed        chan struct{}
	now            func() time.Time
	labels         validate.Labels
	nodeClassKinds map[cluster.ClassRef]bool // kinds of NodeClass that the provider knows, without a name

	specs         podspec.Specs
	commands      inflight.Commands
	evictions     evictions.Count
	quarantined   quarantine.List
	inventory     cloud.Inventory
	others        cloud.Others
	orphanEnds    cloud.OrphanEnds
	orphanMemory  cloud.OrphanMemory // whether the pools can be relied on to remember held orphans
	instancesGone cloud.Gone
	drift         drift.States
	driftWake     chan struct{} // wakes KeepDrift
	daemons       daemons.Daemons
	spreads       *defaultspread.Spread // nil without default constraints
	market        offerings.Market
	launches      offerings.Launches
	storage       volumes.Storage
	mounts        volumes.Mounts
	attachments   volumes.Attachments
	attachLimits  volumes.AttachLimits

	collectAt collectThreshold // how much may be remembered before what is unused is dropped

	pods               *orderedMap[*cluster.Pod] // by UID
	protectionEnds     protectionEnds
	protectionEndsKept int                           // how many were left when they were last looked through
	nominees           map[string]map[string]nominee // by node and pod UID
	notes              map[string]cluster.Note       // by kind and UID
	healthConditions   map[string]bool               // the conditions of nodes that matter
	nodeBy             map[string]string             // nodes and claims by provider id
	claimBy            map[string]string
	pdbs               map[string]*cluster.PDB // by namespace/name
	pdbList            []*cluster.PDB
	nodes              map[string]*nodeEntry
	claims             map[string]*claimEntry
	pools              map[string]*poolEntry
	owners             *sharedMap[cluster.Owner]
	nodeClasses        map[cluster.ClassRef]cluster.NodeClassState

	namespaces *sharedMap[cluster.Labels]
	identity   string    // the UID of kube-system
	endOrphans time.Time // what it says about orphans

	catalogWake   chan struct{}        // wakes KeepCatalogs
	podEvents     map[string]time.Time // by node
	inventoryWake chan struct{}        // wakes KeepInventory
	// when a claim vanished that was not being deleted, or when we began to look
	claimLost         time.Time
	tries             tries.Tracker
	slots             tries.Slots
	lastPlanned       time.Time
	lastBound         time.Time // when a pod that we knew was bound last
	schedulerActivity cluster.SchedulerActivity
	tellBreakdown     func(plan.PlannerFailure) // nil if nobody is to be told
	onRead            func(*corev1.Pod)         // told of each pod before it is read; nil but in tests
	podsLoaded        signal                    // the pods that were there at the start are known
}

// New returns an empty book. now is the clock; labels and kinds are what the provider adds to the contract.
func New(now func() time.Time, labels validate.Labels, kinds []cluster.ClassRef) *Book {
	b := &Book{
		daemons:  daemons.New(),
		commands: inflight.New(), evictions: evictions.New(now()), quarantined: quarantine.New(),
		others:     cloud.NewOthers(),
		orphanEnds: make(cloud.OrphanEnds), instancesGone: make(cloud.Gone), drift: drift.New(),
		driftWake: make(chan struct{}, 1),
		launches:  offerings.NewLaunches(),
		storage:   volumes.NewStorage(), mounts: volumes.NewMounts(), attachments: volumes.NewAttachments(),
		attachLimits: volumes.NewAttachLimits(),
		specs:        podspec.New(),
		now:          now, labels: labels, nodeClassKinds: make(map[cluster.ClassRef]bool),
		changed: make(chan struct{}, 1), podsLoaded: signal{done: make(chan struct{})},
		catalogWake: make(chan struct{}, 1),
		pods:        newOrderedMap[*cluster.Pod](),
		namespaces:  newSharedMap[cluster.Labels](),
		nodes:       make(map[string]*nodeEntry), claims: make(map[string]*claimEntry),
		pools:       make(map[string]*poolEntry),
		owners:      newSharedMap[cluster.Owner](),
		nodeClasses: make(map[cluster.ClassRef]cluster.NodeClassState),
		nominees:    make(map[string]map[string]nominee), notes: make(map[string]cluster.Note),
		healthConditions: make(map[string]bool),
		nodeBy:           make(map[string]string), claimBy: make(map[string]string),
		pdbs:          make(map[string]*cluster.PDB),
		inventoryWake: make(chan struct{}, 1),
		podEvents:     make(map[string]time.Time),
		tries:         tries.New(now()), slots: tries.NewSlots(), claimLost: now(),
	}
	b.market = offerings.NewMarket(b.measureType)
	for _, kind := range kinds {
		b.nodeClassKinds[cluster.ClassRef{Group: kind.Group, Kind: kind.Kind}] = true
	}
	return b
}

// Changed delivers a value after something has changed; several changes may share one.
func (b *Book) Changed() <-chan struct{} { return b.changed }

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
		b.noteChange(changesDemand | changesRoom | changesDisruption)
	}
	s := &cluster.Snapshot{
		Rev: b.rev, Now: now, DemandRev: b.revs.demand, SupplyRev: b.revs.supply, RoomRev: b.revs.room,
		DisruptionRev: b.revs.disruption, Names: b.specs.Dims.Names.Clone(), PlannedAt: b.lastPlanned,
		LastBound:         b.lastBound,
		SchedulerActivity: b.schedulerActivity,
		Pods:              b.podsNow(), Daemons: b.daemonsNow(), Owners: b.owners.share(),
		Namespaces: b.namespaces.share(), PDBs: b.pdbsNow(), Attached: b.attachedNow(),
		Inventory:  b.others.Without(b.inventory.Now()),
		OtherPools: b.others.Pools(), Notes: valuesByKey(b.notes),
		InFlight: b.commands.Keys(), Retry: b.commands.Retries(),
		InstancesGone: b.instancesGone.Keys(), Quarantine: left,
		Cluster: b.identity, EndOrphans: b.endOrphans, ClaimLostAt: b.claimLost,
		OrphansUnknown: b.orphanMemory.IsUnknown(now), OrphansEnded: map[string]time.Time(maps.Clone(b.orphanEnds)),
	}
	s.EvictedToSave, s.EvictionsDropAt = b.evictions.Now()
	for _, e := range valuesByKey(b.nodes) {
		s.Nodes = append(s.Nodes, e.node)
	}
	for _, e := range valuesByKey(b.pools) {
		s.Pools = append(s.Pools, b.poolNow(e, now))
	}
	s.Claims = b.claimsNow(s.Pools)
	s.Seal()
	s.WorkloadTries = b.tries.Review(s, tries.Known{Pod: b.pods.get, Class: b.specs.KnownClass,
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
		out = append(out, b.claimNow(e, byName[e.claim.Pool]))
	}
	for create := range b.asked {
		out = append(out, expectedClaim(create, b.now()))
	}
	slices.SortFunc(out, func(x, y *cluster.Claim) int { return cmp.Compare(x.Name, y.Name) })
	return out
}

// claimNow is the claim with what only the book knows about it. Snapshots share it until that changes. The lock is
// held.
func (b *Book) claimNow(e *claimEntry, pool *cluster.Pool) *cluster.Claim {
	c, event, price, estimated := e.claim, e.claim.LastPodEvent, e.claim.Price, e.claim.Estimated
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
	if last := e.inSnapshot; last != nil && e.madeFrom == c && !isRefused && last.LastPodEvent == event &&
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
	e.inSnapshot, e.madeFrom = &now, c
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
	b.noteChange(changesSupply)
	for _, e := range b.nodes {
		n := *e.node
		n.Capacity, n.Allocatable = b.specs.Dims.Measure(e.capacity), b.allocatableOf(&n, e.allocatable)
		e.node = &n
	}
	for _, e := range b.claims {
		c := *e.claim
		c.Capacity, c.Allocatable = b.specs.Dims.Measure(e.capacity), b.claimAllocatable(&c, e.allocatable)
		e.claim = &c
	}
	b.market.Remeasure()
}

// Names numbers the resources that are known now.
func (b *Book) Names() *resource.Names {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.specs.Dims.Names.Clone()
}
