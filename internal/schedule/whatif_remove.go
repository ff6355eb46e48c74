package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
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

// Remove lets departures go and looks for room for their pods, and for their moved-in pods, on the nodes that stay; it
// is true if all have found some.
func (w *WhatIf) Remove(departures ...int) bool {
	w.takePods(departures)
	for again := true; again; {
		again = false
		for i := range w.withoutRoom {
			b := &w.withoutRoom[i]
			if len(b.pods) > 0 && !w.isFull(b.movingPods) {
				again = w.findRoom(b) && !b.HasNoRules() && len(b.pods) > 0 || again
			}
		}
	}
	w.withoutRoom = slices.DeleteFunc(w.withoutRoom, func(b movingBatch) bool { return len(b.pods) == 0 })
	return len(w.withoutRoom) == 0
}

// RemoveFully is Leave for a single departure of which all pods must find room: it gives up as soon as that is out of
// the question.
func (w *WhatIf) RemoveFully(departure int) bool {
	if slices.ContainsFunc(w.departing[departure].allPods(), func(b movingBatch) bool {
		return w.isFull(b.movingPods)
	}) {
		return false
	}
	w.takePods([]int{departure})
	for again := true; again; {
		again = false
		for i := range w.withoutRoom {
			b := &w.withoutRoom[i]
			if len(b.pods) == 0 {
				continue
			}
			progress := w.findRoom(b)
			if len(b.pods) > 0 && b.HasNoRules() {
				return false
			}
			again = progress && len(b.pods) > 0 || again
		}
	}
	w.withoutRoom = slices.DeleteFunc(w.withoutRoom, func(b movingBatch) bool { return len(b.pods) == 0 })
	return len(w.withoutRoom) == 0
}

// takePods empties departures; st.rest is then who was there.
func (w *WhatIf) takePods(departures []int) {
	w.withoutRoom = w.withoutRoom[:0]
	for _, i := range departures {
		// asked before anything moves: rooms only ever shrink, so that a no holds from then on
		for _, b := range w.departing[i].allPods() {
			w.isFull(b.movingPods)
		}
	}
	for _, i := range departures {
		d := w.departing[i]
		d.node.removed = true
		w.undoLog = append(w.undoLog, undoStep{op: opClose, target: d.node})
		w.refreshTrees(d.node)
		for _, b := range d.allPods() {
			w.countAt(d.node, b.movingPods, -len(b.pods))
			w.undoLog = append(w.undoLog, undoStep{op: opRemove, target: d.node, moving: b.movingPods, n: len(b.pods)})
			w.withoutRoom = addToBatch(w.withoutRoom, b.movingPods, b.pods...)
		}
	}
	slices.SortFunc(w.withoutRoom, func(a, b movingBatch) int { return a.placeOrder - b.placeOrder })
}

// isFull reports whether no node has room for a pod of the pod set.
func (w *WhatIf) isFull(m *movingPods) bool {
	if !m.noRoom && len(w.undoLog) == 0 {
		m.searchFrom = m.tree.firstWithRoom(m.searchFrom, m.need)
		m.noRoom = m.searchFrom < 0
	}
	return m.noRoom
}

// maxRuleTries bounds how many nodes with room, but where rules stand in the way, are looked at for a batch.
const maxRuleTries = 256

// findRoom looks for room for the batch's pods.
func (w *WhatIf) findRoom(b *movingBatch) (progress bool) {
	bulk := b.OnlyRoomDecides()
	for at, tries := max(b.searchFrom, 0), 0; len(b.pods) > 0 && tries < maxRuleTries; {
		if at = b.tree.firstWithRoom(at, b.need); at < 0 {
			break
		}
		target, n := b.tree.targets[at], 1
		if bulk {
			n = b.Class.Requests.Count(target.Free, len(b.pods))
		} else if !w.admits(target, b.movingPods) {
			at++
			tries++
			continue
		}
		w.placeAt(target, b, n)
		progress = true
	}
	return progress
}

// admits reports whether ports, volumes and rules let one more pod in.
func (w *WhatIf) admits(target *targetNode, m *movingPods) bool {
	if topology.PortsClash(m.Class.Ports, target.Ports) {
		return false
	}
	w.steps += m.RuleSteps()
	if _, ok := w.counts.Allows(target.Domains, m.PodSet); !ok {
		return false
	}
	return w.counts.Volumes.Holder(m.Exclusive) == ""
}

// placeAt gives n pods of the batch a place.
func (w *WhatIf) placeAt(target *targetNode, b *movingBatch, n int) {
	a := undoStep{op: opPlace, target: target, moving: b.movingPods, n: n, free: target.Free, ports: len(target.Ports)}
	if len(b.Volumes) > 0 {
		a.handles = slices.Clone(target.AttachedVolumes)
	}
	w.undoLog = append(w.undoLog, a)
	target.moved = addToBatch(target.moved, b.movingPods, b.pods[:n]...)
	for _, pod := range b.pods[:n] {
		w.assigned = append(w.assigned, Assignment{Pod: pod, Host: target.Name, Claim: target.Claim})
	}
	b.pods = b.pods[n:]
	target.Occupy(b.PodSet, n)
	w.countAt(target, b.movingPods, n)
	w.refreshTrees(target)
}

// countAt tells the topology counts that n pods more, or fewer, are there.
func (w *WhatIf) countAt(target *targetNode, m *movingPods, n int) {
	if !m.HasNoRules() {
		w.steps += m.RuleSteps()
		w.counts.AddPods(target.Position, m.PodSet, n)
	}
	w.counts.Volumes.Hold(m.Exclusive, n > 0)
}

// refreshTrees tells the trees that a target node's room has changed.
func (w *WhatIf) refreshTrees(target *targetNode) {
	for _, leaf := range target.treeLeaves {
		leaf.tree.update(leaf.index, target, w.dims)
	}
}

// WorthWithoutRoom is what the pods are worth that have found no room: new nodes for them cost at least that.
func (w *WhatIf) WorthWithoutRoom() float64 { return worthOf(w.withoutRoom) }

// CountWithoutRoom is how many pods have found no room.
func (w *WhatIf) CountWithoutRoom() int {
	n := 0
	for _, b := range w.withoutRoom {
		n += len(b.pods)
	}
	return n
}

// PodWithoutRoom names a pod that has found no place, or nil.
func (w *WhatIf) PodWithoutRoom() *cluster.Pod {
	if len(w.withoutRoom) == 0 {
		return nil
	}
	return w.withoutRoom[0].pods[0]
}

// Undo takes the what-if back.
func (w *WhatIf) Undo() {
	for i := len(w.undoLog) - 1; i >= 0; i-- {
		a := &w.undoLog[i]
		switch a.op {
		case opClose:
			a.target.removed = false
			w.refreshTrees(a.target)
		case opRemove:
			w.countAt(a.target, a.moving, a.n)
		case opPlace:
			w.countAt(a.target, a.moving, -a.n)
			a.target.takeBack(a.moving, a.n)
			a.target.Free, a.target.Ports = a.free, a.target.Ports[:a.ports]
			if len(a.moving.Volumes) > 0 {
				a.target.AttachedVolumes = a.handles
			}
			w.refreshTrees(a.target)
		}
	}
	if w.supplyBefore != nil {
		w.supplyBefore.Restore(w.market)
	}
	w.clearLog()
}

// takeBack takes back the last moved-in pods of a pod set.
func (t *targetNode) takeBack(m *movingPods, n int) {
	i := slices.IndexFunc(t.moved, func(b movingBatch) bool { return b.movingPods == m })
	b := &t.moved[i]
	if b.pods = b.pods[:len(b.pods)-n]; len(b.pods) == 0 {
		t.moved = slices.Delete(t.moved, i, i+1)
	}
}

// Commit lets the what-if stand, and says who goes to which node that is there.
func (w *WhatIf) Commit() []Assignment {
	out := slices.Clone(w.assigned)
	for _, b := range w.newBins {
		w.addBin(b)
	}
	w.clearLog()
	return out
}

func (w *WhatIf) clearLog() {
	w.undoLog, w.assigned, w.withoutRoom, w.newBins, w.supplyBefore = w.undoLog[:0], w.assigned[:0],
		w.withoutRoom[:0], nil, nil
}
