package ingest

import (
	"slices"
	"strings"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
)

// isOthers reports whether a NodeClass is of a kind that our provider does not have. A reference that lacks its group
// or its kind is a mistake, about which people have to be told.
func (b *poolState) isOthers(ref *v1.NodeClassReference) bool {
	return ref != nil && ref.Group != "" && ref.Kind != "" && !b.nodeClassKinds[cluster.ClassRef{Group: ref.Group,
		Kind: ref.Kind}]
}

// knownKinds names the kinds of NodeClass that our provider has.
func (b *poolState) knownKinds() string {
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
	if b.others.SetPool(pool.Name, class) {
		b.noteAndWake(change.Room) // pods are told how many there are
	}
	return true
}

// dropOtherPool forgets a NodePool of another controller. The lock is held.
func (b *Book) dropOtherPool(name string) {
	if b.others.DropPool(name) {
		b.noteAndWake(change.Room)
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
	if b.others.SetClaim(claim.Name, string(claim.UID), claim.Status.ProviderID) {
		b.noteAndWake(change.None)
	}
	return true
}

// dropOtherClaim forgets a NodeClaim of another controller, and reports whether there was one. The lock is held.
func (b *Book) dropOtherClaim(name string) bool {
	if !b.others.DropClaim(name) {
		return false
	}
	b.noteAndWake(change.None)
	return true
}
