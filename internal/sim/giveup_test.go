package sim

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

const theMove = "underutilized-aaaaaaaaaa"

// unfences has a replica, be it stale, take down the fence of the node that stays; what is left there is a taint with a
// key.
func (r *replica) unfences(stale bool, key string) {
	s := r.sim
	stays, _ := find[*v1.NodeClaim](s.store, claims, "stays")
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-stays"}}
	if key != "" {
		n.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}
	}
	s.store.create(n)
	s.judge.moves[stays.UID] = theMove
	r.stale, r.current.command = stale, command.Unfence{Claim: "stays", UID: string(stays.UID), Node: "node-of-stays"}
	s.judge.changed(r, nodes, "node-of-stays")
	r.stale, r.current.command = false, nil
}

// givenUp is a run in which a node of a move has gone, another of the same move is opened again, and a dear replacement
// was made.
func givenUp(t *testing.T) (s *Sim, r *replica, stays *v1.NodeClaim) {
	const move = theMove
	s = newSim(1, Options{})
	pool := s.newPool("general", false)
	pool.Spec.Disruption.Budgets, pool.Annotations = nil, nil
	s.store.create(pool)
	add := func(name string, notes map[string]string) *v1.NodeClaim {
		c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{v1.NodePoolLabelKey: "general"}, Annotations: notes}}
		s.store.create(c)
		chosen, err := choose.Available(choose.Ranked(s.cloud.types, c), func(cloudprovider.OfferingRef) bool {
			return false
		})
		if err != nil {
			t.Fatal(err)
		}
		m := &machine{instance: *chosen.Instance(c)}
		m.instance.ProviderID = "sim:///" + name
		s.cloud.machines = append(s.cloud.machines, m)
		edit(s.store, claims, name, c.UID, func(c *v1.NodeClaim) {
			c.Status.ProviderID, c.Status.NodeName = m.instance.ProviderID, "node-of-"+name
		})
		now, _ := find[*v1.NodeClaim](s.store, claims, name)
		return now
	}
	stays = add("stays", nil)
	made := add("made", map[string]string{cluster.ReplacesAnnotation: move})
	r = s.start()
	r.current = &act{began: s.clock.now}
	s.judge.begun[move], s.judge.left[move] = s.clock.now, s.priceOf(made)/2
	return s, r, stays
}

// TestReopenedNodesAreExcusedForAReason: a move that has ended nodes for less than it has made is not given up, unless
// what was made is for pods that wait, or the planner has failed.
func TestReopenedNodesAreExcusedForAReason(t *testing.T) {
	for name, c := range map[string]struct {
		because func(*Sim, *replica)
		excuse  string
	}{
		"no reason": {func(*Sim, *replica) {}, ""},
		"pods are sent there": {func(s *Sim, r *replica) {
			r.sent["node-of-made"] = s.clock.now
		}, "pods that wait are sent to what was made"},
		"pods are sent elsewhere": {func(s *Sim, r *replica) { r.sent["node-of-stays"] = s.clock.now }, ""},
		"pods were sent there": {func(s *Sim, r *replica) {
			r.sent["node-of-made"] = s.clock.now.Add(-time.Minute)
		}, ""},
		"the planner has failed": {func(_ *Sim, r *replica) {
			r.current.command = command.Unfence{BlockReason: string(disrupt.PlannerFails)}
		}, "the planner has failed, and takes the move back"},
		"a stale replica has opened it": {func(s *Sim, r *replica) {
			r.unfences(true, "")
		}, "a stale replica has opened a part of the move"},
		"a leader has opened it": {func(s *Sim, r *replica) { r.unfences(false, "") }, ""},
		"it is still fenced":     {func(s *Sim, r *replica) { r.unfences(true, v1.DisruptedTaintKey) }, ""},
		"it was opened before the move": {func(s *Sim, r *replica) {
			r.unfences(true, "")
			s.clock.now = s.clock.now.Add(time.Second)
			s.judge.begun[theMove] = s.clock.now
		}, ""},
		"a stale replica has ended what has gone": {func(s *Sim, _ *replica) {
			s.judge.left, s.judge.leftByStale = s.judge.leftByStale, s.judge.left
		}, "a stale replica has ended all of the move that has gone"},
		"a stale replica has ended a part of what has gone": {func(s *Sim, _ *replica) {
			s.judge.leftByStale[theMove] = s.judge.left[theMove] / 2
		}, ""},
		"it is opened for another reason": {func(_ *Sim, r *replica) {
			r.current.command = command.Unfence{BlockReason: string(disrupt.PodsStranded)}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, r, stays := givenUp(t)
			c.because(s, r)
			s.judge.reopened(r, stays, theMove)
			if (s.failure == nil) != (c.excuse != "") {
				t.Errorf("the judge says %v", s.failure)
			}
			if c.excuse != "" && s.seen[excusedBy+givenUpForFree+": "+c.excuse] != 1 {
				t.Errorf("the excuse is not counted: %v", s.seen)
			}
		})
	}
}

// TestLeftoversOfAFailedPlanner: what was made for nobody goes, and if the planner has failed on it, as soon as that is
// over.
func TestLeftoversOfAFailedPlanner(t *testing.T) {
	const move = theMove
	s, _, _ := givenUp(t)
	s.judge.leftover(move, s.judge.begun[move])
	if s.failure == nil || !strings.Contains(s.failure.Detail, "nobody is there") {
		t.Errorf("a leftover stays, and the judge says %v", s.failure)
	}
	s, r, _ := givenUp(t)
	failed := cluster.Quarantine{Claims: map[string]cluster.Failure{"made": {Until: s.clock.now.Add(10 * time.Minute)}}}
	r.seen = (&cluster.Snapshot{Claims: []*cluster.Claim{{Name: "made"}}, Quarantine: failed}).Seal()
	s.judge.leftover(move, s.judge.begun[move])
	if s.failure != nil {
		t.Errorf("the planner has failed on the leftover, and the judge says %v", s.failure)
	}
	r.kill() // nobody plans any more
	s.clock.runUntil(s.clock.now.Add(20*time.Minute), s.over)
	if s.failure == nil {
		t.Error("nobody looks at the leftover again")
	}
}

// TestLeftoversThatAreReplaced: what was made for a move that was given up may have drifted since. It stays as long as
// the planner fails on what is to replace it, and not for what replaces another.
func TestLeftoversThatAreReplaced(t *testing.T) {
	const move = "underutilized-aaaaaaaaaa"
	for name, c := range map[string]struct {
		goes, comes, failed string
		want                bool // the judge has nothing to say
	}{
		"the planner fails on what comes": {"drifted-aaaaaaaaaa", "drifted-aaaaaaaaaa",
			"comes", true},
		"it fails on nothing": {"drifted-aaaaaaaaaa", "drifted-aaaaaaaaaa", "", false},
		"it fails on what comes in another move": {"drifted-aaaaaaaaaa", "drifted-bbbbbbbbbb",
			"comes", false},
		"it goes in no move, and the planner fails on others": {"", "", "comes", false},
	} {
		t.Run(name, func(t *testing.T) {
			s, r, _ := givenUp(t)
			made, _ := find[*v1.NodeClaim](s.store, claims, "made")
			edit(s.store, claims, "made", made.UID, func(c2 *v1.NodeClaim) {
				c2.Annotations[cluster.MoveAnnotation] = c.goes
			})
			s.store.create(&v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "comes",
				Annotations: map[string]string{cluster.ReplacesAnnotation: c.comes}}})
			failed := cluster.Quarantine{Claims: map[string]cluster.Failure{c.failed: {Until: s.clock.now.Add(
				10 * time.Minute)}}}
			r.seen = (&cluster.Snapshot{Claims: []*cluster.Claim{{Name: "comes"}, {Name: "made"}},
				Quarantine: failed}).Seal()
			s.judge.leftover(move, s.judge.begun[move])
			if (s.failure == nil) != c.want {
				t.Errorf("the judge says %v", s.failure)
			}
		})
	}
}

// TestLeftoversThatShowTheCause: what was made for a move that was given up may be the node that shows pods what keeps
// them away. It stays as long as the planner fails on the only nodes that are on their way for them, and no longer.
func TestLeftoversThatShowTheCause(t *testing.T) {
	const move, owner = theMove, "default/app"
	next := func(name, owner string) *cluster.Claim {
		return &cluster.Claim{Name: name, MadeFor: []cluster.MadeFor{{Owner: owner, Try: 2}}}
	}
	up, goes := next("next", owner), next("next", owner)
	up.Conditions = []cluster.Condition{{Type: cluster.Initialized, Status: cluster.True}}
	goes.Deleting = time.Unix(1, 0)
	for name, c := range map[string]struct {
		shows  string
		coming int
		failed string
		claims []*cluster.Claim
		want   bool // the judge has nothing to say
	}{
		"the planner fails on the next": {"made", 1, "next", []*cluster.Claim{next("next", owner)},
			true},
		"it fails on nothing": {"made", 1, "", []*cluster.Claim{next("next", owner)}, false},
		"it fails on another": {"made", 1, "other", []*cluster.Claim{next("next", owner),
			next("other", "default/b")}, false},
		"one that it does not fail on is coming, too": {"made", 2, "next", []*cluster.Claim{next("next", owner),
			next("more", owner)}, false},
		"another node shows it": {"next", 1, "next", []*cluster.Claim{next("next", owner)},
			false},
		"nothing is coming, since the next is up": {"made", 0, "next", []*cluster.Claim{up}, false},
		"it fails on what is up, and another is coming": {"made", 1, "next", []*cluster.Claim{up, next("more", owner)},
			false},
		"it fails on what goes, and another is coming": {"made", 1, "next",
			[]*cluster.Claim{goes, next("more", owner)}, false},
		"nothing is coming": {"made", 0, "next", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, r, _ := givenUp(t)
			failed := cluster.Quarantine{Claims: map[string]cluster.Failure{c.failed: {Until: s.clock.now.Add(
				10 * time.Minute)}}}
			tries := map[string]*cluster.WorkloadTries{owner: {Owner: owner, Retained: c.shows,
				ComingClaims: c.coming}}
			r.seen = (&cluster.Snapshot{Claims: append(c.claims, &cluster.Claim{Name: "made"}), Quarantine: failed,
				WorkloadTries: tries}).Seal()
			s.judge.leftover(move, s.judge.begun[move])
			if (s.failure == nil) != c.want {
				t.Errorf("the judge says %v", s.failure)
			}
			if !c.want {
				return
			}
			r.kill()
			s.clock.runUntil(s.clock.now.Add(20*time.Minute), s.over)
			if s.failure == nil {
				t.Error("nobody looks at the leftover again")
			}
		})
	}
}
