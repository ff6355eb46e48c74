package disrupt

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// A move must save at least 1/k as large a part of the pool's price as the part of the pool that it disturbs.
func TestBalance(t *testing.T) {
	balanced := &cluster.Pool{Name: "a", Policy: cluster.Balanced}
	other := &cluster.Pool{Name: "b", Policy: cluster.Balanced}
	free := &cluster.Pool{Name: "c", Policy: cluster.WhenEmptyOrUnderutilized}
	totals := PoolTotals{"a": {Price: 100, Cost: 200}, "b": {Price: 10, Cost: 1000}, "c": {Price: 1, Cost: 1}}
	of := func(p *cluster.Pool, price, cost float64) Candidate {
		return Candidate{Claim: &cluster.Claim{Name: "c-" + p.Name}, Node: &cluster.Node{Name: "n-" + p.Name}, Pool: p,
			Price: price, Cost: cost}
	}
	cases := []struct {
		name   string
		k      float64
		goes   []Candidate
		saving float64
		want   string // the pool that says no
	}{
		{"10% of the price for 20% of the pods", 2, []Candidate{of(balanced, 10, 40)}, 10, ""},
		{"a little less", 2, []Candidate{of(balanced, 10, 40)}, 9.9, "n-a"},
		{"k is a setting", 3, []Candidate{of(balanced, 10, 40)}, 6.7, ""},
		{"k of the contract", 0, []Candidate{of(balanced, 10, 40)}, 9.9, "n-a"},
		{"saves nothing", 2, []Candidate{of(balanced, 10, 1)}, 0, "n-a"},
		{"a pool that does not ask", 2, []Candidate{of(free, 10, 40)}, 0.01, ""},
		{"a pool that does not ask takes part", 2, []Candidate{of(free, 30, 40), of(balanced, 10, 40)}, 40, ""},
		{"what it saves is split by price", 2, []Candidate{of(free, 30, 40), of(balanced, 10, 40)}, 39, "n-a"},
		{"all must agree", 2, []Candidate{of(balanced, 10, 4), of(other, 0.1, 100)}, 10, "n-b"},
		{"all agree", 2, []Candidate{of(balanced, 10, 4), of(other, 1, 100)}, 10, ""},
	}
	for _, c := range cases {
		got := ""
		blocked := totals.Approves(Settings{BalancedK: c.k}, c.goes, c.saving)
		if blocked != nil {
			got = blocked.Node
			if blocked.Reason != NotBalanced || blocked.Saving >= blocked.NeededSaving {
				t.Errorf("%s: %+v", c.name, *blocked)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q says no, want %q", c.name, got, c.want)
		}
	}
	alone := func(c Candidate) bool { return totals.Approves(Settings{}, []Candidate{c}, c.Price) == nil }
	if alone(of(balanced, 9.9, 40)) || !alone(of(balanced, 10, 40)) {
		t.Error("a node could go if what it costs were saved, and only then")
	}
}

// Every node of a pool counts, whether it may go or not.
func TestTotals(t *testing.T) {
	h := newHouse()
	h.pool.Policy, h.node.DoNotDisrupt, h.web.EvictionCost, h.db.EvictionCost = cluster.Balanced, true, 3, -1
	h.s.Claims = append(h.s.Claims, &cluster.Claim{Name: "d", Pool: "default", Price: 2.5})
	if got := NewPoolTotals(h.s.Seal())["default"]; got != (PoolTotal{Price: 6.5, Cost: 4}) {
		t.Errorf("%+v, want a price of 6.5 and a cost of 1 and 3", got)
	}
}
