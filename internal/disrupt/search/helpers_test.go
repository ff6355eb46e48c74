package search

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/disrupt/saving"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
)

// searcherOf is a search that has taken a cluster in and has found nothing yet.
func searcherOf(line string) *searcher {
	f := disrupttest.FleetOf(line)
	s := f.S.Seal()
	candidates, _, _ := disrupt.Candidates(s, f.Set, command.Underutilized)
	return newSearcher(s, f.Set, candidates, candidates, mostSteps)
}

// At most 64 nodes are in a move, each counted once, however they came together.
func TestMovesHaveABound(t *testing.T) {
	sr := searcherOf(strings.Repeat("large:5 ", mostJoined+1))
	if last := mostJoined; !sr.mayUnion([]int{0, last}) {
		t.Error("two nodes may not go together")
	}
	for i := range mostJoined {
		sr.found.joined.Join(0, i)
	}
	if !sr.mayUnion([]int{0}) || !sr.mayUnion([]int{1, 2, 3}) {
		t.Errorf("%d nodes that are in a move may not go on", mostJoined)
	}
	if sr.mayUnion([]int{0, mostJoined}) || sr.mayUnion([]int{mostJoined, 5}) {
		t.Errorf("a move of %d nodes takes one more", mostJoined)
	}
}

// What a move costs is what disturbing each of its nodes costs, and what a pod asks of whoever evicts it counts.
func TestMovesTellWhatTheyDisturb(t *testing.T) {
	f := disrupttest.FleetOf("small: huge:1 medium:2 huge:5,1; p2 cost 5")
	p := Find(f.S.Seal(), f.Set)
	if len(p.Moves) != 1 || len(p.Moves[0].Claims) != 3 || p.Moves[0].Cost != 3+1+5+1+1 {
		t.Errorf("%+v, want one move of three nodes that costs 11", p.Moves)
	}
}

// A search that can't come to all nodes begins with another one each minute, so that all come in turn.
func TestSearchesBeginInTurn(t *testing.T) {
	at := func(d time.Duration, n int) int {
		return rotationStart(&cluster.Snapshot{Now: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC).Add(d)}, n)
	}
	for _, n := range []int{1, 2, 7, 30, 100} {
		begun := make(map[int]bool)
		for i := range n {
			minute := time.Duration(i) * time.Minute
			first := at(minute, n)
			if first < 0 || first >= n || at(minute+59*time.Second, n) != first {
				t.Fatalf("of %d nodes a search begins with %d, and then %d", n, first, at(minute+59*time.Second, n))
			}
			begun[first] = true
		}
		if len(begun) != n {
			t.Errorf("in %d minutes searches begin with %d of %d nodes", n, len(begun), n)
		}
	}
}

// What may be left over of pods that are packed anew into several nodes: one of the cheapest nodes for each 32 pods,
// but one at least.
func TestWhatMayBeLeftOver(t *testing.T) {
	for _, c := range []struct {
		pods []int // of each node that goes
		come []float64
		want float64
	}{
		{[]int{4}, nil, 0},
		{[]int{4}, []float64{3, 2}, 0},
		{[]int{4, 4}, []float64{3}, 0},
		{[]int{4, 4}, []float64{3, 2}, 2},
		{[]int{4, 4}, []float64{2, 3, 5}, 2},
		{[]int{16, 16}, []float64{3, 2}, 2},
		{[]int{32, 16}, []float64{3, 2}, 3},
		{[]int{32, 32, 32}, []float64{3, 2}, 6},
	} {
		var goes []disrupt.Candidate
		for _, n := range c.pods {
			goes = append(goes, disrupt.Candidate{Pods: make([]*cluster.Pod, n)})
		}
		var bins []market.Bin
		for _, price := range c.come {
			bins = append(bins, market.Bin{Price: price})
		}
		if got := saving.LeftOverPrice(goes, bins); got != c.want {
			t.Errorf("nodes with %v pods for new ones at %v: %g, want %g", c.pods, c.come, got, c.want)
		}
	}
}

// A new node is kept to the zone of the cheapest offering that its requirements allow; of equals the first counts.
func TestNewNodesAreKeptToTheCheapestZone(t *testing.T) {
	prices := func(a, b, c float64) *cluster.Pool {
		var offers []cluster.Offering
		for i, price := range []float64{a, b, c} {
			offers = append(offers, disrupttest.Offering(0, "small", string(rune('a'+i)), disrupt.OnDemand, price))
		}
		return &cluster.Pool{Catalog: cluster.NewCatalog([]cluster.Type{{Name: "small"}}, offers)}
	}
	nowhere := &cluster.Pool{Catalog: cluster.NewCatalog([]cluster.Type{{Name: "small"}},
		[]cluster.Offering{{Available: true, Price: 1, Labels: disrupttest.LabelsFor("small", "a", disrupt.OnDemand)}})}
	for _, c := range []struct {
		name string
		pool *cluster.Pool
		may  []string
		want []string
	}{
		{"the first is the cheapest", prices(1, 2, 3), []string{"a", "b", "c"}, []string{"a"}},
		{"the second is", prices(2, 1, 3), []string{"a", "b", "c"}, []string{"b"}},
		{"the last is", prices(3, 2, 1), []string{"a", "b", "c"}, []string{"c"}},
		{"all are equal", prices(2, 2, 2), []string{"a", "b", "c"}, []string{"a"}},
		{"the cheapest is not allowed", prices(1, 3, 2), []string{"b", "c"}, []string{"c"}},
		{"none is allowed", prices(1, 2, 3), []string{"d", "e"}, []string{"d", "e"}},
		{"it is of no zone", nowhere, []string{"a", "b"}, []string{"a", "b"}},
	} {
		b := market.Bin{Pool: c.pool, Requirements: require.Set{}.With(cluster.ZoneLabel, require.Only(c.may...)).
			With("team", require.Only("red"))}
		kept := saving.InCheapestZones([]market.Bin{b})[0].Requirements
		zones, _ := kept.Get(cluster.ZoneLabel)
		if list, _ := zones.Listed(); fmt.Sprint(list) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.name, list, c.want)
		}
		if zones, _ := b.Requirements.Get(cluster.ZoneLabel); !zones.Matches(c.may[1], true) {
			t.Errorf("%s: what was asked for has changed: %v", c.name, b.Requirements)
		}
	}
}
