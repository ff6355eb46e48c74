package loop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
)

// addIn adds a pod of a class of its own to a namespace.
func (st *loopWorld) addIn(namespace, name string, milli int64) {
	pod := hungry(name, milli)
	pod.Namespace = namespace
	st.book.SetPod(pod)
	st.now = st.now.Add(time.Millisecond)
}

// passesUntilServed counts the passes until each of the pods is planned for, one each second; 0 is never.
func (st *loopWorld) passesUntilServed(most int) map[string]int {
	at := make(map[string]int)
	for pass := 1; pass <= most; pass++ {
		for _, name := range st.pass() {
			if at[name] == 0 {
				at[name] = pass
			}
		}
		st.now = st.now.Add(time.Second)
	}
	return at
}

// Many guilty classes of one namespace: who is elsewhere is planned for in the very same pass, and the innocent of the
// same namespace within four. Whatever comes first.
func TestManyGuiltyClassesOfOneNamespace(t *testing.T) {
	for name, guiltyFirst := range map[string]bool{"the guilty come first": true, "the guilty come last": false} {
		t.Run(name, func(t *testing.T) {
			st := newLoopWorld(t, 0)
			var bad, near, far []string
			add := func(causes bool) {
				if causes {
					for i := range 50 {
						bad = append(bad, fmt.Sprintf("bad%02d", i))
						st.addIn("tenant", bad[i], 7000+int64(i))
						if i%10 == 5 {
							near = append(near, fmt.Sprintf("near%02d", i))
							st.addIn("tenant", near[len(near)-1], 7100+int64(i))
						}
					}
					return
				}
				for i := range 20 {
					far = append(far, fmt.Sprintf("far%02d", i))
					st.addIn(fmt.Sprintf("other%02d", i/2), far[i], 7200+int64(i))
				}
			}
			add(guiltyFirst)
			add(!guiltyFirst)
			st.now = st.now.Add(time.Minute)
			st.failOn(bad...)
			at := st.passesUntilServed(6)
			for _, pod := range far {
				if at[pod] != 1 {
					t.Errorf("%s of another namespace is planned for in pass %d, want the first", pod, at[pod])
				}
			}
			for _, pod := range near {
				if at[pod] == 0 || at[pod] > 4 {
					t.Errorf("%s of the same namespace is planned for in pass %d, want the fourth at the latest",
						pod, at[pod])
				}
			}
			for _, pod := range bad {
				if at[pod] != 0 {
					t.Errorf("%s is planned for in pass %d", pod, at[pod])
				}
			}
			if refused := st.refusals(); len(refused) != 50 {
				t.Errorf("%d pods are told that the planner fails on them, want 50", len(refused))
			}
			if anyUndecided(st.book.Snapshot().Quarantine.Classes) {
				t.Error("some are still to be told apart")
			}
		})
	}
}

// However many are guilty, one that is not is not left out for long.
func TestInnocentAmongManyGuilty(t *testing.T) {
	for n, most := range map[int]int{10: 1, 20: 1, 40: 3, 100: 6, 200: 11, 400: 21} {
		st := newLoopWorld(t, n+1)
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("p%03d", i))
		}
		st.failOn(names...)
		at := st.passesUntilServed(most + 1)
		if pass := at[fmt.Sprintf("p%03d", n)]; pass == 0 || pass > most {
			t.Errorf("with %d guilty classes of its namespace, the innocent one is planned for in pass %d, "+
				"want %d at the latest", n, pass, most)
		}
	}
}

// failTogether has the planner fail while pods of both names are pending.
func (st *loopWorld) failTogether(meets func(a, b string) bool) {
	st.loop.Planner.Make = func(
		s *cluster.Snapshot, policy plan.Policy, before *plan.Plan, found *disrupt.Proposal,
	) plan.Plan {
		pending := s.Pending()
		for _, a := range pending {
			for _, b := range pending {
				if a != b && meets(a.Name, b.Name) {
					panic("they met")
				}
			}
		}
		return plan.Make(s, policy, before, found)
	}
}

// Of two classes that fail only together one is left out, and told with whom. When the other looks for no place any
// more it is back in the next pass.
func TestHalfOfAPairIsBackAtOnce(t *testing.T) {
	st := newLoopWorld(t, 40)
	st.failTogether(func(a, b string) bool { return a == "p005" && b == "p030" })
	if served := st.pass(); len(served) != 39 || slices.Contains(served, "p030") {
		t.Fatalf("%d pods get nodes: %v", len(served), served)
	}
	got := st.told.last.Placement.Unplaced
	if len(got) != 1 || !strings.Contains(render.Unplaced(&got[0]), "only together with pods like d/p005") {
		t.Errorf("told %v", got[0].Failed)
	}
	st.now = st.now.Add(time.Second)
	if served := st.pass(); slices.Contains(served, "p030") {
		t.Error("p030 is let in while the other is there")
	}
	st.book.DeletePod(hungry("p005", 7005))
	if served := st.pass(); !slices.Contains(served, "p030") || len(st.told.broken) != 1 {
		t.Errorf("served %v, failed %d times", served, len(st.told.broken))
	}
}

// If the other half gets no place anyway, it is the one that is left out.
func TestHalfWithoutAPlaceIsLeftOut(t *testing.T) {
	st := newLoopWorld(t, 10)
	huge := hungry("p005", 9_000_000)
	huge.UID = "uid-huge"
	st.book.DeletePod(hungry("p005", 7005))
	st.book.SetPod(huge)
	st.failTogether(func(a, b string) bool { return a == "p005" && b == "p007" })
	for _, older := range []bool{true, false} {
		if !older {
			st.book.DeletePod(huge)
			st.now = st.now.Add(time.Second)
			st.book.SetPod(huge)
		}
		st.now = st.now.Add(20 * time.Minute)
		if served := st.pass(); !slices.Contains(served, "p007") || len(served) != 9 {
			t.Errorf("served %v", served)
		}
	}
}

// One class that fails with every other is left out itself, and not all the others, whenever it came.
func TestClassThatFailsWithAllOthers(t *testing.T) {
	for _, hub := range []string{"p000", "p011", "p019"} {
		st := newLoopWorld(t, 20)
		st.failTogether(func(a, _ string) bool { return a == hub })
		if served := st.pass(); len(served) != 19 || slices.Contains(served, hub) {
			t.Errorf("%s: served %v", hub, served)
		}
	}
}

// A claim and a class that fail at the same time are both found.
func TestClassAndClaimAreLeftOut(t *testing.T) {
	st := newLoopWorld(t, 10)
	st.book.SetClaim(claim("new-a", "1"))
	st.failOn("p003")
	make := st.loop.Planner.Make
	st.loop.Planner.Make = func(
		s *cluster.Snapshot, policy plan.Policy, before *plan.Plan, found *disrupt.Proposal,
	) plan.Plan {
		if _, held := s.Quarantine.Claims["new-a"]; !held {
			panic("boom at a claim")
		}
		return make(s, policy, before, found)
	}
	served := st.pass()
	leftOut := st.told.broken[0].LeftOut
	if len(served) != 9 || len(leftOut.Classes) != 1 || len(leftOut.Claims) != 1 || len(leftOut.Parts) != 0 {
		t.Errorf("served %v, left out %+v", served, leftOut)
	}
}

func TestGroupsAreSplitBySpaceFirst(t *testing.T) {
	at := noon(0)
	of := orderSuspects([]suspect{
		{key: "4", broadGroup: "b", narrowGroup: "y", since: at.Add(3)},
		{key: "2", broadGroup: "a", narrowGroup: "w", since: at.Add(1)},
		{key: "1", broadGroup: "a", narrowGroup: "x", since: at},
		{key: "3", broadGroup: "a", narrowGroup: "x", since: at.Add(4)},
		{key: "5", broadGroup: "c", narrowGroup: "z", since: at.Add(2)},
	})
	show := func(g suspectGroup) string {
		out := ""
		for _, c := range g.suspects {
			out += c.key
		}
		return out
	}
	first, second := suspectGroup{suspects: of}.split()
	if show(first) != "1325" || show(second) != "4" {
		t.Errorf("by space: %s and %s", show(first), show(second))
	}
	first, second = first.split()
	if show(first) != "132" || show(second) != "5" {
		t.Errorf("by space again: %s and %s", show(first), show(second))
	}
	first, second = first.split()
	if show(first) != "13" || show(second) != "2" {
		t.Errorf("by owner: %s and %s", show(first), show(second))
	}
	if first, second = first.split(); show(first) != "1" || show(second) != "3" {
		t.Errorf("by class: %s and %s", show(first), show(second))
	}
}

// Time bounds an isolation, and so do tries; a few are always made.
func TestTrialEnds(t *testing.T) {
	count := 50
	for name, c := range map[string]struct{ end, want int }{
		"no time is left": {-1, leastTries},
		"there is time":   {1, mostTries},
	} {
		// all of them fail, each alone
		tr := &isolation{asks: func(q cluster.Quarantine) bool { return len(q.Classes) == count }}
		tr.end = time.Now().Add(time.Duration(c.end) * time.Hour)
		var all []suspect
		for i := range count {
			all = append(all, suspect{key: fmt.Sprint(i), broadGroup: "s", narrowGroup: fmt.Sprint(i)})
		}
		causes, open := tr.isolate([]suspectGroup{{suspects: all, mustFail: true}}, func(out []suspect) bool {
			return tr.passes(tr.withClasses(out))
		})
		if tr.tries != c.want || len(causes)+len(flatten(open)) != count {
			t.Errorf("%s: %d tries, want %d; %d guilty and %d open", name, tr.tries, c.want, len(causes),
				len(flatten(open)))
		}
	}
}

func someCandidates(random *rand.Rand, n int) []suspect {
	var out []suspect
	for i := range n {
		out = append(out, suspect{
			key:         fmt.Sprint(i),
			broadGroup:  fmt.Sprint(random.IntN(8)),
			narrowGroup: fmt.Sprint(random.IntN(20)),
			since:       noon(time.Duration(random.IntN(50))),
		})
	}
	return out
}

// Whatever fails, alone or together: what is left out in the end is enough, nothing of it could be let in, and whoever
// has to do with no failure is in.
func TestTrialsComeToTheRightEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	for run := range 300 {
		n := 1 + random.IntN(120)
		all := someCandidates(random, n)
		var bad [][2]string // pairs that fail together; twice the same fails alone
		for range 1 + random.IntN(n) {
			a := fmt.Sprint(random.IntN(n))
			bad = append(bad, [2]string{a, []string{a, fmt.Sprint(random.IntN(n))}[random.IntN(2)]})
		}
		fails := func(out map[string]cluster.Failure) bool {
			return slices.ContainsFunc(bad, func(pair [2]string) bool {
				_, a := out[pair[0]]
				_, b := out[pair[1]]
				return !a && !b
			})
		}
		var causes []suspect
		open, passes := []suspectGroup{{suspects: orderSuspects(all), mustFail: true}}, 0
		for ; len(open) > 0; passes++ { // each pass is an isolation that goes on where the last has ended
			tr := &isolation{asks: func(q cluster.Quarantine) bool { return !fails(q.Classes) }}
			tr.base = tr.withClasses(causes)
			found, leftOut := tr.isolate(open, func(out []suspect) bool { return tr.passes(tr.withClasses(out)) })
			for i := range leftOut {
				leftOut[i].mustFail = false // which is not remembered
			}
			causes, open = append(causes, found...), leftOut
			if tr.tries > mostTries+1 || passes > n {
				t.Fatalf("run %d: %d tries in pass %d", run, tr.tries, passes)
			}
		}
		out := (&isolation{}).withClasses(causes).Classes
		if fails(out) {
			t.Fatalf("run %d: it still fails", run)
		}
		for _, g := range causes {
			delete(out, g.key)
			if !fails(out) {
				t.Fatalf("run %d: %s is left out for nothing", run, g.key)
			}
			out[g.key] = cluster.Failure{}
		}
	}
}
