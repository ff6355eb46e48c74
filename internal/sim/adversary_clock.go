package sim

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// wrongBy draws by how much a clock is wrong: by a little, or by more than any timeout.
func (s *Sim) wrongBy() time.Duration {
	if s.clock.chance(0.5) {
		return s.clock.between(-time.Minute, 3*time.Minute)
	}
	return s.clock.between(-2*time.Hour, 48*time.Hour)
}

// jumpClock sets the clock of the leader's machine forward or back, for a while.
func (s *Sim) jumpClock() {
	r := s.leader()
	if r == nil {
		return
	}
	by := s.wrongBy()
	s.trace.note("%s: its clock jumps by %s", r, by.Round(time.Second))
	r.skew = by
	s.clock.after(s.clock.between(5*time.Second, 2*time.Minute), func() {
		r.skew = 0
		r.poke()
	})
}

// startWithWrongClock is a leader that dies, and one that takes over on a machine whose clock is wrong.
func (s *Sim) startWithWrongClock() {
	old := s.leader()
	if old == nil || len(s.replicas) > 1 {
		return
	}
	old.kill()
	s.adversaryState.skew = s.wrongBy()
	r := s.start()
	s.trace.note("%s: its clock is wrong by %s", r, s.adversaryState.skew.Round(time.Second))
	s.adversaryState.skew = 0
	s.adversaryState.undo = append(s.adversaryState.undo, func() { r.skew = 0 })
}

const (
	neverEarly = "nothing is given up before its time"
	// asTold is by how much times in objects may be wrong, which are cut off to seconds.
	asTold = time.Second
)

// givingUp: a replica deletes a claim because something has taken too long, or because its life is over. By the true
// clock that must be so: otherwise a replica whose clock is wrong would give up each node as it comes, and make another
// in its place.
func (j *judge) givingUp(r *replica, claim *v1.NodeClaim) {
	if r.current == nil {
		return
	}
	c, ok := r.current.command.(command.DeleteClaim)
	if !ok || c.UID != string(claim.UID) {
		return
	}
	since, after := claim.CreationTimestamp.Time, time.Duration(0)
	switch c.Reason {
	case command.LaunchTimeout:
		after = j.sim.policy.Lifecycle.LaunchTimeout
	case command.RegistrationTimeout:
		after = j.sim.policy.Lifecycle.RegistrationTimeout
		if m := j.sim.cloud.find(claim.Status.ProviderID); m != nil {
			since = m.instance.CreatedAt
		}
	case command.InitializationTimeout:
		after = j.sim.policy.Lifecycle.InitializationTimeout
		if told := meta.FindStatusCondition(claim.Status.Conditions, v1.ConditionTypeRegistered); told != nil {
			since = told.LastTransitionTime.Time
		}
	case command.Expired:
		if claim.Annotations[cluster.MoveAnnotation] != "" {
			return // its pool asks for a replacement before its end
		}
		after = *claim.Spec.ExpireAfter.Duration
	default:
		return
	}
	if j.asks(neverEarly); j.sim.clock.now.Before(since.Add(after - asTold)) {
		j.sim.fail(neverEarly, "%s gives up %s (%s) after %s, and it has %s", r, claim.Name, c.Reason,
			j.sim.clock.now.Sub(since).Round(time.Millisecond), after)
	}
}
