package observe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/observe/events"
	"github.com/tenon-sh/tenon/internal/observe/series"
	"github.com/tenon-sh/tenon/internal/observe/state"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/reason"
)

func noon() time.Time { return time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC) }

func node(i int) string { return fmt.Sprintf("node-%05d", i) }

// idleSearch is a search that finds nothing: every node of the town stays for the reason.
func idleSearch(s *cluster.Snapshot, reason func(i int) disrupt.BlockedNode) *disrupt.Proposal {
	p := &disrupt.Proposal{}
	for i, c := range s.Claims {
		st := reason(i)
		st.Claim, st.Node = c.Name, c.Name
		p.Blocked = append(p.Blocked, st)
	}
	return p
}

func TestNodesAreToldWhyTheyStay(t *testing.T) {
	now := noon()
	o, r, _, _ := newObserver(&now)
	s := town(now, 4, 1)
	found := idleSearch(s, func(i int) disrupt.BlockedNode {
		return []disrupt.BlockedNode{{Reason: disrupt.SavesTooLittle, Saving: 0.01, NeededSaving: 0.02},
			{Reason: disrupt.PDBBlocks, Pod: "ns/p", PDB: "ns/g"},
			{Reason: disrupt.TooSoon}, {Reason: disrupt.BudgetBlocks}}[i]
	})
	o.Searched(s, found, time.Second)
	const little, guard = "A move would save $7.30 a month", "PodDisruptionBudget ns/g allows no eviction of pod " +
		"ns/p now"
	want := []string{"Normal Node/node-00000 Unconsolidatable: " + little, "Normal NodeClaim/node-00000 " +
		"Unconsolidatable: " + little,
		"Normal Node/node-00001 DisruptionBlocked: " + guard, "Normal NodeClaim/node-00001 DisruptionBlocked: " + guard}
	if !slices.EqualFunc(r.lines, want, strings.HasPrefix) {
		t.Fatalf("events\n%s\nwant\n%s", strings.Join(r.lines, "\n"), strings.Join(want, "\n"))
	}
	// Other figures are no news; what usually passes is, once it has lasted.
	found.Blocked[0].Saving = 0.011
	now = now.Add(events.WorthTelling)
	o.Searched(s, found, time.Second)
	more := []string{"Normal Node/node-00002 Unconsolidatable: Pods came or went", "Normal NodeClaim/node-00002 " +
		"Unconsolidatable: Pods came or went",
		`Normal Node/node-00003 Unconsolidatable: The disruption budgets of NodePool "default" let no more nodes go ` +
			`now: up to 1 (budgets[0], 10%) of 4 nodes, and 0 are out`,
		"Normal NodeClaim/node-00003 Unconsolidatable: The disruption budgets"}
	if !slices.EqualFunc(r.lines[4:], more, strings.HasPrefix) {
		t.Errorf("events\n%s\nwant\n%s", strings.Join(r.lines[4:], "\n"), strings.Join(more, "\n"))
	}
	// Another reason is news at once.
	found.Blocked[0] = disrupt.BlockedNode{Claim: node(0), Node: node(0), Reason: disrupt.NodeDoNotDisrupt}
	o.Searched(s, found, time.Second)
	if len(r.lines) != 10 || r.lines[9] != "Normal NodeClaim/node-00000 DisruptionBlocked: The node or its NodeClaim "+
		"carries karpenter.sh/do-not-disrupt" {
		t.Errorf("events %q", r.lines[8:])
	}
}

// TestThousandsOfStaysDoNotFlood counts what a cluster of 2,000 nodes writes that is searched again and again for two
// hours, with other figures each time.
func TestThousandsOfStaysDoNotFlood(t *testing.T) {
	const nodes = 2000
	now := noon()
	o, r, _, _ := newObserver(&now)
	s := town(now, nodes, 0)
	look := func(second int) {
		o.Searched(s, idleSearch(s, func(i int) disrupt.BlockedNode {
			return disrupt.BlockedNode{Reason: disrupt.NothingCheaper, Saving: 0.001 * float64(1+(i+second)%7),
				NeededSaving: 1}
		}), time.Second)
		o.Planned(s, &plan.Plan{}, 0)
	}
	look(0)
	if len(r.lines) != 2*events.DisruptionsBurst {
		t.Errorf("%d events at once, want a node and a claim for each of %d", len(r.lines), events.DisruptionsBurst)
	}
	told := func() int {
		lines := make([]string, len(r.lines))
		for i, line := range r.lines {
			lines[i], _, _ = strings.Cut(line, ":")
		}
		slices.Sort(lines)
		return len(slices.Compact(lines))
	}
	for range nodes / events.DisruptionsPerSecond {
		now = now.Add(time.Second)
		o.Planned(s, &plan.Plan{}, 0)
	}
	if told() != 2*nodes {
		t.Errorf("%d of %d objects were told after %s", told(), 2*nodes, now.Sub(noon()))
	}
	for second := 0; now.Sub(noon()) < 2*time.Hour-20*time.Second; second += 20 {
		now = now.Add(20 * time.Second)
		look(second)
	}
	t.Logf("%d events in two hours for %d nodes", len(r.lines), nodes)
	if len(r.lines) > 2*2*nodes {
		t.Errorf("%d events in two hours, want at most two for each node and claim", len(r.lines))
	}
}

// moving is a town in which a move is under way: node 0 and 1 go, node 2 takes their place.
func moving(now time.Time, reason command.Reason, begun bool) (*cluster.Snapshot, disrupt.Move) {
	s := town(now, 3, 2)
	s.Pools[0].Policy = cluster.WhenEmptyOrUnderutilized
	claims := []string{node(0), node(1)}
	m := disrupt.Move{ID: disrupt.MoveID(reason, claims), Reason: reason, Claims: claims, Bins: make([]market.Bin, 1),
		Before: 1, After: 0.25, Evicted: 4}
	if begun {
		s.Claims[0].Move, s.Claims[1].Move, s.Claims[2].Replaces = m.ID, m.ID, m.ID
		s.Claims[2].Price = 0.25
	}
	return s.Seal(), m
}

func fences(m disrupt.Move) []command.Command {
	var out []command.Command
	for _, c := range m.Claims {
		out = append(out, command.Fence{Claim: c, Node: c, Reason: m.Reason, Move: m.ID})
	}
	return out
}

func lines(t *testing.T, logs []string, message string) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(logs), func(line string) bool {
		return !strings.Contains(line, `"msg"="`+message)
	})
}

func TestDecisionLogFollowsAMove(t *testing.T) {
	now := noon()
	o, r, registry, logs := newObserver(&now)
	s, m := moving(now, command.Underutilized, false)
	o.Searched(s, &disrupt.Proposal{Moves: []disrupt.Move{m}}, time.Second)
	o.Searched(s, &disrupt.Proposal{Moves: []disrupt.Move{m}}, time.Second)
	if got := lines(t, *logs, "found a cheaper way"); len(got) != 1 || !strings.Contains(got[0],
		`"moves"=1 "nodes"=2 "replacements"=1 "saving-per-month"=547.5 "pods"=4`) {
		t.Errorf("what was found: %q", got)
	}
	o.Planned(s, &plan.Plan{Begun: []disrupt.Move{m}}, 0) // the fences did not pass the last look
	p := &plan.Plan{Begun: []disrupt.Move{m}, Commands: fences(m)}
	o.Planned(s, p, 0)
	facts := `"move"="` + m.ID + `" "command"="replace" "reason"="Underutilized" "nodepools"=["default"] ` +
		`"nodes"=["node-00000" "node-00001"] "node-count"=2 "pods"=4`
	if got := lines(t, *logs, "disruption begins"); len(got) != 1 || !strings.Contains(got[0], facts+
		` "replacements"=1 "saving-per-month"=547.5`) {
		t.Errorf("the beginning: %q", got)
	}
	if want := "Normal Node/node-00000 ConsolidationCandidate: Consolidation begins: the node goes together with " +
		"another, and one cheaper node comes; 4 pods move and $547.50 a month is saved (move " + m.ID +
		")"; !slices.Contains(r.lines, want) {
		t.Errorf("events %q lack %q", r.lines, want)
	}
	s.Retry = map[string]cluster.Retry{fences(m)[0].Key(): {}, fences(m)[1].Key(): {}}
	o.Planned(s, p, 0)
	if got := lines(t, *logs, "disruption begins"); len(got) != 1 {
		t.Errorf("the second try is told: %q", got)
	}
	s, _ = moving(now, command.Underutilized, true)
	for _, name := range m.Claims {
		o.Done(s, command.Outcome{Command: command.DeleteClaim{Claim: name, UID: "c" + name, Node: name,
			Reason: command.Underutilized, Text: reason.Said("why")}}, 0)
	}
	if got := lines(t, *logs, "disruption is carried out"); len(got) != 1 || !strings.Contains(got[0], facts+
		` "replacements"=1 "new"=["node-00002"] "saving-per-month"=547.5`) {
		t.Errorf("the end: %q", got)
	}
	for _, want := range []string{
		"karpenter_voluntary_disruption_decisions_total{consolidation_type=multi,decision=replace," +
			"reason=underutilized} 1\n",
		"karpenter_voluntary_disruption_decisions_by_nodepool_total{consolidation_type=multi,decision=replace,nodepool=default,reason=underutilized} 1\n",
		"karpenter_voluntary_disruption_decision_evaluation_duration_seconds{consolidation_type=multi,reason=underutilized} 2\n",
		"karpenter_nodeclaims_disrupted_total{capacity_type=spot,consolidation_policy=when_empty_or_underutilized,nodepool=default,reason=underutilized,termination_mode=graceful} 2\n",
		"karpenter_consolidation_moves_total{decision=approved,nodepool=default,policy=WhenEmptyOrUnderutilized} 2\n",
		"tenon_consolidation_saving_per_hour_total{nodepool=default,reason=underutilized} 0.75\n",
		"tenon_consolidation_search_duration_seconds{} 2\n",
		"tenon_disruption_moves_total{reason=underutilized,step=begun,why=} 1\n",
		"tenon_disruption_moves_total{reason=underutilized,step=carried_out,why=} 1\n",
	} {
		if got := gathered(t, registry, want[:strings.Index(want, "{")]); !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

func TestAMoveThatIsGivenUpSaysWhy(t *testing.T) {
	unfence := func(m disrupt.Move) []command.Command {
		return []command.Command{command.Unfence{Claim: m.Claims[0], Node: m.Claims[0]},
			command.Unfence{Claim: m.Claims[1], Node: m.Claims[1]}}
	}
	for name, c := range map[string]struct {
		reason            command.Reason
		begun             bool
		why               disrupt.BlockReason
		event, log, count string
	}{
		"consolidation": {command.Underutilized, true, disrupt.NothingCheaper,
			"ConsolidationRejected: Consolidation is given up and the node stays: nothing that would take its pods " +
				"is sure to cost less", "disruption is given up", "given_up"},
		"drift": {command.Drifted, true, disrupt.ReplacementsLate,
			"DisruptionBlocked: Disruption (Drifted) is given up and the node stays: what was to take the node's " +
				"place was not ready in time (--replacement-timeout)", "disruption is given up", "given_up"},
		"drift that can't begin": {command.Drifted, false, disrupt.PodsStranded,
			"DisruptionBlocked: Disruption (Drifted) does not begin: some pod would find no place elsewhere",
			"disruption can't begin", "blocked"},
		"budget": {command.Drifted, true, disrupt.BudgetBlocks,
			`DisruptionBlocked: Disruption (Drifted) is given up and the node stays: the disruption budgets of ` +
				`NodePool "default" let no more nodes go now: up to 1 (budgets[0], 10%)`, "disruption is given up",
			"given_up"},
	} {
		now := noon()
		o, r, registry, logs := newObserver(&now)
		s, m := moving(now, c.reason, c.begun)
		s.Claims[2].Conditions = nil // not up yet
		p := &plan.Plan{GivenUp: []disrupt.GivenUp{{ID: m.ID, Reason: m.Reason, Claims: m.Claims, BlockReason: c.why}}}
		o.Planned(s, p, 0) // as long as nothing is done about it, it is no news
		p.Commands = unfence(m)
		o.Planned(s, p, 0)
		for _, object := range []string{"Node/node-00001 ", "NodeClaim/node-00000 "} {
			if !slices.ContainsFunc(r.lines, func(line string) bool {
				return strings.HasPrefix(line, "Normal "+object+c.event)
			}) {
				t.Errorf("%s: events %q", name, r.lines)
			}
		}
		if got := lines(t, *logs, c.log); len(got) != 1 || !strings.Contains(got[0], `"why"="`+string(c.why)+`"`) ||
			!strings.Contains(got[0], `"move"="`+m.ID+`"`) {
			t.Errorf("%s: log %q", name, *logs)
		}
		want := fmt.Sprintf("tenon_disruption_moves_total{reason=%s,step=%s,why=%s} 1\n", series.ReasonLabel(c.reason),
			c.count, c.why)
		if got := gathered(t, registry, "tenon_disruption_moves_total"); got != want {
			t.Errorf("%s: %s", name, got)
		}
		late := strings.Contains(gathered(t, registry, "karpenter_voluntary_disruption_queue_failures_total"),
			"{consolidation_type=,decision=replace,reason=drifted} 1\n")
		if late != (c.why == disrupt.ReplacementsLate) {
			t.Errorf("%s: counted as a failure of the queue: %v", name, late)
		}
		o.Done(s, command.Outcome{Command: p.Commands[0]}, 0)
		failed := strings.Contains(gathered(t, registry, "karpenter_voluntary_disruption_failed_validations_total"),
			"{consolidation_type=multi} 1\n")
		if failed != (c.reason == command.Underutilized) {
			t.Errorf("%s: counted as failed validation: %v", name, failed)
		}
	}
}

func TestADryRunIsToldOnce(t *testing.T) {
	now := noon()
	o, r, _, logs := newObserver(&now)
	s, m := moving(now, command.Underutilized, false)
	for i := range 20 {
		m.After = 0.25 + 0.001*float64(i)
		note := s.Nodes[0].Note(events.DryRun, reason.Said(fmt.Sprintf("Dry run: would disrupt the node; $%.2f a "+
			"month would be saved", (m.Before-m.After)*730)))
		o.Planned(s, &plan.Plan{DryRuns: []disrupt.Move{m}, Notes: []cluster.Note{note}}, 0)
		now = now.Add(time.Minute)
	}
	if len(r.lines) != 1 || r.lines[0] != "Normal Node/node-00000 DryRun: Dry run: would disrupt the node; $547.50 a "+
		"month would be saved" {
		t.Errorf("events %q", r.lines)
	}
	if got := lines(t, *logs, "dry run: would disrupt nodes"); len(got) != 1 || !strings.Contains(got[0],
		`"saving-per-month"=547.5 "dry-run"=true`) || !strings.Contains(got[0], `"pods"=4`) {
		t.Errorf("log %q", got)
	}
}

func TestReplacementsAreTold(t *testing.T) {
	now := noon()
	o, r, _, _ := newObserver(&now)
	s, _ := moving(now, command.Drifted, true)
	s.Claims[2].Conditions = nil
	o.Done(s, command.Outcome{Command: command.LaunchInstance{Claim: node(2), UID: "c" + node(2)}}, 0)
	o.Done(s, command.Outcome{Command: command.Register{Claim: node(2), Node: node(2)}}, 0)
	o.Done(s, command.Outcome{Command: command.Register{Claim: node(1), Node: node(1)}}, 0)
	o.Done(s, command.Outcome{Command: command.DeleteClaim{Claim: node(0), UID: "c" + node(0), Node: node(0),
		Reason: command.Drifted, Text: reason.Said("why")}}, 0)
	want := []string{
		"Normal NodeClaim/node-00002 DisruptionLaunching: Launching NodeClaim: Drifted, it takes the place of " +
			"NodeClaim node-00000 and 1 more",
		"Normal NodeClaim/node-00002 DisruptionWaitingReadiness: Waiting until the node is ready for pods: Drifted, " +
			"it takes the place of NodeClaim node-00000 and 1 more",
		"Normal NodeClaim/node-00000 DisruptionTerminating: Disrupting NodeClaim: Drifted, why",
		"Normal Node/node-00000 DisruptionTerminating: Disrupting Node: Drifted, why"}
	if !slices.Equal(r.lines, want) {
		t.Errorf("events\n%s\nwant\n%s", strings.Join(r.lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestBalancedMovesAreScored(t *testing.T) {
	now := noon()
	o, r, registry, _ := newObserver(&now)
	s, m := moving(now, command.Underutilized, false)
	s.Pools[0].Policy = cluster.Balanced
	for _, p := range s.Pods {
		p.EvictionCost = 1
	}
	m.Claims, m.Before = m.Claims[:1], 0.5 // of 1.5 in all; one node of three, that is 3 of 9 units of disturbance
	blocked := disrupt.BlockedNode{Claim: node(2), Node: node(2), Reason: disrupt.NotBalanced, Saving: 0.1,
		NeededSaving: 0.25}
	o.Searched(s, &disrupt.Proposal{Moves: []disrupt.Move{m}, Blocked: []disrupt.BlockedNode{blocked}}, 0)
	o.Planned(s, &plan.Plan{Begun: []disrupt.Move{m}, Commands: fences(m)}, 0)
	for _, want := range []string{
		"karpenter_consolidation_moves_total{decision=approved,nodepool=default,policy=Balanced} 1\n",
		"karpenter_consolidation_moves_total{decision=rejected,nodepool=default,policy=Balanced} 1\n",
		"karpenter_consolidation_score{decision=approved,nodepool=default,policy=Balanced} 1\n",
		"karpenter_consolidation_score{decision=rejected,nodepool=default,policy=Balanced} 1\n",
	} {
		if got := gathered(t, registry, "karpenter_consolidation_"); !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	want := "Normal Node/node-00000 ConsolidationApproved: Consolidation is worth it: it saves 16.7% of the " +
		"NodePool's price and disturbs 33.3% of what runs there, which is a score of 0.50"
	if !slices.Contains(r.lines, want) {
		t.Errorf("events %q lack %q", r.lines, want)
	}
}

func TestGaugesShowWhatIsUnderWay(t *testing.T) {
	now := noon()
	o, _, registry, _ := newObserver(&now)
	s, m := moving(now, command.Drifted, true)
	up := s.Claims[2].Conditions
	s.Claims[2].Conditions = nil
	stage := func() string {
		o.Planned(s, &plan.Plan{}, 0)
		for _, name := range state.Stages() {
			if strings.Contains(gathered(t, registry, "tenon_disruption_moves"),
				"tenon_disruption_moves{reason=drifted,stage="+name+"} 1\n") {
				return name
			}
		}
		return "none"
	}
	got := []string{stage()}
	s.Claims[2].Conditions = up
	got = append(got, stage())
	s.Claims[0].Deleting = now
	got = append(got, stage())
	s.Claims[2].Replaces, s.Claims[0].Deleting = "", time.Time{}
	got = append(got, stage())
	if want := []string{"waiting", "ready", "leaving", "fenced"}; !slices.Equal(got, want) {
		t.Errorf("stages %v, want %v", got, want)
	}
	o.Searched(s, &disrupt.Proposal{Moves: []disrupt.Move{m}, Blocked: []disrupt.BlockedNode{{Claim: node(2),
		Node: node(2), Reason: disrupt.TooSoon}}}, 0)
	for _, want := range []string{"tenon_disruption_stays{nodepool=default,why=TooSoon} 1\n",
		"tenon_consolidation_found_saving_per_hour{} 0.75\n"} {
		if got := gathered(t, registry, "tenon_"); !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	for reason, n := range map[string]int{"empty": 0, "drifted": 0, "underutilized": 2} {
		want := fmt.Sprintf("karpenter_voluntary_disruption_eligible_nodes{reason=%s} %d\n", reason, n)
		if got := gathered(t, registry, "karpenter_voluntary_disruption_eligible_nodes"); !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

// Nodes that carry nothing are in no move that a search finds. What is held back counts all the same.
func TestTheSavingThatIsHeldBackCountsEmptyNodes(t *testing.T) {
	now := noon()
	o, _, registry, _ := newObserver(&now)
	s := town(now, 3, 0)
	s.Pools[0].Overrides.DryRun, s.Pools[0].ConsolidateAfter.For = true, 30*time.Minute
	s.Claims[1].LastPodEvent = now.Add(-10 * time.Minute) // it is too soon
	s.Claims[2].Deleting = now
	o.Planned(s, &plan.Plan{}, 0)
	o.Searched(s, &disrupt.Proposal{Moves: []disrupt.Move{{Before: 1, After: 0.25}}}, 0)
	if got := gathered(t, registry, "tenon_consolidation_found_saving_per_hour"); got !=
		"tenon_consolidation_found_saving_per_hour{} 1.25\n" {
		t.Errorf("%s, want 0.75 of the move and 0.5 of an empty node", got)
	}
}

func TestEvictionsForMoneyAreCounted(t *testing.T) {
	now := noon()
	o, _, registry, _ := newObserver(&now)
	s := town(now, 2, 1)
	s.Claims[0].Conditions = append(s.Claims[0].Conditions, condition(cluster.DisruptionReason, "Underutilized", now))
	s.Claims[1].Conditions = append(s.Claims[1].Conditions, condition(cluster.DisruptionReason, "Drifted", now))
	for i := range 2 {
		o.Done(s, command.Outcome{Command: command.Evict{UID: fmt.Sprint(i), Node: node(i)}}, 0)
	}
	if got := gathered(t, registry, "tenon_consolidation_evictions_total"); got !=
		"tenon_consolidation_evictions_total{nodepool=default} 1\n" {
		t.Errorf("evictions: %s", got)
	}
}

func TestPoolIsToldThatItsBudgetsHoldNodesBack(t *testing.T) {
	now := noon()
	o, r, _, _ := newObserver(&now)
	s := ended()
	set := func(message string, status cluster.ConditionStatus, reason string) {
		conditions := []cluster.Condition{{Type: cluster.BudgetsAllow, Status: status, Reason: reason,
			Message: message}}
		o.Done(s, command.Outcome{Command: command.SetPool{Pool: "default",
			Status: command.PoolStatus{Conditions: toWrite(conditions)}}}, 0)
		s.Pools[0].Status.Conditions = conditions
	}
	set("of 4 nodes at the same time: all reasons: up to 1", cluster.True, "BudgetsAllow")
	set("of 4 nodes at the same time: all reasons: none", cluster.False, "AllReasonsBlocked")
	set("of 5 nodes at the same time: all reasons: none", cluster.False, "AllReasonsBlocked")
	want := []string{"Normal NodePool/default DisruptionBlocked: Disruption budgets hold nodes back: of 4 nodes at " +
		"the same time: all reasons: none"}
	if !slices.Equal(r.lines, want) {
		t.Errorf("events %q, want %q", r.lines, want)
	}
}

func TestDisruptionIsServedAsData(t *testing.T) {
	now := noon()
	o, _, _, _ := newObserver(&now)
	get := func(query string) (out disruptionReport) {
		rec := httptest.NewRecorder()
		o.Disruption().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, DisruptionPath+query, nil))
		if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil || rec.Code != http.StatusOK {
			t.Fatalf("%s: %d, %v, %s", query, rec.Code, err, rec.Body)
		}
		return out
	}
	if got := get(""); got.SearchedAt != nil || got.Blocked == nil || got.Found == nil || got.UnderWay == nil {
		t.Errorf("before the first search: %+v", got)
	}
	s, m := moving(now, command.Drifted, true)
	blocked := disrupt.BlockedNode{Claim: node(2), Node: node(2), Reason: disrupt.PodDoNotDisrupt, Pod: "ns/p",
		Until: now.Add(time.Hour)}
	o.Planned(s, &plan.Plan{}, 0)
	o.Searched(s, &disrupt.Proposal{Moves: []disrupt.Move{m}, Blocked: []disrupt.BlockedNode{blocked}}, time.Second)
	now = now.Add(time.Minute)
	o.Searched(s, &disrupt.Proposal{Moves: []disrupt.Move{m}, Blocked: []disrupt.BlockedNode{blocked}}, time.Second)
	all := get("")
	if len(all.UnderWay) != 1 || !slices.Equal(all.UnderWay[0].Replacements, []string{node(2)}) ||
		all.UnderWay[0].Reason != "Drifted" {
		t.Errorf("under way: %+v", all.UnderWay)
	}
	if len(all.Found) != 1 || all.Found[0].SavingPerMonth != 547.5 || all.Found[0].Command != "replace" ||
		len(all.Found[0].Nodes) != 2 {
		t.Errorf("found: %+v", all.Found)
	}
	if len(all.Blocked) != 1 || all.Blocked[0].Why != "PodDoNotDisrupt" || all.Blocked[0].Pod != "ns/p" ||
		!all.Blocked[0].Since.Equal(noon()) || !all.Blocked[0].Until.Equal(noon().Add(time.Hour)) ||
		all.Blocked[0].Message == "" || all.Blocked[0].NodePool != "default" {
		t.Errorf("stays: %+v", all.Blocked)
	}
	for query, want := range map[string][3]int{"?node=node-00002": {0, 0, 1}, "?node=node-00001": {1, 1, 0},
		"?nodepool=other": {0, 0, 0}, "?why=PodDoNotDisrupt": {0, 0, 1}, "?why=TooSoon": {0, 0, 0}} {
		got := get(query)
		if have := [3]int{len(got.UnderWay), len(got.Found), len(got.Blocked)}; have != want {
			t.Errorf("%s: %v, want %v", query, have, want)
		}
	}
}

// TestStaysAreLoggedForThoseWhoLookCloser: each node once for as long as its reason stays the same.
func TestStaysAreLoggedForThoseWhoLookCloser(t *testing.T) {
	now := noon()
	var logs []string
	log := funcr.New(func(_, args string) { logs = append(logs, args) }, funcr.Options{Verbosity: 1})
	o := New(log, silent{}, prometheus.NewRegistry(), func() time.Time { return now }, Options{})
	s := town(now, 3, 0)
	found := idleSearch(s, func(int) disrupt.BlockedNode { return disrupt.BlockedNode{Reason: disrupt.TooSoon} })
	for range 3 {
		o.Searched(s, found, time.Second)
	}
	if got := lines(t, logs, "node stays"); len(got) != 3 || !strings.Contains(got[0], `"NodeClaim"="node-00000"`) ||
		!strings.Contains(got[0], `"reason"="TooSoon"`) {
		t.Errorf("log %q", got)
	}
	if got := lines(t, logs, "nodes stay"); len(got) != 3 || !strings.Contains(got[0], `"TooSoon"=3`) {
		t.Errorf("log %q", got)
	}
}
