package sim

import (
	"fmt"
	"testing"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestStaticNodesThatEndAtOnce has a static pool whose nodes end soon after they were made: the pool lets them live for
// seconds only, or an agent deletes each. New ones are made with growing pauses.
func TestStaticNodesThatEndAtOnce(t *testing.T) {
	const replicas, most = 3, 16 // for each of them within an hour: see docs/concepts/bounds.md
	for _, x := range []struct {
		life  time.Duration
		agent string
		least int
	}{{life: time.Second}, {life: 10 * time.Second}, {life: 70 * time.Second}, {agent: "delete"}} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s %s %d", x.life, x.agent, seed), func(t *testing.T) {
				made := playStatic(t, seed, replicas, time.Hour, func(s *Sim, pool *v1.NodePool) {
					if pool.Spec.Template.Spec.ExpireAfter = lasting(x.life); x.agent != "" {
						pool.Spec.Template.Spec.ExpireAfter = v1.NeverDuration()
						s.startAgent(x.agent).delay = 0
					}
				})
				if made > replicas*most || made < replicas*5 {
					t.Errorf("%d NodeClaims were made in an hour for %d nodes, want at most %d and some", made,
						replicas, replicas*most)
				}
			})
		}
	}
}

// TestStaticNodesThatEndAtOnceAfterRestarts: a program that starts goes on counting where the last one was.
func TestStaticNodesThatEndAtOnceAfterRestarts(t *testing.T) {
	const restarts = 8
	for seed := range uint64(3) {
		made := playStatic(t, seed, 1, time.Hour, func(s *Sim, pool *v1.NodePool) {
			pool.Spec.Template.Spec.ExpireAfter = lasting(4 * time.Minute)
			for i := range restarts {
				s.clock.after(time.Duration(i+1)*6*time.Minute, s.crash)
			}
		})
		if most := 16 + restarts; made > most {
			t.Errorf("%d NodeClaims were made in an hour with %d restarts, want at most %d", made, restarts, most)
		}
	}
}

// playStatic plays a static pool for a while, and counts the NodeClaims that are made.
func playStatic(t *testing.T, seed uint64, replicas int64, lasts time.Duration, change func(*Sim, *v1.NodePool)) int {
	s := newSim(seed, Options{})
	s.judge.unused.on = true
	s.policy.StaticCapacity = true
	pool := s.hourPool("static", "none")
	pool.Spec.Replicas = &replicas
	change(s, pool)
	s.store.create(pool)
	s.start()
	s.clock.runUntil(s.clock.now.Add(lasts), s.over)
	made := len(s.judge.unused.madeFor)
	t.Logf("seed %d: %d NodeClaims", seed, made)
	if s.failure != nil {
		t.Error(s.failure)
	}
	for len(s.replicas) > 0 {
		s.replicas[0].kill()
	}
	return made
}
