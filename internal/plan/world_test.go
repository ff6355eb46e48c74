package plan_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/lifecycle"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// world is a modelled cluster: what the API server and the cloud would hold. Stories and properties change it, and
// look at it only through snapshots, as the program does.
type world struct {
	start, now time.Time
	rev        uint64
	planned    time.Time
	types      []cluster.Type
	offerings  []cluster.Offering
	pools      map[string]*cluster.Pool
	claims     map[string]*cluster.Claim
	made       map[string]int // how many claims have had a name
	nodes      map[string]*cluster.Node
	pods       map[string]*cluster.Pod
	daemons    map[string]*cluster.Daemon
	owners     map[string]cluster.Owner
	classes    map[string]*cluster.PodClass // by description
	rules      map[string]*cluster.Rule     // by key
	labels     map[string]cluster.Labels    // by text
	namespaces map[string]cluster.Labels
	old        []shape // of pods that run already, where they are drawn
	className  map[string]bool
	busy       map[string]bool
	tries      map[string]*cluster.WorkloadTries
	retry      map[string]cluster.Retry
	gone       map[string]bool
	// empty are offerings that the cloud will refuse; soldOut those of which we have learned it.
	empty, soldOut map[string]bool
	// silent instances run but their nodes don't join.
	silent bool
	// stuck pods never end, however long their grace period is over.
	stuck bool
	// life is what the stories of a node's life add.
	life
	// failed is what the planner leaves out.
	failed cluster.Quarantine
	reborn int
	names  *resource.Names
	alias  map[string]string
	count  map[string]int
}

func newWorld() *world {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	return &world{
		start: start, now: start, names: &resource.Names{},
		pools: map[string]*cluster.Pool{}, claims: map[string]*cluster.Claim{}, nodes: map[string]*cluster.Node{},
		pods: map[string]*cluster.Pod{}, daemons: map[string]*cluster.Daemon{}, owners: map[string]cluster.Owner{},
		classes: map[string]*cluster.PodClass{}, className: map[string]bool{}, busy: map[string]bool{},
		retry: map[string]cluster.Retry{}, gone: map[string]bool{}, empty: map[string]bool{},
		soldOut: map[string]bool{},
		alias:   map[string]string{}, count: map[string]int{}, rules: map[string]*cluster.Rule{},
		labels:     map[string]cluster.Labels{},
		namespaces: map[string]cluster.Labels{}, life: newLife(), made: map[string]int{},
	}
}

func defaultPolicy() plan.Policy {
	return plan.Policy{
		BatchIdle: time.Second, BatchMax: 10 * time.Second,
		Lifecycle: lifecycle.Settings{LaunchTimeout: 5 * time.Minute, RegistrationTimeout: 15 * time.Minute},
	}
}

// catalog is what the cloud is known to sell now. Claims that were made for a reservation have their share of it.
func (w *world) catalog() *cluster.Catalog { return w.catalogFor(nil) }

// catalogFor is the catalog as one of the claims finds it: its share of a reservation is its own.
func (w *world) catalogFor(claim *cluster.Claim) *cluster.Catalog {
	types, offerings := slices.Clone(w.types), slices.Clone(w.offerings)
	for i := range types {
		types[i].Allocatable = w.unlimited(types[i].Allocatable)
	}
	for i := range offerings {
		if id := offerings[i].Reservation; id != "" {
			offerings[i].ReservationLeft -= w.pinned(id, claim)
			offerings[i].Available = offerings[i].ReservationLeft > 0
		}
	}
	w.onTrial(offerings)
	c := cluster.NewCatalog(types, offerings)
	return c.Without(func(o *cluster.Offering) bool { return w.soldOut[offeringID(c, o)] })
}

// pinned counts the other claims that have, or will have, an instance of a reservation.
func (w *world) pinned(id string, but *cluster.Claim) int {
	n := 0
	for _, c := range w.claims {
		if c == but {
			continue
		}
		label, _ := c.Labels.Get(reservationLabel)
		values, _ := c.Requirements.Get(reservationLabel)
		if list, finite := values.Listed(); label == id || finite && slices.Contains(list, id) {
			n++
		}
	}
	return n
}

// unlimited lets drivers of which no limit is known attach as much as they are asked to.
func (w *world) unlimited(v resource.Vector) resource.Vector {
	for dim := range v {
		if w.names.Attaches(dim) && v[dim] == 0 {
			v[dim] = 1 << 40
		}
	}
	return v
}

func offeringID(c *cluster.Catalog, o *cluster.Offering) string {
	return c.Types[o.Type].Name + "/" + o.Zone + "/" + o.CapacityType
}

// snapshot copies the world, so that what is done to it later leaves the snapshot as it is. With a source of chance the
// slices are shuffled before they are sorted, as maps would do it to ingest.
func (w *world) snapshot(chance *rand.Rand) *cluster.Snapshot {
	catalog := w.catalog()
	s := &cluster.Snapshot{
		Rev: w.rev, Now: w.now, Names: w.names.Clone(), PlannedAt: w.planned, Owners: maps.Clone(w.owners),
		InstancesGone: maps.Clone(w.gone), InFlight: maps.Clone(w.busy), Retry: maps.Clone(w.retry),
		Namespaces: maps.Clone(w.namespaces),
		Claims:     copies(w.claims, chance), Nodes: copies(w.nodes, chance), Pods: copies(w.pods, chance),
		Daemons: copies(w.daemons, chance), Pools: copies(w.pools, chance), Quarantine: w.failed,
	}
	for _, p := range s.Pools {
		if p.CatalogError == "" {
			p.Catalog = catalog
		}
	}
	for _, c := range s.Claims {
		c.InstanceGone = w.gone[c.Name]
		c.Allocatable = w.unlimited(c.Allocatable)
	}
	for _, n := range s.Nodes {
		n.Allocatable = w.unlimited(n.Allocatable)
	}
	w.addLife(s)
	slices.SortFunc(s.Claims, func(a, b *cluster.Claim) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Nodes, func(a, b *cluster.Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Pods, func(a, b *cluster.Pod) int { return cmp.Compare(a.UID, b.UID) })
	slices.SortFunc(s.Daemons, cluster.CompareDaemons)
	slices.SortFunc(s.Pools, func(a, b *cluster.Pool) int { return cmp.Compare(a.Name, b.Name) })
	return s.Seal()
}

func copies[V any](m map[string]*V, chance *rand.Rand) []*V {
	out := make([]*V, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		v := *m[key]
		out = append(out, &v)
	}
	if chance != nil {
		chance.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	}
	return out
}

// shape is what a story says about the pods of a class.
type shape struct {
	requests    resource.Vector
	terms       []require.Set
	tolerations []cluster.Toleration
	priority    int32
	unsupported []string
	rules       []*cluster.Rule
	wishes      []cluster.Preference
	ports       []cluster.Port
	reach       []require.Set // what volumes add to the terms
	ties        ties
}

// class finds the class of a shape, or makes it and calls it by the name.
func (w *world) class(name string, sh shape) *cluster.PodClass {
	sh.requests[resource.Pods] = 1
	if len(sh.terms) == 0 {
		sh.terms = []require.Set{nil}
	}
	var own []require.Set
	if len(sh.reach) > 0 {
		own = sh.terms
		sh.terms = reached(sh.terms, sh.reach)
	}
	text := fmt.Sprintf("%v %v %v %v %v %v %v", sh.requests, sh.terms, own, sh.tolerations, sh.priority,
		sh.unsupported, sh.ports)
	for _, r := range sh.rules {
		text += "\n" + r.Key
	}
	for _, wish := range sh.wishes {
		text += fmt.Sprintf("\n%d %v", wish.Weight, wish.Term)
		if wish.Rule != nil {
			text += wish.Rule.Key
		}
	}
	if c := w.classes[text]; c != nil {
		return c
	}
	key := name
	for i := 2; w.className[key]; i++ {
		key = fmt.Sprintf("%s.%d", name, i)
	}
	w.className[key] = true
	c := &cluster.PodClass{Key: key, Requests: sh.requests, Terms: sh.terms, Tolerations: sh.tolerations,
		OwnTerms: own, Priority: sh.priority, Unsupported: sh.unsupported, Rules: sh.rules, Preferences: sh.wishes,
		Ports: sh.ports}
	w.classes[text] = c
	return c
}

// reached are the terms, narrowed to where all the volumes can be.
func reached(terms, reach []require.Set) []require.Set {
	out := make([]require.Set, len(terms))
	for i, term := range terms {
		for _, r := range reach {
			term = term.And(r)
		}
		out[i] = term
	}
	return out
}

// addPod puts in a pod that kube-scheduler could not place, or one that runs if it has a node.
func (w *world) addPod(p cluster.Pod) *cluster.Pod {
	p.UID, p.Created = p.Name, w.now
	if p.EvictionCost == 0 {
		p.EvictionCost = 1
	}
	if p.Namespace == "" {
		p.Namespace = "default"
	}
	if !p.Daemon {
		_, leaves := cluster.Untolerated(p.Class.Tolerations,
			[]cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}})
		p.StaysThroughDrain = !leaves
	}
	if p.Node == "" {
		p.Unschedulable, p.SchedulerSeen, p.UnschedulableSince = true, true, w.now
	} else {
		p.SchedulerSeen = true
		w.podEvent(&p)
	}
	w.pods[p.UID] = &p
	return &p
}

func (w *world) podEvent(p *cluster.Pod) {
	if p.Daemon || p.Mirror || p.Node == "" {
		return
	}
	if c := w.claimOf(p.Node); c != nil {
		c.LastPodEvent = w.now
	}
}

func (w *world) claimOf(node string) *cluster.Claim {
	n := w.nodes[node]
	if n == nil {
		return nil
	}
	for _, c := range w.claims {
		if c.ProviderID != "" && c.ProviderID == n.ProviderID {
			return c
		}
	}
	return nil
}

// setCondition keeps the time of the last change, as the API's helper does.
func (w *world) setCondition(c *cluster.Claim, kind string, status cluster.ConditionStatus, reason, message string) {
	next := cluster.Condition{Type: kind, Status: status, Reason: reason, Message: message, Since: w.now}
	conditions := slices.Clone(c.Conditions)
	for i, old := range conditions {
		if old.Type == kind {
			if old.Status == status {
				next.Since = old.Since
			}
			conditions[i] = next
			c.Conditions = conditions
			return
		}
	}
	c.Conditions = append(conditions, next)
}

// called gives claims and nodes short names in the order in which they turn up: their own hold a hash.
func (w *world) called(name string) string {
	if a := w.alias[name]; a != "" {
		return a
	}
	c := w.claims[name]
	if c == nil {
		return name
	}
	return w.nameClaim(name, c.Pool)
}

func (w *world) nameClaim(name, pool string) string {
	if a := w.alias[name]; a != "" {
		return a
	}
	w.count[pool]++
	w.alias[name] = fmt.Sprintf("%s#%d", pool, w.count[pool])
	return w.alias[name]
}

// realName is the inverse of called.
func (w *world) realName(alias string) string {
	for name, a := range w.alias {
		if a == alias {
			return name
		}
	}
	return alias
}
