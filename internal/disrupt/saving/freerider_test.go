package saving

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Who rides along: in the shop small, medium and large cost $1, $2 and $4. Each case says which nodes go, at which
// price, and which of their pods, by CPU, go to which new nodes.
func TestWhoRidesAlong(t *testing.T) {
	type load struct{ node, cpu int }
	type made struct {
		kind string
		load []load
	}
	cases := []struct {
		name         string
		goes         []float64
		come         []made
		least        float64
		strict, mild string
	}{
		{"each for a smaller one", []float64{4, 4}, []made{{"small", []load{{0, 1}}}, {"medium", []load{{1, 1}}}}, 0,
			"[]", "[]"},
		{"one for its like", []float64{4, 1}, []made{{"small", []load{{0, 1}}}, {"small", []load{{1, 1}}}}, 0,
			"[1]", "[1]"},
		{"one for a dearer one", []float64{4, 1}, []made{{"small", []load{{0, 1}}}, {"medium", []load{{1, 1}}}}, 0,
			"[1]", "[1]"},
		{"one that nothing takes the place of", []float64{4, 1}, []made{{"small", []load{{0, 1}}}}, 0, "[]", "[]"},
		{"one saves too little by itself", []float64{4, 1.05}, []made{{"small", []load{{0, 1}}},
			{"small", []load{{1, 1}}}}, 0.1, "[1]", "[]"},
		{"two for one", []float64{2, 2}, []made{{"medium", []load{{0, 1}, {1, 1}}}}, 0, "[]", "[]"},
		{"two for one of which one has most", []float64{1.5, 4}, []made{{"medium", []load{{0, 4}, {1, 1}}}}, 0,
			"[0]", "[]"},
		{"pods of one are in both", []float64{4, 1}, []made{{"small", []load{{0, 1}}},
			{"small", []load{{0, 1}, {1, 1}}}}, 0, "[]", "[]"},
		{"a stranger", []float64{4}, []made{{"small", []load{{0, 1}, {7, 1}}}}, 0, "[]", "[]"},
		{"a stranger is nobody's pod", []float64{4, 1}, []made{{"small", []load{{1, 1}, {7, 1}}}}, 0, "[1]", "[1]"},
		{"a node that costs nothing and that nothing takes the place of", []float64{4, 0},
			[]made{{"small", []load{{0, 1}}}}, 0, "[]", "[]"},
		{"in the order of the nodes", []float64{4, 1, 1}, []made{{"medium", []load{{0, 1}, {2, 3}}},
			{"small", []load{{1, 1}}}}, 0,
			"[1 2]", "[1]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := &cluster.Pool{Name: "default", Catalog: disrupttest.Shop()}
			var nodes []disrupt.Candidate
			for i, price := range c.goes {
				nodes = append(nodes, disrupttest.Goer(p, fmt.Sprint(i), disrupt.OnDemand, price, 1))
			}
			var bins []market.Bin
			for _, m := range c.come {
				b := disrupttest.BinOf(p, []string{disrupt.OnDemand}, m.kind)
				for _, l := range m.load {
					b.Pods = append(b.Pods, &cluster.Pod{UID: fmt.Sprint(l), Node: fmt.Sprint("n-", l.node),
						Class: &cluster.PodClass{Requests: resource.Vector{resource.CPU: int64(l.cpu)}}})
				}
				bins = append(bins, b)
			}
			who := func(enough bool) string {
				list, _ := FreeRiders(disrupt.Settings{MinSaving: c.least}, nodes, bins, CandidateByNode(nodes),
					PartDemand{NeedsSaving: enough, NeedsChoice: true})
				return fmt.Sprint(append([]int{}, list...))
			}
			if who(true) != c.strict || who(false) != c.mild {
				t.Errorf("%s ride along, or %s if it need not be enough; want %s and %s", who(true), who(false),
					c.strict, c.mild)
			}
		})
	}
}

// Each pod pays for its share of a new node: of what is asked for there, on average over the resources. How many pods
// there are counts only if they ask for nothing else.
func TestShareOfANewNode(t *testing.T) {
	ask := func(cpu, memory int64) resource.Vector {
		return resource.Vector{resource.CPU: cpu, resource.Memory: memory, resource.Pods: 1}
	}
	type loads []resource.Vector
	cases := []struct {
		name          string
		mine, theirs  loads
		price, expect float64
	}{
		{"all of it", loads{ask(3, 0)}, nil, 2, 2},
		{"none of it", nil, loads{ask(3, 0)}, 2, 0},
		{"nobody's", nil, nil, 2, 0},
		{"a quarter of the CPU, of two pods", loads{ask(1, 0)}, loads{ask(3, 0)}, 4, 1},
		{"the only unit", loads{ask(1, 0)}, loads{ask(0, 0)}, 4, 4},
		{"half of the CPU and all of the memory", loads{ask(2, 8)}, loads{ask(2, 0)}, 4, 3},
		{"one of four pods that ask for nothing", loads{ask(0, 0)}, loads{ask(0, 0), ask(0, 0), ask(0, 0)}, 4, 1},
		{"the only pod, which asks for nothing", loads{ask(0, 0)}, nil, 4, 4},
	}
	for _, c := range cases {
		b := market.Bin{Price: c.price}
		for _, list := range []loads{c.mine, c.theirs} {
			for _, v := range list {
				b.Pods = append(b.Pods, &cluster.Pod{Class: &cluster.PodClass{Requests: v}})
			}
		}
		mine := func(p *cluster.Pod) bool { return slices.Contains(b.Pods[:len(c.mine)], p) }
		if got := priceShare([]market.Bin{b}, mine); got != c.expect {
			t.Errorf("%s: $%g, want $%g", c.name, got, c.expect)
		}
		if got := priceShare([]market.Bin{b, b}, mine); got != 2*c.expect {
			t.Errorf("%s, twice: $%g, want $%g", c.name, got, 2*c.expect)
		}
	}
}
