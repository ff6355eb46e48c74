package ingest

import (
	"maps"
	"slices"
	"strings"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// otherObjects are the NodePools and NodeClaims of other controllers: EKS Auto Mode, or a Karpenter with another
// provider. They are told by the kind of their NodeClass, and never become part of a snapshot as pools and claims, so
// that no plan can touch them.
type otherObjects struct {
	pools  map[string]cluster.ClassRef // by name
	claims map[string]otherClaim       // by name
}

// otherClaim is all that has to be known of one: that it is there, and which machine is its own.
type otherClaim struct{ uid, providerID string }

func newOtherObjects() otherObjects {
	return otherObjects{pools: make(map[string]cluster.ClassRef), claims: make(map[string]otherClaim)}
}

// isOthers reports whether a NodeClass is of a kind that our provider does not have. A reference that lacks its group
// or its kind is a mistake, about which people have to be told.
func (b *Book) isOthers(ref *v1.NodeClassReference) bool {
	return ref != nil && ref.Group != "" && ref.Kind != "" && !b.nodeClassKinds[cluster.ClassRef{Group: ref.Group,
		Kind: ref.Kind}]
}

// knownKinds names the kinds of NodeClass that our provider has.
func (b *Book) knownKinds() string {
	var known []string
	for kind := range b.nodeClassKinds {
		known = append(known, kind.Kind+"."+kind.Group)
	}
	slices.Sort(known)
	return strings.Join(known, " or ")
}

// setOtherPool takes in a NodePool if it belongs to another controller. The lock is held.
func (b *Book) setOtherPool(pool *v1.NodePool) bool {
	ref := pool.Spec.Template.Spec.NodeClassRef
	if !b.isOthers(ref) {
		b.dropOtherPool(pool.Name)
		return false
	}
	if b.pools[pool.Name] != nil { // one of ours had the name before
		b.dropPool(pool.Name)
	}
	class := cluster.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}
	if b.otherObjects.pools[pool.Name] != class {
		b.otherObjects.pools[pool.Name] = class
		b.noteAndWake(changesRoom) // pods are told how many there are
	}
	return true
}

// dropOtherPool forgets a NodePool of another controller. The lock is held.
func (b *Book) dropOtherPool(name string) {
	if _, known := b.otherObjects.pools[name]; known {
		delete(b.otherObjects.pools, name)
		b.noteAndWake(changesRoom)
	}
}

// setOtherClaim takes in a NodeClaim if it belongs to another controller. The lock is held.
func (b *Book) setOtherClaim(claim *v1.NodeClaim) bool {
	if !b.isOthers(claim.Spec.NodeClassRef) {
		b.dropOtherClaim(claim.Name)
		return false
	}
	if b.claims[claim.Name] != nil { // one of ours had the name before
		b.dropClaim(claim.Name)
	}
	now := otherClaim{uid: string(claim.UID), providerID: claim.Status.ProviderID}
	if b.otherObjects.claims[claim.Name] != now {
		b.otherObjects.claims[claim.Name] = now
		b.noteAndWake(noChange)
	}
	return true
}

// dropOtherClaim forgets a NodeClaim of another controller, and reports whether there was one. The lock is held.
func (b *Book) dropOtherClaim(name string) bool {
	if _, known := b.otherObjects.claims[name]; !known {
		return false
	}
	delete(b.otherObjects.claims, name)
	b.noteAndWake(noChange)
	return true
}

// otherPoolsNow lists them by name. The lock is held.
func (b *Book) otherPoolsNow() []cluster.OtherPool {
	var out []cluster.OtherPool
	for _, name := range slices.Sorted(maps.Keys(b.otherObjects.pools)) {
		out = append(out, cluster.OtherPool{Name: name, NodeClass: b.otherObjects.pools[name]})
	}
	return out
}

// inventoryNow is what the cloud runs, without the machines of other controllers' NodeClaims: these must not pass for
// machines that nobody claims. A cloud lists none unless their tags are like ours. The lock is held.
func (b *Book) inventoryNow() *cluster.Inventory {
	all := b.inventory.now
	if all == nil || len(b.otherObjects.claims) == 0 {
		return all
	}
	theirs := make(map[string]bool, 2*len(b.otherObjects.claims))
	for _, c := range b.otherObjects.claims {
		theirs[c.uid], theirs[c.providerID] = true, true
	}
	delete(theirs, "")
	is := func(i cluster.Instance) bool { return theirs[i.ClaimUID] || theirs[i.ProviderID] }
	if !slices.ContainsFunc(all.Instances, is) {
		return all
	}
	out := *all
	out.Instances = slices.DeleteFunc(slices.Clone(all.Instances), is)
	return &out
}
