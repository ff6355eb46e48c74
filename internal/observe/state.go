package observe

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// staleAfter is how old the picture of the cluster may be before it no longer counts as in step: the loop looks at
// least every ten seconds.
const staleAfter = 30 * time.Second

// stateMetrics shows the cluster as gauges, worked out from the latest snapshot when somebody asks: between two scrapes
// it costs nothing, and what is gone leaves no series behind.
type stateMetrics struct {
	now    func() time.Time
	latest atomic.Pointer[timedSnapshot]
	// planning is when the plan that is being made was begun; nil if none is.
	planning atomic.Pointer[time.Time]
	// search is what the last search for cheaper nodes came to; nil before the first.
	search  atomic.Pointer[lastSearch]
	starts  *podStarts
	leaving *poolDeletions
	// perObject says whether pods, nodes and conditions get series of their own.
	perObject bool

	cluster clusterFamilies
	pools   poolFamilies
	moves   moveFamilies
	unused  unusedFamilies
	nodes   nodeFamilies
	pods    podFamilies
	claims  *conditionFamilies
	poolsOf *conditionFamilies
	nodesOf *conditionFamilies
}

// timedSnapshot is a snapshot and when it was looked at.
type timedSnapshot struct {
	*cluster.Snapshot
	at time.Time
}

func newStateMetrics(o Options, now func() time.Time, s *podStarts) *stateMetrics {
	var classes []string
	for _, kind := range o.NodeClasses {
		classes = append(classes, v1.NodeClassLabelKey(kind.Group, kind.Kind))
	}
	ours := append(classes, cluster.PoolLabel)
	return &stateMetrics{
		now: now, starts: s, leaving: &poolDeletions{}, perObject: o.ClusterState,
		cluster: newClusterFamilies(), pools: newPoolFamilies(), moves: newMoveFamilies(), unused: newUnusedFamilies(),
		nodes: newNodeFamilies(o), pods: newPodFamilies(),
		claims: newConditionFamilies("NodeClaim", true, ours), poolsOf: newConditionFamilies("NodePool", true, nil),
		nodesOf: newConditionFamilies("Node", false, append(ours, cluster.InitializedLabel)),
	}
}

// families lists all that there may be series of.
func (s *stateMetrics) families() []*metricFamily {
	out := append(append(s.cluster.all(), s.pools.all()...), append(s.moves.all(), s.unused.all()...)...)
	if s.perObject {
		out = append(append(out, s.nodes.all()...), s.pods.all()...)
		out = append(append(append(out, s.claims.all()...), s.poolsOf.all()...), s.nodesOf.all()...)
		out = append(out, s.claims.old.all()...) // the one that claims and pools share
	}
	return out
}

// Describe says what there may be.
func (s *stateMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, f := range s.families() {
		out <- f.desc
	}
}

// Collect says what there is.
func (s *stateMetrics) Collect(out chan<- prometheus.Metric) {
	p := s.latest.Load()
	if p == nil {
		return // another replica leads, or the caches are being filled
	}
	c := &scrape{Snapshot: p.Snapshot, now: s.now(), labelPairs: newLabelPairs(), out: out}
	c.cluster(&s.cluster, s, p.at)
	c.poolGauges(&s.pools)
	c.moveGauges(&s.moves, s.search.Load())
	c.unusedGauges(&s.unused)
	if !s.perObject {
		return
	}
	c.nodeGauges(&s.nodes)
	c.podStates(&s.pods)
	c.podTimes(&s.pods, s.starts)
	c.conditions(s)
}

// scrape is one answer to somebody who asks.
type scrape struct {
	*cluster.Snapshot
	*labelPairs
	now    time.Time
	out    chan<- prometheus.Metric
	buffer []*dto.LabelPair // reused by whoever puts labels together
}

func (c *scrape) send(f *metricFamily, value float64, labels ...*dto.LabelPair) {
	c.out <- f.sample(value, labels...)
}

// resourceDim is a resource that people care about.
type resourceDim struct {
	index int
	kind  *dto.LabelPair
}

// dimensions lists the resources by name, other than attachments of volumes, which only the planner counts as such.
func (c *scrape) dimensions() []resourceDim {
	var out []resourceDim
	for i := range c.Names.Len() {
		if !c.Names.Attaches(i) {
			out = append(out, resourceDim{i, c.shared("resource_type", resourceType(c.Names.Name(i)))})
		}
	}
	slices.SortFunc(out, func(a, b resourceDim) int { return strings.Compare(a.kind.GetValue(), b.kind.GetValue()) })
	return out
}

func (c *scrape) since(at time.Time) float64 { return max(0, c.now.Sub(at).Seconds()) }
