package disrupt

import (
	"math"
	"strings"
	"testing"
)

// groupingOf looks for groups among all nodes of a cluster.
func groupingOf(line string) *grouping {
	sr := searcherOf(line)
	sr.stage.Arrange(sr.order())
	g := &grouping{searcher: sr, loss: usualLoss, housed: usually}
	for i := range sr.all {
		g.list = append(g.list, i)
	}
	return g
}

// many is a cluster of n nodes that are alike, with pods that may not share a node: what they are worth says that they could be had for
// less, and they can't.
func many(n int) string { return strings.Repeat("medium:3 ", n) + "; pods apart" }

// How many pods are packed anew to find that no group pays: those of sixteen nodes at most, of half as many, and so on down to one; each
// group once. Where there are many nodes, those of a quarter as many.
func TestGroupsThatDoNotPayCostLittle(t *testing.T) {
	for _, c := range []struct {
		nodes, want int
	}{{2, 2 + 1}, {3, 3 + 2 + 1}, {16, 16 + 8 + 4 + 2 + 1}, {99, 16 + 8 + 4 + 2 + 1}, {100, 16 + 4 + 1}} {
		g := groupingOf(many(c.nodes))
		before := g.work
		if passed := g.next(g.list); passed != min(c.nodes, 2) {
			t.Errorf("%d nodes: the next group is looked for after %d", c.nodes, passed)
		}
		if got := before - g.work; got != c.want {
			t.Errorf("%d nodes: %d pods are packed anew, want %d", c.nodes, got, c.want)
		}
	}
}

// A search that has packed as many pods anew as it may goes no further in its lists.
func TestGroupsEndWithTheWork(t *testing.T) {
	once := groupingOf(many(5))
	work, steps := once.work, once.stage.Steps()
	once.next(once.list)
	used, looked := work-once.work, once.stage.Steps()-steps
	for left := range 2 {
		g := groupingOf(many(5))
		g.work = used + left
		g.group(map[string][]int{"all": g.list})
		if on := g.stage.Steps()-steps > looked; on != (left > 0) {
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
		g.housed, g.loss, g.work = c.housed, c.loss, c.work
		if got := g.hopeless(g.list[:4]); got != c.want {
			t.Errorf("%s: hopeless is %t, want %t", c.name, got, c.want)
		}
		before := g.stage.Steps()
		if g.next(g.list); g.stage.Steps() > before == c.want {
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
	}{{"it could pay", 1.02, leastWork, true}, {"it can't", 2.1, leastWork, false}, {"no work is left", 1.02, 0, false}, {"a little is", 1.02, 1, true}} {
		g := groupingOf(many(3))
		g.loss, g.work = c.loss, c.work
		if g.try(g.list, g.together); g.work < c.work != c.packed {
			t.Errorf("%s: it is packed: %t", c.name, !c.packed)
		}
	}
}

// A search remembers which part of the pods has found room lately, and how much more than they are worth the new nodes cost for the others.
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
		{"what they need is reserved, and costs nothing", "medium:1 medium:1; all any; all reserves 2; pods reserved", []string{"n1", "n2"}, usually, usualLoss},
		{"nobody sells what they need", "medium:1 medium:1; pods need x", []string{"n1", "n2"}, usually, usualLoss},
	} {
		g := groupingOf(c.cluster)
		var places []int
		for _, name := range c.tried {
			places = append(places, g.byNode[name])
		}
		for range 60 {
			g.try(places, g.together)
			g.stage.Undo()
		}
		if !(math.Abs(g.housed-c.housed) < 1e-6 && math.Abs(g.loss-c.loss) < 1e-6) {
			t.Errorf("%s: housed %g and loss %g, want %g and %g", c.name, g.housed, g.loss, c.housed, c.loss)
		}
	}
}

// A node that may not go any more when its turn comes does not keep others from going together.
func TestGroupsLeaveOutWhoMayNotGo(t *testing.T) {
	g := groupingOf("large:5 large:5 large:5; p2 owner db; all evictions 1")
	g.s.Evicted["db"] = 1
	if got := g.first(g.list, mostNodes); len(got) != 2 || got[0] != 0 || got[1] != 2 {
		t.Errorf("%v may go, want the first and the last", got)
	}
}
