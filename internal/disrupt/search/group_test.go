package search

import (
	"math"
	"strings"
	"testing"
)

// groupingOf looks for groups among all nodes of a cluster.
func groupingOf(line string) *groupSearch {
	sr := searcherOf(line)
	sr.whatIf.SetOrder(sr.candidates.sortByWaste())
	g := &groupSearch{searcher: sr, packingLoss: usualLoss, roomShare: usualRoomShare}
	for i := range sr.candidates {
		g.list = append(g.list, i)
	}
	return g
}

// many is a cluster of n nodes that are alike, with pods that may not share a node: what they are worth says that they
// could be had for less, and they can't.
func many(n int) string { return strings.Repeat("medium:3 ", n) + "; pods apart" }

// How many pods are packed anew to find that no group pays: those of sixteen nodes at most, of half as many, and so on
// down to one; each group once. Where there are many nodes, those of a quarter as many.
func TestGroupsThatDoNotPayCostLittle(t *testing.T) {
	for _, c := range []struct {
		nodes, want int
	}{{2, 2 + 1}, {3, 3 + 2 + 1}, {16, 16 + 8 + 4 + 2 + 1}, {99, 16 + 8 + 4 + 2 + 1}, {100, 16 + 4 + 1}} {
		g := groupingOf(many(c.nodes))
		before := g.packingBudget
		if passed := g.tryNext(g.list); passed != min(c.nodes, 2) {
			t.Errorf("%d nodes: the next group is looked for after %d", c.nodes, passed)
		}
		if got := before - g.packingBudget; got != c.want {
			t.Errorf("%d nodes: %d pods are packed anew, want %d", c.nodes, got, c.want)
		}
	}
}

// A search that has packed as many pods anew as it may goes no further in its lists.
func TestGroupsEndWithTheWork(t *testing.T) {
	once := groupingOf(many(5))
	work, steps := once.packingBudget, once.whatIf.Steps()
	once.tryNext(once.list)
	used, looked := work-once.packingBudget, once.whatIf.Steps()-steps
	for left := range 2 {
		g := groupingOf(many(5))
		g.packingBudget = used + left
		g.searchLists(map[string][]int{"all": g.list})
		if on := g.whatIf.Steps()-steps > looked; on != (left > 0) {
			t.Errorf("with work left for %d pods it goes on: %t", left, on)
		}
	}
}

// Where there are many nodes, a group is not tried that would have to do much better than those before it to pay.
func TestWhatIsHopelessIsNotTried(t *testing.T) {
	full, half := "huge:6,5,5 ", "huge:6,2 "
	for _, c := range []struct {
		name         string
		nodes        string
		count        int
		housed, loss float64
		work         int
		want         bool
	}{
		{"few nodes", full, manyNodes - 1, 0, 1.02, 1, false},
		{"full nodes, and nothing has found room", full, manyNodes, 0, 1.02, 1, true},
		{"full nodes, and a part has found room", full, manyNodes, 0.15, 1.02, 1, false},
		{"full nodes, and all has found room", full, manyNodes, 0.9, 1.02, 1, false},
		{"nodes that are half empty", half, manyNodes, 0, 1.02, 1, false},
		{"nodes that are half empty, and nothing can be packed well", half, manyNodes, 0, 2.1, 1, true},
		{"nodes that are half empty, and no work is left", half, manyNodes, 0, 1.02, 0, true},
	} {
		g := groupingOf(strings.Repeat(c.nodes, c.count) + "; pods apart")
		g.roomShare, g.packingLoss, g.packingBudget = c.housed, c.loss, c.work
		if got := g.isHopeless(g.list[:4]); got != c.want {
			t.Errorf("%s: hopeless is %t, want %t", c.name, got, c.want)
		}
		before := g.whatIf.Steps()
		if g.tryNext(g.list); g.whatIf.Steps() > before == c.want {
			t.Errorf("%s: it is tried: %t", c.name, !c.want)
		}
	}
}

// What can't pay by what is known of how well new nodes are filled is not packed, and nothing is once no work is left.
func TestGroupsThatCanNotPayAreNotPacked(t *testing.T) {
	for _, c := range []struct {
		name   string
		loss   float64
		work   int
		packed bool
	}{{"it could pay", 1.02, minPackingBudget, true}, {"it can't", 2.1, minPackingBudget, false},
		{"no work is left", 1.02, 0, false}, {"a little is", 1.02, 1, true}} {
		g := groupingOf(many(3))
		g.packingLoss, g.packingBudget = c.loss, c.work
		if g.try(g.list, g.buyTogether); g.packingBudget < c.work != c.packed {
			t.Errorf("%s: it is packed: %t", c.name, !c.packed)
		}
	}
}

// A search remembers which part of the pods has found room lately, and how much more than they are worth the new nodes
// cost for the others.
func TestSearchesLearnFromWhatTheyTry(t *testing.T) {
	for _, c := range []struct {
		name, cluster string
		tried         []string
		housed, loss  float64
	}{
		{"nothing finds room", "medium:3 medium:3; pods apart", []string{"n1", "n2"}, 0, mostLoss},
		{"half of it finds room", "medium:3 medium:3 huge:12,1", []string{"n1", "n2"}, 0.5, mostLoss},
		{"cheap nodes", "small:1 small:1 huge:8,7", []string{"n1", "n2"}, 0.5, mostLoss},
		{"new nodes are full", "large:8 large:8", []string{"n1", "n2"}, 0, 1},
		{"what they need is reserved, and costs nothing", "medium:1 medium:1; all any; all reserves 2; pods reserved",
			[]string{"n1", "n2"}, usualRoomShare, usualLoss},
		{"nobody sells what they need", "medium:1 medium:1; pods need x", []string{"n1", "n2"}, usualRoomShare,
			usualLoss},
	} {
		g := groupingOf(c.cluster)
		var places []int
		for _, name := range c.tried {
			places = append(places, g.byNode[name])
		}
		for range 60 {
			g.try(places, g.buyTogether)
			g.whatIf.Undo()
		}
		if !(math.Abs(g.roomShare-c.housed) < 1e-6 && math.Abs(g.packingLoss-c.loss) < 1e-6) {
			t.Errorf("%s: housed %g and loss %g, want %g and %g", c.name, g.roomShare, g.packingLoss, c.housed, c.loss)
		}
	}
}

// A node that may not go any more when its turn comes does not keep others from going together.
func TestGroupsLeaveOutWhoMayNotGo(t *testing.T) {
	g := groupingOf("large:5 large:5 large:5; p2 owner db; all evictions 1")
	g.s.EvictedToSave["db"] = 1
	if got := g.firstAllowed(g.list, mostNodes); len(got) != 2 || got[0] != 0 || got[1] != 2 {
		t.Errorf("%v may go, want the first and the last", got)
	}
}
