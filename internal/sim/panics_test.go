package sim

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
)

// A failure is judged by the class that brought it about, although another has been planted by the time that it is
// told.
func TestAFailureIsJudgedByItsOwnClass(t *testing.T) {
	for _, x := range []struct {
		left []string
		fine bool
	}{
		{[]string{"guilty"}, true},
		{[]string{"planted later"}, false},
		{[]string{"guilty", "planted later"}, false},
		{nil, false},
	} {
		s := newSim(1, Options{})
		s.mistakes = mistakes{checkClass: "planted later"}
		b := plan.PlannerFailure{Step: plan.StepCheck, Panic: planted + "the check, " + ofClass + "guilty"}
		b.LeftOut.Classes = make(map[string]cluster.Failure)
		for _, class := range x.left {
			b.LeftOut.Classes[class] = cluster.Failure{}
		}
		observer{&replica{sim: s}}.PlannerFailed(b)
		if fine := s.failure == nil; fine != x.fine {
			t.Errorf("left out %v: fine %t, want %t", x.left, fine, x.fine)
		}
	}
}

// A replica makes one plan at a time. What happens while it does so has it plan again afterwards.
func TestAReplicaMakesOnePlanAtATime(t *testing.T) {
	s := newSim(1, Options{})
	s.prepare()
	r := s.start()
	s.clock.runUntil(s.clock.now.Add(time.Second), s.over)
	r.planning, r.changed = true, false
	before := r.lastPass
	r.pass()
	if !r.lastPass.Equal(before) || !r.planning || !r.changed {
		t.Errorf("it planned at %s while it was planning; it plans again: %t", r.lastPass, r.changed)
	}
	r.kill()
}
