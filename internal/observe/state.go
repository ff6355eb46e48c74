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

// stale is how old the picture of the cluster may be before it no longer counts as in step: the loop looks at least every
// ten seconds.
const stale = 30 * time.Second

// state shows the cluster as gauges, worked out from the latest snapshot when somebody asks: between two scrapes it costs
// nothing, and what is gone leaves no series behind.
type state struct {
	now    func() time.Time
	latest atomic.Pointer[picture]
	// planning is when the plan that is being made was begun; nil if none is.
	planning atomic.Pointer[time.Time]
	// search is what the last search for cheaper nodes came to; nil before the first.
	search  atomic.Pointer[search]
	starts  *starts
	leaving *leaving
	// each says whether pods, nodes and conditions get series of their own.
	each bool

	cluster clusterFamilies
	pools   poolFamilies
	moves   moveFamilies
	vain    vainFamilies
	nodes   nodeFamilies
	pods    podFamilies
	claims  *conditionFamilies
	poolsOf *conditionFamilies
	nodesOf *conditionFamilies
}

// picture is a snapshot and when it was looked at.
type picture struct {
	*cluster.Snapshot
	at time.Time
}

func newState(o Options, now func() time.Time, s *starts) *state {
	var classes []string
	for _, kind := range o.NodeClasses {
		classes = append(classes, v1.NodeClassLabelKey(kind.Group, kind.Kind))
	}
	ours := append(classes, cluster.PoolLabel)
	return &state{
		now: now, starts: s, leaving: &leaving{}, each: o.ClusterState,
		cluster: newClusterFamilies(), pools: newPoolFamilies(), moves: newMoveFamilies(), vain: newVainFamilies(), nodes: newNodeFamilies(o), pods: newPodFamilies(),
		claims: newConditionFamilies("NodeClaim", true, ours), poolsOf: newConditionFamilies("NodePool", true, nil),
		nodesOf: newConditionFamilies("Node", false, append(ours, cluster.InitializedLabel)),
	}
}

// families lists all that there may be series of.
func (st *state) families() []*family {
	out := append(append(st.cluster.all(), st.pools.all()...), append(st.moves.all(), st.vain.all()...)...)
	if st.each {
		out = append(append(out, st.nodes.all()...), st.pods.all()...)
		out = append(append(append(out, st.claims.all()...), st.poolsOf.all()...), st.nodesOf.all()...)
		out = append(out, st.claims.old.all()...) // the one that claims and pools share
	}
	return out
}

// Describe says what there may be.
func (st *state) Describe(out chan<- *prometheus.Desc) {
	for _, f := range st.families() {
		out <- f.desc
	}
}

// Collect says what there is.
func (st *state) Collect(out chan<- prometheus.Metric) {
	p := st.latest.Load()
	if p == nil {
		return // another replica leads, or the caches are being filled
	}
	c := &scrape{Snapshot: p.Snapshot, now: st.now(), labels: newLabels(), out: out}
	c.cluster(&st.cluster, st, p.at)
	c.poolGauges(&st.pools)
	c.moveGauges(&st.moves, st.search.Load())
	c.vain(&st.vain)
	if !st.each {
		return
	}
	c.nodeGauges(&st.nodes)
	c.podStates(&st.pods)
	c.podTimes(&st.pods, st.starts)
	c.conditions(st)
}

// scrape is one answer to somebody who asks.
type scrape struct {
	*cluster.Snapshot
	*labels
	now  time.Time
	out  chan<- prometheus.Metric
	room []*dto.LabelPair // reused by whoever puts labels together
}

func (c *scrape) give(f *family, value float64, labels ...*dto.LabelPair) {
	c.out <- f.sample(value, labels...)
}

// dimension is a resource that people care about.
type dimension struct {
	index int
	kind  *dto.LabelPair
}

// dimensions lists the resources by name, other than attachments of volumes, which only the planner counts as such.
func (c *scrape) dimensions() []dimension {
	var out []dimension
	for i := range c.Names.Len() {
		if !c.Names.Attaches(i) {
			out = append(out, dimension{i, c.shared("resource_type", resourceType(c.Names.Name(i)))})
		}
	}
	slices.SortFunc(out, func(a, b dimension) int { return strings.Compare(a.kind.GetValue(), b.kind.GetValue()) })
	return out
}

func (c *scrape) since(at time.Time) float64 { return max(0, c.now.Sub(at).Seconds()) }
