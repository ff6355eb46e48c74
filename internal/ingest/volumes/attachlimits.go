package volumes

import (
	"maps"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// AttachLimits are how many volumes of each driver can be attached.
type AttachLimits struct {
	byNode map[string]map[string]int32 // by node and driver, as CSINodes say
	byType map[string]map[string]int32 // by instance type and driver
}

// NewAttachLimits knows none yet.
func NewAttachLimits() AttachLimits {
	return AttachLimits{byNode: make(map[string]map[string]int32), byType: make(map[string]map[string]int32)}
}

// SetNode takes in what a node can attach, and reports whether that is news.
func (l *AttachLimits) SetNode(node string, limits map[string]int32) bool {
	if maps.Equal(l.byNode[node], limits) {
		return false
	}
	if len(limits) == 0 {
		delete(l.byNode, node)
	} else {
		l.byNode[node] = limits
	}
	return true
}

// SetTypes takes in what the types that are for sale can attach, and reports whether that is news.
func (l *AttachLimits) SetTypes(limits map[string]map[string]int32) bool {
	if maps.EqualFunc(limits, l.byType, maps.Equal) {
		return false // most lists bring other prices: nothing has to be measured again
	}
	l.byType = limits
	return true
}

// OfType is what a type can attach.
func (l *AttachLimits) OfType(name string) map[string]int32 { return l.byType[name] }

// OfNodeItself is what a node's own CSINode says.
func (l *AttachLimits) OfNodeItself(name string) map[string]int32 { return l.byNode[name] }

// OfNode is what a node can attach: what its type can, as long as its own drivers may not have come up yet.
func (l *AttachLimits) OfNode(n *cluster.Node) map[string]int32 {
	own := l.byNode[n.Name]
	if _, initialized := n.Labels.Get(cluster.InitializedLabel); !n.Ours || initialized {
		return own
	}
	kind, _ := n.Labels.Get(cluster.InstanceTypeLabel)
	if len(l.byType[kind]) == 0 {
		return own
	}
	out := maps.Clone(l.byType[kind])
	maps.Copy(out, own)
	return out
}
