package disrupt_test

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// A move must save at least 1/k as large a part of the pool's price as the part of the pool that it disturbs.
func TestBalance(t *testing.T) {
	balanced := &cluster.Pool{Name: "a", Policy: cluster.Balanced}
	other := &cluster.Pool{Name: "b", Policy: cluster.Balanced}
	free := &cluster.Pool{Name: "c", Policy: cluster.WhenEmptyOrUnderutilized}
	totals := disrupt.PoolTotals{"a": {Price: 100, Cost: 200}, "b": {Price: 10, Cost: 1000}, "c": {Price: 1, Cost: 1}}
	of := func(p *cluster.Pool, price, cost float64) disrupt.Candidate {
		return disrupt.Candidate{Claim: &cluster.Claim{Name: "c-" + p.Name}, Node: &cluster.Node{Name: "n-" + p.Name},
			Pool:  p,
			Price: price, Cost: cost}
	}
	cases := []struct {
		name   string
		k      float64
		goes   []disrupt.Candidate
		saving float64
		want   string // the pool that says no
	}{
		{"10% of the price for 20% of the pods", 2, []disrupt.Candidate{of(balanced, 10, 40)}, 10, ""},
		{"a little less", 2, []disrupt.Candidate{of(balanced, 10, 40)}, 9.9, "n-a"},
		{"k is a setting", 3, []disrupt.Candidate{of(balanced, 10, 40)}, 6.7, ""},
		{"k of the contract", 0, []disrupt.Candidate{of(balanced, 10, 40)}, 9.9, "n-a"},
		{"saves nothing", 2, []disrupt.Candidate{of(balanced, 10, 1)}, 0, "n-a"},
		{"a pool that does not ask", 2, []disrupt.Candidate{of(free, 10, 40)}, 0.01, ""},
		{"a pool that does not ask takes part", 2, []disrupt.Candidate{of(free, 30, 40), of(balanced, 10, 40)}, 40, ""},
		{"what it saves is split by price", 2, []disrupt.Candidate{of(free, 30, 40), of(balanced, 10, 40)}, 39, "n-a"},
		{"all must agree", 2, []disrupt.Candidate{of(balanced, 10, 4), of(other, 0.1, 100)}, 10, "n-b"},
		{"all agree", 2, []disrupt.Candidate{of(balanced, 10, 4), of(other, 1, 100)}, 10, ""},
	}
	for _, c := range cases {
		got := ""
		blocked := totals.Approves(disrupt.Settings{BalancedK: c.k}, c.goes, c.saving)
		if blocked != nil {
			got = blocked.Node
			if blocked.Reason != disrupt.NotBalanced || blocked.Saving >= blocked.NeededSaving {
				t.Errorf("%s: %+v", c.name, *blocked)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q says no, want %q", c.name, got, c.want)
		}
	}
	alone := func(c disrupt.Candidate) bool {
		return totals.Approves(disrupt.Settings{}, []disrupt.Candidate{c}, c.Price) == nil
	}
	if alone(of(balanced, 9.9, 40)) || !alone(of(balanced, 10, 40)) {
		t.Error("a node could go if what it costs were saved, and only then")
	}
}

// Every node of a pool counts, whether it may go or not.
func TestTotals(t *testing.T) {
	h := disrupttest.NewHouse()
	h.Pool.Policy, h.Node.DoNotDisrupt, h.Web.EvictionCost, h.Db.EvictionCost = cluster.Balanced, true, 3, -1
	h.S.Claims = append(h.S.Claims, &cluster.Claim{Name: "d", Pool: "default", Price: 2.5})
	if got := disrupt.NewPoolTotals(h.S.Seal())["default"]; got != (disrupt.PoolTotal{Price: 6.5, Cost: 4}) {
		t.Errorf("%+v, want a price of 6.5 and a cost of 1 and 3", got)
	}
}

// What a pool that balances makes of a move: the part of its price that is saved, over the part of it that is
// disturbed.
func TestWhenAMoveIsBalanced(t *testing.T) {
	whole := disrupt.PoolTotal{Price: 10, Cost: 10}
	for _, c := range []struct {
		total        disrupt.PoolTotal
		saving, cost float64
		want         float64
	}{
		{whole, 1, 2, 0.5}, {whole, 2, 1, 2}, {whole, 0, 1, 0}, {whole, -1, 1, 0}, {whole, 1, 0, 0},
		{disrupt.PoolTotal{Price: 0, Cost: 10}, 1, 1, 0}, {disrupt.PoolTotal{Price: 10}, 1, 1, 0},
	} {
		if got := c.total.Score(c.saving, c.cost); got != c.want {
			t.Errorf("%+v saves %g and costs %g: %g, want %g", c.total, c.saving, c.cost, got, c.want)
		}
	}
	a, b := &cluster.Pool{Name: "a", Policy: cluster.Balanced}, &cluster.Pool{Name: "b", Policy: cluster.Balanced}
	goes := func(p *cluster.Pool, price, cost float64) disrupt.Candidate {
		return disrupt.Candidate{Claim: &cluster.Claim{Name: p.Name}, Node: &cluster.Node{Name: p.Name}, Pool: p,
			Price: price,
			Cost:  cost}
	}
	totals := disrupt.PoolTotals{"a": whole, "b": whole}
	if blocked := totals.Approves(disrupt.Settings{}, []disrupt.Candidate{goes(a, 4, 2)}, 1); blocked != nil {
		t.Errorf("a move that is just good enough: %+v", *blocked)
	}
	if blocked := totals.Approves(disrupt.Settings{}, []disrupt.Candidate{goes(a, 4, 2)}, 0.9); blocked == nil ||
		blocked.NeededSaving != 1 || blocked.Saving != 0.9 {
		t.Errorf("one that is not: %+v", blocked)
	}
	// The saving is split by price: 3 of 4 parts are a's.
	if blocked := totals.Approves(disrupt.Settings{}, []disrupt.Candidate{goes(b, 1, 2), goes(a, 3, 2)},
		2); blocked == nil ||
		blocked.Claim != "b" || blocked.Saving != 0.5 {
		t.Errorf("one of two pools: %+v, want b's no", blocked)
	}
	if blocked := totals.Approves(disrupt.Settings{}, []disrupt.Candidate{goes(b, 1, 9), goes(a, 1, 9)},
		2); blocked == nil ||
		blocked.Claim != "a" {
		t.Errorf("both pools: %+v, want the first by name", blocked)
	}
}
