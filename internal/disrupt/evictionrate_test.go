package disrupt_test

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// How many pods a workload has: what its owner wants, or else those that are there.
func TestSizesOfWorkloads(t *testing.T) {
	h := disrupttest.NewHouse()
	add := func(name string, change func(p *cluster.Pod)) {
		p := disrupttest.Tenant(name, "loose")
		change(p)
		h.S.Pods = append(h.S.Pods, p)
	}
	for _, name := range []string{"a", "b", "c"} {
		add(name, func(*cluster.Pod) {})
	}
	add("done", func(p *cluster.Pod) { p.Finished = true })
	add("daemon", func(p *cluster.Pod) { p.Daemon = true })
	add("mirror", func(p *cluster.Pod) { p.Mirror = true })
	add("leaving", func(p *cluster.Pod) { p.Deleting = h.S.Now })
	for _, name := range []string{"d", "e"} { // one of them is about to go
		add(name, func(p *cluster.Pod) { p.Owner = "single" })
	}
	h.S.Owners["unknown"], h.S.Owners["none"] = cluster.Owner{UID: "unknown", Desired: 9}, cluster.Owner{UID: "none",
		Known: true}
	h.S.Owners["single"] = cluster.Owner{UID: "single", Known: true, Desired: 1}
	rates := disrupt.NewEvictionRates(h.S.Seal(), h.Set)
	for owner, want := range map[string]int{"deploy": 2, "loose": 3, "stateful": 1, "single": 1, "unknown": 1,
		"none": 1, "stranger": 1} {
		if got := rates.SizeOf(owner); got != want {
			t.Errorf("%s has %d pods, want %d", owner, got, want)
		}
	}
}
