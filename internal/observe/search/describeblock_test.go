package search

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/disrupt"
)

// reasonsToStay reads every constant of type Why from the source of package disrupt: whoever adds one has to put it
// into words.
func reasonsToStay(t *testing.T) []disrupt.BlockReason {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "disrupt", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []disrupt.BlockReason
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "BlockReason" || len(spec.Values) != 1 {
				return true
			}
			if text, ok := spec.Values[0].(*ast.BasicLit); ok {
				reason, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, disrupt.BlockReason(reason))
			}
			return true
		})
	}
	if len(out) < 20 {
		t.Fatalf("only %d reasons were found: %v", len(out), out)
	}
	return out
}

func TestEveryWhyIsPutIntoWords(t *testing.T) {
	said := make(map[string]disrupt.BlockReason)
	for _, reason := range reasonsToStay(t) {
		bare := Describe(Block{BlockedNode: disrupt.BlockedNode{Reason: reason}})
		full := Describe(Block{BlockedNode: disrupt.BlockedNode{Reason: reason, Pod: "ns/p", PDB: "ns/g",
			Saving: 1, NeededSaving: 2, Until: time.Unix(0, 0)}, Pool: "default", Budget: "none"})
		if bare == "" || full == "" {
			t.Errorf("%s has no sentence", reason)
			continue
		}
		for _, text := range []string{bare, full} {
			if strings.Contains(text, "%!") || strings.Contains(text, `""`) || strings.Contains(text, "  ") ||
				strings.HasSuffix(text, ".") || strings.HasSuffix(text, " ") {
				t.Errorf("%s: %q", reason, text)
			}
		}
		if other, known := said[bare]; known {
			t.Errorf("%s and %s are the same in words: %q", reason, other, bare)
		}
		said[bare] = reason
	}
}

func TestDocumentExplainsEveryWhy(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "concepts", "disruption.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, reason := range reasonsToStay(t) {
		if !strings.Contains(text, "| `"+string(reason)+"` |") {
			t.Errorf("docs/concepts/disruption.md does not explain %s", reason)
		}
	}
}

func TestWhyNamesWhatStandsInTheWay(t *testing.T) {
	noon := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		stay disrupt.BlockedNode
		want string
	}{
		{disrupt.BlockedNode{Reason: disrupt.PodUnowned, Pod: "shop/tool"}, "Pod shop/tool has no owner that would " +
			"make it again elsewhere"},
		{disrupt.BlockedNode{Reason: disrupt.PodDoNotDisrupt, Pod: "shop/web-1", Until: noon}, "Pod shop/web-1 " +
			"carries karpenter.sh/do-not-disrupt, until 2026-11-15T12:00:00Z"},
		{disrupt.BlockedNode{Reason: disrupt.PDBBlocks, Pod: "shop/web-1", PDB: "shop/web"}, "PodDisruptionBudget " +
			"shop/web allows no eviction of pod shop/web-1 now"},
		{disrupt.BlockedNode{Reason: disrupt.SeveralPDBs, Pod: "shop/web-1", PDB: "shop/a and shop/b"},
			"Pod shop/web-1 is selected by more than one PodDisruptionBudget (shop/a and shop/b), and Kubernetes " +
				"does not evict such a pod; let only one of them select it"},
		{disrupt.BlockedNode{Reason: disrupt.BudgetBlocks},
			`The disruption budgets of NodePool "default" let no more nodes go now: none (budgets[1], 0) until 17:00`},
		{disrupt.BlockedNode{Reason: disrupt.TooSoon, Until: noon}, "Pods came or went less than the NodePool's " +
			"consolidateAfter ago; it is looked at again at 2026-11-15T12:00:00Z"},
		{disrupt.BlockedNode{Reason: disrupt.SavesTooLittle, Saving: 0.01, NeededSaving: 0.02},
			"A move would save $7.30 a month, less than the $14.60 a month that it has to " +
				"(--consolidation-min-saving, --consolidation-min-saving-per-pod)"},
		{disrupt.BlockedNode{Reason: disrupt.SavesTooLittle, Saving: 0.0033, CertainSaving: 0.001,
			NeededSaving: 0.00144},
			"A move would save $2.41 a month at best, but only $0.73 a month if the cloud hands out the dearest of " +
				"its types and zones, less than the $1.05 a month that it has to (--consolidation-min-saving, " +
				"--consolidation-min-saving-per-pod)"},
		{disrupt.BlockedNode{Reason: disrupt.NothingCheaper, Saving: 0.01, CertainSaving: -0.001, NeededSaving: 0.002},
			"Nothing that would take its pods is sure to cost less: a move would save $7.30 a month at best, and " +
				"cost up to $0.73 a month more if the cloud hands out the dearest of its types and zones, and it has " +
				"to save $1.46 a month"},
		{disrupt.BlockedNode{Reason: disrupt.MinValuesTooDear, Saving: 0.01, NeededSaving: 0.002},
			"Its NodePool's minValues ask for more instance types than there are at a price that saves enough"},
		{disrupt.BlockedNode{Reason: disrupt.MinValuesTooDear, Saving: 0.01, CertainSaving: 0.001, NeededSaving: 0.002},
			"Its NodePool's minValues ask for more instance types than there are at a price that saves enough: with " +
				"so many of them only $0.73 a month would be saved for sure, and it has to be $1.46 a month"},
		{disrupt.BlockedNode{Reason: disrupt.NothingCheaper, Saving: -0.1}, "Nothing that would take its pods is " +
			"sure to cost less: it would cost $73.00 a month more"},
		{disrupt.BlockedNode{Reason: disrupt.NothingCheaper, Saving: 0.01, NeededSaving: 0.1}, "Nothing that would " +
			"take its pods is sure to cost less: " +
			"at best $7.30 a month could be saved, and it has to be $73.00 a month"},
		{disrupt.BlockedNode{Reason: disrupt.SpotToSpotOff, Saving: 0.1},
			"Its pods would go to a cheaper spot node, which the feature gate SpotToSpotConsolidation does not " +
				"allow; $73.00 a month would be saved"},
		{disrupt.BlockedNode{Reason: disrupt.NothingCheaper, Saving: -0.1, Estimated: true},
			"Nothing that would take its pods is sure to cost less: it would cost $73.00 a month more; a price in " +
				"this is an estimate"},
		{disrupt.BlockedNode{Reason: disrupt.PodUnowned, Pod: "shop/tool", Estimated: true}, "Pod shop/tool has no " +
			"owner that would make it again elsewhere"},
		{disrupt.BlockedNode{Reason: disrupt.NotBalanced, Saving: 0.1, NeededSaving: 0.2}, "A move would save $73.00 " +
			"a month; for the pods that it disturbs the policy Balanced asks for $146.00 a month (--balanced-k)"},
	} {
		if got := Describe(Block{BlockedNode: c.stay, Pool: "default", Budget: "none (budgets[1], 0) " +
			"until 17:00"}); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.stay.Reason, got, c.want)
		}
	}
}

// TestReasonsAreToldByOneKindOfEvent: what blocks every disruption is not about money, and what was weighed was a
// candidate.
func TestReasonsAreToldByOneKindOfEvent(t *testing.T) {
	var weighing []disrupt.BlockReason
	for _, reason := range reasonsToStay(t) {
		if IsDisruptionBlocked(reason) && wasCandidate(reason) {
			t.Errorf("%s keeps a node from being a candidate and counts as one", reason)
		}
		if wasCandidate(reason) {
			weighing = append(weighing, reason)
		}
	}
	if !slices.Contains(weighing, disrupt.NothingCheaper) || slices.Contains(weighing, disrupt.TooSoon) {
		t.Errorf("weighed: %v", weighing)
	}
}
