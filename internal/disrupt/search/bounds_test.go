package search

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// Which nodes a search leaves out because their pods have many rules about others, and what becomes of the others. Of a
// pod with so many rules 1,000 nodes are looked at: 70 rules are 71,000 steps.
func TestWhatASearchIsCutAt(t *testing.T) {
	for _, c := range []struct{ name, cluster, want string }{
		{"a pod has as many rules as one placement takes on", "large:1 large:5; p1 asks 128",
			"n1: $4 to $0, 1 evicted, p1 on n2; n2 NothingCheaper"},
		{"a pod has more rules than that", "large:1 large:5; p1 asks 129",
			"n2: $4 to $0, 1 evicted, p2 on n1; n1 SearchCut; cut"},
		{"there are steps for all", "large:1 large:1 large:1; pods asks 70; all steps 213000",
			"n1+n2+n3: $12 to $2, 3 evicted, p1+p2 on small, p3 on small"},
		{"there is one step too few", "large:1 large:1 large:1; pods asks 70; all steps 212999",
			"n1: $4 to $0, 1 evicted, p1 on n3; n2: $4 to $0, 1 evicted, p2 on n3; n3 SearchCut; cut"},
		{"a pod without rules takes no steps away", "large:6 large:6 large:6; p1 asks 70; p2 asks 70; all steps 71000",
			"n1+n3: $8 to $6, 2 evicted, p3+p1 on huge; n2 SearchCut; cut"},
		{"there are no steps for anybody", "medium:4; pods asks 70; all steps 70000",
			"n1 SearchCut; cut"},
		{"a few rules are no reason to leave a pod out", "small: huge: huge:4,1; p2 asks 63; all steps 1000",
			"n3: $6 to $3, 2 evicted, p1 on medium, p2 on small"},
		{"the steps run out before the second node", "huge/b:5 huge:5; all steps 1; pods apart x",
			"n1 NothingCheaper; n2 SearchCut; cut"},
		{"the steps run out once all have been looked at", "medium/b:4 huge:5,6,3; all steps 1",
			"n1 NothingCheaper; n2 NothingCheaper; cut"},
		{"the steps run out once it is known what would be saved", "large/b:1,1,4 medium/b:3; all steps 1; all " +
			"saving 0.05",
			"n1 NothingCheaper of $0.375; n2 NothingCheaper of $0.188; cut"},
	} {
		if got := searched(disrupttest.FleetOf(c.cluster)); got != c.want {
			t.Errorf("%s (%s):\n%s, want\n%s", c.name, c.cluster, got, c.want)
		}
	}
}

// A search ends with the last of its steps.
func TestStepsAreSpent(t *testing.T) {
	sr := searcherOf("large:1 large:5; pods apart")
	for bound, want := range map[int]bool{sr.whatIf.Steps(): true, sr.whatIf.Steps() + 1: false} {
		if sr.maxSteps = bound; sr.isOutOfSteps() != want {
			t.Errorf("%d of %d steps are spent: %t", sr.whatIf.Steps(), bound, !want)
		}
	}
}

// In a larger cluster more pods are packed anew to find out whether it pays: a quarter of them.
func TestWorkGrowsWithTheCluster(t *testing.T) {
	if sr := searcherOf("huge:1,1,1,1,1,1,1,1 huge:1,1,1,1,1,1,1 small:1"); sr.packingBudget != minPackingBudget+2+1 {
		t.Errorf("%d pods are packed anew, want 3 more than %d", sr.packingBudget, minPackingBudget)
	}
}

// Pairs are looked at among sixteen nodes at most, 36 of them; each counts as work, and none is looked at once no work
// is left.
func TestPairsAreBounded(t *testing.T) {
	const each = 16/fullPlacementCost + 1 + 1 // of many's pods
	for _, c := range []struct{ nodes, work, want int }{
		{fewNodes, minPackingBudget, mostPairs * each}, {fewNodes + 1, minPackingBudget, 0}, {fewNodes, 0, 0},
		{fewNodes, 1, each}, {fewNodes, 2 * each, 2 * each},
	} {
		g := groupingOf(many(c.nodes))
		g.packingBudget = c.work
		if g.findPairs(); c.work-g.packingBudget != c.want {
			t.Errorf("%d nodes and work for %d pods: %d are placed anew, want %d", c.nodes, c.work,
				c.work-g.packingBudget, c.want)
		}
	}
	few := groupingOf(many(4))
	before := few.packingBudget
	if few.findPairs(); before-few.packingBudget != 6*2 {
		t.Errorf("of four nodes %d pods are placed anew, want those of the six pairs", before-few.packingBudget)
	}
}
