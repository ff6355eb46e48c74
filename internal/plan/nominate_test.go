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
	"github.com/tenon-sh/tenon/internal/plan"
)

// TestWhoIsGuidedFindsRoom lets a kube-scheduler that takes pods in any order, and any node that suits, fill the nodes
// that were made for them: whoever was told a node goes there, whoever was not goes anywhere, and whoever finds no
// place forgets what he was told. The nodes come up at different times. In the end nobody is left over, although not
// every pod is told a node and no node is made but those of the first plan.
func TestWhoIsGuidedFindsRoom(t *testing.T) {
	nominated, silent, lost := 0, 0, 0
	for seed := range int64(300) {
		chance := rand.New(rand.NewSource(seed))
		n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
		n.policy.Placement = plan.PlaceByNomination
		mixed := false
		for _, line := range drawBatch(chance) {
			n.tell(line)
			mixed = mixed || strings.Contains(line, "priority")
		}
		l := &randomCluster{w: n.w, chance: chance, told: map[string]bool{}}
		planned := l.play(n.policy, mixed)
		for _, name := range sortedPods(n.w) {
			p := n.w.pods[name]
			if p.Node == "" || len(n.w.claims) != planned {
				t.Fatalf("seed %d: %s (nominated for %q) has no place on the %d nodes that were planned:\n%s", seed,
					name, n.w.called(p.Nominated), planned, n.w.show())
			}
			switch {
			case p.Daemon:
			case l.told[name]:
				nominated++
			default:
				silent++
			}
		}
		lost += l.lost
	}
	if nominated == 0 || silent == 0 || lost == 0 {
		t.Errorf("%d pods were told a node, %d were not and %d forgot it: one of the three was not tried", nominated,
			silent, lost)
	}
}

// randomCluster is a cluster whose kubelets come up, and whose kube-scheduler takes pods, as chance will have it.
type randomCluster struct {
	w      *world
	chance *rand.Rand
	told   map[string]bool
	lost   int
}

// play lets the pods get to their nodes and returns how many nodes were planned at first. Pods of different importance
// must find all nodes open at once, or the more important take the room of others.
func (l *randomCluster) play(policy plan.Policy, together bool) (planned int) {
	for round := range 2000 {
		before := l.openNodes()
		p := plan.Make(l.w.snapshot(nil), policy, nil, nil)
		for _, c := range p.Commands {
			if c, ok := c.(command.Nominate); ok {
				l.told[c.UID] = l.told[c.UID] || c.Node != ""
			}
			l.w.do(c)
		}
		if l.w.rev++; p.Provisioned {
			l.w.planned = p.Now
		}
		if round == 0 {
			planned = len(l.w.claims)
		}
		l.w.runDaemons()
		l.warm(together)
		if l.openNodes() != before || l.chance.Intn(10) == 0 {
			l.schedule()
		}
		l.w.now = l.w.now.Add(40 * time.Millisecond)
		if !slices.ContainsFunc(sortedPods(l.w), func(uid string) bool { return l.w.pods[uid].Node == "" }) {
			break
		}
	}
	return planned
}

// warm lets some of the kubelets come up.
func (l *randomCluster) warm(together bool) {
	if together && len(l.w.nodes) < len(l.w.claims) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(l.w.nodes)) {
		if node := l.w.nodes[name]; !node.Ready && (together || l.chance.Intn(8) == 0) {
			node.Ready, node.ReadySince = true, l.w.now
			node.Taints = slices.DeleteFunc(slices.Clone(node.Taints), func(t cluster.Taint) bool {
				return t.Key == "node.kubernetes.io/not-ready"
			})
		}
	}
}

// openNodes says which nodes are there and what closes them.
func (l *randomCluster) openNodes() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(l.w.nodes)) {
		out = append(out, fmt.Sprint(name, l.w.nodes[name].Taints))
	}
	return strings.Join(out, " ")
}

// drawBatch draws a few kinds of pods, some of them for a pool of their own.
func drawBatch(chance *rand.Rand) []string {
	lines := []string{"cloud cold", "type small cpu=4 memory=16Gi price=0.20 zones=a", "type big cpu=16 memory=64Gi " +
		"price=0.75 zones=a",
		"pool default", "pool apart label=team=apart taint=apart:NoSchedule"}
	if chance.Intn(2) == 0 {
		lines = append(lines, "daemon agent cpu=100m")
	}
	for i := range 1 + chance.Intn(4) {
		line := fmt.Sprintf("pods k%d n=%d cpu=%dm memory=%dMi", i, 1+chance.Intn(8), 300+100*chance.Intn(30),
			256+256*chance.Intn(20))
		if chance.Intn(3) == 0 {
			line += " need=team:In:apart tolerate=apart:NoSchedule"
		}
		if chance.Intn(4) == 0 {
			line += fmt.Sprintf(" priority=%d", 10*chance.Intn(3))
		}
		lines = append(lines, line)
	}
	return lines
}

func sortedPods(w *world) []string {
	var out []string
	for _, p := range w.snapshot(nil).Pods {
		out = append(out, p.UID)
	}
	return out
}

// schedule is a kube-scheduler without taste: it takes the pods as they come and any node that lets one in, but keeps
// the room of those who were nominated for a node and are as important. Whoever finds no place loses his nomination,
// which is reason to try the others again.
func (l *randomCluster) schedule() {
	for again := true; again; {
		again = false
		pods := sortedPods(l.w)
		l.chance.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		for _, uid := range pods {
			p := l.w.pods[uid]
			if p.Node != "" {
				continue
			}
			if n := l.w.choose(p, l.chance); n != nil {
				l.w.bindPod(p, n.Name)
			} else if p.Nominated != "" {
				p.Nominated, again = "", true
				l.lost++
			}
			l.w.stirUp()
		}
	}
}

func (w *world) choose(p *cluster.Pod, chance *rand.Rand) *cluster.Node {
	if n := w.nodes[p.Nominated]; n != nil && w.lets(p, n) {
		return n
	}
	nodes := w.snapshot(nil).Nodes
	for _, i := range chance.Perm(len(nodes)) {
		if w.lets(p, w.nodes[nodes[i].Name]) {
			return w.nodes[nodes[i].Name]
		}
	}
	return nil
}

// lets asks twice: with the pods that are nominated for the node counted in, and without.
func (w *world) lets(p *cluster.Pod, n *cluster.Node) bool {
	bare, full := w.judge(), w.judge()
	for _, q := range w.pods {
		if q.Node == "" && q.UID != p.UID && q.Nominated == n.Name && q.Class.Priority >= p.Class.Priority {
			there := *q
			there.Node = n.Name
			full.pods = append(full.pods, &there)
		}
	}
	return bare.objection(p, n) == "" && full.objection(p, n) == ""
}

// TestGuidanceIsBounded holds guidance to one node at a time and to so many requests.
func TestGuidanceIsBounded(t *testing.T) {
	n := &storyRunner{t: t, w: newWorld(), policy: defaultPolicy()}
	n.policy.Placement = plan.PlaceByNomination
	for _, line := range []string{"type big cpu=128 memory=512Gi price=6 zones=a", "pool default",
		"pods fat n=4 cpu=20", "pods thin n=400 cpu=1"} {
		n.tell(line)
	}
	for range 2 {
		n.w.act(plan.Make(n.w.snapshot(nil), n.policy, nil, nil), -1)
	}
	p := plan.Make(n.w.snapshot(nil), n.policy, nil, nil)
	nominated, nodes, opened := 0, map[string]bool{}, 0
	for _, c := range p.Commands {
		switch c := c.(type) {
		case command.Nominate:
			nominated++
			nodes[c.Node] = true
			n.w.busy[c.Key()] = true
		case command.Register:
			opened++
		}
	}
	if len(n.w.nodes) < 3 || nominated != 50 || len(nodes) != 1 || opened != 0 {
		t.Errorf("%d pods of %d of %d nodes were told and %d nodes opened, want 50 of one of several and none",
			nominated, len(nodes), len(n.w.nodes), opened)
	}
	for _, c := range plan.Make(n.w.snapshot(nil), n.policy, nil, nil).Commands {
		if _, ok := c.(command.Nominate); ok {
			t.Errorf("%s although 50 are under way", c.Key())
		}
	}
}
