package search_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/search"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// crowded is a cluster in which each pod is of a class of its own. Pods of a group repel each other on every node;
// there is one of each group on a node.
func crowded(pods, nodes int, rules bool) *town {
	r := rand.New(rand.NewPCG(uint64(pods), 7))
	catalog := region(r, 40, []int64{4, 8, 16, 24})
	w := newTown(catalog, threePools(catalog)...)
	var names []string
	for i := range nodes {
		names = append(names, w.build(w.pools[0], &catalog.Offerings[(i*7)%len(catalog.Offerings)], nil))
	}
	for i := range pods {
		own, group := fmt.Sprintf("v%05d", i), fmt.Sprintf("g%d", i/nodes)
		c := &cluster.PodClass{Key: own, Terms: []require.Set{nil}}
		c.Requests = resource.Vector{resource.CPU: 100 + int64(i%97), resource.Memory: int64(100+i%89) << 20,
			resource.Pods: 1}
		if rules {
			others, _ := require.Make(require.NotIn, []string{own})
			c.Rules = []*cluster.Rule{{Key: own, Kind: cluster.AntiAffinity, TopologyKey: cluster.HostnameLabel,
				Selectors: []cluster.Selector{{
					Namespaces: []string{"default"}, Labels: require.Set{}.With("repel", others).With("group",
						require.Only(group))}}}}
		}
		id := "pod-" + own
		w.pods[id] = &cluster.Pod{UID: id, Name: id, Namespace: "default", Class: c, Owner: "rs-" + own,
			Node: names[i%nodes], Ready: true, EvictionCost: 1,
			Labels: cluster.LabelsOf(map[string]string{"repel": own, "group": group})}
	}
	return w
}

// BenchmarkHostileSearch makes decisions about clusters whose pods are each of a class of its own.
func BenchmarkHostileSearch(b *testing.B) {
	for _, c := range []struct {
		name        string
		pods, nodes int
		rules       bool
	}{
		{"repelling-2000-on-500", 2000, 500, true}, {"repelling-5000-on-500", 5000, 500, true},
		{"repelling-2000-on-2000", 2000, 2000, true},
		{"distinct-5000-on-500", 5000, 500, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := crowded(c.pods, c.nodes, c.rules).snapshot()
			b.ReportAllocs()
			for b.Loop() {
				search.Find(s, settings())
			}
		})
	}
}

// A search among pods that are each of a class of its own, with rules about all the others, has an end, and says what
// it has not come to. Later others come first.
func TestHostileSearchIsCut(t *testing.T) {
	w := crowded(1200, 1200, true)
	came := make(map[string]bool)
	for round := range 2 {
		s := w.snapshot()
		s.Now = s.Now.Add(time.Duration(round) * 15 * time.Minute)
		p := search.Find(s, settings())
		cut, before := 0, len(came)
		for i := range p.Blocked {
			if p.Blocked[i].Reason == disrupt.SearchCut {
				cut++
			} else {
				came[p.Blocked[i].Claim] = true
			}
		}
		for i := range p.Moves {
			for _, name := range p.Moves[i].Claims {
				came[name] = true
			}
		}
		if !p.Truncated || cut == 0 || len(came) == before {
			t.Fatalf("round %d: cut is %v, %d nodes were not looked at, and %d for the first time", round, p.Truncated,
				cut, len(came)-before)
		}
	}
}

// Ordinary workloads are far from any bound, and so are thousands of classes without rules.
func TestOrdinarySearchIsWhole(t *testing.T) {
	for what, w := range map[string]*town{"a scale-down": scaledDown(100), "classes without rules": crowded(1000,
		100, false)} {
		if p := search.Find(w.snapshot(), settings()); p.Truncated {
			t.Errorf("%s: the search is cut", what)
		}
	}
}
