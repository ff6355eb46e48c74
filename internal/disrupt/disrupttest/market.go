package disrupttest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
)

// Shop is a catalog of types small ($1), medium ($2) and large ($4), in zones a and b, on-demand; spot costs 30% of it
// in zone a and 40% in zone b.
func Shop() *cluster.Catalog {
	var types []cluster.Type
	var offers []cluster.Offering
	for i, name := range []string{"small", "medium", "large"} {
		types = append(types, cluster.Type{Name: name})
		for _, zone := range []string{"a", "b"} {
			price := float64(int(1) << i)
			offers = append(offers, Offering(i, name, zone, disrupt.OnDemand, price))
			offers = append(offers, Offering(i, name, zone, disrupt.Spot, price*map[string]float64{"a": 0.3,
				"b": 0.4}[zone]))
		}
	}
	return cluster.NewCatalog(types, offers)
}

// Offering is an offering that can be bought.
func Offering(kind int, name, zone, terms string, price float64) cluster.Offering {
	return cluster.Offering{Type: kind, Zone: zone, CapacityType: terms, Price: price, Available: true,
		Labels: LabelsFor(name, zone, terms)}
}

// LabelsFor are the labels of a node of the type.
func LabelsFor(name, zone, terms string) cluster.Labels {
	return cluster.LabelsOf(map[string]string{cluster.InstanceTypeLabel: name, cluster.ZoneLabel: zone,
		cluster.CapacityTypeLabel: terms})
}

// Names are the names of pods.
func Names(pods []*cluster.Pod) (out []string) {
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return out
}

// BinOf is a new node of the pool that may be any of the types under any of the capacity types, in zones a and b.
func BinOf(p *cluster.Pool, terms []string, types ...string) market.Bin {
	b := market.Bin{Pool: p, Types: types, Price: math.Inf(1), Requirements: p.Template.Requirements.
		Replace(cluster.InstanceTypeLabel, require.Only(types...)).Replace(cluster.CapacityTypeLabel,
		require.Only(terms...)).
		Replace(cluster.ZoneLabel, require.Only("a", "b"))}
	for i := range p.Catalog.Offerings {
		o := &p.Catalog.Offerings[i]
		if slices.Contains(types, p.Catalog.Types[o.Type].Name) && slices.Contains(terms, o.CapacityType) {
			b.Price = min(b.Price, o.Price)
		}
	}
	return b
}

// Goer is a candidate on which so many pods run.
func Goer(p *cluster.Pool, kind, terms string, price float64, evicted int) disrupt.Candidate {
	return disrupt.Candidate{Claim: &cluster.Claim{Name: "c-" + kind, Pool: p.Name},
		Node: &cluster.Node{Name: "n-" + kind},
		Pool: p, Type: kind, CapacityType: terms,
		Price: price, Evicted: evicted, Cost: 1 + float64(evicted)}
}

// City is a cluster of n nodes with 20 pods each, of a thousand workloads in ten namespaces, every third of which has a
// disruption budget.
func City(n int) *cluster.Snapshot {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	s := &cluster.Snapshot{Now: now, InFlight: map[string]bool{}, Owners: map[string]cluster.Owner{},
		EvictedToSave: map[string]int{}}
	pool := &cluster.Pool{Name: "default", Policy: cluster.Balanced, Catalog: Shop(),
		Budgets: []cluster.Budget{{Nodes: 10, Percent: true, Active: true}}}
	pool.Template.Requirements = require.Set{}.With(cluster.CapacityTypeLabel, require.Only(disrupt.OnDemand,
		disrupt.Spot)).
		With(cluster.ZoneLabel, require.Only("a", "b"))
	s.Pools = []*cluster.Pool{pool}
	type kind struct {
		namespace string
		labels    cluster.Labels
		class     *cluster.PodClass
	}
	kinds := make([]kind, 1000)
	for i := range kinds {
		name := fmt.Sprintf("app-%d", i)
		kinds[i] = kind{fmt.Sprintf("ns-%d", i%10), cluster.LabelsOf(map[string]string{"app": name, "tier": "web"}),
			&cluster.PodClass{Key: name}}
		s.Owners[name] = cluster.Owner{UID: name, Known: true, Desired: n * 20 / len(kinds)}
		s.EvictedToSave[name] = i % 3
		if i%3 == 0 {
			s.PDBs = append(s.PDBs, &cluster.PDB{Namespace: kinds[i].namespace, Name: name, Allowed: 1, Healthy: 9,
				DesiredHealthy: 8, Expected: 10,
				Selector: cluster.Selector{Namespaces: []string{kinds[i].namespace}, Labels: require.Set{}.With("app",
					require.Only(name))}})
		}
	}
	for i := range n {
		name := fmt.Sprintf("n%05d", i)
		labels := LabelsFor("large", "a", disrupt.OnDemand)
		c := &cluster.Claim{Name: name, Pool: "default", ProviderID: name, NodeName: name, Labels: labels, Price: 4,
			LastPodEvent: now.Add(-time.Hour), SavedPodEvent: now.Add(-time.Hour)}
		for _, what := range []string{cluster.Launched, cluster.Registered, cluster.Initialized,
			cluster.Consolidatable} {
			c.Conditions = append(c.Conditions, cluster.Condition{Type: what, Status: cluster.True, Reason: what,
				Since: now.Add(-2 * time.Hour)})
		}
		s.Claims = append(s.Claims, c)
		s.Nodes = append(s.Nodes, &cluster.Node{Name: name, ProviderID: name, Labels: labels, Ready: true})
		for j := range 20 {
			k := (i*20 + j) * 7 % len(kinds)
			s.Pods = append(s.Pods, &cluster.Pod{UID: fmt.Sprintf("%06d", i*20+j), Namespace: kinds[k].namespace,
				Name: "p", Class: kinds[k].class, Labels: kinds[k].labels,
				Owner: kinds[k].class.Key, Node: name, Ready: true, Phase: "Running", EvictionCost: 1})
		}
	}
	return s.Seal()
}
