package saving

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/schedule"
)

func typeOf(p *cluster.Pool, name string) int {
	return slices.IndexFunc(p.Catalog.Types, func(t cluster.Type) bool { return t.Name == name })
}

// Which types are left of a new node where some of what is sold is reserved, of one capacity type only, or sold out.
func TestWhichTypesAreLeft(t *testing.T) {
	both, od, withReserved := []string{disrupt.OnDemand, disrupt.Spot}, []string{disrupt.OnDemand},
		[]string{disrupt.CapacityReserved, disrupt.OnDemand}
	reserve := func(name string, price float64) func(p *cluster.Pool) {
		return func(p *cluster.Pool) {
			o := disrupttest.Offering(typeOf(p, name), name, "b", disrupt.CapacityReserved, price)
			o.Reservation = "cr-" + name
			p.Catalog = cluster.NewCatalog(p.Catalog.Types, append(slices.Clone(p.Catalog.Offerings), o))
		}
	}
	free := func(p *cluster.Pool) { reserve("small", 0)(p); reserve("medium", 0)(p) }
	without := func(name, zone, terms string) func(p *cluster.Pool) {
		return func(p *cluster.Pool) {
			kind := typeOf(p, name)
			p.Catalog = p.Catalog.Without(func(o *cluster.Offering) bool {
				return o.Type == kind && o.Zone == zone && o.CapacityType == terms
			})
		}
	}
	spotNodes := func(p *cluster.Pool) []disrupt.Candidate {
		return []disrupt.Candidate{disrupttest.Goer(p, "x", disrupt.Spot, 0.7, 1), disrupttest.Goer(p, "y",
			disrupt.Spot, 1.2, 1)}
	}
	noSpot := func(p *cluster.Pool) { without("small", "a", disrupt.Spot)(p); without("small", "b", disrupt.Spot)(p) }
	minZones := func(p *cluster.Pool) {
		without("small", "b", disrupt.OnDemand)(p)
		p.Template.Requirements = require.Set{}.WithMin(cluster.ZoneLabel, 2)
	}
	asks := func(key string, values int) func(p *cluster.Pool) {
		return func(p *cluster.Pool) { p.Template.Requirements = require.Set{}.WithMin(key, values) }
	}
	uneven := func(p *cluster.Pool) { // y is the cheapest in one zone, and the dearest in the other
		p.Catalog = cluster.NewCatalog([]cluster.Type{{Name: "x"}, {Name: "y"}}, []cluster.Offering{
			disrupttest.Offering(0, "x", "a", disrupt.Spot, 0.4), disrupttest.Offering(0, "x", "b", disrupt.Spot, 0.4),
			disrupttest.Offering(1, "y", "a", disrupt.Spot, 0.2),
			disrupttest.Offering(1, "y", "b", disrupt.Spot, 0.5)})
	}
	twice := func(terms []string, types ...string) func(p *cluster.Pool) []market.Bin {
		return func(p *cluster.Pool) []market.Bin {
			return []market.Bin{disrupttest.BinOf(p, terms, types...), disrupttest.BinOf(p, terms, types...)}
		}
	}
	ofTeam := func(p *cluster.Pool) []market.Bin {
		b := disrupttest.BinOf(p, od, "small", "medium")
		b.Requirements = b.Requirements.With("team", require.Only("red"))
		return []market.Bin{b}
	}
	for _, c := range []struct {
		name   string
		set    disrupt.Settings
		change func(p *cluster.Pool)
		goes   func(p *cluster.Pool) []disrupt.Candidate
		come   func(p *cluster.Pool) []market.Bin
		want   string
	}{
		{"what is reserved is taken first", disrupt.Settings{}, reserve("medium", 0.1),
			leaves("small", disrupt.OnDemand, 1, 1),
			comes(withReserved, "medium"), "medium@on-demand|reserved $0.10"},
		{"what is reserved is taken before spot", disrupt.Settings{}, reserve("medium", 0.1),
			leaves("small", disrupt.OnDemand, 0.2, 1),
			comes([]string{disrupt.CapacityReserved, disrupt.Spot}, "medium"), "medium@reserved|spot $0.10"},
		{"only what is reserved", disrupt.Settings{}, reserve("large", 0.1), leaves("small", disrupt.OnDemand, 1, 1),
			comes([]string{disrupt.CapacityReserved}, "large"), "large@reserved $0.10"},
		{"what is reserved costs nothing", disrupt.Settings{}, free, leaves("small", disrupt.OnDemand, 1, 1),
			comes([]string{disrupt.CapacityReserved}, "small", "medium"), "small|medium@reserved $0.00"},
		{"two nodes that are reserved and cost nothing", disrupt.Settings{}, free,
			leaves("small", disrupt.OnDemand, 1, 1),
			twice([]string{disrupt.CapacityReserved}, "small", "medium"), "small|medium@reserved $0.00 + " +
				"small|medium@reserved $0.00"},
		{"a type without spot", disrupt.Settings{}, noSpot, leaves("large", disrupt.OnDemand, 4, 1),
			comes(both, "small", "medium"), "medium@spot $0.60"},
		{"a type that nobody sells", disrupt.Settings{}, nil, leaves("large", disrupt.OnDemand, 4, 1),
			comes(od, "little", "small", "tiny"), "small@on-demand $1.00"},
		{"a label that is not about what is sold", disrupt.Settings{}, nil, leaves("large", disrupt.OnDemand, 4, 1),
			ofTeam,
			"small|medium@on-demand $1.00"},
		{"spot for several spot nodes, of any number of types", disrupt.Settings{SpotToSpot: true, SpotTypes: 5}, nil,
			spotNodes, comes(both, "small", "medium", "large"), "small|medium|large@spot $0.30"},
		{"spot for a spot node is not what is reserved", disrupt.Settings{SpotToSpot: true, SpotTypes: 1},
			reserve("medium", 0.1), leaves("large", disrupt.Spot, 1.2, 1),
			comes([]string{disrupt.CapacityReserved, disrupt.Spot}, "medium"), "medium@spot $0.60"},
		{"a type that is cheap where another would cost more", disrupt.Settings{}, uneven,
			leaves("large", disrupt.OnDemand, 4, 1),
			comes([]string{disrupt.Spot}, "x", "y"), "x|y@spot $0.20"},
		{"more types than there are", disrupt.Settings{}, asks(cluster.InstanceTypeLabel, 4),
			leaves("large", disrupt.OnDemand, 100, 1),
			comes(od, "small", "medium", "large"), "MinValuesTooDear"},
		{"values of a label that is not about what is sold", disrupt.Settings{}, asks("team", 2),
			leaves("large", disrupt.OnDemand, 4, 1),
			comes(od, "small", "medium"), "small|medium@on-demand $1.00"},
		{"two zones, which the cheapest type does not have", disrupt.Settings{}, minZones,
			leaves("large", disrupt.OnDemand, 4, 1),
			comes(od, "small", "medium"), "small|medium@on-demand $1.00"},
		{"two zones, which would be too dear", disrupt.Settings{}, minZones, leaves("medium", disrupt.OnDemand, 1.5, 1),
			comes(od, "small", "medium"), "MinValuesTooDear"},
	} {
		p := &cluster.Pool{Name: "default", Catalog: disrupttest.Shop()}
		if c.change != nil {
			c.change(p)
		}
		trimmed, blocked := worthwhile(c.set, c.goes(p), c.come(p))
		got := kept(trimmed)
		if blocked != nil {
			got += string(blocked.Reason)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A node that stays is told what would be saved, what of it for sure, and whether some price is an estimate.
func TestWhatIsToldOfMovesThatDoNotPay(t *testing.T) {
	guessed := func(b market.Bin) market.Bin { b.Estimated = true; return b }
	p := &cluster.Pool{Name: "default", Catalog: disrupttest.Shop()}
	empty := &cluster.Pool{Name: "default", Catalog: disrupttest.Shop().Without(func(*cluster.Offering) bool {
		return true
	})}
	small, cheap := disrupttest.BinOf(p, []string{disrupt.OnDemand}, "small"),
		disrupttest.BinOf(p, []string{disrupt.Spot}, "small")
	one := func(price float64) []disrupt.Candidate {
		return []disrupt.Candidate{disrupttest.Goer(p, "a", disrupt.OnDemand, price, 1)}
	}
	unsold := market.Bin{Pool: empty, Types: []string{"small"}, Requirements: small.Requirements, Price: 1}
	for _, c := range []struct {
		name string
		goes []disrupt.Candidate
		come []market.Bin
		want string
	}{
		{"as much as it costs", one(1), []market.Bin{small}, "c-a n-a 0.00 0.00 false"},
		{"spot, at worst more", one(0.35), []market.Bin{cheap}, "c-a n-a 0.05 -0.05 false"},
		{"two nodes for two, one estimated", append(one(1), disrupttest.Goer(p, "b", disrupt.OnDemand, 1, 1)),
			[]market.Bin{guessed(small), small}, "c-a n-a 0.00 0.00 true"},
		{"nothing is sold", one(4), []market.Bin{unsold}, "c-a n-a 3.00 0.00 false"},
		{"nothing goes", nil, []market.Bin{small}, "  -1.00 -1.00 false"},
	} {
		_, blocked := appraised(disrupt.Settings{}, c.goes, c.come)
		if blocked == nil {
			t.Errorf("%s: it pays", c.name)
			continue
		}
		sure, saving := math.Round(blocked.CertainSaving*100)/100+0, math.Round(blocked.Saving*100)/100+0
		got := fmt.Sprintf("%s %s %.2f %.2f %t", blocked.Claim, blocked.Node, saving, sure, blocked.Estimated)
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Pools that are cheap, and small ones, are balanced like others.
func TestSmallPoolsAreBalanced(t *testing.T) {
	a, b := &cluster.Pool{Name: "a", Policy: cluster.Balanced}, &cluster.Pool{Name: "b", Policy: cluster.Balanced}
	goes := func(p *cluster.Pool, price, cost float64) disrupt.Candidate {
		return disrupt.Candidate{Claim: &cluster.Claim{Name: p.Name}, Node: &cluster.Node{}, Pool: p, Price: price,
			Cost: cost}
	}
	if got := (disrupt.PoolTotal{Price: 0.5, Cost: 1}).Score(0.25, 1); got != 0.5 {
		t.Errorf("half the price of all nodes scores %g", got)
	}
	totals := disrupt.PoolTotals{"a": {Price: 1, Cost: 10}, "b": {Price: 1, Cost: 10}}
	blocked := totals.Approves(disrupt.Settings{}, []disrupt.Candidate{goes(b, 0.1, 2), goes(a, 0.3, 2)}, 0.2)
	if blocked == nil || blocked.Claim != "b" || math.Abs(blocked.Saving-0.05) > 1e-9 {
		t.Errorf("%+v, want b's no, because a quarter of what is saved is its own", blocked)
	}
	single := disrupt.PoolTotals{"a": {Price: 10, Cost: 1}}
	blocked = single.Approves(disrupt.Settings{}, []disrupt.Candidate{goes(a, 4, 1)}, 1)
	if blocked == nil || blocked.NeededSaving != 5 {
		t.Errorf("%+v, want that half the price of the only node must be saved", blocked)
	}
}

// Where there are too few types for minValues, a new node asks for no more than there are, if that is allowed.
func TestMinValuesGiveWay(t *testing.T) {
	for _, c := range []struct {
		asks, want int
		relaxed    bool
	}{{3, 2, true}, {2, 2, false}, {1, 1, false}} {
		p := &cluster.Pool{Name: "default", Catalog: disrupttest.Shop()}
		p.Template.Requirements = require.Set{}.WithMin(cluster.InstanceTypeLabel, c.asks).With("team",
			require.Only("red")).WithMin("rack", 2)
		bins := []market.Bin{disrupttest.BinOf(p, []string{disrupt.OnDemand}, "small", "medium", "large")}
		set := disrupt.Settings{Schedule: schedule.Settings{RelaxMinValues: true}}
		trimmed, blocked := worthwhile(set, []disrupt.Candidate{disrupttest.Goer(p, "large", disrupt.OnDemand, 4, 1)},
			bins)
		if blocked != nil {
			t.Fatalf("%d types asked for: %+v", c.asks, *blocked)
		}
		asksOf := func(b *market.Bin, key string) int {
			i := slices.IndexFunc(b.Requirements, func(e require.Entry) bool { return e.Key == key })
			return b.Requirements[i].MinValues
		}
		asks := func(b *market.Bin) int { return asksOf(b, cluster.InstanceTypeLabel) }
		if got := asksOf(&trimmed[0], "rack"); got != 2 {
			t.Errorf("of a label that is not about what is sold %d values are asked for, want 2", got)
		}
		if b := &trimmed[0]; asks(b) != c.want || b.Relaxed != c.relaxed || b.Price != 1 {
			t.Errorf("of %d types asked for %d are left, relaxed %t, at $%g", c.asks, asks(b), b.Relaxed, b.Price)
		}
		if got := asks(&bins[0]); got != c.asks {
			t.Errorf("what the search has found asks for %d types now instead of %d", got, c.asks)
		}
	}
}

// A spot node that may be launched as few types counts for more, by the risk for each halving; more types than asked
// for make it no cheaper.
func TestRiskOfFewTypes(t *testing.T) {
	risky := spotTerms{applies: true, riskPerHalving: 0.1, normTypes: 8}
	for _, c := range []struct {
		terms spotTerms
		types int
		want  float64
	}{
		{risky, 8, 1}, {risky, 4, 1.1}, {risky, 1, 1.3}, {risky, 16, 1},
		{spotTerms{applies: true, normTypes: 8}, 1, 1}, {spotTerms{}, 1, 1},
	} {
		if got := c.terms.factor(c.types); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v as %d types counts %g times, want %g", c.terms, c.types, got, c.want)
		}
	}
}

// With a risk, a node that may be launched as more types may count for less than one that must be the cheapest.
func TestMoreTypesMayCountForLess(t *testing.T) {
	priced := func(worst ...float64) (list []typePrice) {
		for _, x := range worst {
			list = append(list, typePrice{low: x, high: x})
		}
		return list
	}
	risky := spotTerms{applies: true, riskPerHalving: 0.25, normTypes: 4}
	for _, c := range []struct {
		name    string
		shelf   priceCap
		least   float64
		ceiling float64
		want    int // types are kept
	}{
		{"two of the same price", priceCap{terms: risky, types: priced(0.4, 0.4, 0.9), minTypes: 1, maxTypes: 3},
			0.5, 0.55, 2},
		{"all fit", priceCap{terms: risky, types: priced(0.4, 0.4, 0.9), minTypes: 1, maxTypes: 3}, 0.5, 1, 3},
		{"rounding has taken a little from two", priceCap{terms: risky, types: priced(0.4, 0.4, 0.9), minTypes: 1,
			maxTypes: 3}, 0.5, 0.5 - 1e-12, 2},
		{"rounding has taken a little from one", priceCap{types: priced(0.4, 0.6), minTypes: 1, maxTypes: 2}, 0.4,
			0.4 - 1e-12, 1},
		{"the cheapest is free", priceCap{types: priced(0, 0.5), minTypes: 1, maxTypes: 2}, 0, 0.1, 1},
	} {
		if got := c.shelf.minCap(); math.Abs(got-c.least) > 1e-9 {
			t.Errorf("%s: it counts for %g at least, want %g", c.name, got, c.least)
		}
		if got := c.shelf.typesWithin(c.ceiling); got != c.want {
			t.Errorf("%s: %d types are kept, want %d", c.name, got, c.want)
		}
	}
}

// What would not save enough in any zone is told as it is if the cloud may choose the zone.
func TestZonesAreKeptOnlyWhereThatIsEnough(t *testing.T) {
	p := &cluster.Pool{Name: "default", Catalog: disrupttest.Shop()}
	// $0.30 in a, $0.40 in b
	come := func() []market.Bin { return []market.Bin{disrupttest.BinOf(p, []string{disrupt.Spot}, "small")} }
	goes := []disrupt.Candidate{disrupttest.Goer(p, "a", disrupt.OnDemand, 0.35, 1)}
	if _, blocked := AppraiseCheapestZones(disrupt.Settings{MinSaving: 0.5}, goes, come()); blocked == nil ||
		blocked.Reason != disrupt.NothingCheaper || blocked.CertainSaving > 0 {
		t.Errorf("half the price must be saved: %+v, want that nothing is sure to be saved", blocked)
	}
	a, stay := AppraiseCheapestZones(disrupt.Settings{MinSaving: 0.1}, goes, come())
	if stay != nil {
		t.Fatalf("a tenth must be saved: %+v", *stay)
	}
	if zones, _ := a.Bins[0].Requirements.Get(cluster.ZoneLabel); zones.Matches("b", true) ||
		!zones.Matches("a", true) {
		t.Errorf("a tenth must be saved: the new node may come up in %v", zones)
	}
}
