package sim

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// TestNodesThatExpireAtOnce has a pool whose nodes live for so little time that no pod runs there for a minute: somebody
// meant 10 hours and wrote 10 seconds. Nodes are made with growing pauses, as for any other cause.
func TestNodesThatExpireAtOnce(t *testing.T) {
	for _, life := range []time.Duration{time.Second, 10 * time.Second, 40 * time.Second} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s %d", life, seed), func(t *testing.T) { playExpiry(t, life, seed) })
		}
	}
}

func playExpiry(t *testing.T, life time.Duration, seed uint64) {
	const kind = "none"
	s := newSim(seed, Options{})
	s.judge.vain.on = true
	pool := s.hourPool("general", kind)
	pool.Spec.Template.Spec.ExpireAfter = lasting(life)
	s.store.create(pool)
	set := s.hourSet("victim", kind)
	one := int32(1)
	set.Spec.Replicas = &one
	s.store.create(set)
	for _, set := range list[*appsv1.ReplicaSet](s.store, sets) {
		s.judge.vain.wanted[set.UID], s.judge.vain.share[set.UID] = 1, 1
	}
	s.start()
	s.clock.runUntil(s.clock.now.Add(time.Hour), s.over)
	launched := 0
	for _, n := range s.judge.vain.launched {
		launched += n
	}
	t.Logf("%d machines were launched in an hour", launched)
	if most := 22; s.failure != nil || launched > most { // 2 B + 20
		t.Errorf("%d machines were launched in an hour for one pod, want at most %d: %v", launched, most, s.failure)
	}
	if launched < 5 {
		t.Errorf("%d machines were launched in an hour: nothing is tried any more", launched)
	}
	for len(s.replicas) > 0 {
		s.replicas[0].kill()
	}
}
