package whatif

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
	"github.com/tenon-sh/tenon/internal/topology"
)

// undoStep is something that a what-if has done and can take back.
type undoStep struct {
	op     undoOp
	target *targetNode
	moving *movingPods
	n      int
	// What the target node had before.
	free    resource.Vector
	ports   int
	handles []string
}

type undoOp uint8

const (
	opClose  undoOp = iota // a node takes nobody any more
	opRemove               // pods leave a node
	opPlace                // pods get a place on a node
)

// isFull reports whether no node has room for a pod of the pod set.
func (ts *targets) isFull(m *movingPods) bool {
	if !m.noRoom && len(ts.undoLog) == 0 {
		m.searchFrom = m.tree.firstWithRoom(m.searchFrom, m.need)
		m.noRoom = m.searchFrom < 0
	}
	return m.noRoom
}

// maxRuleTries bounds how many nodes with room, but where rules stand in the way, are looked at for a batch.
const maxRuleTries = 256

// findRoom looks for room for the batch's pods.
func (ts *targets) findRoom(b *movingBatch) (progress bool) {
	bulk := b.OnlyRoomDecides()
	for at, tries := max(b.searchFrom, 0), 0; len(b.pods) > 0 && tries < maxRuleTries; {
		if at = b.tree.firstWithRoom(at, b.need); at < 0 {
			break
		}
		target, n := b.tree.targets[at], 1
		if bulk {
			n = b.Class.Requests.Count(target.Free, len(b.pods))
		} else if !ts.admits(target, b.movingPods) {
			at++
			tries++
			continue
		}
		ts.placeAt(target, b, n)
		progress = true
	}
	return progress
}

// admits reports whether ports, volumes and rules let one more pod in.
func (ts *targets) admits(target *targetNode, m *movingPods) bool {
	if topology.PortsClash(m.Class.Ports, target.Ports) {
		return false
	}
	ts.steps += m.RuleSteps()
	if _, ok := ts.counts.Allows(target.Domains, m.PodSet); !ok {
		return false
	}
	return ts.counts.Volumes.Holder(m.Exclusive) == ""
}

// placeAt gives n pods of the batch a place.
func (ts *targets) placeAt(target *targetNode, b *movingBatch, n int) {
	a := undoStep{op: opPlace, target: target, moving: b.movingPods, n: n, free: target.Free, ports: len(target.Ports)}
	if len(b.Volumes) > 0 {
		a.handles = slices.Clone(target.AttachedVolumes)
	}
	ts.undoLog = append(ts.undoLog, a)
	target.moved = addToBatch(target.moved, b.movingPods, b.pods[:n]...)
	for _, pod := range b.pods[:n] {
		ts.assigned = append(ts.assigned, schedule.Assignment{Pod: pod, Host: target.Name, Claim: target.Claim})
	}
	b.pods = b.pods[n:]
	target.Occupy(b.PodSet, n)
	ts.countAt(target, b.movingPods, n)
	ts.refreshTrees(target)
}

// countAt tells the topology counts that n pods more, or fewer, are there.
func (ts *targets) countAt(target *targetNode, m *movingPods, n int) {
	if !m.HasNoRules() {
		ts.steps += m.RuleSteps()
		ts.counts.AddPods(target.Position, m.PodSet, n)
	}
	ts.counts.Volumes.Hold(m.Exclusive, n > 0)
}

// refreshTrees tells the trees that a target node's room has changed.
func (ts *targets) refreshTrees(target *targetNode) {
	for _, leaf := range target.treeLeaves {
		leaf.tree.update(leaf.index, target, ts.dims)
	}
}

// takeBack takes back the last moved-in pods of a pod set.
func (t *targetNode) takeBack(m *movingPods, n int) {
	i := slices.IndexFunc(t.moved, func(b movingBatch) bool { return b.movingPods == m })
	b := &t.moved[i]
	if b.pods = b.pods[:len(b.pods)-n]; len(b.pods) == 0 {
		t.moved = slices.Delete(t.moved, i, i+1)
	}
}

// treeFor finds the target nodes that suit pods of the pod set, room and rules aside.
func (ts *targets) treeFor(m *movingPods) *targetTree {
	key := topology.TermsText(m.Class.Terms) + "\x00" + topology.TolerationsText(m.Class)
	t := ts.trees[key]
	if t == nil {
		var list []*targetNode
		for _, h := range ts.list {
			if !h.closed && h.Allows(m.Class) {
				list = append(list, h)
			}
		}
		t = newTargetTree(list, ts.dims)
		ts.trees[key] = t
	}
	return t
}

// targets are the nodes that stay and may take pods, with who was moved where.
type targets struct {
	counts *topology.Counts
	list   []*targetNode
	trees  map[string]*targetTree // by what pods ask of a node
	dims   []int                  // that some pod needs something of
	// undoLog is what the what-if has done; assigned is where its pods go.
	undoLog  []undoStep
	assigned []schedule.Assignment
	steps    int // how often rules were looked at so far, about
}

// targetNode is a node that stays and may take pods.
type targetNode struct {
	*topology.Host
	// closed target nodes take nobody: they are no place for pods that move, or they go.
	closed, removed bool
	moved           []movingBatch // pods that have been given a place here
	fillOrder       int           // in which order it is filled
	treeLeaves      []treeLeaf
}

// treeLeaf is where a target node is in a tree.
type treeLeaf struct {
	tree  *targetTree
	index int
}

// findTargets finds the hosts that go, and those that take pods.
func (w *WhatIf) findTargets(hosts []*topology.Host, departures []RemovableNode, open func(*cluster.Host) bool) {
	byName := make(map[string]*targetNode, len(hosts))
	for _, h := range hosts {
		target := &targetNode{Host: h, closed: h.Closed || h.Reserved || h.Undecided || !open(h.Host)}
		w.list = append(w.list, target)
		byName[h.Name] = target
	}
	for i, d := range w.departing {
		d.node = byName[departures[i].Host]
	}
}

// undo takes back all that was done with the targets.
func (ts *targets) undo() {
	for i := len(ts.undoLog) - 1; i >= 0; i-- {
		a := &ts.undoLog[i]
		switch a.op {
		case opClose:
			a.target.removed = false
			ts.refreshTrees(a.target)
		case opRemove:
			ts.countAt(a.target, a.moving, a.n)
		case opPlace:
			ts.countAt(a.target, a.moving, -a.n)
			a.target.takeBack(a.moving, a.n)
			a.target.Free, a.target.Ports = a.free, a.target.Ports[:a.ports]
			if len(a.moving.Volumes) > 0 {
				a.target.AttachedVolumes = a.handles
			}
			ts.refreshTrees(a.target)
		}
	}
}
