package state

import (
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/observe/series"
)

// conditionFamilies are gauges about the conditions of each object of a kind.
type conditionFamilies struct {
	kind, group                 string
	count, seconds, terminating *series.Family
	// keys are the labels of the object that its series carry, names what they are called there.
	keys, names []string
	// old are the families that the contract keeps for those who have used them: all kinds in one. Nil for a kind that
	// was never in them.
	old *oldFamilies
}

func newConditionFamilies(kind string, old bool, keys []string) *conditionFamilies {
	f := &conditionFamilies{kind: kind, keys: keys}
	for _, key := range keys {
		f.names = append(f.names, series.LabelName(key))
	}
	prefix := "operator_" + strings.ToLower(kind) + "_"
	f.count = conditionCount(prefix, f.names)
	f.seconds = conditionSeconds(prefix, f.names)
	f.terminating = terminatingSeconds(prefix, f.names)
	if old {
		f.group, f.old = v1.GroupVersion().Group, newOldFamilies()
	}
	return f
}

func (f *conditionFamilies) all() []*series.Family {
	return []*series.Family{f.count, f.seconds, f.terminating}
}

// oldFamilies hold the conditions of all kinds.
type oldFamilies struct{ count, seconds, terminating *series.Family }

func newOldFamilies() *oldFamilies {
	names := []string{"group", "kind"}
	return &oldFamilies{count: conditionCount("operator_", names), seconds: conditionSeconds("operator_", names),
		terminating: terminatingSeconds("operator_", names)}
}

func (f *oldFamilies) all() []*series.Family {
	return []*series.Family{f.count, f.seconds, f.terminating}
}

func conditionCount(prefix string, more []string) *series.Family {
	return series.NewFamily(prefix+"status_condition_count",
		"1 for each condition of an object, in its present status.",
		append([]string{"namespace", "name", "type", "status", "reason"}, more...)...)
}

func conditionSeconds(prefix string, more []string) *series.Family {
	return series.NewFamily(prefix+"status_condition_current_status_seconds", "For how long a condition has been in "+
		"its present status.",
		append([]string{"namespace", "name", "type", "status", "reason"}, more...)...)
}

func terminatingSeconds(prefix string, more []string) *series.Family {
	return series.NewFamily(prefix+"termination_current_time_seconds",
		"For how long an object has been on its way out.",
		append([]string{"namespace", "name"}, more...)...)
}

func (c *scrape) conditions(st *Collector) {
	for _, claim := range c.Claims {
		if !claim.Expected {
			c.object(st.claims, claim.Name, claim.Labels, claim.Conditions, claim.Deleting)
		}
	}
	for _, p := range c.Pools {
		c.object(st.poolsOf, p.Name, nil, p.Status.Conditions, st.leaving.since(p.Name))
	}
	for _, n := range c.Nodes {
		c.object(st.nodesOf, n.Name, n.Labels, nodeConditions(n), n.Deleting)
	}
}

// object tells the conditions of one object, and whether it is on its way out.
func (c *scrape) object(f *conditionFamilies, name string, labels cluster.Labels, conditions []cluster.Condition,
	deleting time.Time) {
	var more [8]*dto.LabelPair
	extra := more[:0]
	for i, key := range f.keys {
		extra = append(extra, c.Shared(f.names[i], series.Label(labels, key)))
	}
	called, namespace := series.Pair("name", name), c.Shared("namespace", "")
	group, kind := c.Shared("group", f.group), c.Shared("kind", f.kind)
	conditions = slices.Clone(conditions)
	// as series are; see tenants
	slices.SortFunc(conditions, func(a, b cluster.Condition) int { return strings.Compare(a.Reason, b.Reason) })
	for i := range conditions {
		cond := &conditions[i]
		words := append(c.buffer[:0], namespace, called, c.Shared("type", cond.Type),
			c.Shared("status", string(cond.Status)), c.Shared("reason", cond.Reason))
		c.buffer = append(words, extra...)
		c.send(f.count, 1, c.buffer...)
		if !cond.Since.IsZero() {
			c.send(f.seconds, c.since(cond.Since), c.buffer...)
		}
		if f.old == nil {
			continue
		}
		words = append(words, group, kind)
		c.send(f.old.count, 1, words...)
		if !cond.Since.IsZero() {
			c.send(f.old.seconds, c.since(cond.Since), words...)
		}
	}
	if deleting.IsZero() {
		return
	}
	c.buffer = append(append(c.buffer[:0], namespace, called), extra...)
	c.send(f.terminating, c.since(deleting), c.buffer...)
	if f.old != nil {
		c.send(f.old.terminating, c.since(deleting), namespace, called, group, kind)
	}
}

// nodeConditions are what is known of a node's health: whether it is ready, and what repair looks at.
func nodeConditions(n *cluster.Node) []cluster.Condition {
	out := make([]cluster.Condition, 0, len(n.Conditions)+1)
	ready := cluster.Condition{Type: cluster.Ready, Status: cluster.False}
	if n.Ready {
		ready.Status = cluster.True
	}
	for _, c := range n.Conditions {
		if c.Type == cluster.Ready {
			ready.Status, ready.Since = cluster.ConditionStatus(c.Status), c.Since
			continue
		}
		out = append(out, cluster.Condition{Type: c.Type, Status: cluster.ConditionStatus(c.Status), Since: c.Since})
	}
	return append(out, ready)
}
