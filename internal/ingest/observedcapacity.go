package ingest

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// maxObserved bounds of how many types of one NodeClass it is remembered what their nodes really have.
const maxObserved = 4096

// observedTypes are what the nodes of a NodeClass have really had. A provider may promise more of a type than its nodes
// turn out to have: without this the planner would buy the same node that is too small again and again.
type observedTypes struct {
	since time.Time // older nodes teach nothing: the class has changed
	types map[string]*observedCapacity
}

// observedCapacity is the least that nodes of a type have had, of each resource and of each driver's volumes.
type observedCapacity struct {
	least  corev1.ResourceList
	limits map[string]int32
}

// observeCapacity takes in what a node has that is ready for pods. The lock is held.
func (b *Book) observeCapacity(n *cluster.Node) change {
	if value, _ := n.Labels.Get(cluster.InitializedLabel); !n.Ours || value != "true" || b.nodes[n.Name] == nil {
		return noChange
	}
	kind, named := n.Labels.Get(cluster.InstanceTypeLabel)
	ref, found := b.nodeClassNamedBy(n)
	if !found || !named {
		return noChange
	}
	of := b.observed[ref]
	if of == nil {
		of = &observedTypes{types: make(map[string]*observedCapacity)}
		b.observed[ref] = of
	}
	if n.Created.Before(of.since) {
		return noChange
	}
	l := of.types[kind]
	if l == nil && len(of.types) >= maxObserved {
		return noChange
	}
	if l == nil {
		l = &observedCapacity{least: make(corev1.ResourceList), limits: make(map[string]int32)}
		of.types[kind] = l
	}
	if !l.lower(b.nodes[n.Name].mostAllocatable, b.attachLimits.OfNodeItself(n.Name)) {
		return noChange
	}
	return b.renumberCatalogs(ref)
}

// reobserveCapacity is observeCapacity for a node that shows more than it did: what it taught before was not the truth
// about its type, so that this is learned anew from the nodes that are there. The lock is held.
func (b *Book) reobserveCapacity(n *cluster.Node) change {
	kind, named := n.Labels.Get(cluster.InstanceTypeLabel)
	ref, found := b.nodeClassNamedBy(n)
	of := b.observed[ref]
	if !named || !found || of == nil || of.types[kind] == nil {
		return noChange
	}
	delete(of.types, kind)
	for _, e := range b.nodes {
		other, _ := e.node.Labels.Get(cluster.InstanceTypeLabel)
		if class, ours := b.nodeClassNamedBy(e.node); ours && class == ref && other == kind {
			b.observeCapacity(e.node)
		}
	}
	return b.renumberCatalogs(ref) | givesRoom
}

// lower keeps the lesser of each amount and reports whether that is news. A device that a node shows none of may only
// be out of order; a node that is to have it and does not is never ready for pods.
func (l *observedCapacity) lower(list corev1.ResourceList, limits map[string]int32) (news bool) {
	for name, q := range list {
		if have, known := l.least[name]; q.Sign() > 0 && (!known || q.Cmp(have) < 0) {
			l.least[name], news = q, true
		}
	}
	for driver, n := range limits {
		if have, known := l.limits[driver]; !known || n < have {
			l.limits[driver], news = n, true
		}
	}
	return news
}

// nodeClassNamedBy is the NodeClass that a node's labels name.
func (b *Book) nodeClassNamedBy(n *cluster.Node) (ref cluster.ClassRef, found bool) {
	for kind := range b.nodeClassKinds {
		if name, has := n.Labels.Get(v1.NodeClassLabelKey(kind.Group, kind.Kind)); has {
			return cluster.ClassRef{Group: kind.Group, Kind: kind.Kind, Name: name}, true
		}
	}
	return cluster.ClassRef{}, false
}

// forgetObserved forgets what is known of a NodeClass that has changed. The lock is held.
func (b *Book) forgetObserved(ref cluster.ClassRef) {
	b.observed[ref] = &observedTypes{since: b.now(), types: make(map[string]*observedCapacity)}
	b.renumberCatalogs(ref)
	for name, e := range b.pools {
		if e.pool.Template.NodeClass == ref {
			delete(b.recentLaunches, name)
			delete(b.launchBackoffs, name) // the change may be the cure
		}
	}
}

// renumberCatalogs has the catalogs of a NodeClass made anew if what was learned makes a difference to them. The lock
// is held.
func (b *Book) renumberCatalogs(ref cluster.ClassRef) change {
	old := make(map[*typeList]*cluster.Catalog)
	for key, have := range b.numberedCatalogs {
		if key.class == ref {
			old[key.list] = have
		}
	}
	what := noChange
	for list, have := range old {
		delete(b.numberedCatalogs, catalogKey{list, ref})
		if b.catalogFor(list, ref) != have {
			what = changesSupply
		}
	}
	return what
}

// withObservedCapacity are the types of a list with what their nodes have turned out to have; the list itself if that
// is no less than was promised.
func (b *Book) withObservedCapacity(types []*cloudprovider.InstanceType,
	ref cluster.ClassRef) (out []*cloudprovider.InstanceType, less bool) {
	of := b.observed[ref]
	if of == nil || len(of.types) == 0 {
		return types, false
	}
	out = types
	for i, t := range types {
		l := of.types[t.Name]
		if l == nil {
			continue
		}
		if smaller := l.apply(t); smaller != nil {
			if !less {
				out, less = slices.Clone(types), true
			}
			out[i] = smaller
		}
	}
	return out, less
}

// isImplausible reports whether a node had so little of what was promised that something is wrong with it: providers
// are wrong by some percent. Such a node must not keep all pods from its type for good; that it is not bought again and
// again is seen to elsewhere.
func isImplausible(least, promised apiresource.Quantity) bool {
	twice := least.DeepCopy()
	twice.Add(least)
	return twice.Cmp(promised) < 0
}

// apply is the type with less, or nil if it has no less than was promised.
func (l *observedCapacity) apply(t *cloudprovider.InstanceType) *cloudprovider.InstanceType {
	promised := t.Allocatable()
	overhead := maps.Clone(t.Overhead)
	limits := maps.Clone(t.VolumeLimits)
	less := false
	for name, has := range promised {
		least, known := l.least[name]
		if !known || least.Cmp(has) >= 0 || isImplausible(least, has) {
			continue
		}
		if overhead == nil {
			overhead = make(corev1.ResourceList)
		}
		kept := t.Capacity[name].DeepCopy()
		kept.Sub(least)
		overhead[name], less = kept, true
	}
	for driver, n := range l.limits {
		if has, told := limits[driver]; !told || n < has {
			if limits == nil {
				limits = make(map[string]int32)
			}
			limits[driver], less = n, true
		}
	}
	if !less {
		return nil
	}
	out := *t
	out.Overhead, out.VolumeLimits = overhead, limits
	return &out
}
