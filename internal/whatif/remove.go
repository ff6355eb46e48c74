package whatif

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
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

// RemoveFully is Remove for a single departure of which all pods must find room: it gives up as soon as that is out of
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

// takePods empties departures; withoutRoom is then who was there.
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
	w.targets.undo()
	if w.supplyBefore != nil {
		w.supplyBefore.Restore(w.market)
	}
	w.clearLog()
}

// Commit lets the what-if stand, and says who goes to which node that is there.
func (w *WhatIf) Commit() []schedule.Assignment {
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
