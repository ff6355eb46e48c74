package disrupt

import (
	"fmt"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Who rides along: in the shop small, medium and large cost $1, $2 and $4. Each case says which nodes go, at which price, and which
// of their pods, by CPU, go to which new nodes.
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
		{"each for a smaller one", []float64{4, 4}, []made{{"small", []load{{0, 1}}}, {"medium", []load{{1, 1}}}}, 0, "[]", "[]"},
		{"one for its like", []float64{4, 1}, []made{{"small", []load{{0, 1}}}, {"small", []load{{1, 1}}}}, 0, "[1]", "[1]"},
		{"one for a dearer one", []float64{4, 1}, []made{{"small", []load{{0, 1}}}, {"medium", []load{{1, 1}}}}, 0, "[1]", "[1]"},
		{"one that nothing takes the place of", []float64{4, 1}, []made{{"small", []load{{0, 1}}}}, 0, "[]", "[]"},
		{"one saves too little by itself", []float64{4, 1.05}, []made{{"small", []load{{0, 1}}}, {"small", []load{{1, 1}}}}, 0.1, "[1]", "[]"},
		{"two for one", []float64{2, 2}, []made{{"medium", []load{{0, 1}, {1, 1}}}}, 0, "[]", "[]"},
		{"two for one of which one has most", []float64{1.5, 4}, []made{{"medium", []load{{0, 4}, {1, 1}}}}, 0, "[0]", "[]"},
		{"pods of one are in both", []float64{4, 1}, []made{{"small", []load{{0, 1}}}, {"small", []load{{0, 1}, {1, 1}}}}, 0, "[]", "[]"},
		{"a stranger", []float64{4}, []made{{"small", []load{{0, 1}, {7, 1}}}}, 0, "[]", "[]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := &cluster.Pool{Name: "default", Catalog: shop()}
			var nodes []Candidate
			for i, price := range c.goes {
				nodes = append(nodes, goer(p, fmt.Sprint(i), onDemand, price, 1))
			}
			var bins []schedule.Bin
			for _, m := range c.come {
				b := binOf(p, []string{onDemand}, m.kind)
				for _, l := range m.load {
					b.Pods = append(b.Pods, &cluster.Pod{UID: fmt.Sprint(l), Node: fmt.Sprint("n-", l.node),
						Class: &cluster.PodClass{Requests: resource.Vector{resource.CPU: int64(l.cpu)}}})
				}
				bins = append(bins, b)
			}
			who := func(enough bool) string {
				list, _ := riders(Settings{MinSaving: c.least}, nodes, bins, byNode(nodes), enough)
				return fmt.Sprint(append([]int{}, list...))
			}
			if who(true) != c.strict || who(false) != c.mild {
				t.Errorf("%s ride along, or %s if it need not be enough; want %s and %s", who(true), who(false), c.strict, c.mild)
			}
		})
	}
}
