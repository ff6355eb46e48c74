package search

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/disrupt/execute"
)

// searched tells in short what a search finds: moves, and why the other nodes stay.
func searched(f *disrupttest.Fleet) string {
	p := find(f.S.Seal(), f.Set, cmp.Or(f.Steps, mostSteps))
	var out []string
	for i := range p.Moves {
		m := &p.Moves[i]
		line := fmt.Sprintf("%s: $%.4g to $%.4g, %d evicted", strings.Join(m.Claims, "+"), m.Before, m.After, m.Evicted)
		for _, a := range m.Assigned {
			line += fmt.Sprintf(", %s on %s", a.Pod.Name, a.Host)
		}
		for b := range m.Bins {
			bin := &m.Bins[b]
			line += fmt.Sprintf(", %s on %s", strings.Join(disrupttest.Names(bin.Pods), "+"),
				strings.Join(bin.Types, "|"))
		}
		out = append(out, line)
	}
	for i := range p.Blocked {
		blocked := &p.Blocked[i]
		line := fmt.Sprintf("%s %s", blocked.Claim, blocked.Reason)
		if blocked.Pod != "" {
			line += " " + blocked.Pod
		}
		if math.Abs(blocked.Saving) > 1e-9 {
			line += fmt.Sprintf(" $%.3g", blocked.Saving)
		}
		if math.Abs(blocked.CertainSaving-blocked.Saving) > 1e-9 {
			line += fmt.Sprintf(", $%.3g for sure,", blocked.CertainSaving)
		}
		// At first a search asks for more than has to be saved, and may remember that.
		if blocked.NeededSaving > 1e-4 && blocked.Reason != disrupt.SavesTooLittle &&
			blocked.Reason != disrupt.BudgetBlocks {
			line += fmt.Sprintf(" of $%.3g", blocked.NeededSaving)
		}
		if !blocked.Until.IsZero() {
			line += fmt.Sprintf(" until %s", blocked.Until.Sub(f.Now))
		}
		out = append(out, line)
	}
	if !p.WakeAt.IsZero() {
		out = append(out, fmt.Sprintf("look again in %s", p.WakeAt.Sub(f.Now)))
	}
	if p.Truncated {
		out = append(out, "cut")
	}
	return strings.Join(out, "; ")
}

// What a search finds, node by node. Each case is a cluster as FleetOf reads it, and what search tells of it.
func TestWhatASearchFinds(t *testing.T) {
	for _, c := range []struct{ name, cluster, want string }{
		{"pods fit on another node", "large:1 large:5",
			"n1: $4 to $0, 1 evicted, p1 on n2; n2 NothingCheaper"},
		{"a node that is exchanged leaves its neighbour alone", "medium:1 medium:3,1",
			"n1: $2 to $1, 1 evicted, p1 on small; n2 NothingCheaper"},
		{"a node is exchanged for a smaller one", "medium:1",
			"n1: $2 to $1, 1 evicted, p1 on small"},
		{"pods of three nodes are packed anew", "small: huge:1 medium:2 huge:5,1",
			"n2+n3+n4: $14 to $5, 4 evicted, p3+p2+p1 on large, p4 on small"},
		{"some pods go to a node that is there, others to new ones", "huge/b:5,4,2 huge:4 huge/b:4,2",
			"n2: $6 to $0, 1 evicted, p4 on n1; n3: $6 to $3, 2 evicted, p5 on medium, p6 on small; " +
				"n1 NothingCheaper"},
		{"the most wasteful node goes first", "medium:1 medium:2 huge:3,1 large:3,3",
			"n3: $6 to $0, 2 evicted, p3 on n1, p4 on n4; n2: $2 to $1, 1 evicted, p2 on small; n1 NothingCheaper; " +
				"n4 NothingCheaper"},
		{"several nodes for one", "huge:3 large:6 large:6,1,1 large:3 large:4,3",
			"n1+n2+n3+n4+n5: $22 to $12, 8 evicted, p3+p7+p8 on huge, p2+p1+p6+p4+p5 on huge"},
		{"no pod goes to a node that is about to go because it is empty", "huge:4 huge: medium:2,2 medium:1,1,1",
			"n4: $2 to $0, 3 evicted, p4 on n1, p5 on n1, p6 on n1; n3: $2 to $0, 2 evicted, p2 on n1, p3 on n1; " +
				"n1 NothingCheaper"},
		{"some pods go to a node that stays, those of three others to new ones",
			"huge:1,2 large:4,2 huge:2,3 large:5 small:2 large:",
			"n1+n2+n4: $14 to $3, 5 evicted, p7 on n3, p1 on n3, p2 on n3, p3 on medium, p4 on small; " +
				"n5: $1 to $0, 1 evicted, p8 on n3; n3 NothingCheaper"},
		{"no pod goes to a node that is not up yet", "medium:1 large:; n2 joining",
			"n1: $2 to $1, 1 evicted, p1 on small; n2 NotInitialized"},
		{"nodes that are not ready take no pods, and count for the budget",
			"huge:1 small:1 small:; n2 unready; n3 unready",
			"n2: $1 to $0, 1 evicted, p2 on n1; n1 BudgetBlocks"},
		{"no pod goes to a node that others are on their way to", "medium:1 large:; n2 expects",
			"n1: $2 to $1, 1 evicted, p1 on small; n2 PodsExpected"},
		{"no pod goes to a node that is fenced, and its own need room",
			"huge:1 medium:1 medium:1 large:; n4 joining; n2 fenced Drifted",
			"n3: $2 to $0, 1 evicted, p3 on n1; n1 PodsExpected; n2 BeingDisrupted; n4 NotInitialized"},
		{"pods go to a node that is not ours", "medium:1 huge:; n2 foreign",
			"n1: $2 to $0, 1 evicted, p1 on n2"},
		{"no pod goes to a node of ours that has lost its claim", "medium:1 huge:; n2 orphaned",
			"n1: $2 to $1, 1 evicted, p1 on small"},
		{"no pod goes to a node of others that is being deleted", "large:5 large:; n2 node-deleted; n2 foreign",
			"n1 NothingCheaper"},
		{"no pod goes to a node of others that is tainted", "large:1 large:; n2 tainted; n2 foreign",
			"n1: $4 to $1, 1 evicted, p1 on small|medium"},
		{"no pod goes to a machine that has no node", "large:1 large:; n2 absent",
			"n1: $4 to $1, 1 evicted, p1 on small|medium; n2 NotInitialized"},
		{"nodes that were made for a move, with pods and without",
			"huge:2,1 medium:2 small:; n1 made underutilized-x; n3 made underutilized-y; n3 protected",
			"n1+n2: $8 to $3, 3 evicted, p1 on small, p3 on small, p2 on small; n3 NodeDoNotDisrupt"},
		{"pods go to a node that people keep", "large: large:1; n1 protected",
			"n2: $4 to $0, 1 evicted, p1 on n1; n1 NodeDoNotDisrupt"},
		{"no pod goes to a node that is still being filled",
			"large:1 large:; n2 protected; n2 stirred 1m; all after 30m",
			"n1: $4 to $1, 1 evicted, p1 on small|medium; n2 NodeDoNotDisrupt; look again in 29m0s"},
		{"the search is repeated when a budget changes", "small:1; b changes 30m",
			"n1 NothingCheaper; look again in 30m0s"},
		{"a budget for nobody", "medium:1 large:1; all budget 0",
			"n1 BudgetBlocks; n2 BudgetBlocks"},
		{"a budget for one node", "huge:1 small/b: large:1; pods spread; all budget 1",
			"n1: $6 to $1, 1 evicted, p1 on small|medium|large; n3 BudgetBlocks"},
		{"pools that only want to be told have to wait", "huge:1 large:1; n1 of b; b dry",
			"n2: $4 to $0, 1 evicted, p2 on n1; n1 PodsExpected"},
		{"nodes of two pools go together", "huge:1 large:1; n2 of c",
			"n1+n2: $10 to $1, 2 evicted, p1+p2 on small|medium"},
		{"a pool with a word of its own about savings shares no move",
			"large:6,2 huge:6,1 huge:1,6,2 large: large:1; n2 of b; b own-saving 0.1; n5 of b",
			"n5: $4 to $0, 1 evicted, p8 on n3; n1: $4 to $0, 2 evicted, p1 on n3, p2 on n2; n2 PodsExpected; " +
				"n3 PodsExpected"},
		{"a pool with a word of its own about pods shares no move",
			"small:2 large:1,4 huge:2 huge:2; n1 of b; n2 of b; b own-per-pod 0.1",
			"n3: $6 to $0, 1 evicted, p4 on n2; n1: $1 to $0, 1 evicted, p1 on n4; n2 PodsExpected; n4 PodsExpected"},
		{"a share must be saved", "small:1,1 medium:4 large:1 small:2; all saving 0.2",
			"n2: $2 to $0, 1 evicted, p3 on n3; n4: $1 to $0, 1 evicted, p5 on n3; n1 NothingCheaper of $0.5; " +
				"n3 NothingCheaper $0.5 of $0.8"},
		{"a share must be saved by nodes that go together", "medium:3,1 large:4 medium:1; all saving 0.2",
			"n2+n3: $6 to $3, 2 evicted, p3 on medium, p4 on small; n1 NothingCheaper of $1"},
		{"each pod must save something", "large:4,4 medium:1 huge:4,2,2; all per-pod 0.5",
			"n2: $2 to $0, 1 evicted, p3 on n3; n1: $4 to $2, 2 evicted, p1 on n3, p2 on medium; " +
				"n3 SavesTooLittle $1"},
		{"each pod must save more than there is", "small:1,1; all per-pod 0.5",
			"n1 NothingCheaper of $2.5"},
		{"a pool that balances, and minValues", "medium:3 huge:5,4 large:6,2 small:1; all min 3; all balanced 1",
			"n1 NotBalanced $2, $0 for sure, of $2.6; n2 NothingCheaper; n3 MinValuesTooDear $3, $0 for sure,; " +
				"n4 NotBalanced $1, $0 for sure, of $2.6"},
		{"minValues", "large:3,1,1; all min 3",
			"n1 MinValuesTooDear $1, $-6 for sure,"},
		{"minValues where one node would do", "small:1 huge:5; b min 3",
			"n1: $1 to $0, 1 evicted, p1 on n2; n2 MinValuesTooDear $2, $0 for sure,"},
		{"pods that may not share a node again", "huge:1,1,5; pods apart",
			"n1 PodsStranded $2, $0 for sure,"},
		{"pods are spread over zones", "huge:1 small:2 large:1,2 small:1 small/b:1,1; pods spread",
			"n3: $4 to $2, 2 evicted, p4 on small, p3 on small; " +
				"n1+n2+n4: $8 to $2, 3 evicted, p2+p1+p5 on medium|large; n5 NothingCheaper"},
		{"a pod that is bound to another zone", "medium:1,1; pods spread; p2 in b",
			"n1 NothingCheaper"},
		{"two nodes go together where pods are spread", "large:2,5 large:5 small/b: large:4,1,1; pods spread",
			"n1+n2: $8 to $6, 3 evicted, p2+p3+p1 on huge; n4 NothingCheaper"},
		{"workloads that have moved often rest", "huge:1,1 small:1,1 large:1; all evicted 3; all evictions 1",
			"n3: $4 to $0, 1 evicted, p5 on n1; n1 WorkloadResting shop/p2 until 20m0s; " +
				"n2 WorkloadResting shop/p4 until 20m0s; look again in 20m0s"},
		{"two nodes do not go together if their pods have moved too often",
			"large:5,1 large:2,4,1; all evicted 1; all evictions 1",
			"n1 NothingCheaper; n2 NothingCheaper"},
		{"spot nodes in place of on-demand nodes", "medium:1; all any",
			"n1: $2 to $0.3, 1 evicted, p1 on small|medium|large"},
		{"spot nodes in place of spot nodes want types", "medium/spot:4 medium/b/spot:4; all any; all spot-to-spot 3",
			"n1 NothingCheaper; n2 SpotNeedsTypes $0.2, $-1 for sure,"},
		{"no spot nodes for pods that came from spot nodes", "medium/spot:3 huge:2; all any",
			"n1: $0.6 to $0, 1 evicted, p1 on n2; n2 SpotToSpotOff $5.1"},
		{"spot nodes are packed apart", "large:6 large/spot:1,2; n1 stirred 1m",
			"n2: $1.2 to $1, 2 evicted, p3 on n1, p2 on small; n1 NothingCheaper"},
		{"pods go to spot nodes that are there", "small:2 large/spot:3,2,2 huge:4,2,4 large/spot:1",
			"n4: $1.2 to $0, 1 evicted, p8 on n2; n1: $1 to $0, 1 evicted, p1 on n3; n2 NothingCheaper $-0.3; " +
				"n3 NothingCheaper"},
		{"pods of a node that is being deleted come first", "medium:3,1 small:2 medium:1,1 large:1; n4 deleted",
			"n1 NothingCheaper; n2 NothingCheaper; n3 PodsExpected; n4 BeingDisrupted"},
		{"several small nodes for two larger ones", "large:2,1 huge:3,6 huge:2,1 large:3,2,1",
			"n3+n4: $10 to $3, 5 evicted, p6 on n2, p7 on n2, p5 on small, p8 on small, p9 on small; " +
				"n1: $4 to $0, 2 evicted, p1 on n2, p2 on n2; n2 NothingCheaper"},
		{"two of three nodes go, and their pods are spread",
			"huge/spot:3 huge/spot:3 small/b:1 large:5,1; pods spread",
			"n1+n4: $5.8 to $0, 3 evicted, p4 on n2, p5 on n3, p1 on n2; n2 NothingCheaper $-0.2; n3 NothingCheaper"},
		{"no pair where pods that wait go", "huge:2,1 small/b: large:3; pods spread; b min 2; n3 waits 3",
			"n1 PodsExpected; n3 PodsStranded $2, $0 for sure,"},
		{"no pair whose new node pods that wait would share",
			"small/b:1,1 small: large/b:6 large/b:6,1; n1 waits 1; n3 waits 3; n4 waits 3; pods spread",
			"n1 NothingCheaper; n3 NothingCheaper; n4 NothingCheaper"},
		{"a pair of which one is not ready", "large:3,3 large:3,3; n2 unready",
			"n1 NothingCheaper; n2 NothingCheaper"},
		{"a pair would go to a node that is not up", "huge:1 large:2,4,1 large:3,3; pods spread; n1 joining",
			"n1 NotInitialized; n2 NothingCheaper; n3 NothingCheaper"},
		{"a pair of which one only wants to be told", "large/b:5 large:5 large:5; pods spread; n2 of b; all dry",
			"n1 NothingCheaper; n2 NothingCheaper; n3 NothingCheaper"},
		{"a pair saves too little", "large:6 large:3,3; all own-saving 0.2",
			"n1 NothingCheaper $1 of $1.5; n2 NothingCheaper $1 of $1.5"},
		{"a pair whose pods would find no place", "large:1 medium:1 small/b: large:5; pods spread; all min 3",
			"n1 PodsStranded $3, $0 for sure,; n2 PodsStranded $1, $0 for sure,; n4 NothingCheaper"},
		{"the best of several pairs", "small:2 large/b:2,1,5 medium:2,2 large:6 huge:6,4; pods spread",
			"n2+n5: $10 to $7, 5 evicted, p3 on n4, p8+p4+p9 on huge, p2 on small; n1 NothingCheaper; " +
				"n3 NothingCheaper; n4 NothingCheaper"},
		{"nodes of one pool in two zones are packed anew together",
			"small:2 large:5 medium/b:2,1 large:1,3,1 large:6; b budget 2; all spot-to-spot 1; n2 of b",
			"n1+n3+n4+n5: $11 to $6, 7 evicted, p6 on n2, p8+p3+p1+p5+p7+p4 on huge; n2 NothingCheaper"},
		{"a pool has a word of its own about savings",
			"medium:1 large:4 large:5 small: small:1; n5 fenced Drifted; all any; all own-saving 0.5",
			"n2: $4 to $0.6, 1 evicted, p2 on medium|large; n3: $4 to $1.2, 1 evicted, p3 on large; " +
				"n1 PodsExpected; n5 BeingDisrupted"},
		{"pods that are spread go to a node that is there and to a new one", "huge/b:3 large:3 medium:1; pods spread",
			"n2: $4 to $0, 1 evicted, p2 on n3; n1: $6 to $2, 1 evicted, p1 on medium|large; n3 NothingCheaper"},
		{"some nodes of each zone, and a share that must be saved",
			"medium/b:1 huge:6,5,4 huge:4 huge:2,1,3; pods spread; all saving 0.3",
			"n1: $2 to $1, 1 evicted, p1 on small; " +
				"n3+n4: $12 to $5, 4 evicted, p5 on medium, p8+p7 on medium, p6 on small; " +
				"n2 NothingCheaper $0.375 of $4.22"},
		{"two nodes for one that saves too little", "large:5 large:5; all saving 0.2",
			"n1 NothingCheaper of $1.25; n2 NothingCheaper of $1.25"},
		{"pods that are spread go to new nodes", "medium/b:1,3 huge:1 huge:1 huge:1 small:1; pods spread",
			"n2+n3+n4: $18 to $2, 3 evicted, p3 on n5, p4 on small|medium|large|huge, " +
				"p5 on small|medium|large|huge; n1 NothingCheaper; n5 NothingCheaper"},
		{"spot nodes where their pods may go to no new spot node",
			"small/spot:1 large:6,1 small/b/spot:1,1 huge/b/spot:1,1,1; all any; pods spread",
			"n1: $0.3 to $0, 1 evicted, p1 on n2; n2 SpotToSpotOff $2.8; n3 NothingCheaper; n4 SpotToSpotOff $1.7"},
		{"spot nodes want types in the zone of their pods",
			"large/b/spot:1 medium:1; all any; all spot-to-spot 3; p2 in b",
			"n2: $2 to $0, 1 evicted, p2 on n1; n1 SpotNeedsTypes $1.2, $0 for sure,"},
		{"pods that may not share a node again go to spot nodes", "medium:3,1 small/b:1,1; pods apart; all any",
			"n1: $2 to $0.9, 2 evicted, p1 on medium, p2 on small; " +
				"n2: $1 to $0.6, 2 evicted, p3 on small, p4 on small"},
		{"a pod of each of two nodes that has no room", "large:6 large:2,2,1 huge:1,1",
			"n3: $6 to $0, 2 evicted, p5 on n2, p6 on n2; n1 NothingCheaper; n2 NothingCheaper"},
		{"no pair goes where others are expected", "large:1,5,1 small:2 huge:1; n3 expects",
			"n1 NothingCheaper; n2 NothingCheaper; n3 PodsExpected"},
		{"workloads that rest, and nodes that go all the same",
			"medium:1 medium:1 small:1 huge:5,1; all evicted 3; all evictions 1; pods apart",
			"n1+n2: $4 to $2, 2 evicted, p1 on small, p2 on small; " +
				"n3 WorkloadResting shop/p3 until 20m0s; n4 WorkloadResting shop/p4 until 20m0s; " +
				"look again in 20m0s"},
		{"spot nodes and others are packed together where that is allowed",
			"large:2,2,2 large:4,2 large/spot:1,4; all any; all spot-to-spot 2",
			"n1+n2+n3: $9.2 to $2.4, 7 evicted, p4 on medium|large|huge, p7+p5+p1+p2+p3+p6 on huge"},
		{"a pod with rules, in a pool that only wants to be told", "huge:6; pods spread; all dry",
			"n1: $6 to $4, 1 evicted, p1 on large"},
		{"a pod that can't be moved", "large:1 large:5; p1 unsupported volume",
			"n2: $4 to $0, 1 evicted, p2 on n1; n1 PodsStranded shop/p1"},
		{"two pools that only want to be told are looked at together, where others go",
			"small:2 huge:14 large:5,2 large:6,1 large:5,2; n3 of b; n5 of c; b dry; c dry",
			"n1: $1 to $0, 1 evicted, p1 on n2; n3+n5: $8 to $6, 4 evicted, p3+p7+p4+p8 on huge; " +
				"n2 NothingCheaper; n4 NothingCheaper"},
		{"a pair that the budget just allows", "huge/spot:3 huge/spot:3 small/b:1 large:5,1; pods spread; all budget 2",
			"n1+n4: $5.8 to $0, 3 evicted, p4 on n2, p5 on n3, p1 on n2; n2 NothingCheaper $-0.2; n3 NothingCheaper"},
		{"a pair goes to a node of others that is empty", "large:6 small/b: huge: large:3,3; pods spread; n3 foreign",
			"n1+n4: $8 to $2, 3 evicted, p1 on n3, p3 on n3, p2 on medium"},
		{"no pair with a node that other pods are expected on", "large/b:6 small:2 huge:2,6,1; pods spread; n2 " +
			"foreign; n3 waits 3",
			"n1 NothingCheaper; n3 PodsExpected"},
		{"a node has the name of a claim on its way out", "large:1 large:5; n1 namesake",
			"n1 BeingDisrupted; n2 PodsExpected; of-n1 NothingCheaper"},
		{"no pod goes to a node of others that is tainted, not even one that could",
			"large:1 large:5; n2 tainted; n2 foreign; p1 tolerates",
			"n1: $4 to $1, 0 evicted, p1 on small|medium"},
		{"two new nodes share what is left below the price by what each costs", "medium:1,3; all any; pods in a; p1 " +
			"apart",
			"n1: $2 to $0.9, 2 evicted, p2 on medium|large, p1 on small|medium"},
		{"two pools that only want to be told are looked at together",
			"large:5 large:5 large:5; n1 of b; n3 of c; b dry; c dry",
			"n1+n3: $8 to $6, 2 evicted, p1+p3 on huge; n2 NothingCheaper"},
		{"several nodes of a pool that only wants to be told",
			"huge:1 huge:1 large:1 large:1 huge:5; n1 of b; n2 of b; b dry",
			"n5: $6 to $0, 1 evicted, p5 on n2; n3: $4 to $0, 1 evicted, p3 on n2; " +
				"n4: $4 to $0, 1 evicted, p4 on n2; n1: $6 to $0, 1 evicted, p1 on n2; n2 PodsExpected"},
	} {
		if got := searched(disrupttest.FleetOf(c.cluster)); got != c.want {
			t.Errorf("%s (%s):\n%s, want\n%s", c.name, c.cluster, got, c.want)
		}
	}
}

// What a search finds begins on the same cluster. A move that the next step refuses is found again and again, and
// nothing ever comes of it.
func TestWhatASearchFindsBegins(t *testing.T) {
	for _, c := range []struct{ name, cluster string }{
		{"the new node is like one whose pod goes elsewhere", "large:3 small:1 large:2,4"},
		{"a pool whose savings are balanced, and another", "small: large:1 large:3,2; n1 of b; n2 of b; b balanced 1"},
		{"two pools, each with a threshold of its own",
			"large:1 large:1 large:3; n1 of b; b saving 0.1; all saving 0.2"},
		{"two moves of which the first alone leaves the other its room", "small/b:1 medium/b:2 huge:1,1; pods spread"},
		{"two moves whose pods would share dearer nodes", "medium:1 large/b:4,1 medium:3 medium/b:4 huge:4,3,1; pods " +
			"spread"},
		{"two moves, and at least two zones", "small/b:1 medium/b:2 huge:1,1; pods spread 2"},
		{"two moves, and each revision by itself", "small/b:1 medium/b:2 huge:1,1; pods spread x; p4 spread y"},
	} {
		f := disrupttest.FleetOf(c.cluster)
		found := Find(f.S.Seal(), f.Set)
		if described := begun(f, &found); len(found.Moves) == 0 || strings.Contains(described, "pass ") ||
			!strings.Contains(described, "begin ") {
			t.Errorf("%s (%s): of %d moves becomes %q, want all of them to begin", c.name, c.cluster,
				len(found.Moves), described)
		}
	}
}

// begun says what becomes of what was found.
func begun(f *disrupttest.Fleet, found *disrupt.Proposal) string {
	f.O.Proposal = found
	r, _ := execute.Moves(f.S, f.Set, execute.Input{Proposal: f.O.Proposal})
	return disrupttest.Outcome(&r)
}

// Something of what a search finds begins in drawn clusters, too, whose pods are spread over zones in one way or
// another, or want to be in one. What does not begin waits for that, and each node that goes in no move says why it
// stays.
func TestSomethingOfWhatASearchFindsBegins(t *testing.T) {
	for _, c := range []struct {
		rules string
		least int // so many moves are found, or the clusters say nothing
	}{
		{"pods spread", 400}, {"pods spread 2", 400}, {"pods spread 3", 20}, {"pods spread x; p1 spread y; p3 spread y",
			400}, {"pods together", 400},
	} {
		moves, waiting := 0, 0
		for seed := range uint64(300) {
			cluster := drawnFleet(rand.New(rand.NewPCG(seed, 3))) + "; " + c.rules
			f := disrupttest.FleetOf(cluster)
			found := Find(f.S.Seal(), f.Set)
			if list := untold(f, &found); len(list) > 0 {
				t.Errorf("%s: nobody knows what becomes of %v", cluster, list)
			}
			f.O.Proposal = &found
			r, _ := execute.Moves(f.S, f.Set, execute.Input{Proposal: f.O.Proposal})
			moves, waiting = moves+len(found.Moves), waiting+len(r.NotBegun)
			if len(found.Moves) > 0 && len(r.Begun) == 0 || slices.ContainsFunc(r.NotBegun,
				func(g disrupt.GivenUp) bool {
					return g.BlockReason != disrupt.OthersFirst
				}) {
				t.Errorf("%s: of %d moves becomes %q", cluster, len(found.Moves), disrupttest.Outcome(&r))
			}
		}
		if moves < c.least || waiting > moves/20 {
			t.Errorf("%s: %d moves were found, of which %d wait; want at least %d, and 5 %% at most that wait", c.rules,
				moves, waiting, c.least)
		}
	}
}

// untold are the nodes that go in no move and don't say why, or do both.
func untold(f *disrupttest.Fleet, p *disrupt.Proposal) (out []string) {
	described := make(map[string]int)
	for i := range p.Moves {
		for _, name := range p.Moves[i].Claims {
			described[name]++
		}
	}
	for i := range p.Blocked {
		if p.Blocked[i].Reason != "" {
			described[p.Blocked[i].Claim]++
		}
	}
	for _, c := range f.S.Claims {
		if described[c.Name] != 1 {
			out = append(out, c.Name)
		}
	}
	return out
}

// drawnFleet draws three to seven nodes with pods, as FleetOf reads them.
func drawnFleet(r *rand.Rand) string {
	var words []string
	for range 3 + r.IntN(5) {
		kind, zone := r.IntN(4), []string{"", "/b"}[r.IntN(2)]
		var load []string
		for room := 2 << kind; room > 0 && len(load) < 1+r.IntN(4); {
			cpu := 1 + r.IntN(min(4, room))
			load, room = append(load, strconv.Itoa(cpu)), room-cpu
		}
		words = append(words, []string{"small", "medium", "large", "huge"}[kind]+zone+":"+strings.Join(load, ","))
	}
	return strings.Join(words, " ")
}

// What would not begin is not found: it would be found again and again. Its nodes say what keeps them, or that others
// come first. Here an earlier try of a move has left nodes that nobody uses, for which the move would have to pay.
func TestWhatWouldNotBeginIsNotFound(t *testing.T) {
	const alone, two = "medium:1; pods spread", "small/b:1 medium/b:2 huge:1,1; pods spread"
	for _, c := range []struct {
		name, cluster string
		move          int // that was tried
		left, want    string
	}{
		{"nothing is left", alone, 0, "", "n1: $2 to $1, 1 evicted, p1 on small"},
		{"a single move does not pay", alone, 0, "large", "n1 NothingCheaper $-3"},
		{"pods without rules are not asked", "medium:1", 0, "large", "n1: $2 to $1, 1 evicted, p1 on small"},
		{"two moves pay", two, 0, "", "n1: $1 to $0, 1 evicted, p1 on n2; n3: $6 to $1, 2 evicted, p3+p4 on " +
			"small|medium|large; n2 NothingCheaper"},
		{"the second pays alone", two, 0, "large large", "n3: $6 to $1, 2 evicted, p3+p4 on small|medium|large; n1 " +
			"NothingCheaper $-7; n2 NothingCheaper"},
		{"the first pays alone", two, 1, "large large", "n1: $1 to $0, 1 evicted, p1 on n2; n2 NothingCheaper; n3 " +
			"OthersFirst"},
	} {
		f := disrupttest.FleetOf(c.cluster)
		found := Find(f.S.Seal(), f.Set)
		f = disrupttest.FleetOf(c.cluster)
		for i, kind := range strings.Fields(c.left) {
			f.Node("left"+strconv.Itoa(i), kind).Replaces = found.Moves[c.move].ID
		}
		if got := searched(f); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
}

// A pod that waits is no matter of a move: that it could share the new node, and would be paid for by the move then,
// keeps nothing from going.
func TestPodsThatWaitDoNotMakeMovesDearer(t *testing.T) {
	for _, cluster := range []string{"medium:1; pods spread b", "medium:1; pods spread b; n4 waits 5"} {
		f := disrupttest.FleetOf(cluster)
		if found := Find(f.S.Seal(), f.Set); len(found.Moves) != 1 {
			t.Errorf("%s: %d moves are found, want 1: %v", cluster, len(found.Moves), found.Blocked)
		}
	}
}
