package sim

import (
	"fmt"
	"testing"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestNodesThatExpireAtOnce has a pool whose nodes live for so little time that no pod runs there for a minute:
// somebody meant 10 hours and wrote 10 seconds. Nodes are made with growing pauses, as for any other cause.
func TestNodesThatExpireAtOnce(t *testing.T) {
	for _, x := range []struct{ life, soft time.Duration }{
		{life: time.Second}, {life: 10 * time.Second}, {life: 40 * time.Second}, {life: 70 * time.Second},
		{life: 9 * time.Minute},
		{life: 70 * time.Second, soft: time.Minute}, {life: 2 * time.Minute, soft: 100 * time.Second},
		{life: 9 * time.Minute, soft: 8*time.Minute + 50*time.Second},
	} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s %s %d", x.life, x.soft, seed), func(t *testing.T) {
				playExpiry(t, x.life, x.soft, seed)
			})
		}
	}
}

func playExpiry(t *testing.T, life, soft time.Duration, seed uint64) {
	const kind = "none"
	s := newSim(seed, Options{})
	s.judge.unused.on = true
	pool := s.hourPool("general", kind)
	pool.Spec.Template.Spec.ExpireAfter = lasting(life)
	if soft > 0 {
		pool.Annotations = map[string]string{"tenon.sh/soft-expiry": soft.String()}
		pool.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "100%"}}
	}
	s.store.create(pool)
	set := s.hourSet("victim", kind)
	one := int32(1)
	set.Spec.Replicas = &one
	s.store.create(set)
	s.judge.unused.about(set.UID).share = 1
	s.clock.after(time.Second, s.judge.unused.watch)
	s.start()
	begin, launched := s.clock.now, 0
	for s.failure == nil && s.clock.now.Before(begin.Add(time.Hour)) {
		s.clock.runUntil(s.clock.now.Add(time.Second), s.over)
		for _, a := range s.judge.unused.of {
			launched = max(launched, len(a.launched))
		}
	}
	made := len(s.judge.unused.madeFor)
	t.Logf("%d NodeClaims were made in an hour; %d machines were launched while no pod ran for a minute",
		made, launched)
	if most := 22; s.failure != nil || launched > most { // 2 B + 20
		t.Errorf("%d machines were launched in an hour for one pod, want at most %d: %v", launched, most, s.failure)
	}
	if made < 5 {
		t.Errorf("%d NodeClaims were made in an hour: nothing is tried any more", made)
	}
	for len(s.replicas) > 0 {
		s.replicas[0].kill()
	}
}
