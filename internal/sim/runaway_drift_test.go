package sim

import (
	"fmt"
	"testing"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestDriftThatComesBack has a cloud that finds each new node drifted, as with an alias that resolves in two ways:
// nodes are replaced one at a time and less and less often, with and without pods, however many there are.
func TestDriftThatComesBack(t *testing.T) {
	for _, count := range []int{1, 12, 60} {
		// The first nodes, what replaces all of them before it is known that this drifts, too, and the probes of an
		// hour: at once, and 5, 15, 35 and 75 min later, and as many once more for moves that are given up.
		most := 2*count + 10
		for _, static := range []bool{false, true} {
			for seed := range uint64(3) {
				t.Run(fmt.Sprintf("%d nodes, static %t, %d", count, static, seed), func(t *testing.T) {
					s := driftWorld(seed, count, static)
					s.cloud.fickle = true
					s.start()
					s.clock.runUntil(s.clock.now.Add(time.Hour), s.over)
					made := len(s.judge.unused.madeFor)
					t.Logf("%d NodeClaims", made)
					if s.failure != nil || made > most || made < 3 {
						t.Errorf("%d NodeClaims were made in an hour for %d nodes, want at most %d and some: %v", made,
							count, most, s.failure)
					}
					for len(s.replicas) > 0 {
						s.replicas[0].kill()
					}
				})
			}
		}
	}
}

// TestDriftRollsAreNotSlowed: four images one after the other, the next one as soon as each node has the last one, or
// in the midst of it.
func TestDriftRollsAreNotSlowed(t *testing.T) {
	for seed := range uint64(3) {
		s := driftWorld(seed, 6, true)
		s.start()
		settled := func() bool {
			count := 0
			for _, m := range s.cloud.machines {
				if m.image != s.cloud.image {
					return false
				}
				count++
			}
			return count == 6 && len(list[*v1.NodeClaim](s.store, claims)) == 6
		}
		for roll := range 4 {
			begin := s.clock.now
			for s.failure == nil && !settled() && s.clock.now.Before(begin.Add(time.Hour)) {
				s.clock.runUntil(s.clock.now.Add(time.Second), s.over)
			}
			took := s.clock.now.Sub(begin)
			t.Logf("roll %d took %s", roll, took)
			if s.failure != nil || took > 25*time.Minute {
				t.Errorf("seed %d: roll %d took %s: %v", seed, roll, took, s.failure)
			}
			s.cloud.image++
		}
		for len(s.replicas) > 0 {
			s.replicas[0].kill()
		}
	}
}

// driftWorld is a pool that lets all its nodes drift at once, with so many nodes or pods.
func driftWorld(seed uint64, count int, static bool) *Sim {
	s := newSim(seed, Options{})
	s.judge.unused.on = true
	pool := s.hourPool("general", "none")
	pool.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "100%"}}
	if static {
		s.policy.StaticCapacity = true
		replicas := int64(count)
		pool.Spec.Replicas = &replicas
	}
	s.store.create(pool)
	if static {
		return s
	}
	set := s.hourSet("victim", "none")
	replicas := int32(count)
	set.Spec.Replicas = &replicas
	s.store.create(set)
	s.judge.unused.about(set.UID).share = 1
	return s
}
