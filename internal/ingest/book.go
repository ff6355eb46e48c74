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
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/validate"
)

// Book is what is known of the world. It is safe for concurrent use.
type Book struct {
	mu      sync.Mutex
	rev     uint64
	revs    struct{ demand, supply, help, stakes uint64 } // the rev of the last change of each kind
	changed chan struct{}
	now     func() time.Time
	labels  validate.Labels
	kinds   map[cluster.ClassRef]bool // kinds of NodeClass that the provider knows, without a name
	others  others

	names      *resource.Names
	unmeasured bool                     // nodes, claims and catalogs are to be measured again: a resource has got a number
	crowded    bool                     // somebody found no dimension left
	idle       [resource.Size]time.Time // since when nobody counts by a dimension, while it is crowded
	offers     offers
	kept       int // about how many bytes shapes, classes, rules and labels take

	scribe   scribe
	shapes   map[string]*recipe // by the bytes of the shape
	classes  map[string]*recipe // by the key of the class
	rules    map[string]*cluster.Rule
	worn     map[string]cluster.Labels            // labels of pods, by their bytes
	ceilings map[resource.Vector]*resource.Vector // limits of pods
	// Pods with volumes, by UID; which of them use a claim; and the recipes of those that have volumes or default constraints.
	mounts         map[string]*mount
	users          map[string]map[string]bool
	open           map[string]bool // pods with a claim that is not bound
	stale          map[string]bool // pods whose volumes the next snapshot looks at again
	mountedRecipes map[mountKey]*recipe
	defaults       *defaultSpread // nil without default constraints
	sweepAt        sweepPoint     // how much may be remembered before what is unused is dropped

	pods        *roster[*cluster.Pod] // by UID
	endings     endings
	endingsKept int                           // how many were left when they were last looked through
	nominees    map[string]map[string]nominee // by node and pod UID
	notes       map[string]cluster.Note       // by kind and UID
	health      map[string]bool               // the conditions of nodes that matter
	nodeBy      map[string]string             // nodes and claims by provider id
	claimBy     map[string]string
	guards      map[string]*cluster.Guard // by namespace/name
	guardList   []*cluster.Guard
	nodes       map[string]*nodeEntry
	claims      map[string]*claimEntry
	pools       map[string]*poolEntry
	daemons     map[string]*cluster.Daemon
	daemonSets  map[string]*appsv1.DaemonSet // by UID
	daemonPods  map[string]daemonPod         // the newest pod of each DaemonSet, by the DaemonSet's key
	admission   admission
	owners      *ledger[cluster.Owner]
	class       map[cluster.ClassRef]cluster.NodeClassState

	namespaces     *ledger[cluster.Labels]
	identity       string                                   // the UID of kube-system
	endOrphans     time.Time                                // what it says about orphans
	volumeClaims   map[string]*corev1.PersistentVolumeClaim // by namespace/name
	claimOf        map[string]string                        // the claim that is bound to a volume
	volumes        map[string]*corev1.PersistentVolume
	volumesOf      map[string]map[string]*corev1.PersistentVolume // by storage class and name
	sortedVolumes  map[string][]string                            // names of volumesOf, as they are asked for
	storageClasses map[string]*storagev1.StorageClass
	madeBy         map[*storagev1.StorageClass]choiceList // where they make volumes, as it is asked for
	csiLimits      map[string]map[string]int32            // by node and driver
	typeLimits     map[string]map[string]int32            // by instance type and driver
	limited        map[string]bool                        // drivers of which some limit has been heard
	attachments    map[string]attachedVolume
	attached       map[string][]string // by node; nil if it is to be made anew

	fetch     chan struct{}          // wakes Catalogs
	shelf     map[string]*shelfEntry // what each pool can buy
	converted map[counter]*cluster.Catalog
	lessons   map[cluster.ClassRef]*lessons
	shortages map[command.Exhausted]*shortage
	scarce    map[command.Exhausted]held // what scarceNow gave last
	backoff   Backoff
	podEvents map[string]time.Time // by node
	flights   map[string]*flight
	awaiting  map[awaited]map[string]bool // the commands that wait for an object
	retries   map[string]cluster.Retry
	gone      map[string]time.Time // since when the cloud says so, by claim UID and by provider id
	holds     map[string]*hold     // by pool
	joining   map[string]launches  // by pool
	refused   map[string]refusal   // launches that were, by claim UID
	count     chan struct{}        // wakes Census
	census    census
	evictions map[string]*evictions // to save money, within the hour, by owner
	started   time.Time             // since when evictions are counted
	// orphansEnded is when the cloud was first asked to end instances that nobody claimed, by provider id.
	orphansEnded map[string]time.Time
	hold         holdMemory           // whether the pools can be relied on to remember held orphans
	claimLost    time.Time            // when a claim vanished that was not being deleted, or when we began to look
	trials       map[string]*trial    // by claim UID
	verdicts     map[string]verdict   // kube-scheduler's words about pods without a place, by UID
	settled      map[string]bool      // claims whose trial is over, by UID
	accounts     map[string]*account  // by the UID of the owner at the root
	takenEarly   map[string]time.Time // see mayTake, by the same
	slots        map[slotOf]*lostSlot // of static pools, whose last nodes ended too soon
	drift        drifts
	planned      time.Time
	bound        time.Time // when a pod that we knew was bound last
	stirred      cluster.Stir
	failed       quarantine
	broke        func(plan.Breakdown) // nil if nobody is to be told
	reads        func(*corev1.Pod)    // told of each pod before it is read; nil but in tests
	followed     signal               // the pods that were there at the start are known
}

// New returns an empty book. now is the clock; labels and kinds are what the provider adds to the contract.
func New(now func() time.Time, labels validate.Labels, kinds []cluster.ClassRef) *Book {
	b := &Book{
		now: now, labels: labels, kinds: make(map[cluster.ClassRef]bool), others: newOthers(), changed: make(chan struct{}, 1), followed: signal{done: make(chan struct{})}, fetch: make(chan struct{}, 1),
		names: &resource.Names{}, offers: newOffers(), shapes: make(map[string]*recipe), classes: make(map[string]*recipe),
		rules: make(map[string]*cluster.Rule), worn: make(map[string]cluster.Labels), ceilings: make(map[resource.Vector]*resource.Vector), pods: newRoster[*cluster.Pod](),
		mounts: make(map[string]*mount), open: make(map[string]bool), stale: make(map[string]bool), users: make(map[string]map[string]bool), mountedRecipes: make(map[mountKey]*recipe),
		namespaces: newLedger[cluster.Labels](), volumeClaims: make(map[string]*corev1.PersistentVolumeClaim),
		claimOf: make(map[string]string), volumes: make(map[string]*corev1.PersistentVolume), volumesOf: make(map[string]map[string]*corev1.PersistentVolume),
		sortedVolumes: make(map[string][]string), madeBy: make(map[*storagev1.StorageClass]choiceList),
		storageClasses: make(map[string]*storagev1.StorageClass), csiLimits: make(map[string]map[string]int32),
		typeLimits: make(map[string]map[string]int32), limited: make(map[string]bool),
		nodes: make(map[string]*nodeEntry), claims: make(map[string]*claimEntry), pools: make(map[string]*poolEntry),
		daemons: make(map[string]*cluster.Daemon), daemonSets: make(map[string]*appsv1.DaemonSet), daemonPods: make(map[string]daemonPod),
		admission: newAdmission(), owners: newLedger[cluster.Owner](),
		class: make(map[cluster.ClassRef]cluster.NodeClassState), shelf: make(map[string]*shelfEntry),
		converted: make(map[counter]*cluster.Catalog), lessons: make(map[cluster.ClassRef]*lessons),
		shortages: make(map[command.Exhausted]*shortage), backoff: defaultBackoff(),
		nominees: make(map[string]map[string]nominee), notes: make(map[string]cluster.Note), health: make(map[string]bool),
		nodeBy: make(map[string]string), claimBy: make(map[string]string), guards: make(map[string]*cluster.Guard),
		attachments: make(map[string]attachedVolume), awaiting: make(map[awaited]map[string]bool),
		joining: make(map[string]launches), refused: make(map[string]refusal), count: make(chan struct{}, 1),
		podEvents: make(map[string]time.Time), flights: make(map[string]*flight),
		retries: make(map[string]cluster.Retry), gone: make(map[string]time.Time),
		holds: make(map[string]*hold), evictions: make(map[string]*evictions), started: now(), claimLost: now(), orphansEnded: make(map[string]time.Time), drift: newDrifts(), failed: newQuarantine(),
		trials: make(map[string]*trial), verdicts: make(map[string]verdict), settled: make(map[string]bool), accounts: make(map[string]*account),
		takenEarly: make(map[string]time.Time), slots: make(map[slotOf]*lostSlot),
	}
	for _, kind := range kinds {
		b.kinds[cluster.ClassRef{Group: kind.Group, Kind: kind.Kind}] = true
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
	b.planned = at
}

// Snapshot is the world as it is known now.
func (b *Book) Snapshot() *cluster.Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.expire(now)
	b.remountStale()
	b.offerAgain()
	b.reclaim(now)
	b.measureAgain()
	b.sweep()
	left := b.quarantineNow(now)
	s := &cluster.Snapshot{
		Rev: b.rev, Now: now, Demand: b.revs.demand, Supply: b.revs.supply, Help: b.revs.help, Stakes: b.revs.stakes, Names: b.names.Clone(), Planned: b.planned, Bound: b.bound, Stir: b.stirred,
		Pods: b.podsNow(), Daemons: b.daemonsNow(), Owners: b.owners.share(),
		Namespaces: b.namespaces.share(), Guards: b.guardsNow(), Attached: b.attachedNow(), Census: b.censusNow(), OtherPools: b.otherPoolsNow(), Notes: inOrder(b.notes),
		Busy: make(map[string]bool, len(b.flights)), Retry: maps.Clone(b.retries), Gone: make(map[string]bool, len(b.gone)), Quarantine: left,
		Cluster: b.identity, EndOrphans: b.endOrphans, ClaimLost: b.claimLost,
		HoldUnknown: b.hold.unknown(now), OrphansEnded: maps.Clone(b.orphansEnded),
	}
	s.Evicted, s.Rested = b.evictedNow()
	for _, e := range inOrder(b.nodes) {
		s.Nodes = append(s.Nodes, e.node)
	}
	for _, e := range inOrder(b.pools) {
		s.Pools = append(s.Pools, b.poolNow(e, now))
	}
	s.Claims = b.claimsNow(s.Pools)
	for key := range b.flights {
		s.Busy[key] = true
	}
	for key := range b.gone {
		s.Gone[key] = true
	}
	s.Seal()
	s.Setbacks = b.setbacksNow(s)
	s.TakenEarly = b.takenEarlyNow(now)
	return s
}

// inOrder lists the values of a map by rising key.
func inOrder[V any](m map[string]V) []V {
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
	for _, f := range b.flights {
		if create, ok := f.command.(command.CreateClaim); ok && b.claims[create.Name] == nil {
			out = append(out, expected(create, b.now()))
		}
	}
	slices.SortFunc(out, func(x, y *cluster.Claim) int { return cmp.Compare(x.Name, y.Name) })
	return out
}

// claimNow is the claim with what only the book knows about it. Snapshots share it until that changes. The lock is held.
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
	_, gone := b.gone[c.UID]
	drifted := b.driftOf(c)
	refused, isRefused := b.refusedLaunch(c)
	if last := e.shown; last != nil && e.of == c && !isRefused && last.LastPodEvent == event &&
		last.Price == price && last.Estimated == estimated && last.InstanceGone == gone && last.DriftedFrom == drifted {
		return last
	}
	now := *c
	now.LastPodEvent, now.Price, now.Estimated, now.InstanceGone, now.DriftedFrom = event, price, estimated, gone, drifted
	if isRefused {
		now.Conditions = append(slices.DeleteFunc(slices.Clone(c.Conditions), func(have cluster.Condition) bool {
			return have.Type == refused.Type
		}), refused)
		return &now
	}
	e.shown, e.of = &now, c
	return &now
}

// expected is a claim that we have asked for and the watch has not shown.
func expected(c command.CreateClaim, now time.Time) *cluster.Claim {
	return &cluster.Claim{
		Name: c.Name, Pool: c.Pool, Created: now, Finalized: true, Expected: true, Labels: c.Labels,
		Requirements: c.Requirements, Taints: c.Template.Taints, StartupTaints: c.Template.StartupTaints,
		Requests: c.Requests, Seats: c.Seats, MadeFor: c.MadeFor, Slot: c.Slot, Drift: c.Drift, Price: c.Price, Estimated: c.Estimated,
		Hash: c.Template.Stamp.Hash, HashVersion: c.Template.Stamp.Version, Replaces: c.Replaces,
	}
}

// measureAgain converts resource lists anew after a resource has been named that nobody had asked for before. The lock
// is held.
func (b *Book) measureAgain() {
	if !b.unmeasured {
		return
	}
	b.unmeasured = false
	b.note(supply)
	for _, e := range b.nodes {
		n := *e.node
		n.Capacity, n.Allocatable = b.measure(e.capacity), b.allocatableOf(&n, e.allocatable)
		e.node = &n
	}
	for _, e := range b.claims {
		c := *e.claim
		c.Capacity, c.Allocatable = b.measure(e.capacity), b.claimAllocatable(&c, e.allocatable)
		e.claim = &c
	}
	clear(b.converted)
}

// version reads a resource version; Kubernetes defines them as rising integers.
func version(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Names numbers the resources that are known now.
func (b *Book) Names() *resource.Names {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.names.Clone()
}
