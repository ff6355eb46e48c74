package sim

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Only a node that goes before its time, in a move that is for that, is one that somebody chose to end.
func TestWhichExpiredNodesWereChosen(t *testing.T) {
	s := newSim(1, Options{})
	for _, c := range []struct {
		move string
		life time.Duration
		want bool
	}{
		{"expired-aaaaaaaaaa", time.Hour, true}, {"expired-aaaaaaaaaa", time.Minute, false}, {"interrupted-aaaaaaaaaa",
			time.Hour, false}, {"", time.Hour, false},
	} {
		claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(
			s.clock.now.Add(-2 * time.Minute))}}
		claim.Annotations = map[string]string{cluster.MoveAnnotation: c.move}
		claim.Spec.ExpireAfter = lasting(c.life)
		if got := s.judge.chosen(claim, command.Expired); got != c.want {
			t.Errorf("in the move %q, to live for %s: chosen is %v, want %v", c.move, c.life, got, c.want)
		}
	}
}

// The judge counts windows by itself: from each tick on, up to and without the end.
func TestWhenBudgetsHold(t *testing.T) {
	eight := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	early, late := ticks{first: 3 * time.Minute, every: 10 * time.Minute}, ticks{first: 13 * time.Minute,
		every: 15 * time.Minute}
	if early.String() != "3-59/10 * * * *" || late.String() != "13-59/15 * * * *" {
		t.Errorf("the schedules are %q and %q", early, late)
	}
	for _, c := range []struct {
		ticks  ticks
		length time.Duration
		at     string
		want   bool
	}{
		{early, 2 * time.Minute, "0s", false}, {early, 2 * time.Minute, "2m59s", false}, {early, 2 * time.Minute,
			"3m", true},
		{early, 2 * time.Minute, "4m59s", true}, {early, 2 * time.Minute, "5m", false}, {early, 2 * time.Minute,
			"13m", true},
		{late, 5 * time.Minute, "0s", true}, {late, 5 * time.Minute, "2m59s", true}, {late, 5 * time.Minute,
			"3m", false},
		{late, 5 * time.Minute, "12m59s", false}, {late, 5 * time.Minute, "1h14m", true},
	} {
		after, err := time.ParseDuration(c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.ticks.open(eight.Add(after), c.length); got != c.want {
			t.Errorf("%s for %s, %s after eight: open is %v, want %v", c.ticks, c.length, c.at, got, c.want)
		}
	}
	text := early.String()
	s := &Sim{ticks: map[string]ticks{text: early}}
	b := &v1.Budget{Nodes: "0", Reasons: []v1.DisruptionReason{v1.DisruptionReasonEmpty}, Schedule: &text,
		Duration: &metav1.Duration{Duration: time.Minute}}
	in, out := eight.Add(3*time.Minute), eight.Add(4*time.Minute)
	if !s.holds(b, command.Empty, in) || s.holds(b, command.Empty, out) || s.holds(b, command.Drifted, in) {
		t.Error("a budget holds for its reasons while its window is open, and for no other")
	}
}

// Of two nodes that one plan lets go, each counts against the one that was decided on after it, whichever is ended
// first. A pool allows one node at a time for drift and two for all reasons.
func TestNodesCountInTheOrderOfTheDecisions(t *testing.T) {
	const drifted, idle = "drifted", "idle"
	for name, c := range map[string]struct {
		decided []string // in this order, by one plan
		another bool     // something else is out already
		first   string   // is ended first
		second  string   // is ended then, unless it never is
		want    bool     // the budgets hold
	}{
		"drift first, and it is ended first":          {[]string{drifted, idle}, false, drifted, idle, true},
		"drift first, and it is ended last":           {[]string{drifted, idle}, false, idle, drifted, true},
		"drift last, and it is ended last":            {[]string{idle, drifted}, false, idle, drifted, false},
		"drift last, and it is ended first":           {[]string{idle, drifted}, false, drifted, "", false},
		"drift first, and nothing is left for others": {[]string{drifted, idle}, true, idle, "", false},
		"drift alone":                         {[]string{drifted}, false, drifted, "", true},
		"drift, and something is out already": {[]string{drifted}, true, drifted, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(1, Options{})
			pool := s.newPool("general", false)
			pool.Annotations = nil
			pool.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "2"},
				{Nodes: "1", Reasons: []v1.DisruptionReason{v1.DisruptionReasonDrifted}}}
			s.store.create(pool)
			reasons := map[string]command.Reason{drifted: command.Drifted, idle: command.Empty}
			for _, name := range []string{drifted, idle, "out"} {
				claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name,
					Labels: map[string]string{v1.NodePoolLabelKey: "general"}}}
				claim.Status.Conditions = []metav1.Condition{{Type: v1.ConditionTypeInitialized,
					Status: metav1.ConditionTrue}}
				s.store.create(claim)
			}
			r := s.start()
			end := func(name string) *act {
				claim, _ := find[*v1.NodeClaim](s.store, claims, name)
				s.begun++
				return &act{command: command.DeleteClaim{Claim: name, UID: string(claim.UID), Reason: reasons[name]},
					turn: s.begun}
			}
			carryOut := func(a *act) {
				claim, _ := find[*v1.NodeClaim](s.store, claims, a.command.(command.DeleteClaim).Claim)
				r.current = a
				s.judge.disrupting(r, claim)
				r.acts = slices.DeleteFunc(r.acts, func(o *act) bool { return o == a })
			}
			if c.another {
				reasons["out"] = command.Underutilized
				carryOut(end("out"))
			}
			acts := make(map[string]*act)
			for _, name := range c.decided {
				acts[name] = end(name)
				r.acts = append(r.acts, acts[name])
			}
			for _, name := range []string{c.first, c.second} {
				if name != "" {
					carryOut(acts[name])
				}
			}
			if (s.failure == nil) != c.want {
				t.Errorf("the judge says %v", s.failure)
			}
		})
	}
}
