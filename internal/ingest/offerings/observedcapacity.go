package offerings

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

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

// observedNodes is what the nodes of each NodeClass have really had.
type observedNodes struct {
	byClass map[cluster.ClassRef]*observedTypes
}

// NodeSeen is what a node that is ready for pods shows.
type NodeSeen struct {
	Class   cluster.ClassRef
	Type    string
	Created time.Time
	// Most is the most that it has had of each resource, Limits how many volumes of each driver it can attach.
	Most   corev1.ResourceList
	Limits map[string]int32
}

// learn takes in what a node has, and reports whether that is news.
func (o *observedNodes) learn(n NodeSeen) (news bool) {
	of := o.byClass[n.Class]
	if of == nil {
		of = &observedTypes{types: make(map[string]*observedCapacity)}
		o.byClass[n.Class] = of
	}
	if n.Created.Before(of.since) {
		return false
	}
	l := of.types[n.Type]
	if l == nil && len(of.types) >= maxObserved {
		return false
	}
	if l == nil {
		l = &observedCapacity{least: make(corev1.ResourceList), limits: make(map[string]int32)}
		of.types[n.Type] = l
	}
	return l.lower(n.Most, n.Limits)
}

// unlearn forgets what is known of a type, and reports whether anything was.
func (o *observedNodes) unlearn(class cluster.ClassRef, kind string) bool {
	of := o.byClass[class]
	if of == nil || of.types[kind] == nil {
		return false
	}
	delete(of.types, kind)
	return true
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

// apply are the types of a list with what their nodes have turned out to have; the list itself if that
// is no less than was promised.
func (o *observedNodes) apply(types []*cloudprovider.InstanceType,
	ref cluster.ClassRef) (out []*cloudprovider.InstanceType, less bool) {
	of := o.byClass[ref]
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
