package cluster

import (
	"strings"
	"testing"
	"time"
)

// A move that is tried again has its old name. What was made for the first try is a node like any other by then.
func TestReplacingTellsTriesApart(t *testing.T) {
	began := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	old := &Claim{Name: "old", ProviderID: "old", NodeName: "old", Move: "m", Conditions: []Condition{
		{Type: Initialized, Status: True}, {Type: DisruptionReason, Status: True, Reason: "Underutilized",
			Since: began}}}
	made := &Claim{Name: "new", ProviderID: "new", NodeName: "new", Replaces: "m",
		Seats:      []Seat{{Class: "web", Count: 1}},
		Conditions: []Condition{{Type: Initialized, Status: True}}}
	nodes := []*Node{{Name: "new", ProviderID: "new"}, {Name: "old", ProviderID: "old",
		Taints: []Taint{{Key: DisruptedTaint, Effect: NoSchedule}}}}
	for _, c := range []struct {
		created time.Time
		want    bool
	}{{began.Add(time.Second), true}, {began.Add(-5 * time.Second), true}, {began.Add(-time.Hour), false}} {
		made.Created = c.created
		s := (&Snapshot{Claims: []*Claim{made, old}, Nodes: nodes}).Seal()
		if got := s.IsReplacement(made); got != c.want {
			t.Errorf("made %s after the first fence: replacing is %v, want %v", c.created.Sub(began), got, c.want)
		}
		for _, h := range s.SchedulerView().Hosts() {
			if h.Name == "new" && h.Reserved != c.want {
				t.Errorf("made %s after the first fence: its room is kept: %v, want %v", c.created.Sub(began),
					h.Reserved, c.want)
			}
			if h.Name == "old" && h.Closed != c.want {
				t.Errorf("made %s after the first fence: what it replaces is closed: %v, want %v", c.created.Sub(began),
					h.Closed, c.want)
			}
		}
	}
	made.Created, old.Move = began, ""
	if s := (&Snapshot{Claims: []*Claim{made, old}, Nodes: nodes}).Seal(); s.IsReplacement(made) {
		t.Error("nobody goes in the move any more")
	}
}

// A seat says of which class a pod is, not which pod. Pods that wait find the nodes last that are kept for a move, even
// if these are up first: what was made for pods that wait may be of no use to the move, as a node is that has drifted,
// and the move would get another replacement.
func TestPodsThatWaitFindKeptNodesLast(t *testing.T) {
	began := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	seat := []Seat{{Class: "web", Count: 1}}
	old := &Claim{Name: "old", ProviderID: "old", NodeName: "old", Move: "m", Conditions: []Condition{
		{Type: Initialized, Status: True}, {Type: DisruptionReason, Status: True, Reason: "Drifted", Since: began}}}
	kept := &Claim{Name: "kept", ProviderID: "kept", NodeName: "kept", Replaces: "m", Created: began, Seats: seat,
		Conditions: []Condition{{Type: Initialized, Status: True}}}
	theirs := &Claim{Name: "theirs", ProviderID: "theirs", NodeName: "theirs", Created: began, Seats: seat}
	s := (&Snapshot{Claims: []*Claim{kept, old, theirs}, Nodes: []*Node{{Name: "kept", ProviderID: "kept"},
		{Name: "old", ProviderID: "old", Taints: []Taint{{Key: DisruptedTaint, Effect: NoSchedule}}},
		{Name: "theirs", ProviderID: "theirs"}}}).Seal()
	for _, c := range []struct {
		who     string
		overlay *Overlay
		want    string
	}{{"pods that wait", s.SchedulerView(), "theirs kept old"}, {"pods of the move", s.Without("old"), "kept theirs"}} {
		var names []string
		for _, h := range c.overlay.Hosts() {
			names = append(names, h.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s find %q, want %q", c.who, got, c.want)
		}
	}
}
