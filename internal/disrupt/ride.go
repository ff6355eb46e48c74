package disrupt

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// portion is a part of a move that has nothing to do with the rest: candidates and new nodes by number, such that pods of these
// candidates go to these new nodes, or to nodes that are there, and nobody else's do.
type portion struct{ nodes, bins []int }

// portions takes a move apart. of says of which candidate a pod is, below zero for a stranger.
func portions(count int, bins []schedule.Bin, of func(*cluster.Pod) int) []portion {
	root := make([]int, count)
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			i = root[i]
		}
		return i
	}
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
				x, y := find(first[b]), find(i)
				root[max(x, y)] = min(x, y)
			}
		}
	}
	var out []portion
	at := make(map[int]int)
	for i := range count {
		r := find(i)
		if r == i {
			at[r] = len(out)
			out = append(out, portion{})
		}
		out[at[r]].nodes = append(out[at[r]].nodes, i)
	}
	for b, i := range first {
		if i >= 0 {
			part := &out[at[find(i)]]
			part.bins = append(part.bins, b)
		}
	}
	return out
}

// demand is how much is asked of the parts of a move.
type demand struct {
	// enough asks that what has nothing to do with the rest saves as much as a move by itself has to, and that each candidate costs
	// more than its pods' share of the new nodes.
	enough bool
	// choice asks that what takes the place of several nodes is none that could be kept instead.
	choice bool
}

// riders finds the candidates that only ride along in a move: what takes their place saves nothing, and others make up for it. They
// would be disturbed for nothing. stay is why the last of them stays.
func riders(set Settings, candidates []Candidate, bins []schedule.Bin, of func(*cluster.Pod) int, ask demand) (out []int, stay *Stay) {
	for _, part := range portions(len(candidates), bins, of) {
		if len(part.bins) == 0 { // nothing takes its place
			continue
		}
		nodes, made := part.of(candidates, bins)
		a, no := appraiseClosely(set, nodes, nodes, made, ask.choice)
		switch {
		case no != nil && (ask.enough || no.Why != SavesTooLittle):
			out, stay = append(out, part.nodes...), no
		case no == nil && ask.enough && len(nodes) > 1:
			for n, i := range part.nodes {
				own := ownShare(a.Bins, func(p *cluster.Pod) bool { return of(p) == i })
				if saving := nodes[n].Price - own; saving < leastSaving {
					out, stay = append(out, i), &Stay{Why: NothingCheaper, Saving: saving, Sure: saving}
				}
			}
		}
	}
	slices.Sort(out)
	return out, stay
}

func (part *portion) of(candidates []Candidate, bins []schedule.Bin) (nodes []Candidate, made []schedule.Bin) {
	for _, i := range part.nodes {
		nodes = append(nodes, candidates[i])
	}
	for _, b := range part.bins {
		made = append(made, bins[b])
	}
	return nodes, made
}

// ownShare is what the new nodes cost for some of their pods: each pays for its share of what is asked for there, on average over
// the resources.
func ownShare(bins []schedule.Bin, mine func(*cluster.Pod) bool) float64 {
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

// byNode says of which candidate a pod is by the node that it runs on.
func byNode(candidates []Candidate) func(*cluster.Pod) int {
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

// riders finds the nodes of a bundle that only ride along, and why they stay.
func (d *desk) riders(b *bundle, part []Candidate, bins []schedule.Bin) (out []holdout, why Why) {
	seated := slices.Clone(bins)
	for i, n := range b.bins {
		seated[i].Pods = nil
		for _, g := range b.groups {
			for _, st := range g.seats {
				if st.rank == wished && st.bin == n {
					seated[i].Pods = append(seated[i].Pods, st.pod)
				}
			}
		}
	}
	list, stay := riders(d.set, part, seated, byNode(part), demand{})
	for _, i := range list {
		for _, g := range b.groups {
			for place := range g.nodes {
				if g.nodes[place].Claim == part[i].Claim {
					out, why = append(out, holdout{g, place}), stay.Why
				}
			}
		}
	}
	return out, why
}
