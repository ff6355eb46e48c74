package plan

import (
	"math"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/resource"
)

// largestWait bounds how long after a node has begun to go its smaller pods wait for larger ones.
const largestWait = 10 * time.Second

// largestFirst has the large pods of nodes that go to save money leave before the small ones: these are asked once
// those have a node. kube-scheduler spreads pods over the nodes as they come, so that a large one that comes late finds
// room in pieces only and needs a node of its own, while a small one finds a gap. Fewer pods are away at the same time,
// too.
func (p *Plan) largestFirst(s *cluster.Snapshot) {
	evicts := 0
	for _, c := range p.Commands {
		if e, ok := c.(command.Evict); ok && leavesToSaveMoney(s, e.Node) {
			evicts++
		}
	}
	if evicts == 0 {
		return
	}
	m := newSizeScale(s)
	top := math.MinInt
	for _, c := range p.Commands {
		if e, ok := c.(command.Evict); ok && leavesToSaveMoney(s, e.Node) {
			if _, failed := s.Retry[e.Key()]; !failed {
				top = max(top, m.size(podOf(s, e.UID)))
			}
		}
	}
	for _, pod := range s.PodsBetweenNodes() {
		top = max(top, m.size(pod))
	}
	p.Commands = slices.DeleteFunc(p.Commands, func(c command.Command) bool {
		e, ok := c.(command.Evict)
		if !ok || e.Delete || !leavesToSaveMoney(s, e.Node) || m.size(podOf(s, e.UID)) >= top {
			return false
		}
		until := s.ClaimOf(e.Node).Deleting.Add(largestWait)
		if !s.Now.Before(until) {
			return false
		}
		p.WakeAt = cluster.Earlier(p.WakeAt, until)
		return true
	})
}

// leavesToSaveMoney reports whether the node is on its way out to save money.
func leavesToSaveMoney(s *cluster.Snapshot, node string) bool {
	c := s.ClaimOf(node)
	return c != nil && !c.Deleting.IsZero() && disrupt.MoveReason(c.Move) == command.Underutilized
}

// sizeScale compares the sizes of pods by the part that they take of all there is.
type sizeScale struct{ total resource.Vector }

func newSizeScale(s *cluster.Snapshot) sizeScale {
	var m sizeScale
	for _, n := range s.Nodes {
		m.total = m.total.Add(n.Allocatable)
	}
	return m
}

// size of a pod: one more for each doubling.
func (m sizeScale) size(p *cluster.Pod) int {
	if p == nil {
		return math.MinInt
	}
	share := 0.0
	for dim, amount := range p.Class.Requests {
		if have := m.total[dim]; amount > 0 && have > 0 {
			share = max(share, float64(amount)/float64(have))
		}
	}
	if share <= 0 {
		return math.MinInt
	}
	return math.Ilogb(share)
}
