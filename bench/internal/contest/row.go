package contest

import (
	"fmt"
	"strconv"
	"strings"
)

// Row is one workload, done by both.
type Row struct {
	Workload string  `json:"workload"`
	Pods     int     `json:"pods"`
	Types    int     `json:"types"`
	Tenon    *Result `json:"tenon,omitempty"`
	Peer     *Result `json:"peer,omitempty"`
	// TenonIgnored and PeerIgnored are runs with preferences ignored, where there are any.
	TenonIgnored *Result `json:"tenon_ignored,omitempty"`
	PeerIgnored  *Result `json:"peer_ignored,omitempty"`
}

// missing stands where a contestant did not take part.
const missing = "-"

// Line gives the row as key=value pairs.
func (r *Row) Line() string {
	parts := []string{"workload=" + r.Workload, "pods=" + strconv.Itoa(r.Pods), "types=" + strconv.Itoa(r.Types)}
	add := func(key string, from *Result, decimals int, figure func(*Result) float64) {
		text := missing
		if from != nil {
			text = strconv.FormatFloat(figure(from), 'f', decimals, 64)
		}
		parts = append(parts, key+"="+text)
	}
	both := func(key string, decimals int, figure func(*Result) float64) {
		add("tenon_"+key, r.Tenon, decimals, figure)
		add("peer_"+key, r.Peer, decimals, figure)
	}
	both("s", 4, func(x *Result) float64 { return x.Seconds })
	parts = append(parts, "speedup="+optional(r.Speedup()))
	both("nodes", 0, func(x *Result) float64 { return float64(x.Nodes) })
	both("cost", 4, func(x *Result) float64 { return x.Cost })
	add("bound_cost", r.Tenon, 4, func(x *Result) float64 { return x.Bound })
	both("alloc_mb", 1, func(x *Result) float64 { return x.AllocMB })
	both("unplaced", 0, func(x *Result) float64 { return float64(x.Unplaced) })
	parts = append(parts, "tenon_valid="+valid(r.Tenon), "peer_valid="+valid(r.Peer), fmt.Sprintf("peer_cut=%t",
		r.Peer != nil && r.Peer.Cut))
	add("tenon_place_s", r.Tenon, 4, func(x *Result) float64 { return x.CoreSeconds })
	both("cpu_s", 4, func(x *Result) float64 { return x.CPUSeconds })
	parts = append(parts, "cheaper_pct="+optional(r.Cheaper()), "above_bound_pct="+optional(r.AboveBound()))
	for _, x := range []struct {
		key  string
		from *Result
	}{{"tenon_nodes_ignored", r.TenonIgnored}, {"peer_nodes_ignored", r.PeerIgnored}} {
		if x.from != nil {
			add(x.key, x.from, 0, func(x *Result) float64 { return float64(x.Nodes) })
		}
	}
	return strings.Join(parts, " ")
}

func optional(value float64, known bool) string {
	if !known {
		return missing
	}
	return strconv.FormatFloat(value, 'f', 2, 64)
}

func valid(r *Result) string {
	if r == nil {
		return missing
	}
	return strconv.FormatBool(len(r.Problems) == 0)
}

// Speedup is how many times faster we are. If the peer was cut off it is at least that.
func (r *Row) Speedup() (times float64, known bool) {
	if r.Tenon == nil || r.Peer == nil || r.Tenon.Seconds == 0 {
		return 0, false
	}
	return r.Peer.Seconds / r.Tenon.Seconds, true
}

// Cheaper is by how many per cent our placement is cheaper than the peer's. If one of the two has placed less, the cost
// of each core that was placed is compared.
func (r *Row) Cheaper() (percent float64, known bool) {
	if r.Tenon == nil || r.Peer == nil {
		return 0, false
	}
	ours, theirs := r.Tenon.Cost, r.Peer.Cost
	if r.Tenon.PlacedMilli != r.Peer.PlacedMilli {
		ours, theirs = r.Tenon.perCore(), r.Peer.perCore()
	}
	if theirs == 0 {
		return 0, ours == 0
	}
	return 100 * (theirs - ours) / theirs, true
}

func (r *Result) perCore() float64 {
	if r.PlacedMilli == 0 {
		return 0
	}
	return r.Cost * 1000 / float64(r.PlacedMilli)
}

// AboveBound is by how many per cent our placement is above the lower bound.
func (r *Row) AboveBound() (percent float64, known bool) {
	if r.Tenon == nil || r.Tenon.Bound <= 0 {
		return 0, false
	}
	return 100 * (r.Tenon.Cost - r.Tenon.Bound) / r.Tenon.Bound, true
}
