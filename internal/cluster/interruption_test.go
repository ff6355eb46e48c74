package cluster

import (
	"testing"
	"time"
)

// A claim must be gone by the first of all times that anybody has set, and never later because of an interruption.
func TestEndOfAnInterruptedClaim(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	warned := Interruption{Kind: "SpotInterruption", Deadline: noon.Add(2 * time.Minute)}
	for name, c := range map[string]struct {
		claim Claim
		want  time.Time
	}{
		"no word": {Claim{}, time.Time{}},
		"advice": {Claim{Interruption: Interruption{Kind: "RebalanceRecommendation"}},
			time.Time{}},
		"a warning": {Claim{Interruption: warned}, noon.Add(2 * time.Minute)},
		"a warning, and a long grace": {Claim{Interruption: warned, HasTerminationGrace: true,
			TerminationGrace: time.Hour}, noon.Add(2 * time.Minute)},
		"a warning, and a short one": {Claim{Interruption: warned, HasTerminationGrace: true,
			TerminationGrace: time.Minute}, noon.Add(time.Minute)},
		"a deadline before": {Claim{Interruption: warned, Deadline: noon.Add(30 * time.Second)},
			noon.Add(30 * time.Second)},
		"a stale deadline": {Claim{Interruption: warned, Deadline: noon.Add(-time.Hour)},
			noon.Add(2 * time.Minute)},
		"force": {Claim{Interruption: Interruption{Kind: "InstanceUnhealthy", Force: true}},
			noon},
		"force, and a deadline": {Claim{Interruption: Interruption{Kind: "InstanceUnhealthy", Force: true},
			Deadline: noon.Add(time.Hour)}, noon},
	} {
		c.claim.Deleting = noon
		at, has := c.claim.EndsBy()
		if !at.Equal(c.want) || has != !c.want.IsZero() {
			t.Errorf("%s: %s %v, want %s", name, at, has, c.want)
		}
	}
	alive := Claim{Interruption: warned}
	if at, has := alive.EndsBy(); has {
		t.Errorf("a claim that is not being deleted must be gone by %s", at)
	}
}
