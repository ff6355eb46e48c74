package cluster

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/require"
)

// RuleKind says what a rule asks about other pods.
type RuleKind uint8

// The rules between pods that Kubernetes knows.
const (
	// Spread keeps the number of selected pods even over the domains of a topology key.
	Spread RuleKind = iota
	// Affinity wants a selected pod in the same domain.
	Affinity
	// AntiAffinity wants no selected pod in the same domain, and keeps later ones away, too.
	AntiAffinity
)

// Rule ties a pod to other pods by the domains of a node label. Rules that ask the same share one value (see Key), so
// that whoever counts pods counts once a rule.
type Rule struct {
	// Key is a canonical text of the content: rules with the same key are the same rule.
	Key  string
	Kind RuleKind
	// TopologyKey is the node label whose values are the domains.
	TopologyKey string
	// Selectors say which pods count: those that all of them select. Only affinity has more than one: Kubernetes counts
	// for each of a pod's affinity terms the pods that match all of its terms.
	Selectors []Selector

	// MaxSkew is by how many pods a domain may exceed the emptiest one; a spread over fewer than MinDomains domains
	// counts as if there were an empty one.
	MaxSkew, MinDomains int
	// AnyNode counts nodes that the pod's own node selector and affinity rule out (nodeAffinityPolicy Ignore).
	AnyNode bool
	// HonorTaints leaves nodes out whose taints the pod does not tolerate (nodeTaintsPolicy Honor).
	HonorTaints bool
}

// Selects reports whether the rule counts a pod with the labels in the namespace.
func (r *Rule) Selects(s *Snapshot, namespace string, podLabels Labels) bool {
	for i := range r.Selectors {
		if !r.Selectors[i].Selects(namespace, s.Namespaces[namespace], podLabels) {
			return false
		}
	}
	return len(r.Selectors) > 0
}

// Selector selects pods by namespace and labels.
type Selector struct {
	// Namespaces by name, sorted; NamespaceLabels adds those whose labels meet it, if HasNamespaceLabels.
	Namespaces         []string
	NamespaceLabels    require.Set
	HasNamespaceLabels bool
	Labels             require.Set
	// MatchesNone says that no pod is selected.
	MatchesNone bool
}

// Selects reports whether a pod with the labels in the namespace is selected; labels are those of the namespace.
func (s *Selector) Selects(namespace string, namespaceLabels, podLabels Labels) bool {
	if s.MatchesNone {
		return false
	}
	if _, named := slices.BinarySearch(s.Namespaces, namespace); !named {
		if !s.HasNamespaceLabels {
			return false
		}
		if _, ok := s.NamespaceLabels.FirstMiss(namespaceLabels.Get); !ok {
			return false
		}
	}
	_, ok := s.Labels.FirstMiss(podLabels.Get)
	return ok
}

// Preference is something a pod would like and can do without. Either Term or Rule is set; a spread wished for
// (ScheduleAnyway) is a Rule with weight 1.
type Preference struct {
	// Weight as Kubernetes has it, 1 to 100; a preferred anti-affinity is a Rule of kind AntiAffinity.
	Weight int32
	Term   require.Set
	Rule   *Rule
}

// Port is a port of the host that a pod occupies.
type Port struct {
	// IP is "0.0.0.0" for all addresses.
	IP       string
	Protocol string // TCP, UDP or SCTP
	Number   int32
}

const anyAddress = "0.0.0.0"

// Conflicts reports whether the two can't be on one host.
func (p Port) Conflicts(q Port) bool {
	return p.Number == q.Number && p.Protocol == q.Protocol && (p.IP == q.IP || p.IP == anyAddress ||
		q.IP == anyAddress)
}

// Volume is a volume that a pod attaches. How many a node can attach is a resource of its own, one for each driver; the
// same volume attached for two pods of a node counts once.
type Volume struct {
	// Dim is the driver's dimension; the pod's requests hold one unit of it for each of its volumes.
	Dim int
	// Handle tells volumes apart: the claim's namespace and name, or what it is bound to.
	Handle string
}
