package cluster

import (
	"testing"
	"time"
)

// A move that is tried again has its old name. What was made for the first try is a node like any other by then.
func TestReplacingTellsTriesApart(t *testing.T) {
	began := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	old := &Claim{Name: "old", ProviderID: "old", NodeName: "old", Move: "m", Conditions: []Condition{
		{Type: Initialized, Status: True}, {Type: DisruptionReason, Status: True, Reason: "Underutilized", Since: began}}}
	made := &Claim{Name: "new", ProviderID: "new", NodeName: "new", Replaces: "m", Seats: []Seat{{Class: "web", Count: 1}},
		Conditions: []Condition{{Type: Initialized, Status: True}}}
	nodes := []*Node{{Name: "new", ProviderID: "new"}, {Name: "old", ProviderID: "old", Taints: []Taint{{Key: DisruptedTaint, Effect: NoSchedule}}}}
	for _, c := range []struct {
		created time.Time
		want    bool
	}{{began.Add(time.Second), true}, {began.Add(-5 * time.Second), true}, {began.Add(-time.Hour), false}} {
		made.Created = c.created
		s := (&Snapshot{Claims: []*Claim{made, old}, Nodes: nodes}).Seal()
		if got := s.Replacing(made); got != c.want {
			t.Errorf("made %s after the first fence: replacing is %v, want %v", c.created.Sub(began), got, c.want)
		}
		for _, h := range s.Plain().Hosts() {
			if h.Name == "new" && h.Reserved != c.want {
				t.Errorf("made %s after the first fence: its room is kept: %v, want %v", c.created.Sub(began), h.Reserved, c.want)
			}
			if h.Name == "old" && h.Closed != c.want {
				t.Errorf("made %s after the first fence: what it replaces is closed: %v, want %v", c.created.Sub(began), h.Closed, c.want)
			}
		}
	}
	made.Created, old.Move = began, ""
	if s := (&Snapshot{Claims: []*Claim{made, old}, Nodes: nodes}).Seal(); s.Replacing(made) {
		t.Error("nobody goes in the move any more")
	}
}
