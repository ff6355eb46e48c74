package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

const (
	// warnedFor is how long before its end a machine is warned; lastDrain is when its pods may be told to go without a
	// place.
	warnedFor = 2 * time.Minute
	lastDrain = 45 * time.Second
)

// interruptSpot is a cloud that takes a machine back: it says so two minutes before, to whoever listens, sometimes
// twice and sometimes late, and then it does so, whatever has become of the node.
func (s *Sim) interruptSpot() {
	m := s.anyMachine()
	if m == nil {
		return
	}
	end := s.clock.now.Add(warnedFor)
	warning := cloudprovider.Interruption{Kind: cloudprovider.SpotInterruption,
		Deadline: end.UTC().Truncate(time.Second)}
	s.trace.note("cloud: will take %s back", m.instance.ProviderID)
	for range s.clock.number(1, 2) {
		s.clock.after(s.clock.between(0, 10*time.Second), func() { s.interrupted(m, warning) })
	}
	s.clock.at(end, func() {
		if m.gone || s.cloud.end(m.instance.ProviderID, m.instance.Owner()) != nil {
			return
		}
		ended := cloudprovider.Interruption{Kind: cloudprovider.InstanceTerminating, Deadline: s.clock.seconds().UTC()}
		s.clock.after(s.clock.between(0, 5*time.Second), func() { s.interrupted(m, ended) })
	})
}

// adviseRebalance is a cloud that expects to take a machine back.
func (s *Sim) adviseRebalance() {
	if m := s.anyMachine(); m != nil {
		s.interrupted(m, cloudprovider.Interruption{Kind: cloudprovider.RebalanceRecommendation})
	}
}

// impairMachine is a machine that its cloud has found to be broken.
func (s *Sim) impairMachine() {
	if m := s.anyMachine(); m != nil {
		s.interrupted(m, cloudprovider.Interruption{Kind: cloudprovider.InstanceUnhealthy, Force: true})
	}
}

// anyMachine is some machine that runs; nil if there is none.
func (s *Sim) anyMachine() *machine {
	if len(s.cloud.machines) == 0 {
		return nil
	}
	if m := pick(s.clock, s.cloud.machines); !m.instance.Terminating {
		return m
	}
	return nil
}

// interrupted is whoever listens to the cloud: it writes what it has heard on the claim, unless that says something
// more urgent.
func (s *Sim) interrupted(m *machine, i cloudprovider.Interruption) {
	for _, c := range list[*v1.NodeClaim](s.store, claims) {
		if string(c.UID) != m.instance.ClaimUID || c.Status.ProviderID == "" || c.DeletionTimestamp != nil &&
			i.Kind == cloudprovider.InstanceTerminating {
			continue
		}
		s.trace.note("listener: %s of %s", i, c.Name)
		edit(s.store, claims, keyOf(c), c.UID, func(c *v1.NodeClaim) {
			known, _ := cloudprovider.ParseInterruption(c.Annotations[cloudprovider.InterruptionAnnotation])
			if c.Annotations == nil {
				c.Annotations = map[string]string{}
			}
			c.Annotations[cloudprovider.InterruptionAnnotation] = known.Over(i).String()
		})
	}
}

// forgetAdvice takes advice back, which nobody is bound to follow: where limits leave no room for another node, the
// node stays.
func (s *Sim) forgetAdvice() {
	for _, c := range list[*v1.NodeClaim](s.store, claims) {
		if c.Annotations[cloudprovider.InterruptionAnnotation] == cloudprovider.RebalanceRecommendation {
			edit(s.store, claims, keyOf(c), c.UID, func(c *v1.NodeClaim) {
				delete(c.Annotations, cloudprovider.InterruptionAnnotation)
			})
		}
	}
}

// endOf is when a claim that is being deleted must be gone: by its own deadline, or when its machine is taken away.
func endOf(claim *v1.NodeClaim) (end time.Time, has bool) {
	end, has = deadlineOf(claim)
	i, err := cloudprovider.ParseInterruption(claim.Annotations[cloudprovider.InterruptionAnnotation])
	cut := i.Deadline
	if i.Force {
		cut = claim.DeletionTimestamp.Time
	}
	if err == nil && !cut.IsZero() && (!has || cut.Before(end)) {
		return cut, true
	}
	return end, has
}

// interrupting: a replica ends a node whose machine is taken away. As long as there is time, every pod that has to
// leave has a place that is up, by what the replica knows.
func (j *judge) interrupting(r *replica, c command.DeleteClaim) {
	claim, ok := r.cache[claims][c.Claim].(*v1.NodeClaim)
	if !ok || c.Reason != command.Interrupted {
		return
	}
	text := claim.Annotations[cloudprovider.InterruptionAnnotation]
	i, err := cloudprovider.ParseInterruption(text)
	switch {
	case err != nil || i.IsZero():
		j.sim.fail("only what is interrupted goes for it", "%s ends %s, which says %q", r, claim.Name, text)
		return
	case i.Force, !i.Deadline.IsZero() && !j.sim.clock.now.Before(i.Deadline.Add(-lastDrain)):
		return
	}
	const promise = "pods of an interrupted node leave when their places are ready or time runs out"
	j.asks(promise)
	_, joined := r.cache[nodes][c.Node].(*corev1.Node)
	if vacant := claim.Status.NodeName == "" && len(r.podsOf(c.Node)) == 0; !joined || vacant {
		// its node is there and has not been opened
		return
	}
	made, up := 0, 0
	for _, obj := range r.cache[claims] {
		other := obj.(*v1.NodeClaim)
		move := claim.Annotations[cluster.MoveAnnotation]
		if other.Annotations[cluster.ReplacesAnnotation] == move && other.DeletionTimestamp == nil {
			made++
			if meta.IsStatusConditionTrue(other.Status.Conditions, v1.ConditionTypeInitialized) {
				up++
			}
		}
	}
	if len(r.leavers(c.Node)) > 0 && (made == 0 || up < made) {
		j.charge(promise, []excuseReason{
			{"there is room elsewhere", func() bool {
				return r.roomElsewhere(c.Node, claim.Annotations[cluster.MoveAnnotation])
			}},
			is(cutOff, r.stale),
		}, "%s ends %s (%s), of %d replacements %d are ready, and there is no room elsewhere", r, claim.Name,
			i, made, up)
	}
}
