package state

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/observe/series"
)

// ConditionChanges counts what happens to the conditions of claims, pools and nodes, by comparing each snapshot with
// the one before. What comes and goes between two snapshots is not seen.
type ConditionChanges struct {
	now                  func() time.Time
	claims, pools, nodes *transitions
	allKinds             *transitions // all but nodes in one, as the contract had them first
	last                 *cluster.Snapshot
	leaving              *poolDeletions
	// ClaimChanged is told of the conditions of claims that have changed.
	ClaimChanged func(claim *cluster.Claim, from, to cluster.Condition)
	// PoolChanged is told of those of pools.
	PoolChanged func(pool *cluster.Pool, from, to cluster.Condition)
}

// transitions are what is counted about the objects of one kind.
type transitions struct {
	kind, group string
	keys        []string
	total       *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	ended       *prometheus.HistogramVec
}

func newTransitions(mk series.Maker, prefix string, more []string) *transitions {
	limiters := prometheus.ExponentialBuckets(0.5, 2, 15)
	return &transitions{
		total: mk.Counter(prefix+"status_condition_transitions_total",
			"How often a condition has come into a status.", append([]string{"type", "status", "reason"}, more...)...),
		seconds: mk.Histogram(prefix+"status_condition_transition_seconds", "How long a condition was in a status "+
			"before it changed to another.", limiters, append([]string{"type", "status", "to_status"}, more...)...),
		ended: mk.Histogram(prefix+"termination_duration_seconds",
			"Time from an object's deletion until it was gone.", limiters, more...),
	}
}

// NewConditionChanges registers what is counted of the conditions that the collector shows.
func NewConditionChanges(mk series.Maker, st *Collector, now func() time.Time) *ConditionChanges {
	of := func(f *conditionFamilies, prefix string) *transitions {
		t := newTransitions(mk, prefix, f.names)
		t.kind, t.group, t.keys = f.kind, f.group, f.keys
		return t
	}
	return &ConditionChanges{
		now: now, leaving: st.leaving, allKinds: newTransitions(mk, "operator_", []string{"group", "kind"}),
		claims: of(st.claims, "operator_nodeclaim_"), pools: of(st.poolsOf, "operator_nodepool_"),
		nodes: of(st.nodesOf, "operator_node_"),
	}
}

// Observe takes in a snapshot. What the first one shows has happened before.
func (c *ConditionChanges) Observe(s *cluster.Snapshot) {
	last := c.last
	c.last = s
	if last == nil {
		for _, p := range s.Pools {
			if p.Deleting {
				c.leaving.note(p.Name, c.now())
			}
		}
		return
	}
	changedPairs(last.Claims, s.Claims, func(o *cluster.Claim) string { return o.Name }, c.claim)
	changedPairs(last.Pools, s.Pools, func(o *cluster.Pool) string { return o.Name }, c.pool)
	changedPairs(last.Nodes, s.Nodes, func(o *cluster.Node) string { return o.Name }, func(old, now *cluster.Node) {
		if old != nil && (now == nil || old.UID != now.UID) {
			c.noteGone(c.nodes, old.Labels, old.Deleting)
			old = nil
		}
		if now == nil {
			return
		}
		var before []cluster.Condition
		if old != nil {
			before = nodeConditions(old)
		}
		c.compare(c.nodes, now.Labels, before, nodeConditions(now), nil)
	})
}

func (c *ConditionChanges) pool(old, now *cluster.Pool) {
	if old != nil && (now == nil || old.UID != now.UID) {
		c.noteGone(c.pools, nil, c.leaving.since(old.Name))
		c.leaving.forget(old.Name)
		old = nil
	}
	if now == nil {
		return
	}
	if old == nil {
		old = &cluster.Pool{}
	}
	if now.Deleting && !old.Deleting {
		c.leaving.note(now.Name, c.now())
	}
	c.compare(c.pools, nil, old.Status.Conditions, now.Status.Conditions, func(from, to cluster.Condition) {
		if c.PoolChanged != nil {
			c.PoolChanged(now, from, to)
		}
	})
}

func (c *ConditionChanges) claim(old, now *cluster.Claim) {
	if old != nil && (now == nil || old.UID != now.UID && old.UID != "") {
		c.noteGone(c.claims, old.Labels, old.Deleting)
		old = nil
	}
	if now == nil {
		return
	}
	var before []cluster.Condition
	if old != nil {
		before = old.Conditions
	}
	c.compare(c.claims, now.Labels, append(impliedConditions(before, now.Created), before...), now.Conditions,
		func(from, to cluster.Condition) {
			if c.ClaimChanged != nil {
				c.ClaimChanged(now, from, to)
			}
		})
}

// impliedConditions are the conditions that every claim comes to have and that are not there yet: they are Unknown from
// its creation, whether or not anybody has written that down.
func impliedConditions(there []cluster.Condition, created time.Time) []cluster.Condition {
	var out []cluster.Condition
	for _, kind := range []string{cluster.Launched, cluster.Registered, cluster.Initialized, cluster.Ready} {
		if !slices.ContainsFunc(there, func(c cluster.Condition) bool { return c.Type == kind }) {
			out = append(out, cluster.Condition{Type: kind, Status: cluster.Unknown, Since: created})
		}
	}
	return out
}

// compare counts the conditions whose status has changed.
func (c *ConditionChanges) compare(t *transitions, labels cluster.Labels, before, after []cluster.Condition,
	moved func(from, to cluster.Condition)) {
	for _, to := range after {
		i := slices.IndexFunc(before, func(b cluster.Condition) bool { return b.Type == to.Type })
		if i >= 0 && before[i].Status == to.Status {
			continue
		}
		more := t.extraValues(labels)
		t.total.WithLabelValues(append([]string{to.Type, string(to.Status), to.Reason}, more...)...).Inc()
		if t.group != "" {
			c.allKinds.total.WithLabelValues(to.Type, string(to.Status), to.Reason, t.group, t.kind).Inc()
		}
		from := cluster.Condition{Type: to.Type, Status: cluster.Unknown}
		if i >= 0 {
			from = before[i]
			c.lasted(t, from, to, more)
		}
		if moved != nil {
			moved(from, to)
		}
	}
}

// lasted measures how long a condition was what it is no longer.
func (c *ConditionChanges) lasted(t *transitions, from, to cluster.Condition, more []string) {
	if from.Since.IsZero() || to.Since.IsZero() {
		return
	}
	seconds := series.Elapsed(from.Since, to.Since)
	t.seconds.WithLabelValues(append([]string{to.Type, string(from.Status), string(to.Status)}, more...)...).
		Observe(seconds)
	if t.group != "" {
		c.allKinds.seconds.WithLabelValues(to.Type, string(from.Status), string(to.Status), t.group,
			t.kind).Observe(seconds)
	}
}

// noteGone measures how long the end of an object took.
func (c *ConditionChanges) noteGone(t *transitions, labels cluster.Labels, deleting time.Time) {
	if deleting.IsZero() {
		return
	}
	seconds := series.Elapsed(deleting, c.now())
	t.ended.WithLabelValues(t.extraValues(labels)...).Observe(seconds)
	if t.group != "" {
		c.allKinds.ended.WithLabelValues(t.group, t.kind).Observe(seconds)
	}
}

// extraValues are the values of the labels that series carry for where an object belongs.
func (t *transitions) extraValues(labels cluster.Labels) []string {
	out := make([]string, len(t.keys))
	for i, key := range t.keys {
		out[i] = series.Label(labels, key)
	}
	return out
}

// poolDeletions remembers when pools were first seen to be on their way out: snapshots only say that they are.
type poolDeletions struct {
	mu    sync.Mutex
	pools map[string]time.Time // by name
}

func (l *poolDeletions) note(pool string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pools == nil {
		l.pools = make(map[string]time.Time)
	}
	l.pools[pool] = at
}

func (l *poolDeletions) since(pool string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pools[pool]
}

func (l *poolDeletions) forget(pool string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pools, pool)
}
