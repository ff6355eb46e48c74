package whatif

import (
	"slices"
)

// targetTree is the target nodes that suit pods with the same demands on a node, in the order in which they are filled.
// It is a tree in which each tree node knows the most that is free below it, so that the first with enough room is
// found at once.
type targetTree struct {
	targets []*targetNode
	size    int     // leaves, a power of two
	dims    int     // dimensions
	free    []int64 // by tree node and dimension; the root is tree node 1
}

func newTargetTree(targets []*targetNode, dims []int) *targetTree {
	t := &targetTree{targets: targets, size: 1, dims: len(dims)}
	for t.size < len(targets) {
		t.size *= 2
	}
	t.free = make([]int64, 2*t.size*t.dims)
	for i := range t.free {
		t.free[i] = -1
	}
	for i, target := range targets {
		target.treeLeaves = append(target.treeLeaves, treeLeaf{t, i})
		t.setFree(i, target, dims)
	}
	for treeNode := t.size - 1; treeNode > 0; treeNode-- {
		t.sum(treeNode)
	}
	return t
}

// setFree notes what is free in a target node.
func (t *targetTree) setFree(i int, target *targetNode, dims []int) {
	at := t.free[(t.size+i)*t.dims : (t.size+i+1)*t.dims]
	for j, dim := range dims {
		at[j] = -1
		if !target.closed && !target.removed {
			at[j] = max(target.Free[dim], 0)
		}
	}
}

// sum works out the most that is free below a tree node; it is false if that has not changed.
func (t *targetTree) sum(treeNode int) (changed bool) {
	at := t.free[treeNode*t.dims : (treeNode+1)*t.dims]
	left, right := t.free[2*treeNode*t.dims:(2*treeNode+1)*t.dims], t.free[(2*treeNode+1)*t.dims:(2*treeNode+2)*t.dims]
	for j := range at {
		if most := max(left[j], right[j]); most != at[j] {
			at[j], changed = most, true
		}
	}
	return changed
}

// update takes in that a target node's room has changed.
func (t *targetTree) update(i int, target *targetNode, dims []int) {
	t.setFree(i, target, dims)
	for treeNode := (t.size + i) / 2; treeNode > 0; treeNode /= 2 {
		if !t.sum(treeNode) {
			return
		}
	}
}

// firstWithRoom finds the first target node from a place on that has room for the need, or −1.
func (t *targetTree) firstWithRoom(from int, need []int64) int {
	if from >= len(t.targets) {
		return -1
	}
	treeNode := t.size + from
	for {
		if t.hasRoom(treeNode, need) {
			if treeNode >= t.size {
				return treeNode - t.size
			}
			treeNode *= 2
			continue
		}
		for treeNode&1 == 1 {
			treeNode /= 2
		}
		if treeNode == 0 {
			return -1
		}
		treeNode++
	}
}

func (t *targetTree) hasRoom(treeNode int, need []int64) bool {
	at := t.free[treeNode*t.dims : (treeNode+1)*t.dims]
	for j, n := range need {
		if n > at[j] {
			return false
		}
	}
	return true
}

// SetOrder says in which order departures are thought to go, the first first: pods that move fill the nodes that are to
// stay before those that may go, and of these the last to go first.
func (w *WhatIf) SetOrder(order []int) {
	for _, target := range w.list {
		target.fillOrder, target.treeLeaves = 0, nil
	}
	for at, i := range order {
		if target := w.departing[i].node; target != nil {
			target.fillOrder = len(order) - at
		}
	}
	slices.SortStableFunc(w.list, func(a, b *targetNode) int { return a.fillOrder - b.fillOrder })
	clear(w.trees)
	for _, d := range w.departing {
		for _, b := range d.pods {
			b.tree, b.noRoom, b.searchFrom = w.treeFor(b.movingPods), false, 0
		}
	}
}
