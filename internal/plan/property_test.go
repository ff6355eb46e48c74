package plan_test

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/replay"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
	"pgregory.net/rapid"
)

// futures are the nodes that a claim may become: every offering that its requirements allow, with the labels that the
// node would carry.
type future struct {
	labels cluster.Labels
	kind   *cluster.Type
	// daemons that the planner keeps room for, although it may turn out that they don't come.
	daemons []*cluster.Daemon
}

func futures(catalog *cluster.Catalog, c *command.CreateClaim) []future {
	var out []future
	for i := range catalog.Offerings {
		o := &catalog.Offerings[i]
		labels := o.Labels.Merge(c.Labels).With(cluster.RegisteredLabel, "true").With(cluster.InitializedLabel, "true")
		fits := true
		for _, e := range c.Requirements {
			value, present := o.Labels.Get(e.Key)
			if catalog.Index().Knows(e.Key) && !e.Values.Matches(value, present) {
				fits = false
			}
		}
		if fits {
			out = append(out, future{labels: labels, kind: &catalog.Types[o.Type]})
		}
	}
	return out
}

// daemonsOn is what DaemonSets take of a node with the labels, taints and room that the pods are meant for.
func daemonsOn(s *cluster.Snapshot, on cluster.Node, pods []*cluster.Pod) resource.Vector {
	lands := daemonsFor(s.Daemons, &on)
	var sum resource.Vector
	for _, d := range coming(lands, on.Allocatable, pods) {
		sum = sum.Add(d.Class.Requests)
	}
	return sum
}

// everyDaemonOn is what DaemonSets would take of a new node if all came that have room on some instance type.
func everyDaemonOn(s *cluster.Snapshot, p *schedule.Placement, pool string, on cluster.Node) resource.Vector {
	var sum resource.Vector
	for _, d := range s.Daemons {
		omitted := slices.ContainsFunc(p.Omitted, func(o market.OmittedDaemon) bool {
			return o.Pool == pool && o.Daemon == d
		})
		if !omitted && cluster.MayRunOn(d.Class, on.Labels, on.Taints) {
			sum = sum.Add(d.Class.Requests)
		}
	}
	return sum
}

func creates(p *plan.Plan) []command.CreateClaim {
	var out []command.CreateClaim
	for _, c := range p.Commands {
		if create, ok := c.(command.CreateClaim); ok {
			out = append(out, create)
		}
	}
	return out
}

// A new node holds its pods and its daemons, and suits each pod, whatever the cloud makes of it.
func TestNewNodesHoldTheirPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawWorld(t).snapshot(nil)
		p := plan.Make(s, defaultPolicy(), nil, nil)
		for _, c := range creates(&p) {
			pods := together(c.Pods)
			choice := futures(s.Pools[0].Catalog, &c)
			kinds := make(map[string]bool)
			for _, f := range choice {
				kinds[f.kind.Name] = true
			}
			if len(kinds) < max(minTypes(s.Pool(c.Pool)), 1) {
				t.Fatalf("claim %s can become %v only: %s", c.Name, kinds, c.Requirements)
			}
			for _, f := range choice {
				on := cluster.Node{Labels: f.labels, Taints: c.Template.Taints, Allocatable: f.kind.Allocatable}
				daemons := daemonsOn(s, on, c.Pods)
				if !slices.ContainsFunc(p.Placement.Squeezed, func(q schedule.Squeeze) bool {
					return q.Pool == c.Pool
				}) {
					daemons = everyDaemonOn(s, &p.Placement, c.Pool, on)
				}
				if sum := pods.Add(daemons); !sum.Fits(f.kind.Allocatable) {
					t.Fatalf("%s as %v holds %s and has %s", c.Name, f.labels, s.Names.String(sum),
						s.Names.String(f.kind.Allocatable))
				}
				for _, pod := range c.Pods {
					if !cluster.MayRunOn(pod.Class, f.labels, c.Template.Taints) {
						t.Fatalf("%s as %v does not suit %s (%v)", c.Name, f.labels, pod.Name, pod.Class.Terms)
					}
				}
			}
		}
	})
}

// Nothing is put on a node that has no room for it or does not suit it.
func TestNodesAreNotOverfilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for i := range 6 {
			s := w.snapshot(nil)
			p := plan.Make(s, defaultPolicy(), nil, nil)
			if text := inOnePlace(&p.Placement); text != "" {
				t.Fatal(text)
			}
			if i == 0 {
				if text := replayed(&replay.Case{Step: replay.Make, Snapshot: s, Policy: defaultPolicy()},
					&p); text != "" {
					t.Fatal(text)
				}
			}
			load := make(map[string][]*cluster.Pod)
			for _, a := range p.Placement.Assigned {
				load[a.Host] = append(load[a.Host], a.Pod)
				n := s.Node(a.Host)
				if n != nil && n.Finalized && !cluster.MayRunOn(a.Pod.Class, n.Labels.With(cluster.InitializedLabel,
					"true"), n.Taints) {
					t.Fatalf("%s does not suit %s", a.Host, a.Pod.Name)
				}
			}
			for _, host := range slices.Sorted(maps.Keys(load)) {
				checkRoom(t, s, host, load[host])
			}
			w.act(p, -1)
		}
	})
}

// checkRoom counts the room again. A claim that has not been launched must hold the load whatever it becomes.
func checkRoom(t *rapid.T, s *cluster.Snapshot, host string, pods []*cluster.Pod) {
	load := together(pods)
	if n := s.Node(host); n != nil && n.Finalized {
		var there []*cluster.Pod
		for _, p := range s.Pods {
			if p.Node == host && !p.Finished && !p.Daemon {
				there = append(there, p)
			}
		}
		held := together(there)
		load = together(slices.Concat(there, pods)).Sub(held)
		labels := n.Labels.With(cluster.InitializedLabel, "true")
		on := cluster.Node{Labels: labels, Taints: n.Taints, Allocatable: n.Allocatable}
		free := n.Allocatable.Sub(held).Sub(daemonsOn(s, on, slices.Concat(there, pods)))
		if !load.Fits(free) {
			t.Fatalf("%s has room for %s and gets %s", host, s.Names.String(free), s.Names.String(load))
		}
		return
	}
	c := s.Claim(host)
	if n := s.NodeOf(host); c == nil || n != nil {
		return
	}
	as := command.CreateClaim{Labels: c.Labels, Requirements: c.Requirements}
	for _, f := range futures(s.Pools[0].Catalog, &as) {
		on := cluster.Node{Labels: f.labels, Taints: c.Taints, Allocatable: f.kind.Allocatable}
		if sum := load.Add(daemonsOn(s, on, pods)); !sum.Fits(f.kind.Allocatable) {
			t.Fatalf("claim %s as %v gets %s and has %s", host, f.labels, s.Names.String(sum),
				s.Names.String(f.kind.Allocatable))
		}
	}
}

// Limits hold even if the cloud hands out the largest type of every new claim.
func TestLimitsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawWorld(t).snapshot(nil)
		p := plan.Make(s, defaultPolicy(), nil, nil)
		used, count, grew := usage(s, &p)
		for _, pool := range s.Pools {
			if over := used[pool.Name][resource.CPU]; pool.Limits.Set[resource.CPU] && grew[pool.Name] &&
				over > pool.Limits.Amount[resource.CPU] {
				t.Fatalf("%s may reach cpu %d of %d", pool.Name, over, pool.Limits.Amount[resource.CPU])
			}
			if pool.Limits.HasNodes && grew[pool.Name] && count[pool.Name] > pool.Limits.Nodes {
				t.Fatalf("%s reaches %d nodes of %d", pool.Name, count[pool.Name], pool.Limits.Nodes)
			}
			if grew[pool.Name] && !pool.IsUsable() {
				t.Fatalf("%s is not usable and grows", pool.Name)
			}
		}
	})
}

// usage adds up what pools have and may get.
func usage(s *cluster.Snapshot, p *plan.Plan) (used map[string]resource.Vector, count map[string]int64,
	grew map[string]bool) {
	used, count, grew = map[string]resource.Vector{}, map[string]int64{}, map[string]bool{}
	for _, c := range s.Claims {
		used[c.Pool] = used[c.Pool].Add(c.Capacity)
		count[c.Pool]++
	}
	for _, c := range creates(p) {
		var most resource.Vector
		for _, f := range futures(s.Pools[0].Catalog, &c) {
			most = most.Max(f.kind.Capacity)
		}
		used[c.Pool] = used[c.Pool].Add(most)
		count[c.Pool]++
		grew[c.Pool] = true
	}
	return used, count, grew
}

// Every pending pod is dealt with once: assigned, in a new node, or unplaced with a reason.
func TestEveryPodIsAnsweredOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawWorld(t).snapshot(nil)
		p := plan.Make(s, defaultPolicy(), nil, nil)
		answers := make(map[string]int)
		for _, a := range p.Placement.Assigned {
			answers[a.Pod.UID]++
		}
		for _, c := range creates(&p) {
			held := make(map[string]int)
			for _, pod := range c.Pods {
				answers[pod.UID]++
				held[pod.Class.Key]++
			}
			for _, seat := range c.Seats {
				if held[seat.Class] != seat.Count {
					t.Fatalf("%s has %d seats for %d pods of %s", c.Name, seat.Count, held[seat.Class], seat.Class)
				}
			}
		}
		for i := range p.Placement.Unplaced {
			u := &p.Placement.Unplaced[i]
			answers[u.Pod.UID]++
			if render.Unplaced(u) == "" || strings.Contains(render.Unplaced(u), "no instance type is left") {
				t.Fatalf("%s is refused without a reason: %q", u.Pod.Name, render.Unplaced(u))
			}
		}
		for _, pod := range s.Pods {
			want := 0
			if pod.IsPending() {
				want = 1
			}
			if answers[pod.UID] != want {
				t.Fatalf("%s has %d answers, not %d", pod.Name, answers[pod.UID], want)
			}
		}
	})
}

// The same world gives the same plan to the byte, in whatever order its objects turned up.
func TestPlansAreDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		first := w.dump(plan.Make(w.snapshot(nil), defaultPolicy(), nil, nil))
		chance := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		for range 3 {
			if again := w.dump(plan.Make(w.snapshot(chance), defaultPolicy(), nil, nil)); again != first {
				t.Fatalf("first:\n%s\nthen:\n%s", first, again)
			}
		}
	})
}

// dump writes everything that a plan decides.
func (w *world) dump(p plan.Plan) string {
	out := w.printPlan(p, true)
	for _, c := range p.Commands {
		out += c.Key() + "\n"
		if create, ok := c.(command.CreateClaim); ok {
			out += fmt.Sprintln(create.Requirements, create.Labels, create.Requests, create.Seats, create.Price)
			for _, pod := range create.Pods {
				out += pod.UID + " "
			}
		}
	}
	for _, a := range p.Placement.Assigned {
		out += a.Pod.UID + "@" + a.Host + "\n"
	}
	return out
}

// Carrying a plan out and planning again asks for no further node, the pods that had a place get it, and then there is
// nothing left to do. Only pods that had no place may get a node later, when a node turns out to be smaller than what
// was held against the limits for it. Nothing ever asks to be woken in the past.
func TestPlansComeToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		if crossed(w.snapshot(nil)) {
			return
		}
		var story []string
		unplaced, last := -1, 0
		for round := range 16 {
			s := w.snapshot(nil)
			p := plan.Make(s, defaultPolicy(), nil, nil)
			if round == 0 {
				story = append(story, w.describe(&p))
			}
			story = append(story, w.printPlan(p, false))
			if !p.WakeAt.IsZero() && !p.WakeAt.After(p.Now) {
				t.Fatalf("asks to be woken at once:\n%s", strings.Join(story, "--\n"))
			}
			if round == 0 {
				unplaced = len(p.Placement.Unplaced)
			} else if newlyPlaced(&p) > last {
				t.Fatalf("a later plan wants nodes for pods that had a place:\n%s", strings.Join(story, "--\n"))
			}
			last = len(p.Placement.Unplaced)
			w.act(p, -1)
			w.now = w.now.Add(2 * time.Second)
		}
		s := w.snapshot(nil)
		if p := plan.Make(s, defaultPolicy(), nil, nil); len(p.Commands) > 0 || len(s.Pending()) > unplaced {
			t.Fatalf("after 16 rounds %d pods wait (%d had no place) and there is still to do:\n%s", len(s.Pending()),
				unplaced, strings.Join(story, "--\n"))
		}
	})
}

// newlyPlaced counts the pods for which a plan wants new nodes.
func newlyPlaced(p *plan.Plan) int {
	n := 0
	for _, c := range creates(p) {
		n += len(c.Pods)
	}
	return n
}

// A crash after any number of the claims gives no node more in the end, and nobody loses a place. It may give a node
// less: a node that is there is known better than one that is only planned.
func TestCrashGivesTheSameNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		if crossed(w.snapshot(nil)) {
			return
		}
		p := plan.Make(w.snapshot(nil), defaultPolicy(), nil, nil)
		want := len(w.claims) + len(creates(&p))
		w.act(p, rapid.IntRange(0, len(creates(&p))).Draw(t, "created"))
		w.planned = time.Time{}
		for range 12 {
			w.act(plan.Make(w.snapshot(nil), defaultPolicy(), nil, nil), -1)
		}
		if len(w.claims) > want && len(p.Placement.Unplaced) == 0 {
			t.Fatalf("%d claims instead of %d\n%s", len(w.claims), want, w.describe(&p))
		}
		if waiting := len(w.snapshot(nil).Pending()); waiting > len(p.Placement.Unplaced) {
			t.Fatalf("%d pods wait instead of %d\n%s", waiting, len(p.Placement.Unplaced), w.describe(&p))
		}
	})
}

// However many nodes are empty, no more are out at a time than the strictest budget allows, and all that may go have
// gone in the end.
func TestBudgetsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for i := range rapid.IntRange(0, 8).Draw(t, "more nodes") {
			w.drawNode(t, 10+i)
		}
		for _, name := range slices.Sorted(maps.Keys(w.pools)) {
			pool := w.pools[name]
			pool.ConsolidateAfter = cluster.NillableDuration{For: time.Second}
			for range rapid.IntRange(0, 2).Draw(t, "budgets") {
				b := cluster.Budget{Nodes: rapid.IntRange(0, 2).Draw(t, "at once"), Percent: rapid.Bool().Draw(t,
					"percent"), Active: true,
					Reasons: rapid.SampledFrom([][]string{nil, {"Empty"}, {"Drifted"}}).Draw(t, "reasons")}
				if b.Percent {
					b.Nodes *= 30
				}
				pool.Budgets = append(pool.Budgets, b)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(w.pods)) {
			pod := w.pods[name]
			pod.Finished = pod.Finished || pod.Node != "" && rapid.Bool().Draw(t, "done")
		}
		w.now = w.now.Add(time.Hour)
		for range 20 {
			s := w.snapshot(nil)
			p := plan.Make(s, defaultPolicy(), nil, nil)
			if over := overBudget(s, &p); over != "" {
				t.Fatal(over)
			}
			w.act(p, -1)
			w.now = w.now.Add(2 * time.Second)
		}
	})
}

// overBudget says which budget the fences of a plan would overrun, if one. They are counted in the plan's order: a
// budget for one reason does not bind those that come later for another.
func overBudget(s *cluster.Snapshot, p *plan.Plan) string {
	total, out := make(map[string]int), make(map[string]int)
	at := func(c *cluster.Claim) bool {
		n := s.NodeOf(c.Name)
		return n != nil && n.Ready && c.Deleting.IsZero() && !n.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule)
	}
	for _, c := range s.Claims {
		if c.Is(cluster.Initialized) && !c.Is(cluster.InstanceTerminating) {
			total[c.Pool]++
			if !at(c) {
				out[c.Pool]++
			}
		}
	}
	for _, c := range p.Commands {
		if u, ok := c.(command.Unfence); ok && s.Node(u.Node).Ready {
			if claim := s.Claim(u.Claim); claim.Is(cluster.Initialized) && !at(claim) {
				out[claim.Pool]--
			}
		}
	}
	for _, c := range p.Commands {
		f, ok := c.(command.Fence)
		if !ok || !s.Claim(f.Claim).Deleting.IsZero() {
			continue
		}
		claim := s.Claim(f.Claim)
		if at(claim) && claim.Is(cluster.Initialized) {
			out[claim.Pool]++
		}
		if f.Reason == command.Unhealthy { // nodes that are not ready don't count: they are those that it is for
			continue
		}
		if over := exceeded(s.Pool(claim.Pool), string(f.Reason), out[claim.Pool], total[claim.Pool]); over != "" {
			return fmt.Sprintf("%s for %s: %s", f.Reason, f.Node, over)
		}
	}
	return ""
}

// exceeded says which of the pool's budgets does not allow so many nodes to be out for the reason.
func exceeded(pool *cluster.Pool, reason string, out, total int) string {
	for _, b := range pool.Budgets {
		allowed := b.Nodes
		if b.Percent {
			allowed = (total*b.Nodes + 99) / 100
		}
		if covers := len(b.Reasons) == 0 || slices.Contains(b.Reasons, reason); covers && out > allowed {
			return fmt.Sprintf("%d of %d nodes of %s are out, a budget allows %d", out, total, pool.Name, allowed)
		}
	}
	return ""
}
