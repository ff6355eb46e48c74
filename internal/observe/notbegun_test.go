package observe

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/observe/events"
	"github.com/tenon-sh/tenon/internal/plan"
)

// The nodes of a move that was found and not begun stay, and each says why: as data, as a figure and, if it lasts, as
// an event.
func TestNodesOfAMoveThatIsNotBegunSayWhy(t *testing.T) {
	now := noon()
	o, r, registry, _ := newObserver(&now)
	s, m := moving(now, command.Underutilized, false)
	m.NeededSaving = 0.05
	look := func(reason disrupt.BlockReason) {
		o.Searched(s, &disrupt.Proposal{Moves: []disrupt.Move{m}, Blocked: []disrupt.BlockedNode{{Claim: node(2),
			Node: node(2), Reason: disrupt.TooSoon}}}, time.Second)
		o.Planned(s, &plan.Plan{ProposalUsed: true, NotBegun: []disrupt.GivenUp{{ID: m.ID, Reason: m.Reason,
			Claims: m.Claims, BlockReason: reason}}}, 0)
		o.Planned(s, &plan.Plan{}, 0) // the next plan knows nothing about it, and nothing is forgotten
	}
	look(disrupt.BudgetBlocks)
	if len(r.lines) != 0 {
		t.Errorf("events about what may pass at once: %q", r.lines)
	}
	now = now.Add(events.WorthTelling)
	look(disrupt.BudgetBlocks)
	for _, object := range []string{"Node/node-00000", "NodeClaim/node-00000", "Node/node-00001",
		"NodeClaim/node-00001"} {
		want := "Normal " + object +
			` Unconsolidatable: The disruption budgets of NodePool "default" let no more nodes go now`
		if !slices.ContainsFunc(r.lines, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("events %q lack %q", r.lines, want)
		}
	}
	if got := gathered(t, registry, "tenon_disruption_stays"); !strings.Contains(got,
		"{nodepool=default,why=BudgetBlocks} 2\n") || !strings.Contains(got, "{nodepool=default,why=TooSoon} 1\n") {
		t.Errorf("stays %s", got)
	}
	if got := gathered(t, registry, "karpenter_voluntary_disruption_eligible_nodes"); !strings.Contains(got,
		"{reason=underutilized} 2\n") {
		t.Errorf("eligible %s", got)
	}
	rec := httptest.NewRecorder()
	o.Disruption().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, DisruptionPath+"?node=node-00001", nil))
	var got disruptionReport
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Found) != 1 || len(got.Blocked) != 1 || got.Blocked[0].Why != "BudgetBlocks" ||
		!got.Blocked[0].Since.Equal(noon()) ||
		got.Blocked[0].SavingPerMonth != 547.5 || got.Blocked[0].NodePool != "default" ||
		!strings.Contains(got.Blocked[0].Message, "up to 1 (budgets[0], 10%)") {
		t.Errorf("served %+v", got)
	}
	// What was worked out again is told as it was, and what comes after others says so.
	m.NeededSaving = 0.05
	o.Searched(s, &disrupt.Proposal{Moves: []disrupt.Move{m}}, time.Second)
	o.Planned(s, &plan.Plan{ProposalUsed: true, NotBegun: []disrupt.GivenUp{{ID: m.ID, Reason: m.Reason,
		Claims: m.Claims, BlockReason: disrupt.SavesTooLittle,
		Saving: 0.01, CertainSaving: 0.01, NeededSaving: 0.02}}}, 0)
	want := "Unconsolidatable: A move would save $7.30 a month, less than the $14.60 a month that it has to"
	if !slices.ContainsFunc(r.lines, func(line string) bool { return strings.Contains(line, want) }) {
		t.Errorf("events %q lack %q", r.lines, want)
	}
	r.lines = nil
	look(disrupt.OthersFirst)
	now = now.Add(events.WorthTelling)
	look(disrupt.OthersFirst)
	want = "Unconsolidatable: There is a cheaper way to run its pods, " +
		"which is looked at again once other nodes have gone"
	if !slices.ContainsFunc(r.lines, func(line string) bool { return strings.Contains(line, want) }) {
		t.Errorf("events %q lack %q", r.lines, want)
	}
	// A dry run tells what it would do, and not beside that why it does not.
	r.lines = nil
	now = now.Add(events.WorthTelling)
	if look(disrupt.DryRun); slices.ContainsFunc(r.lines, func(line string) bool {
		return strings.Contains(line, node(0))
	}) {
		t.Errorf("events of a dry run %q", r.lines)
	}
	// Once the move is begun, nobody stays.
	o.Searched(s, &disrupt.Proposal{Moves: []disrupt.Move{m}}, time.Second)
	o.Planned(s, &plan.Plan{ProposalUsed: true, Begun: []disrupt.Move{m}, Commands: fences(m)}, 0)
	if got := gathered(t, registry, "tenon_disruption_stays"); got != "" {
		t.Errorf("stays %s", got)
	}
}

func TestTheLogSaysWhyANodeIsOpenedAgain(t *testing.T) {
	for reason, want := range map[disrupt.BlockReason]string{
		"":                       `"reason"="the node is needed after all"`,
		disrupt.BudgetBlocks:     `"reason"="the disruption budgets of NodePool \"default\" let no more nodes go now"`,
		disrupt.NodeDoNotDisrupt: `"reason"="the node or its NodeClaim carries karpenter.sh/do-not-disrupt"`,
	} {
		now := noon()
		o, _, _, logs := newObserver(&now)
		s := town(now, 1, 0)
		o.Done(s, command.Outcome{Command: command.Unfence{Claim: node(0), Node: node(0), BlockReason: string(reason)}},
			0)
		if got := lines(t, *logs, "opened node again"); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: %q lacks %s", reason, got, want)
		}
	}
}
