package saving

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// spotAndNot are a spot node x and an on-demand node y.
func spotAndNot(p *cluster.Pool) []disrupt.Candidate {
	return []disrupt.Candidate{disrupttest.Goer(p, "x", disrupt.Spot, 0.3, 1), disrupttest.Goer(p, "y",
		disrupt.OnDemand, 1, 1)}
}

// withPods has pods of the nodes go to the new nodes.
func withPods(come func(p *cluster.Pool) []market.Bin, nodes ...string) func(p *cluster.Pool) []market.Bin {
	return func(p *cluster.Pool) []market.Bin {
		bins := come(p)
		for i := range bins {
			for _, n := range nodes {
				bins[i].Pods = append(bins[i].Pods, &cluster.Pod{UID: n, Node: n, Class: &cluster.PodClass{}})
			}
		}
		return bins
	}
}

// kept writes bins as people would: types @ capacity types.
func kept(bins []market.Bin) string {
	var parts []string
	for i := range bins {
		types, _ := bins[i].Requirements.Get(cluster.InstanceTypeLabel)
		list, _ := types.Listed()
		terms, _ := bins[i].Requirements.Get(cluster.CapacityTypeLabel)
		how, _ := terms.Listed()
		if sorted := slices.Sorted(slices.Values(bins[i].Types)); !slices.Equal(list, sorted) {
			parts = append(parts, fmt.Sprintf("types %v and requirements %v differ", sorted, list))
		}
		parts = append(parts, fmt.Sprintf("%s@%s $%.2f", strings.Join(bins[i].Types, "|"), strings.Join(how, "|"),
			bins[i].Price))
	}
	return strings.Join(parts, " + ")
}

// What is left of new nodes, or why a move does not pay. In the shop small, medium and large cost $1, $2, $4, and as
// spot 30% of that in zone a and 40% in zone b.
func TestWhatPays(t *testing.T) {
	both, od := []string{disrupt.OnDemand, disrupt.Spot}, []string{disrupt.OnDemand}
	all := []string{"small", "medium", "large"}
	one, half := 1.0, 0.5
	cases := []struct {
		name   string
		set    disrupt.Settings
		change func(p *cluster.Pool)
		goes   func(p *cluster.Pool) []disrupt.Candidate
		come   func(p *cluster.Pool) []market.Bin
		want   string
	}{
		{"a node nobody needs", disrupt.Settings{}, nil, leaves("large", disrupt.OnDemand, 4, 3), nil, ""},
		{"a node that costs nothing", disrupt.Settings{}, nil, leaves("large", "reserved", 0, 3), nil,
			"SavesTooLittle saves " +
				"0.00 of 0.00"},
		{"on-demand for on-demand", disrupt.Settings{}, nil, leaves("large", disrupt.OnDemand, 4, 3), comes(od, all...),
			"small|medium@on-demand $1.00"},
		{"nothing is cheaper", disrupt.Settings{}, nil, leaves("small", disrupt.OnDemand, 1, 3), comes(od, all...),
			"NothingCheaper saves 0.00 of 0.00"},
		{"spot for on-demand, at what it costs in the worst zone", disrupt.Settings{}, nil,
			leaves("medium", disrupt.OnDemand, 1.5, 3),
			comes(both, all...), "small|medium@spot $0.30"},
		{"spot for on-demand, all of them", disrupt.Settings{}, nil, leaves("large", disrupt.OnDemand, 4, 3),
			comes(both, all...),
			"small|medium|large@spot $0.30"},
		{"only spot was asked for", disrupt.Settings{}, nil, leaves("large", disrupt.OnDemand, 4, 3),
			comes([]string{disrupt.Spot}, "large"),
			"large@spot $1.20"},
		{"spot for spot is off", disrupt.Settings{}, nil, leaves("large", disrupt.Spot, 1.2, 3), comes(both, all...),
			"SpotToSpotOff saves 0.90 of 0.00"},
		{"on-demand for spot", disrupt.Settings{}, nil, leaves("large", disrupt.Spot, 1.2, 3), comes(od, all...),
			"small@on-demand $1.00"},
		{"spot for spot wants types", disrupt.Settings{SpotToSpot: true}, nil, leaves("large", disrupt.Spot, 1.2, 3),
			comes(both, all...), "SpotNeedsTypes saves 0.90 of 0.00"},
		{"spot for spot, enough types", disrupt.Settings{SpotToSpot: true, SpotTypes: 2}, nil,
			leaves("large", disrupt.Spot, 1.2, 3),
			comes(both, all...), "small|medium@spot $0.30"},
		{"spot for spot, enough types but too dear", disrupt.Settings{SpotToSpot: true, SpotTypes: 2}, nil,
			leaves("large", disrupt.Spot, 0.79, 3), comes(both, all...), "SpotNeedsTypes saves 0.49 of 0.00"},
		{"spot for spot, no more types than asked for", disrupt.Settings{SpotToSpot: true, SpotTypes: 1}, nil,
			leaves("large", disrupt.Spot, 1.2, 3), comes(both, all...), "small@spot $0.30"},
		{"spot for spot, several nodes", disrupt.Settings{SpotToSpot: true}, nil,
			func(p *cluster.Pool) []disrupt.Candidate {
				return []disrupt.Candidate{disrupttest.Goer(p, "small", disrupt.Spot, 0.3, 1),
					disrupttest.Goer(p, "big", disrupt.Spot, 1.2, 1)}
			}, comes(both, "medium", "large"), "medium@spot $0.60"},
		{"spot for spot at a risk", disrupt.Settings{SpotToSpot: true, SpotTypes: 4, SpotRisk: 0.25}, nil,
			leaves("large", disrupt.Spot, 1.2, 3), comes(both, all...), "small|medium@spot $0.30"},
		{"spot for spot at too much of a risk", disrupt.Settings{SpotToSpot: true, SpotTypes: 4, SpotRisk: 0.25}, nil,
			leaves("large", disrupt.Spot, 0.59, 3), comes(both, all...), "SpotNeedsTypes saves 0.29 of 0.00"},
		{"spot and on-demand for spot", disrupt.Settings{}, nil,
			func(p *cluster.Pool) []disrupt.Candidate {
				return []disrupt.Candidate{disrupttest.Goer(p, "x", disrupt.Spot, 0.3, 1), disrupttest.Goer(p, "y",
					disrupt.OnDemand, 1, 1)}
			}, comes(both, "medium"), "SpotToSpotOff saves 0.70 of 0.00"},
		{"spot for the pods of an on-demand node", disrupt.Settings{}, nil, spotAndNot,
			withPods(comes(both, "medium"), "n-y"),
			"medium@spot $0.60"},
		{"spot for the pods of both", disrupt.Settings{}, nil, spotAndNot, withPods(comes(both, "medium"),
			"n-y", "n-x"),
			"SpotToSpotOff saves 0.70 of 0.00"},
		{"spot for the pods of both, which is on", disrupt.Settings{SpotToSpot: true}, nil, spotAndNot,
			withPods(comes(both, "medium"), "n-y", "n-x"), "medium@spot $0.60"},
		{"on-demand for the pods of a spot node", disrupt.Settings{}, nil, spotAndNot,
			withPods(comes(od, "small"), "n-x"),
			"small@on-demand $1.00"},
		{"no cheaper than one of the same type that goes", disrupt.Settings{}, nil,
			func(p *cluster.Pool) []disrupt.Candidate {
				return []disrupt.Candidate{disrupttest.Goer(p, "medium", disrupt.OnDemand, 2, 1),
					disrupttest.Goer(p, "large", disrupt.OnDemand, 4, 1)}
			}, comes(od, "medium", "large"), "NothingCheaper saves 4.00 of 0.00"},
		{"cheaper than one of the same type that goes", disrupt.Settings{}, nil,
			func(p *cluster.Pool) []disrupt.Candidate {
				return []disrupt.Candidate{disrupttest.Goer(p, "medium", disrupt.OnDemand, 2, 1),
					disrupttest.Goer(p, "large", disrupt.OnDemand, 4, 1)}
			}, comes(od, all...), "small@on-demand $1.00"},
		{"no cheaper than one of the same type whose pods go elsewhere", disrupt.Settings{}, nil,
			func(p *cluster.Pool) []disrupt.Candidate {
				return []disrupt.Candidate{disrupttest.Goer(p, "medium", disrupt.OnDemand, 2, 1),
					disrupttest.Goer(p, "large", disrupt.OnDemand, 4, 1)}
			}, withPods(comes(od, "medium", "large"), "n-large"), "medium@on-demand $2.00"},
		{"no cheaper than the one of the same type that its pods come from", disrupt.Settings{}, nil,
			func(p *cluster.Pool) []disrupt.Candidate {
				return []disrupt.Candidate{disrupttest.Goer(p, "medium", disrupt.OnDemand, 2, 1),
					disrupttest.Goer(p, "large", disrupt.OnDemand, 4, 1)}
			}, withPods(comes(od, "medium", "large"), "n-medium"), "NothingCheaper saves 4.00 of 0.00"},
		{"a share must be saved", disrupt.Settings{MinSaving: 0.6}, nil, leaves("large", disrupt.OnDemand, 4, 3),
			comes(od, all...),
			"small@on-demand $1.00"},
		{"a share is not saved", disrupt.Settings{MinSaving: 0.8}, nil, leaves("large", disrupt.OnDemand, 4, 3),
			comes(od, all...),
			"SavesTooLittle saves 3.00 of 3.20"},
		{"each pod must be worth it", disrupt.Settings{MinSavingPerPod: 0.7}, nil,
			leaves("large", disrupt.OnDemand, 4, 4),
			comes(od, all...), "small@on-demand $1.00"},
		{"each pod is not worth it", disrupt.Settings{MinSavingPerPod: 0.9}, nil,
			leaves("large", disrupt.OnDemand, 4, 4),
			comes(od, all...), "SavesTooLittle saves 3.00 of 3.60"},
		{"the pods are not worth the node", disrupt.Settings{MinSavingPerPod: 1.1}, nil,
			leaves("large", disrupt.OnDemand, 4, 4), nil,
			"SavesTooLittle saves 4.00 of 4.40"},
		{"the pool has its own word", disrupt.Settings{MinSaving: 0.1, MinSavingPerPod: 0.9}, func(p *cluster.Pool) {
			zero := 0.0
			p.Overrides.MinSaving, p.Overrides.MinSavingPerPod = &half, &zero
		},
			leaves("large", disrupt.OnDemand, 4, 4), comes(od, all...), "small|medium@on-demand $1.00"},
		{"each pool has a word", disrupt.Settings{}, func(p *cluster.Pool) { p.Overrides.MinSavingPerPod = &one },
			func(p *cluster.Pool) []disrupt.Candidate {
				q := *p
				q.Name, q.Overrides = "q", cluster.DisruptionOverrides{}
				return []disrupt.Candidate{disrupttest.Goer(&q, "x", disrupt.OnDemand, 2, 3), disrupttest.Goer(p, "y",
					disrupt.OnDemand, 2, 1)}
			}, comes(od, "small"), "SavesTooLittle saves 3.00 of 4.00"},
		{"two for one: what is left below the price is shared", disrupt.Settings{}, nil,
			leaves("large", disrupt.OnDemand, 4, 3),
			func(p *cluster.Pool) []market.Bin {
				return []market.Bin{disrupttest.BinOf(p, od, all...), disrupttest.BinOf(p, od, "small")}
			}, "small@on-demand $1.00 + small@on-demand $1.00"},
		{"two for one: too dear", disrupt.Settings{}, nil, leaves("large", disrupt.OnDemand, 4, 3),
			func(p *cluster.Pool) []market.Bin {
				return []market.Bin{disrupttest.BinOf(p, od, "medium", "large"), disrupttest.BinOf(p, od, "medium")}
			}, "NothingCheaper saves 0.00 of 0.00"},
		{"two for one spot node: only spot wants types", disrupt.Settings{SpotToSpot: true, SpotTypes: 2}, nil,
			leaves("large", disrupt.Spot, 2, 3),
			func(p *cluster.Pool) []market.Bin {
				return []market.Bin{disrupttest.BinOf(p, od, "small"), disrupttest.BinOf(p, both, all...)}
			}, "small@on-demand $1.00 + small|medium@spot $0.30"},
		{"two for one spot node: too few types for the one that may be spot", disrupt.Settings{SpotToSpot: true,
			SpotTypes: 2},
			nil, leaves("large", disrupt.Spot, 1.6, 3),
			func(p *cluster.Pool) []market.Bin {
				return []market.Bin{disrupttest.BinOf(p, od, "small"), disrupttest.BinOf(p, both, all...)}
			}, "SpotNeedsTypes saves 0.30 of 0.00"},
		{"nothing is for sale", disrupt.Settings{}, func(p *cluster.Pool) {
			p.Catalog = p.Catalog.Without(func(*cluster.Offering) bool { return true })
		},
			leaves("large", disrupt.OnDemand, 4, 3), comes(od, all...), "NothingCheaper saves 3.00 of 0.00"},
		{"a zone is sold out", disrupt.Settings{}, func(p *cluster.Pool) {
			p.Catalog = p.Catalog.Without(func(o *cluster.Offering) bool { return o.Zone == "b" })
		},
			leaves("medium", disrupt.OnDemand, 0.7, 3), comes(both, all...), "small|medium@spot $0.30"},
		{"minValues", disrupt.Settings{}, func(p *cluster.Pool) {
			p.Template.Requirements = require.Set{}.WithMin(cluster.InstanceTypeLabel, 2)
		}, leaves("large", disrupt.OnDemand, 4, 3), comes(od, all...), "small|medium@on-demand $1.00"},
		{"minValues can't be met", disrupt.Settings{}, func(p *cluster.Pool) {
			p.Template.Requirements = require.Set{}.WithMin(cluster.InstanceTypeLabel, 3)
		}, leaves("large", disrupt.OnDemand, 4, 3), comes(od, all...), "MinValuesTooDear saves 3.00 of 0.00"},
		{"minValues give way", disrupt.Settings{Schedule: schedule.Settings{RelaxMinValues: true}},
			func(p *cluster.Pool) {
				p.Template.Requirements = require.Set{}.WithMin(cluster.InstanceTypeLabel, 3)
			}, leaves("large", disrupt.OnDemand, 4, 3), comes(od, all...), "small|medium@on-demand $1.00"},
		{"spot for spot keeps what minValues need", disrupt.Settings{SpotToSpot: true, SpotTypes: 1},
			func(p *cluster.Pool) {
				p.Template.Requirements = require.Set{}.WithMin(cluster.InstanceTypeLabel, 2)
			}, leaves("large", disrupt.Spot, 1.7, 3), comes(both, all...), "small|medium@spot $0.30"},
	}
	for _, c := range cases {
		p := &cluster.Pool{Name: "default", Catalog: disrupttest.Shop()}
		if c.change != nil {
			c.change(p)
		}
		var bins []market.Bin
		if c.come != nil {
			bins = c.come(p)
		}
		trimmed, blocked := worthwhile(c.set, c.goes(p), bins)
		got := kept(trimmed)
		if blocked != nil {
			got += fmt.Sprintf("%s saves %.2f of %.2f", blocked.Reason, blocked.Saving, blocked.NeededSaving)
		}
		if got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
}

func leaves(kind, terms string, price float64, evicted int) func(p *cluster.Pool) []disrupt.Candidate {
	return func(p *cluster.Pool) []disrupt.Candidate {
		return []disrupt.Candidate{disrupttest.Goer(p, kind, terms, price, evicted)}
	}
}

func comes(terms []string, types ...string) func(p *cluster.Pool) []market.Bin {
	return func(p *cluster.Pool) []market.Bin { return []market.Bin{disrupttest.BinOf(p, terms, types...)} }
}

// drawDeal draws a catalog, nodes that go and nodes that come.
func drawDeal(t *rapid.T) (disrupt.Settings, []disrupt.Candidate, []market.Bin) {
	var types []cluster.Type
	var offers []cluster.Offering
	for i := range rapid.IntRange(1, 20).Draw(t, "types") {
		name := fmt.Sprintf("t%02d", i)
		types = append(types, cluster.Type{Name: name})
		for _, zone := range []string{"a", "b"} {
			for _, terms := range []string{disrupt.OnDemand, disrupt.Spot} {
				if rapid.IntRange(0, 3).Draw(t, "sold") > 0 {
					offers = append(offers, disrupttest.Offering(i, name, zone, terms,
						float64(rapid.IntRange(1, 40).Draw(t, "price"))/10))
				}
			}
		}
	}
	p := &cluster.Pool{Name: "p", Catalog: cluster.NewCatalog(types, offers)}
	set := disrupt.Settings{MinSaving: rapid.SampledFrom([]float64{0, 0.05, 0.3}).Draw(t, "share"),
		MinSavingPerPod: rapid.SampledFrom([]float64{0, 0.01}).Draw(t, "perPod"),
		SpotToSpot:      true, SpotTypes: rapid.IntRange(1, 8).Draw(t, "spotTypes"),
		SpotRisk: rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "risk")}
	var candidates []disrupt.Candidate
	for range rapid.IntRange(1, 4).Draw(t, "go") {
		candidates = append(candidates, disrupttest.Goer(p, rapid.SampledFrom(types).Draw(t, "was").Name,
			rapid.SampledFrom([]string{disrupt.OnDemand, disrupt.Spot}).Draw(t, "terms"),
			float64(rapid.IntRange(1, 60).Draw(t, "paid"))/10, rapid.IntRange(0, 9).Draw(t, "pods")))
	}
	var bins []market.Bin
	for range rapid.IntRange(0, 3).Draw(t, "come") {
		var list []string
		for _, kind := range types {
			if rapid.Bool().Draw(t, "may") {
				list = append(list, kind.Name)
			}
		}
		bins = append(bins, disrupttest.BinOf(p, rapid.SampledFrom([][]string{{disrupt.OnDemand}, {disrupt.Spot},
			{disrupt.OnDemand, disrupt.Spot}}).Draw(t, "how"),
			list...))
	}
	return set, candidates, bins
}

// dearest is the most that a bin may come to cost, in so many words: any offering that it allows of any type, but a
// type that has spot is launched as spot.
func dearest(t *rapid.T, b *market.Bin) float64 {
	most := -1.0
	for _, name := range b.Types {
		prices := map[string]float64{}
		for _, o := range b.Pool.Catalog.Offerings {
			if _, ok := b.Requirements.FirstMiss(o.Labels.Get); ok && b.Pool.Catalog.Types[o.Type].Name == name {
				prices[o.CapacityType] = max(prices[o.CapacityType], o.Price)
			}
		}
		price, isSpot := prices[disrupt.Spot]
		if !isSpot {
			price = prices[disrupt.OnDemand]
		}
		if len(prices) == 0 {
			t.Fatalf("type %s was kept and can't be bought", name)
		}
		most = max(most, price)
	}
	return most
}

// Whatever the cloud hands out, a move that pays saves what it must: that is what makes moves come to an end.
func TestEveryMoveSaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set, candidates, bins := drawDeal(t)
		a, blocked := appraised(set, candidates, bins)
		before, evicted := 0.0, 0
		for _, c := range candidates {
			before, evicted = before+c.Price, evicted+c.Evicted
		}
		needed := max(1e-6, set.MinSaving*before, set.MinSavingPerPod*float64(evicted))
		if blocked != nil {
			if len(bins) == 0 && needed <= before {
				t.Fatalf("a node that nobody needs stays: %+v", *blocked)
			}
			return
		}
		if len(a.Bins) != len(bins) {
			t.Fatalf("%d of %d bins came back", len(a.Bins), len(bins))
		}
		worst, after := 0.0, 0.0
		for i := range a.Bins {
			worst, after = worst+dearest(t, &a.Bins[i]), after+a.Bins[i].Price
			if a.Bins[i].Price > dearest(t, &a.Bins[i]) {
				t.Fatalf("%s is expected to cost more than the most that it may", kept(a.Bins[i:i+1]))
			}
		}
		if before-worst < needed-1e-9 || math.Abs(a.MaxAfter-worst) > 1e-9 || math.Abs(a.After-after) > 1e-9 ||
			math.Abs(a.Before-before) > 1e-9 {
			t.Fatalf("%s for $%.2f: saves $%.4f at worst, must $%.4f; %+v", kept(a.Bins), before,
				before-worst, needed, a)
		}
	})
}

// One on-demand node for one: exactly the types remain that are cheap enough.
func TestNoTypeIsLostInVain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set, candidates, bins := drawDeal(t)
		if len(bins) == 0 {
			return
		}
		candidates, bins = candidates[:1], bins[:1]
		candidates[0].CapacityType = disrupt.OnDemand
		var want []string
		terms, _ := bins[0].Requirements.Get(cluster.CapacityTypeLabel)
		limit := candidates[0].Price - Needed(set, candidates)
		for _, name := range bins[0].Types {
			single := disrupttest.BinOf(bins[0].Pool, nil, name)
			single.Requirements = single.Requirements.Replace(cluster.CapacityTypeLabel, terms)
			if terms.Matches(disrupt.Spot, true) {
				single.Requirements = single.Requirements.Replace(cluster.CapacityTypeLabel, require.Only(disrupt.Spot))
			}
			sold := slices.ContainsFunc(bins[0].Pool.Catalog.Offerings, func(o cluster.Offering) bool {
				_, ok := single.Requirements.FirstMiss(o.Labels.Get)
				return ok
			})
			if sold && dearest(t, &single) <= limit {
				want = append(want, name)
			}
		}
		trimmed, blocked := worthwhile(set, candidates, bins)
		if blocked != nil && len(want) > 0 {
			t.Fatalf("%+v, want %v", *blocked, want)
		}
		if blocked == nil && !slices.Equal(trimmed[0].Types, want) {
			t.Fatalf("%v, want %v", trimmed[0].Types, want)
		}
	})
}

// worthwhile leaves those types in the new nodes with which taking the candidates away pays.
func worthwhile(set disrupt.Settings, candidates []disrupt.Candidate, bins []market.Bin) ([]market.Bin,
	*disrupt.BlockedNode) {
	a, blocked := appraised(set, candidates, bins)
	return a.Bins, blocked
}

// appraised is appraise where pods come from the candidates only.
func appraised(set disrupt.Settings, candidates []disrupt.Candidate, bins []market.Bin) (Appraisal,
	*disrupt.BlockedNode) {
	return appraise(set, candidates, candidates, bins, true)
}
