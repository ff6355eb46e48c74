package plan_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// moveTimeout is how long a move may wait in these tests.
const moveTimeout = time.Minute

func movePolicy() plan.Policy {
	p := defaultPolicy()
	p.Disrupt = disrupt.Settings{ReplacementTimeout: moveTimeout, BalancedK: 2, SpotToSpot: true, SpotTypes: 1}
	p.Lifecycle.RegistrationTimeout = 2 * time.Minute
	p.Repair = disrupt.RepairSettings{Enabled: true, MaxUnhealthy: 50, Policies: []disrupt.RepairPolicy{
		{Type: "KernelReady", Status: "False", Toleration: 10 * time.Second}}}
	return p
}

// drawMovable is a cluster whose nodes may go for every reason there is.
func drawMovable(t *rapid.T) *world {
	w := drawWorld(t)
	for i := range rapid.IntRange(0, 4).Draw(t, "more nodes") {
		w.drawNode(t, 10+i)
	}
	for name, c := range w.claims {
		w.run(c)
		w.nodes[name].Ready = true
	}
	for _, name := range slices.Sorted(maps.Keys(w.pools)) {
		p := w.pools[name]
		p.Policy, p.ConsolidateAfter, p.Budgets = cluster.WhenEmptyOrUnderutilized,
			cluster.NillableDuration{For: time.Second}, nil
		p.Hash, p.HashVersion = "one", "v3"
		p.Template.Hash = cluster.TemplateHash{Hash: p.Hash, Version: p.HashVersion}
		for range rapid.IntRange(0, 2).Draw(t, "budgets") {
			b := cluster.Budget{Nodes: rapid.IntRange(0, 3).Draw(t, "at once"), Active: true,
				Reasons: rapid.SampledFrom([][]string{nil, {"Empty"}, {"Drifted"}, {"Underutilized", "Unhealthy"}}).
					Draw(t, "reasons")}
			if rapid.Bool().Draw(t, "percent") {
				b.Nodes, b.Percent = 20*b.Nodes, true
			}
			p.Budgets = append(p.Budgets, b)
		}
		if rapid.IntRange(0, 2).Draw(t, "soft") == 0 {
			p.Overrides.SoftExpiry = 2 * time.Minute
			w.expire[name] = cluster.NillableDuration{For: 66 * time.Minute} // what is there is 64 minutes old
		}
		p.Overrides.Canary, p.Overrides.CanaryWatch = rapid.IntRange(0, 3).Draw(t, "canary") == 0, 5*time.Second
		p.Static = rapid.IntRange(0, 7).Draw(t, "static") == 0 // which nobody serves
	}
	for _, c := range w.claims {
		c.ExpireAfter = w.expire[c.Pool]
		c.Price, _ = w.catalog().Price(labelOf(c, cluster.InstanceTypeLabel), labelOf(c, cluster.ZoneLabel),
			labelOf(c, cluster.CapacityTypeLabel))
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		if rapid.IntRange(0, 7).Draw(t, "starting") == 0 {
			w.neverStarts(w.claims[name], w.nodes[name])
		}
	}
	w.now = w.now.Add(time.Hour)
	return w
}

// neverStarts has a node be registered and wait for something that does not come.
func (w *world) neverStarts(c *cluster.Claim, n *cluster.Node) {
	c.StartupTaints = []cluster.Taint{{Key: "agent", Effect: cluster.NoSchedule}}
	n.Taints = slices.Concat(n.Taints, c.StartupTaints)
	c.Conditions = slices.DeleteFunc(slices.Clone(c.Conditions), func(c cluster.Condition) bool {
		return c.Type == cluster.Initialized
	})
	n.Labels = slices.DeleteFunc(slices.Clone(n.Labels), func(l cluster.Label) bool {
		return l.Key == cluster.InitializedLabel
	})
}

func labelOf(c *cluster.Claim, key string) string {
	value, _ := c.Labels.Get(key)
	return value
}

// trouble is what happens in the middle of moves.
var trouble = map[string]func(t *rapid.T, w *world, node string){
	"nothing": func(*rapid.T, *world, string) {},
	"drift": func(_ *rapid.T, w *world, node string) {
		if c := w.claims[node]; c != nil {
			c.DriftedFrom = "ImageDrift"
		}
	},
	"new template": func(_ *rapid.T, w *world, node string) {
		if c := w.claims[node]; c != nil && w.pools[c.Pool] != nil {
			w.pools[c.Pool].Hash += "+"
			w.pools[c.Pool].Template.Hash.Hash = w.pools[c.Pool].Hash
		}
	},
	"illness": func(_ *rapid.T, w *world, node string) {
		if n := w.nodes[node]; n != nil {
			n.Conditions = []cluster.NodeCondition{{Type: "KernelReady", Status: "False", Since: w.now}}
		}
	},
	"protected pod": func(_ *rapid.T, w *world, node string) {
		for _, p := range w.pods {
			p.DoNotDisrupt = p.DoNotDisrupt || p.Node == node && p.Owner != ""
		}
	},
	"more pods": func(t *rapid.T, w *world, _ string) {
		for _, name := range slices.Sorted(maps.Keys(w.pods))[:min(3, len(w.pods))] {
			p := *w.pods[name]
			if p.Daemon || p.Mirror || len(p.ExclusiveVolumes)+len(p.Volumes) > 0 {
				continue
			}
			w.reborn++
			w.addPod(cluster.Pod{Name: fmt.Sprintf("more%d", w.reborn), Class: p.Class, Owner: "rs-more",
				Namespace: p.Namespace, Labels: p.Labels})
		}
	},
	"budget closes": func(_ *rapid.T, w *world, node string) {
		if c := w.claims[node]; c != nil && w.pools[c.Pool] != nil {
			w.pools[c.Pool].Budgets = []cluster.Budget{{Active: true}}
		}
	},
	"budget opens": func(_ *rapid.T, w *world, node string) {
		if c := w.claims[node]; c != nil && w.pools[c.Pool] != nil {
			w.pools[c.Pool].Budgets = nil
		}
	},
	"dry run": func(_ *rapid.T, w *world, node string) {
		if c := w.claims[node]; c != nil && w.pools[c.Pool] != nil {
			w.pools[c.Pool].Overrides.DryRun = !w.pools[c.Pool].Overrides.DryRun
		}
	},
	"sold out": func(t *rapid.T, w *world, _ string) {
		o := &w.offerings[rapid.IntRange(0, len(w.offerings)-1).Draw(t, "offering")]
		w.empty[w.types[o.Type].Name+"/"+o.Zone+"/"+o.CapacityType] = true
	},
	"silence": func(_ *rapid.T, w *world, _ string) { w.silent = true },
	"agent missing": func(_ *rapid.T, w *world, node string) {
		if c := w.claims[node]; c != nil && w.pools[c.Pool] != nil {
			w.pools[c.Pool].Template.StartupTaints = []cluster.Taint{{Key: "agent", Effect: cluster.NoSchedule}}
		}
	},
	"delete node":  func(_ *rapid.T, w *world, node string) { disturbances["delete node"](w, node) },
	"delete claim": func(_ *rapid.T, w *world, node string) { disturbances["delete claim"](w, node) },
	"end instance": func(_ *rapid.T, w *world, node string) { disturbances["end instance"](w, node) },
	"taint off": func(_ *rapid.T, w *world, node string) {
		if n := w.nodes[node]; n != nil {
			n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool {
				return t.Key == cluster.DisruptedTaint
			})
		}
	},
	"half a fence": func(_ *rapid.T, w *world, node string) {
		if c := w.claims[node]; c != nil && c.Move == "" {
			c.Move = disrupt.MoveID(command.Underutilized, []string{node})
		}
	},
	"move off": func(_ *rapid.T, w *world, node string) {
		if c := w.claims[node]; c != nil {
			c.Move = ""
		}
	},
}

// harmless troubles change neither what pods need nor what there is for them: whatever they do to moves, the cluster
// must not cost more in the end.
var harmless = []string{"nothing", "protected pod", "budget closes", "budget opens", "dry run", "silence",
	"agent missing", "taint off", "half a fence", "move off"}

// Whatever happens in the middle of moves: budgets are kept, no pod is evicted that has nowhere to go or does not want
// to, every fence ends in a deletion or is taken down in time, no node is fenced and opened again and again, and what
// is done to save money never ends with a dearer cluster.
func TestMovesUnderDisturbances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := slices.Sorted(maps.Keys(trouble))
		if rapid.Bool().Draw(t, "harmless") {
			kinds = harmless
		}
		m := &mover{t: t, w: drawMovable(t), since: make(map[string]time.Time)}
		m.play(kinds, m.drawProposal)
	})
}

// Likewise where much can be saved, by moves of several nodes at a time, and where nothing happens that has its price.
func TestSavingsUnderDisturbances(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &mover{t: rt, w: drawWasteful(t, rt), since: make(map[string]time.Time)}
		m.play(harmless, func() *disrupt.Proposal {
			if rapid.IntRange(0, 3).Draw(rt, "searched") > 0 {
				return nil
			}
			found := plan.Search(m.w.snapshot(nil), movePolicy())
			return &found
		})
	})
}

// drawWasteful is a cluster of nodes that are larger than their pods need.
func drawWasteful(t *testing.T, rt *rapid.T) *world {
	n := &storyRunner{t: t, w: newWorld(), policy: movePolicy()}
	sizes := []string{"small", "medium", "large", "huge"}
	for i, name := range sizes { // the larger, the cheaper for what it holds
		n.tell(fmt.Sprintf("type %s cpu=%d memory=%dGi price=%.3f zones=a", name, 2<<i, 8<<i,
			0.1*math.Pow(1.85, float64(i))))
	}
	n.tell("pool default policy=WhenEmptyOrUnderutilized after=1s hash=one no-budgets")
	alike := rapid.Bool().Draw(rt, "alike") // two that are full are best replaced by one of the next size
	for i := range rapid.IntRange(2, 8).Draw(rt, "nodes") {
		at, pods, least := rapid.IntRange(0, 3).Draw(rt, "size"), rapid.IntRange(0, 3).Draw(rt, "pods"), 1
		if alike {
			at, pods, least = 1, 1, 22
		}
		n.tell(fmt.Sprintf("node n%d pool=default type=%s", i, sizes[at]))
		left := 2000 << at
		for range pods {
			if cpu := 100 * rapid.IntRange(least, max(least, 20<<at/(pods+1)*2)).Draw(rt, "cpu"); cpu <= left {
				n.tell(fmt.Sprintf("pods web n=1 cpu=%dm node=n%d", cpu, i))
				left -= cpu
			}
		}
	}
	n.tell("tick 1h")
	return n.w
}

// play lets one trouble follow another and then all calm down.
func (m *mover) play(kinds []string, found func() *disrupt.Proposal) {
	t := m.t
	for range rapid.IntRange(1, 12).Draw(t, "steps") {
		names := slices.Sorted(maps.Keys(m.w.nodes))
		if len(names) == 0 {
			return
		}
		kind, name := rapid.SampledFrom(kinds).Draw(t, "trouble"), rapid.SampledFrom(names).Draw(t, "where")
		m.story = append(m.story, kind+" "+name+"\n")
		trouble[kind](t, m.w, name)
		if !slices.Contains(harmless, kind) || kind != "nothing" && kind != "budget opens" && m.halfGone() {
			m.rested = false
		}
		for range rapid.IntRange(0, 5).Draw(t, "rounds between") {
			m.crash = rapid.IntRange(0, 12).Draw(t, "crash after")
			m.loses = rapid.IntRange(0, 3).Draw(t, "loses") == 0
			m.pass(found())
		}
	}
	m.calm()
	for range 60 {
		m.pass(nil)
	}
	for name, n := range m.w.nodes {
		c := m.w.claimOf(name)
		if c != nil && c.Deleting.IsZero() && c.Move != "" && !m.since[name].IsZero() &&
			m.w.now.Sub(m.since[name]) > 2*moveTimeout+10*time.Second {
			m.fail("%s is still in a move (%v)", name, n.Taints)
		}
	}
}

// halfGone reports whether nodes of a move are on their way out: whoever keeps the others from following now raises the
// price.
func (m *mover) halfGone() bool {
	for _, c := range m.w.claims {
		if !c.Deleting.IsZero() && disrupt.MoveReason(c.Move) == command.Underutilized {
			return true
		}
	}
	return false
}

// calm ends what troubles are still going on.
func (m *mover) calm() {
	m.crash, m.loses = 0, false
	m.fences = make(map[string]int)
	m.w.silent = false
	clear(m.w.empty)
	for _, p := range m.w.pools {
		p.Overrides.DryRun = false
	}
}

// mover lets time pass and watches.
type mover struct {
	t     *rapid.T
	w     *world
	story []string
	since map[string]time.Time // nodes are fenced
	// crash, if it is between 1 and 5, is how many commands of the next plan are carried out before the program is
	// killed.
	crash int
	// loses says that one command of the next plan fails, or is dropped because something has changed.
	loses bool
	// fences counts how often each node is fenced, once all is calm; nil before.
	fences map[string]int
	// price is what the cluster cost when it was last at rest, if it was (rested) since something happened that has its
	// price.
	price  float64
	rested bool
}

func (m *mover) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(m.story, "--\n"))
}

// drawProposal is what a search may have found: any nodes at all.
func (m *mover) drawProposal() *disrupt.Proposal {
	if rapid.IntRange(0, 2).Draw(m.t, "searched") > 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(m.w.claims))
	if len(names) == 0 {
		return nil
	}
	move := disrupt.Move{Reason: command.Underutilized}
	for range rapid.IntRange(1, 3).Draw(m.t, "size") {
		if name := rapid.SampledFrom(names).Draw(m.t, "found"); !slices.Contains(move.Claims, name) {
			move.Claims = append(move.Claims, name)
		}
	}
	move.ID = disrupt.MoveID(move.Reason, move.Claims)
	placed := schedule.Place(m.w.snapshot(nil).Without(move.Claims...), schedule.Settings{})
	move.Bins, move.Assigned = placed.Bins, placed.Assigned
	return &disrupt.Proposal{Moves: []disrupt.Move{move}}
}

// pass makes a plan, holds it to what must never happen, and carries it out.
func (m *mover) pass(found *disrupt.Proposal) {
	w := m.w
	s := w.snapshot(nil)
	p := plan.Make(s, movePolicy(), nil, found)
	m.story = append(m.story, fmt.Sprintf("at %s\n", w.now.Sub(w.start))+w.printPlan(p, false))
	if over := overBudget(s, &p); over != "" {
		m.fail("%s", over)
	}
	if over := spent(s, &p); over != "" {
		m.fail("%s", over)
	}
	m.checkDeletes(s, &p)
	m.checkKept(s, &p)
	m.checkPatience(s, &p)
	m.checkPrice(s, &p)
	m.checkFences(&p)
	if m.loses && len(p.Commands) > 0 {
		m.lose(&p)
	}
	if m.crash > 0 && m.crash < 6 {
		m.story = append(m.story, fmt.Sprintf("killed after %d commands\n", m.crash))
		p.Commands = p.Commands[:min(m.crash, len(p.Commands))]
	}
	w.act(p, -1)
	w.now = w.now.Add(5 * time.Second)
	w.reap()
	if w.inventory == nil || w.now.Sub(w.inventory.At) > 10*time.Second {
		w.countPods()
	}
	w.rev++
}

// lose has one command of a plan fail, or be dropped.
func (m *mover) lose(p *plan.Plan) {
	i := rapid.IntRange(0, len(p.Commands)-1).Draw(m.t, "lost")
	if end := slices.IndexFunc(p.Commands, func(c command.Command) bool {
		_, ok := c.(command.DeleteClaim)
		return ok
	}); end >= 0 {
		i = end // it is then that half of something may be done
	}
	key := p.Commands[i].Key()
	m.story = append(m.story, "lost "+key+"\n")
	p.Commands = slices.Delete(slices.Clone(p.Commands), i, i+1)
	if rapid.Bool().Draw(m.t, "failed") {
		m.w.retry[key] = cluster.Retry{Attempts: 1, NotBefore: m.w.now.Add(time.Second)}
	}
}
