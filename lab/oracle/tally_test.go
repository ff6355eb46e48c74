package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tally counts, by kind of constraint, what became of the pods.
type tally map[string]*[3]int

const (
	onExisting = iota
	onNew
	nowhere
)

func (t tally) count(w *world, p *placement) {
	fate := make(map[string]int)
	for pod := range p.Assigned {
		fate[pod] = onExisting
	}
	for _, b := range p.Bins {
		for _, pod := range b.Pods {
			fate[pod] = onNew
		}
	}
	for pod := range p.Unplaced {
		fate[pod] = nowhere
	}
	for _, b := range p.Bins {
		for _, kind := range poolKinds(w, &b) {
			if t[kind] == nil {
				t[kind] = new([3]int)
			}
			t[kind][onNew] += len(b.Pods)
		}
	}
	for _, pod := range w.pending() {
		for _, kind := range kindsOf(w, pod) {
			if t[kind] == nil {
				t[kind] = new([3]int)
			}
			t[kind][fate[id(pod)]]++
		}
	}
}

func (t tally) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%-42s %9s %9s %9s\n", "pods by kind of constraint", "existing", "new", "unplaced")
	for _, kind := range slices.Sorted(maps.Keys(t)) {
		n := t[kind]
		fmt.Fprintf(&out, "%-42s %9d %9d %9d\n", kind, n[onExisting], n[onNew], n[nowhere])
	}
	return out.String()
}
