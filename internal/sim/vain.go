package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/command"
)

const (
	// reallyRan is how long a pod must have run on a node for the node not to be in vain: a minute. The judge looks
	// once a second and sees both ends of it late, so it may take a minute for a second or two less.
	reallyRan = 58 * time.Second
	// triesAnHour is how many nodes are launched for an owner within an hour at most, after those of one plan.
	triesAnHour = 20
	// triesAtFirst is how many of them follow within minutes when the tries begin anew.
	triesAtFirst = 6
)

// vanity is the judge's own account of nodes in vain. It is kept from what happens in the world, not from what the program writes
// down about itself.
type vanity struct {
	sim *Sim
	// on says that the bound is judged; restarts is how often a replica began since then.
	on       bool
	restarts int
	// madeFor are the owners that a claim was made for, by the claim's UID.
	madeFor map[types.UID]map[types.UID]bool
	// since is when a pod of an owner was first seen to run on a claim's node, without a break; ran says that it was long enough.
	since map[pairing]time.Time
	ran   map[pairing]bool
	// wanted is the most pods that an owner wanted at a time, alive the most that there were, those included that were
	// being terminated; share is how many of them the smallest machine takes. launched is how many machines were
	// launched for it since a pod of its last ran on a new one for long enough, but for those on which pods of others
	// did; most is the most that were in vain at the same time, and dearest what they cost per hour.
	wanted   map[types.UID]int
	alive    map[types.UID]int
	share    map[types.UID]int
	launched map[types.UID]int
	most     map[types.UID]int
	dearest  map[types.UID]float64
}

// pairing is a claim and an owner that it was made for; the owner is empty for anybody.
type pairing struct{ claim, owner types.UID }

func newVanity(s *Sim) *vanity {
	return &vanity{
		sim:      s,
		madeFor:  make(map[types.UID]map[types.UID]bool),
		since:    make(map[pairing]time.Time),
		ran:      make(map[pairing]bool),
		wanted:   make(map[types.UID]int),
		alive:    make(map[types.UID]int),
		share:    make(map[types.UID]int),
		launched: make(map[types.UID]int),
		most:     make(map[types.UID]int),
		dearest:  make(map[types.UID]float64),
	}
}

// made: a replica has made a claim.
func (v *vanity) made(r *replica, claim *v1.NodeClaim) {
	c, ok := r.current.command.(command.CreateClaim)
	if !ok || !v.on {
		return
	}
	owners := make(map[types.UID]bool)
	for _, p := range c.Pods {
		if uid := strings.TrimPrefix(p.Owner, p.Namespace+"/"); uid != "" {
			owners[types.UID(uid)] = true
		}
	}
	v.madeFor[claim.UID] = owners
}

// start: the cloud runs a machine for a claim.
func (v *vanity) start(claim types.UID) {
	for owner := range v.madeFor[claim] {
		v.launched[owner]++
	}
}

// needs is the most nodes that the owner's pods take at a time: as many as pods, or less if the smallest machine takes
// several. Pods that are being terminated still take room.
func (v *vanity) needs(owner types.UID) int {
	share := max(v.share[owner], 1)
	return min(v.wanted[owner], (max(v.alive[owner], v.wanted[owner])+share-1)/share)
}

// allowed is the bound that docs/concepts/bounds.md states: the nodes that the owner's pods need, one that stays to
// show what is wrong, and one that is tried.
func (v *vanity) allowed(owner types.UID) int {
	return v.needs(owner) + 2
}

// mayLaunch is how many machines are launched for the owner within an hour at most as long as its pods run nowhere, by
// the same document: the nodes of one plan, those of one more because the first that came after seemed well, and the
// tries that follow. A new replica may know little of what was tried, and begin anew.
func (v *vanity) mayLaunch(owner types.UID) int {
	return 2*v.needs(owner) + triesAnHour + v.restarts*(2*v.needs(owner)+triesAtFirst)
}

// watch looks at the world every now and then.
func (v *vanity) watch() {
	v.look()
	if !v.sim.over() {
		v.sim.clock.after(time.Second, v.watch)
	}
}

// look counts the machines in vain.
func (v *vanity) look() {
	s := v.sim
	v.census()
	count, price := make(map[types.UID]int), make(map[types.UID]float64)
	for _, m := range s.cloud.machines {
		uid := types.UID(m.instance.ClaimUID)
		owners, busy := v.madeFor[uid], false
		runs := make(map[types.UID]bool)
		for _, p := range s.tenantsOn(m.node) {
			if isDone(p) || p.DeletionTimestamp != nil || !m.joined {
				continue
			}
			busy = true
			if owner := metav1.GetControllerOfNoCopy(p); owner != nil && p.Status.Phase == corev1.PodRunning {
				runs[owner.UID] = true
			}
		}
		v.follow(pairing{claim: uid}, len(runs) > 0)
		for owner := range owners {
			at := pairing{uid, owner}
			v.follow(at, runs[owner])
			if !v.ran[at] && !busy {
				count[owner]++
				price[owner] += s.machinePrice(m)
			}
		}
	}
	for _, owner := range slices.SortedFunc(maps.Keys(count), func(a, b types.UID) int { return strings.Compare(string(a), string(b)) }) {
		v.most[owner], v.dearest[owner] = max(v.most[owner], count[owner]), max(v.dearest[owner], price[owner])
		if n := count[owner]; n > v.allowed(owner) {
			s.fail("nodes in vain are bounded", "%d nodes were made for %s, which wants %d pods on %d nodes, "+
				"and none of its pods ever ran on them; at most %d may",
				n, owner, v.wanted[owner], v.needs(owner), v.allowed(owner))
		}
	}
}

// census counts the pods of each owner.
func (v *vanity) census() {
	alive := make(map[types.UID]int)
	for _, p := range list[*corev1.Pod](v.sim.store, pods) {
		if owner := metav1.GetControllerOfNoCopy(p); owner != nil && !isDone(p) {
			alive[owner.UID]++
			v.alive[owner.UID] = max(v.alive[owner.UID], alive[owner.UID])
		}
	}
}

// follow notes whether a pod of the owner runs on the claim's node, and since when.
func (v *vanity) follow(at pairing, runs bool) {
	if !runs {
		delete(v.since, at)
		return
	}
	if v.since[at].IsZero() {
		v.since[at] = v.sim.clock.now
	}
	if v.ran[at] || v.sim.clock.now.Sub(v.since[at]) < reallyRan {
		return
	}
	v.ran[at] = true
	if at.owner != "" {
		v.launched[at.owner] = 0 // the count begins anew
		return
	}
	for owner := range v.madeFor[at.claim] {
		v.launched[owner] = max(v.launched[owner]-1, 0)
	}
}

// machinePrice is what a machine costs per hour.
func (s *Sim) machinePrice(m *machine) float64 {
	for _, t := range s.cloud.types {
		for i := range t.Offerings {
			o := &t.Offerings[i]
			if t.Name == m.instance.Type && o.Labels[corev1.LabelTopologyZone] == m.instance.Labels[corev1.LabelTopologyZone] &&
				o.Labels[v1.CapacityTypeLabelKey] == m.instance.Labels[v1.CapacityTypeLabelKey] {
				return o.Price
			}
		}
	}
	return 0
}
