package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Unplaced is a pod that found no place, and why.
type Unplaced struct {
	Pod *cluster.Pod
	// Unsupported names what keeps the pod from being planned for; Pools is empty then.
	Unsupported []string
	// Failed says that the planner has failed on pods like this one, and what there is to know about it.
	Failed *cluster.Failure
	// Deferred says that the pod waits for the next placement.
	Deferred bool
	// Taken is a volume that only one pod may use and another does.
	Taken string
	Pools []PoolMiss
}

// PoolMiss says why a pool could not give the pod a node. Each offering is counted once, under the first thing that ruled
// it out.
type PoolMiss struct {
	Pool string
	// NotUsable says that the pool takes no part at all, and why.
	NotUsable string
	// Taint that the pod does not tolerate.
	Taint *cluster.Taint
	// Label is the key that the pool itself rules out, with what the pod asks of it.
	Label, Wanted string
	// Counts of instance types, by what ruled them out.
	Types, ByRequirement, ByResources, ByOffering, ByPort, ByLimit, ByTopology int
	// Key is the label key that ruled out the most types; Resource, Need and Best tell the nearest miss of size.
	Key        string
	Resource   string
	Need, Best string
	// Limit names the limited resource that has nothing left.
	Limit string
	// Rule is the one between pods that left no domain; Inverse says that it is another pod's.
	Rule    *cluster.Rule
	Inverse bool
	// Waits says that a node on its way has to be launched before the rule can be judged; Unlabelled that no node of the
	// pool has the label that the rule is about.
	Waits, Unlabelled bool
	// Why is what people could do about types that have no capacity, in the cloud's words.
	Why string
	// MinValues names the key of which too few values were left.
	MinValues string
}

// String is a sentence a person can act on.
func (m *PoolMiss) String() string {
	at := fmt.Sprintf("NodePool %q: ", m.Pool)
	switch {
	case m.NotUsable != "":
		return at + m.NotUsable
	case m.Taint != nil:
		return at + "the pod does not tolerate taint " + m.Taint.String()
	case m.Label != "":
		return at + fmt.Sprintf("the pod asks for label %s %s, which the pool neither sets nor allows", m.Label, m.Wanted)
	case m.Types == 0:
		return at + "its requirements leave no instance type"
	}
	var parts []string
	if m.ByRequirement > 0 {
		parts = append(parts, fmt.Sprintf("%d don't match the pod's %s", m.ByRequirement, m.Key))
	}
	if m.ByResources > 0 {
		parts = append(parts, fmt.Sprintf("%d are too small (%s: the pod needs %s, the largest of them leaves %s for pods)", m.ByResources, m.Resource, m.Need, m.Best))
	}
	if m.ByOffering > 0 {
		parts = append(parts, fmt.Sprintf("%d have no capacity right now", m.ByOffering)+m.inBrackets())
	}
	if m.ByPort > 0 {
		parts = append(parts, fmt.Sprintf("%d have a daemon on a host port that the pod needs", m.ByPort))
	}
	if m.ByLimit > 0 {
		parts = append(parts, fmt.Sprintf("%d would exceed the pool's limit of %s", m.ByLimit, m.Limit))
	}
	if m.ByTopology > 0 {
		parts = append(parts, fmt.Sprintf("%d %s", m.ByTopology, m.ruled()))
	}
	if m.MinValues != "" {
		parts = append(parts, fmt.Sprintf("minValues of %s can't be met", m.MinValues))
	}
	if len(parts) == 0 {
		return at + "no instance type is left"
	}
	return at + fmt.Sprintf("of %d instance types ", m.Types) + strings.Join(parts, ", ")
}

// inBrackets is what people could do about what the cloud refuses, if anything.
func (m *PoolMiss) inBrackets() string {
	if m.Why == "" {
		return ""
	}
	return " (" + m.Why + ")"
}

// String is a sentence a person can act on.
func (u *Unplaced) String() string {
	if u.Failed != nil {
		return fmt.Sprintf("Tenon's planner failed on pods like this one, which is a mistake in Tenon: %s. Until %s it looks for no place for them; all other pods are served. "+
			"Changing what the pod asks for may help. The controller's log names a snapshot file that shows the mistake: please report it",
			u.Failed.Message, u.Failed.Until.UTC().Format(time.RFC3339))
	}
	if len(u.Unsupported) > 0 {
		return "the pod asks for what can't be planned for: " + strings.Join(u.Unsupported, ", ")
	}
	if u.Deferred {
		return fmt.Sprintf("the pod waits for its turn: the pods that look for a place have more rules about other pods than one plan takes on "+
			"(%d that name no label of these pods, %d in all, about %d topology keys); let pods share rules, or name a label with its values in each selector",
			mostWide, mostRules, mostKeys)
	}
	if u.Taken != "" {
		return fmt.Sprintf("%s may be used by one pod at a time, and another pod uses it or is about to", u.Taken)
	}
	if len(u.Pools) == 0 {
		return "no NodePool is there to make a node for the pod; create one"
	}
	parts := make([]string, len(u.Pools))
	for i := range u.Pools {
		parts[i] = u.Pools[i].String()
	}
	return strings.Join(parts, "; ")
}

// shortage fills in the nearest miss of size.
func (m *PoolMiss) shortage(names *resource.Names, dim int, need, best int64) {
	m.Resource, m.Need, m.Best = names.Name(dim), resource.Format(dim, need), resource.Format(dim, best)
}

// ruled says what a rule between pods makes of the nodes that could be had.
func (m *PoolMiss) ruled() string {
	r := m.Rule
	where := "in a " + r.Topology
	if r.Topology == cluster.HostnameLabel {
		where = "on a node"
	}
	switch {
	case len(r.Selectors) == 0:
		return "would be in another zone than the pods with which the pod shares a volume"
	case m.Waits:
		return fmt.Sprintf("have to wait: pods that the rule about %s looks at are on a node that is being launched", r.Topology)
	case m.Unlabelled && !m.Inverse:
		return fmt.Sprintf("have no label %s, which the pod's rule is about", r.Topology)
	case m.Inverse && r.Kind == cluster.AntiAffinity:
		return fmt.Sprintf("would be %s where another pod's anti-affinity keeps this one away", where)
	case m.Inverse:
		return fmt.Sprintf("would upset another pod's rule about %s", r.Topology)
	case r.Kind == cluster.Spread:
		return fmt.Sprintf("would break the pod's spread over %s (maxSkew %d)", r.Topology, r.MaxSkew)
	case r.Kind == cluster.Affinity:
		return fmt.Sprintf("would be %s without a pod that its affinity asks for", where)
	}
	return fmt.Sprintf("would be %s with a pod that its anti-affinity avoids", where)
}
