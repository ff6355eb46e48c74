package disrupt

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// city is a cluster of n nodes with 20 pods each, of a thousand workloads in ten namespaces, every third of which has a
// disruption budget.
func city(n int) *cluster.Snapshot {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	s := &cluster.Snapshot{Now: now, InFlight: map[string]bool{}, Owners: map[string]cluster.Owner{},
		EvictedToSave: map[string]int{}}
	pool := &cluster.Pool{Name: "default", Policy: cluster.Balanced, Catalog: shop(),
		Budgets: []cluster.Budget{{Nodes: 10, Percent: true, Active: true}}}
	pool.Template.Requirements = require.Set{}.With(cluster.CapacityTypeLabel, require.Only(onDemand, spot)).
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
		labels := labelsFor("large", "a", onDemand)
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

func BenchmarkCandidates(b *testing.B) {
	s := city(10_000)
	b.ResetTimer()
	for range b.N {
		if got, _, _ := Candidates(s, Settings{EvictionsPerHour: 2}, command.Underutilized); len(got) != 10_000 {
			b.Fatalf("%d candidates", len(got))
		}
	}
}

func BenchmarkLedger(b *testing.B) {
	s := city(10_000)
	b.ResetTimer()
	for range b.N {
		if NewBudgetTracker(s).Remaining("default", command.Drifted) != 1000 {
			b.Fatal("the budget is 10%")
		}
	}
}

func BenchmarkTotals(b *testing.B) {
	s := city(10_000)
	b.ResetTimer()
	for range b.N {
		if NewPoolTotals(s)["default"].Price != 40_000 {
			b.Fatal("all cost 4")
		}
	}
}

func BenchmarkTellClaims(b *testing.B) {
	s := city(10_000)
	b.ResetTimer()
	for range b.N {
		if commands, _ := ClaimConditions(s, NewRollouts(s, Settings{}), nil); len(commands) != 0 {
			b.Fatalf("%d commands", len(commands))
		}
	}
}

func BenchmarkAppraise(b *testing.B) {
	var types []cluster.Type
	var offers []cluster.Offering
	var names []string
	for i := range 700 {
		name := fmt.Sprintf("t%03d", i)
		types = append(types, cluster.Type{Name: name})
		for _, zone := range []string{"a", "b", "c"} {
			offers = append(offers, offering(i, name, zone, onDemand, 1+float64(i)/10), offering(i, name, zone, spot,
				0.3+float64(i)/30))
		}
		if i < 60 {
			names = append(names, name)
		}
	}
	p := &cluster.Pool{Name: "p", Catalog: cluster.NewCatalog(types, offers)}
	candidates := []Candidate{goer(p, "t100", onDemand, 5, 20)}
	bins := []schedule.Bin{binOf(p, []string{onDemand, spot}, names...)}
	b.ResetTimer()
	for range b.N {
		if _, blocked := Appraise(Settings{MinSaving: 0.05}, candidates, bins); blocked != nil {
			b.Fatalf("%+v", *blocked)
		}
	}
}
