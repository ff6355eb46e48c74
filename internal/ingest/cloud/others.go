package cloud

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// Others are the NodePools and NodeClaims of other controllers: EKS Auto Mode, or a Karpenter with another
// provider. They are told by the kind of their NodeClass, and never become part of a snapshot as pools and claims, so
// that no plan can touch them.
type Others struct {
	pools  map[string]cluster.ClassRef // by name
	claims map[string]otherClaim       // by name
}

// otherClaim is all that has to be known of one: that it is there, and which machine is its own.
type otherClaim struct{ uid, providerID string }

// NewOthers knows of none yet.
func NewOthers() Others {
	return Others{pools: make(map[string]cluster.ClassRef), claims: make(map[string]otherClaim)}
}

// SetPool takes in a NodePool of another controller, and reports whether it is new.
func (o *Others) SetPool(name string, class cluster.ClassRef) (news bool) {
	news = o.pools[name] != class
	o.pools[name] = class
	return news
}

// DropPool forgets a NodePool of another controller, and reports whether there was one.
func (o *Others) DropPool(name string) bool {
	_, known := o.pools[name]
	delete(o.pools, name)
	return known
}

// SetClaim takes in a NodeClaim of another controller, and reports whether it is new.
func (o *Others) SetClaim(name, uid, providerID string) (news bool) {
	now := otherClaim{uid: uid, providerID: providerID}
	news = o.claims[name] != now
	o.claims[name] = now
	return news
}

// DropClaim forgets a NodeClaim of another controller, and reports whether there was one.
func (o *Others) DropClaim(name string) bool {
	_, known := o.claims[name]
	delete(o.claims, name)
	return known
}

// ClaimUID is the UID of a NodeClaim; empty if there is none of the name.
func (o *Others) ClaimUID(name string) string { return o.claims[name].uid }

// Pools lists the NodePools by name.
func (o *Others) Pools() []cluster.OtherPool {
	var out []cluster.OtherPool
	for _, name := range slices.Sorted(maps.Keys(o.pools)) {
		out = append(out, cluster.OtherPool{Name: name, NodeClass: o.pools[name]})
	}
	return out
}

// Without is what the cloud runs, without the machines of other controllers' NodeClaims: these must not pass for
// machines that nobody claims. A cloud lists none unless their tags are like ours.
func (o *Others) Without(all *cluster.Inventory) *cluster.Inventory {
	if all == nil || len(o.claims) == 0 {
		return all
	}
	theirs := make(map[string]bool, 2*len(o.claims))
	for _, c := range o.claims {
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
