package contest

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict says whether something that we promise holds in this run.
type Verdict struct {
	Check string `json:"check"`
	Holds bool   `json:"holds"`
	Want  string `json:"want"`
	Got   string `json:"got"`
}

// Line gives the verdict as key=value pairs.
func (v Verdict) Line() string {
	word := "fail"
	if v.Holds {
		word = "pass"
	}
	return fmt.Sprintf("verdict=%s check=%s want=%q got=%q", word, v.Check, v.Want, v.Got)
}

// The promises.
const (
	smallSpeedup, largeSpeedup = 100, 400
	fleetSeconds, fleetMB      = 3, 500
	// A pod of a larger workload may take this much longer than one of a smaller: clocks and machines are not exact.
	growth     = 1.2
	cheaper    = 6.0
	boundGap   = 4.0
	boundPods  = 2000
	extraNodes = 1.1
	leastPods  = 1000 // smaller workloads say nothing about growth: what every pass costs outweighs the pods
	rounding   = 1e-6 // prices are sums of fractions
)

// packedSorts is how many sorts of them there are: fleet, memory-heavy, cpu-heavy, gpu-mix and arm-or-amd.
const packedSorts = 5

// packed are the workloads that are about price and nothing else.
func packed() []string {
	return []string{"fleet-2000", "fleet-20000", "fleet-100000", "memory-heavy", "cpu-heavy", "gpu-mix", "arm-or-amd"}
}

// Judge checks every promise about which the rows say something.
func Judge(rows []*Row) []Verdict {
	var out []Verdict
	add := func(more ...Verdict) { out = append(out, more...) }
	for _, r := range rows {
		add(speed(r)...)
		add(answers(r)...)
		add(prices(r)...)
		add(wishes(r)...)
	}
	add(linear(rows)...)
	add(together(rows)...)
	return out
}

// speed is how fast the large and the diverse are solved.
func speed(r *Row) []Verdict {
	var out []Verdict
	want := map[string]float64{"diverse-1000": smallSpeedup, "diverse-5000": smallSpeedup,
		"diverse-20000": largeSpeedup}[r.Workload]
	if times, known := r.Speedup(); known && want > 0 {
		out = append(out, Verdict{r.Workload + "-speedup", times >= want, fmt.Sprintf("at least %.0f times the "+
			"peer's pods per second", want), fmt.Sprintf("%.1f times", times)})
	}
	if r.Workload == "fleet-100000" && r.Tenon != nil {
		out = append(out, Verdict{r.Workload + "-size", r.Tenon.Seconds < fleetSeconds && r.Tenon.AllocMB < fleetMB,
			fmt.Sprintf("under %d s and %d MB", fleetSeconds, fleetMB), fmt.Sprintf("%.2f s and %.0f MB",
				r.Tenon.Seconds, r.Tenon.AllocMB)})
	}
	return out
}

// answers is that ours is a valid one. What is wrong with the peer's is its own affair, and part of its row.
func answers(r *Row) []Verdict {
	if r.Tenon == nil || len(r.Tenon.Problems) == 0 {
		return nil
	}
	return []Verdict{{r.Workload + "-valid", false, "a valid placement", r.Tenon.Problems[0]}}
}

// prices is that we are never dearer than the peer, place no fewer pods, and come close to the lower bound.
func prices(r *Row) []Verdict {
	var out []Verdict
	if percent, known := r.Cheaper(); known {
		out = append(out, Verdict{r.Workload + "-price", percent >= -rounding && r.Tenon.Unplaced <= r.Peer.Unplaced,
			"no dearer than the peer, and no more pods unplaced",
			fmt.Sprintf("%.2f %% cheaper, %d unplaced (peer %d)", percent, r.Tenon.Unplaced, r.Peer.Unplaced)})
	}
	if percent, known := r.AboveBound(); known && r.Pods >= boundPods && slices.Contains(packed(), r.Workload) {
		out = append(out, Verdict{r.Workload + "-bound", percent <= boundGap,
			fmt.Sprintf("within %.0f %% of the lower bound", boundGap), fmt.Sprintf("%.2f %% above", percent)})
	}
	return out
}

// wishes is that preferences don't multiply the nodes.
func wishes(r *Row) []Verdict {
	if r.Tenon == nil || r.TenonIgnored == nil {
		return nil
	}
	return []Verdict{{r.Workload + "-nodes", float64(r.Tenon.Nodes) <= extraNodes*float64(r.TenonIgnored.Nodes),
		fmt.Sprintf("at most %.0f %% more nodes than with preferences ignored", 100*(extraNodes-1)),
		fmt.Sprintf("%d nodes, %d with preferences ignored", r.Tenon.Nodes, r.TenonIgnored.Nodes)}}
}

// linear is that the time grows no faster than the number of pods.
func linear(rows []*Row) []Verdict {
	var out []Verdict
	for _, family := range []string{"diverse-", "fleet-"} {
		var least, last *Row
		for _, r := range rows {
			if !strings.HasPrefix(r.Workload, family) || r.Tenon == nil || r.Pods < leastPods {
				continue
			}
			if least == nil || r.Pods < least.Pods {
				least = r
			}
			if last == nil || r.Pods > last.Pods {
				last = r
			}
		}
		if least == last {
			continue
		}
		each := func(r *Row) float64 { return 1e6 * r.Tenon.Seconds / float64(r.Pods) }
		out = append(out, Verdict{family + "growth", each(last) <= growth*each(least), "no more time for each pod as " +
			"pods grow in number",
			fmt.Sprintf("%.2f µs a pod at %d, %.2f µs at %d", each(least), least.Pods, each(last), last.Pods)})
	}
	return out
}

// together is what all workloads about price come to, once there is one of each sort. Those that the peer did not
// finish are left out of the sum.
func together(rows []*Row) []Verdict {
	var ours, theirs, sum float64
	var names []string
	sorts := make(map[string]bool)
	for _, r := range rows {
		if r.Tenon == nil || r.Peer == nil || !slices.Contains(packed(), r.Workload) {
			continue
		}
		sorts[strings.TrimRight(r.Workload, "-0123456789")] = true
		if percent, known := r.Cheaper(); known && !r.Peer.Cut && r.Tenon.Unplaced == r.Peer.Unplaced {
			ours, theirs, sum = ours+r.Tenon.Cost, theirs+r.Peer.Cost, sum+percent
			names = append(names, r.Workload)
		}
	}
	if len(sorts) < packedSorts || theirs == 0 {
		return nil
	}
	percent := 100 * (theirs - ours) / theirs
	return []Verdict{{"together-price", percent >= cheaper, fmt.Sprintf("at least %.0f %% cheaper in all", cheaper),
		fmt.Sprintf("%.2f %% of the sum, %.2f %% on average, over %s", percent, sum/float64(len(names)),
			strings.Join(names, ", "))}}
}
