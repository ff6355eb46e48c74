package contest

import (
	"slices"
	"testing"
)

// row is a workload that we solve in a second for 90 and the peer in a thousand for 100, before the test bends it.
func row(name string, pods int, bend func(*Row)) *Row {
	r := &Row{Workload: name, Pods: pods,
		Tenon: &Result{Seconds: 1, AllocMB: 100, Nodes: 10, Cost: 90, Bound: 88, PlacedMilli: 1000},
		Peer:  &Result{Seconds: 1000, Nodes: 10, Cost: 100, PlacedMilli: 1000}}
	if bend != nil {
		bend(r)
	}
	return r
}

// sorts is a row of each sort that is about price, the first of them bent.
func sorts(bend func(*Row)) []*Row {
	out := []*Row{row("gpu-mix", 2500, bend)}
	for _, name := range []string{"fleet-2000", "memory-heavy", "cpu-heavy", "arm-or-amd"} {
		out = append(out, row(name, 2500, nil))
	}
	return out
}

func TestVerdicts(t *testing.T) {
	slow := func(s float64) func(*Row) { return func(r *Row) { r.Tenon.Seconds = s } }
	cases := []struct {
		name  string
		rows  []*Row
		check string
		holds bool
	}{
		{"fast enough", []*Row{row("diverse-5000", 5000, slow(10))}, "diverse-5000-speedup", true},
		{"too slow", []*Row{row("diverse-5000", 5000, slow(10.1))}, "diverse-5000-speedup", false},
		{"too slow for many", []*Row{row("diverse-20000", 20000, slow(2.6))}, "diverse-20000-speedup", false},
		{"small enough", []*Row{row("fleet-100000", 100000, nil)}, "fleet-100000-size", true},
		{"too much memory", []*Row{row("fleet-100000", 100000, func(r *Row) {
			r.Tenon.AllocMB = 501
		})}, "fleet-100000-size", false},
		{"cheaper", []*Row{row("many-pools", 3000, nil)}, "many-pools-price", true},
		{"dearer", []*Row{row("many-pools", 3000, func(r *Row) { r.Tenon.Cost = 100.1 })}, "many-pools-price", false},
		{"more unplaced", []*Row{row("many-pools", 3000, func(r *Row) {
			r.Tenon.Unplaced = 1
		})}, "many-pools-price", false},
		{"dearer for more pods", []*Row{row("limits-bound", 3000, func(r *Row) {
			r.Tenon.Cost, r.Tenon.PlacedMilli, r.Peer.Unplaced = 190, 2000, 9
		})}, "limits-bound-price", true},
		{"near the bound", []*Row{row("cpu-heavy", 2500, nil)}, "cpu-heavy-bound", true},
		{"far from the bound", []*Row{row("cpu-heavy", 2500, func(r *Row) {
			r.Tenon.Bound = 80
		})}, "cpu-heavy-bound", false},
		{"wrong", []*Row{row("cpu-heavy", 2500, func(r *Row) {
			r.Tenon.Problems = []string{"x"}
		})}, "cpu-heavy-valid", false},
		{"few more nodes for wishes", []*Row{row("preferences-4000", 4000, func(r *Row) {
			r.TenonIgnored = &Result{Nodes: 10}
		})}, "preferences-4000-nodes", true},
		{"many more nodes for wishes", []*Row{row("preferences-4000", 4000, func(r *Row) {
			r.TenonIgnored = &Result{Nodes: 9}
		})}, "preferences-4000-nodes", false},
		{"linear", []*Row{row("fleet-2000", 2000, slow(0.1)), row("fleet-20000", 20000, slow(1.1))},
			"fleet-growth", true},
		{"worse than linear", []*Row{row("fleet-2000", 2000, slow(0.1)), row("fleet-20000", 20000, slow(1.3))},
			"fleet-growth", false},
		{"cheaper in all", sorts(func(r *Row) { r.Tenon.Cost = 110 }), "together-price", true},
		{"hardly cheaper in all", sorts(func(r *Row) { r.Tenon.Cost = 110.1 }), "together-price", false},
		{"the unfinished does not count", sorts(func(r *Row) {
			r.Tenon.Cost, r.Peer.Cut = 200, true
		}), "together-price", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			all := Judge(c.rows)
			i := slices.IndexFunc(all, func(v Verdict) bool { return v.Check == c.check })
			if i < 0 || all[i].Holds != c.holds {
				t.Errorf("want %s to be %t; got %+v", c.check, c.holds, all)
			}
		})
	}
}

func TestNothingIsSaidAboutWhatWasNotRun(t *testing.T) {
	r := row("diverse-5000", 5000, func(r *Row) { r.Peer = nil })
	if got := Judge([]*Row{r}); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	for _, v := range Judge(sorts(nil)[1:]) {
		if v.Check == "together-price" {
			t.Errorf("a sort is missing: %+v", v)
		}
	}
}

func TestVerdictLine(t *testing.T) {
	got := Verdict{Check: "a", Holds: true, Want: "b", Got: "c d"}.Line()
	if want := `verdict=pass check=a want="b" got="c d"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
