package saving

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/resource"
)

// independentPart is a part of a move that has nothing to do with the rest: candidates and new nodes by number, such
// that pods of these candidates go to these new nodes, or to nodes that are there, and nobody else's do.
type independentPart struct{ nodes, bins []int }

// independentParts takes a move apart. of says of which candidate a pod is, below zero for a stranger.
func independentParts(count int, bins []market.Bin, of func(*cluster.Pod) int) []independentPart {
	joined := disrupt.NewComponents(count)
	first := make([]int, len(bins))
	for b := range bins {
		first[b] = -1
		for _, p := range bins[b].Pods {
			i := of(p)
			switch {
			case i < 0:
			case first[b] < 0:
				first[b] = i
			default:
				joined.Join(first[b], i)
			}
		}
	}
	var out []independentPart
	at := make(map[int]int)
	for i := range count {
		r := joined.Root(i)
		if r == i {
			at[r] = len(out)
			out = append(out, independentPart{})
		}
		out[at[r]].nodes = append(out[at[r]].nodes, i)
	}
	for b, i := range first {
		if i >= 0 {
			part := &out[at[joined.Root(i)]]
			part.bins = append(part.bins, b)
		}
	}
	return out
}

// PartDemand is how much is asked of the parts of a move.
type PartDemand struct {
	// NeedsSaving asks that what has nothing to do with the rest saves as much as a move by itself has to, and that
	// each candidate costs more than its pods' share of the new nodes.
	NeedsSaving bool
	// NeedsChoice asks that what takes the place of several nodes is none that could be kept instead.
	NeedsChoice bool
}

// FreeRiders finds the candidates that only ride along in a move: what takes their place saves nothing, and others make
// up for it. They would be disturbed for nothing. stay is why the last of them stays.
func FreeRiders(set disrupt.Settings, candidates []disrupt.Candidate, bins []market.Bin, of func(*cluster.Pod) int,
	ask PartDemand) (out []int, blocked *disrupt.BlockedNode) {
	for _, part := range independentParts(len(candidates), bins, of) {
		if len(part.bins) == 0 { // nothing takes its place
			continue
		}
		nodes, made := part.of(candidates, bins)
		a, no := AppraiseFrom(set, nodes, nodes, made, ask.NeedsChoice)
		switch {
		case no != nil && (ask.NeedsSaving || no.Reason != disrupt.SavesTooLittle):
			out, blocked = append(out, part.nodes...), no
		case no == nil && ask.NeedsSaving && len(nodes) > 1:
			for n, i := range part.nodes {
				own := priceShare(a.Bins, func(p *cluster.Pod) bool { return of(p) == i })
				if saving := nodes[n].Price - own; saving < Least {
					out, blocked = append(out, i), &disrupt.BlockedNode{Reason: disrupt.NothingCheaper, Saving: saving,
						CertainSaving: saving}
				}
			}
		}
	}
	slices.Sort(out)
	return out, blocked
}

func (part *independentPart) of(candidates []disrupt.Candidate, bins []market.Bin) (nodes []disrupt.Candidate,
	made []market.Bin) {
	for _, i := range part.nodes {
		nodes = append(nodes, candidates[i])
	}
	for _, b := range part.bins {
		made = append(made, bins[b])
	}
	return nodes, made
}

// priceShare is what the new nodes cost for some of their pods: each pays for its share of what is asked for there, on
// average over the resources.
func priceShare(bins []market.Bin, mine func(*cluster.Pod) bool) float64 {
	sum := 0.0
	for b := range bins {
		var all, part resource.Vector
		for _, p := range bins[b].Pods {
			all = all.Add(p.Class.Requests)
			if mine(p) {
				part = part.Add(p.Class.Requests)
			}
		}
		share, dims := 0.0, 0
		for dim := range all {
			if all[dim] > 0 && dim != resource.Pods {
				share, dims = share+float64(part[dim])/float64(all[dim]), dims+1
			}
		}
		if dims == 0 && all[resource.Pods] > 0 {
			share, dims = float64(part[resource.Pods])/float64(all[resource.Pods]), 1
		}
		sum += bins[b].Price * share / float64(max(dims, 1))
	}
	return sum
}

// CandidateByNode says of which candidate a pod is by the node that it runs on.
func CandidateByNode(candidates []disrupt.Candidate) func(*cluster.Pod) int {
	at := make(map[string]int, len(candidates))
	for i := range candidates {
		at[candidates[i].Node.Name] = i
	}
	return func(p *cluster.Pod) int {
		if i, known := at[p.Node]; known {
			return i
		}
		return -1
	}
}
