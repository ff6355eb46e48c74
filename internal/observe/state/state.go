package state

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/observe/search"
	"github.com/tenon-sh/tenon/internal/observe/series"
)

// staleAfter is how old the picture of the cluster may be before it no longer counts as in step: the loop looks at
// least every ten seconds.
const staleAfter = 30 * time.Second

// Collector shows the cluster as gauges, worked out from the latest snapshot when somebody asks: between two scrapes
// it costs nothing, and what is gone leaves no series behind.
type Collector struct {
	now    func() time.Time
	Latest atomic.Pointer[TimedSnapshot]
	// Planning is when the plan that is being made was begun; nil if none is.
	Planning atomic.Pointer[time.Time]
	// Search is what the last search for cheaper nodes came to; nil before the first.
	Search  atomic.Pointer[search.Result]
	starts  *PodStarts
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

// TimedSnapshot is a snapshot and when it was looked at.
type TimedSnapshot struct {
	*cluster.Snapshot
	At time.Time
}

// Shown says which series there are.
type Shown struct {
	// PerObject is whether every pod, every node and every condition has series of its own; NodeClasses are the kinds
	// of which those about nodes and claims name theirs, NodeLabels more labels of nodes that they carry.
	PerObject   bool
	NodeClasses []schema.GroupVersionKind
	NodeLabels  []string
}

// New returns a collector that shows these series.
func New(o Shown, now func() time.Time, s *PodStarts) *Collector {
	var classes []string
	for _, kind := range o.NodeClasses {
		classes = append(classes, v1.NodeClassLabelKey(kind.Group, kind.Kind))
	}
	ours := append(classes, cluster.PoolLabel)
	return &Collector{
		now: now, starts: s, leaving: &poolDeletions{}, perObject: o.PerObject,
		cluster: newClusterFamilies(), pools: newPoolFamilies(), moves: newMoveFamilies(), unused: newUnusedFamilies(),
		nodes: newNodeFamilies(o), pods: newPodFamilies(),
		claims: newConditionFamilies("NodeClaim", true, ours), poolsOf: newConditionFamilies("NodePool", true, nil),
		nodesOf: newConditionFamilies("Node", false, append(ours, cluster.InitializedLabel)),
	}
}

// families lists all that there may be series of.
func (s *Collector) families() []*series.Family {
	out := append(append(s.cluster.all(), s.pools.all()...), append(s.moves.all(), s.unused.all()...)...)
	if s.perObject {
		out = append(append(out, s.nodes.all()...), s.pods.all()...)
		out = append(append(append(out, s.claims.all()...), s.poolsOf.all()...), s.nodesOf.all()...)
		out = append(out, s.claims.old.all()...) // the one that claims and pools share
	}
	return out
}

// Describe says what there may be.
func (s *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range s.families() {
		out <- f.Desc
	}
}

// Collect says what there is.
func (s *Collector) Collect(out chan<- prometheus.Metric) {
	p := s.Latest.Load()
	if p == nil {
		return // another replica leads, or the caches are being filled
	}
	c := &scrape{Snapshot: p.Snapshot, now: s.now(), Pairs: series.NewPairs(), out: out}
	c.cluster(&s.cluster, s, p.At)
	c.poolGauges(&s.pools)
	c.moveGauges(&s.moves, s.Search.Load())
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
	*series.Pairs
	now    time.Time
	out    chan<- prometheus.Metric
	buffer []*dto.LabelPair // reused by whoever puts labels together
}

func (c *scrape) send(f *series.Family, value float64, labels ...*dto.LabelPair) {
	c.out <- f.Sample(value, labels...)
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
			out = append(out, resourceDim{i, c.Shared("resource_type", series.ResourceType(c.Names.Name(i)))})
		}
	}
	slices.SortFunc(out, func(a, b resourceDim) int { return strings.Compare(a.kind.GetValue(), b.kind.GetValue()) })
	return out
}

func (c *scrape) since(at time.Time) float64 { return max(0, c.now.Sub(at).Seconds()) }
