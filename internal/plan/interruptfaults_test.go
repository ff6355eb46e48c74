package plan_test

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/resource"
)

// interruptionWorld is a small cluster whose nodes are taken away one after the other.
type interruptionWorld struct {
	*storyRunner
	chance *rand.Rand
	// asked is for how many pods of interrupted nodes places have been asked, due how many there were.
	asked, due int
	counted    map[string]bool
	// before is the last plan, late how many pods have come without a node.
	before plan.Plan
	late   int
}

// newInterruptionWorld draws nodes with pods, some of which must not be disturbed.
func newInterruptionWorld(t *testing.T, seed int64) *interruptionWorld {
	st := &interruptionWorld{storyRunner: &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()},
		chance: rand.New(rand.NewSource(seed)), counted: make(map[string]bool)}
	st.say("type small cpu=2 memory=8Gi price=0.10 spot=0.04", "type large cpu=8 memory=32Gi price=0.40 spot=0.15",
		"pool default budget=1 after=1s")
	for i := range 2 + st.chance.Intn(4) {
		size := []string{"small", "large"}[st.chance.Intn(2)]
		st.say(fmt.Sprintf("node n%d pool=default type=%s", i, size))
		room := map[string]int{"small": 2000, "large": 8000}[size]
		for j := 0; room > 0 && st.chance.Intn(6) > 0; j++ {
			need := min(room, 100*(1+st.chance.Intn(15)))
			room -= need
			line := fmt.Sprintf("pods p%d-%d n=1 cpu=%dm node=n%d grace=%ds", i, j, need, i, st.chance.Intn(40))
			if st.chance.Intn(6) == 0 {
				line += " do-not-disrupt"
			}
			st.say(line)
		}
	}
	st.say("tick 1h")
	return st
}

// strike interrupts a node that is not interrupted yet.
func (st *interruptionWorld) strike() {
	for _, name := range slices.Sorted(maps.Keys(st.w.nodes)) {
		if c := st.w.claimOf(name); c != nil && !c.IsInterrupted() && c.Deleting.IsZero() && st.chance.Intn(3) == 0 {
			c.Interruption = cluster.Interruption{Kind: "SpotInterruption", Deadline: st.w.now.Add(2 * time.Minute)}
			for _, seat := range c.Seats { // whom it was made for needs another place
				st.due += seat.Count
			}
			return
		}
	}
}

// pass makes a plan, judges it and carries it out. The cloud keeps its word: what it takes away is gone at its time.
func (st *interruptionWorld) pass() {
	for _, name := range slices.Sorted(maps.Keys(st.w.nodes)) {
		c := st.w.claimOf(name)
		if c == nil || !c.IsInterrupted() {
			continue
		}
		for _, p := range st.podsOf(name) {
			if !st.counted[p.UID] {
				st.counted[p.UID] = true
				st.due++
			}
		}
		if !st.w.now.Before(c.Interruption.Deadline) && c.Deleting.IsZero() {
			st.fail("%s is gone and nobody has told its pods", name)
		}
	}
	if st.chance.Intn(5) == 0 {
		st.remember()
	}
	st.say("plan")
	for _, c := range st.last.Commands {
		switch c := c.(type) {
		case command.CreateClaim:
			if c.Reason == command.Interrupted {
				st.asked += len(c.Pods)
			}
		case command.DeleteClaim:
			st.judge(c)
		}
	}
	if st.asked > st.due {
		st.fail("places were asked for %d pods, and only %d had to leave", st.asked, st.due)
	}
	st.say("act")
	st.say(fmt.Sprintf("tick %ds", 1+st.chance.Intn(8)))
}

// remember compares plans that know the last one with such that don't, now and after times in which nothing happens.
func (st *interruptionWorld) remember() {
	s := st.w.snapshot(nil)
	s.DemandRev, s.SupplyRev = s.Rev, s.Rev
	for range 2 {
		st.before = st.sameWithMemory(s, &st.before)
		s = later(s, time.Duration(1+st.chance.Intn(20))*time.Second)
	}
}

// arrive has pods come, one by one or with more to follow: these are counted first.
func (st *interruptionWorld) arrive() {
	st.late++
	st.due++ // it may get the place of one who waits for it
	st.say(fmt.Sprintf("pods late%d n=1 desired=%d cpu=%dm", st.late, 1+st.chance.Intn(2), 100*(1+st.chance.Intn(15))))
}

// podsOf are the pods of a node that will need another place.
func (st *interruptionWorld) podsOf(node string) []*cluster.Pod {
	var out []*cluster.Pod
	for _, name := range slices.Sorted(maps.Keys(st.w.pods)) {
		if p := st.w.pods[name]; p.Node == node && p.IsReschedulable() {
			out = append(out, p)
		}
	}
	return out
}

// judge: as long as there is time a node goes only if its pods have room on others that are up.
func (st *interruptionWorld) judge(c command.DeleteClaim) {
	claim := st.w.claims[c.Claim]
	if c.Reason != command.Interrupted || !st.w.now.Before(claim.Interruption.Deadline.Add(-45*time.Second)) {
		return
	}
	var free []resource.Vector
	for _, name := range slices.Sorted(maps.Keys(st.w.nodes)) {
		n, other := st.w.nodes[name], st.w.claimOf(name)
		if other == nil || other.IsInterrupted() || !other.Is(cluster.Initialized) || n.HasTaint(cluster.DisruptedTaint,
			cluster.NoSchedule) {
			continue
		}
		room := n.Allocatable
		for _, p := range st.w.pods {
			if p.Node == name && p.UsesRoom() {
				room = room.Sub(p.Class.Requests)
			}
		}
		free = append(free, room)
	}
	if pods := st.podsOf(c.Node); !fits(pods, free) {
		st.fail("%s goes with %d pods at %s, before its deadline at %s, and there is no room for them", c.Claim,
			len(pods), st.w.now, claim.Interruption.Deadline)
	}
}

// fits reports whether the pods fit into the rooms.
func fits(pods []*cluster.Pod, rooms []resource.Vector) bool {
	if len(pods) == 0 {
		return true
	}
	for i := range rooms {
		if need := pods[0].Class.Requests; need.Fits(rooms[i]) {
			rooms[i] = rooms[i].Sub(need)
			if fits(pods[1:], rooms) {
				return true
			}
			rooms[i] = rooms[i].Add(need)
		}
	}
	return false
}

// Nodes are taken away at all moments, also those that have just come for the pods of others. No pod is told to leave
// before its place is ready as long as there is time, none gets two places, and in the end all run and nothing is left
// over.
func TestInterruptionStorm(t *testing.T) {
	for seed := range int64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			st := newInterruptionWorld(t, seed)
			st.w.silent = st.chance.Intn(4) == 0 // machines come late, or not at all
			for range 30 {
				if st.chance.Intn(4) == 0 {
					st.strike()
				}
				if st.chance.Intn(8) == 0 {
					st.arrive()
				}
				st.pass()
			}
			st.w.silent = false
			for i := range 80 {
				if i == 40 {
					st.say("tick 20m") // what never came is given up
				}
				st.pass()
			}
			for name, c := range st.w.claims {
				if c.IsInterrupted() || c.Move != "" {
					st.fail("%s is still there: %+v in move %q", name, c.Interruption, c.Move)
				}
			}
			for _, p := range st.w.pods {
				if p.Node == "" && p.Deleting.IsZero() {
					st.fail("%s has no node", p.Name)
				}
			}
		})
	}
}
