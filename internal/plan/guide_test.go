package plan_test

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
)

// TestWhoIsGuidedFindsRoom lets a kube-scheduler that takes pods in any order, and any node that suits, fill the nodes that
// were made for them: whoever was told a node goes there, whoever was not goes anywhere, and in the end nobody is left over.
// It holds although not every pod is told a node.
func TestWhoIsGuidedFindsRoom(t *testing.T) {
	told, silent := 0, 0
	for seed := range int64(300) {
		chance := rand.New(rand.NewSource(seed))
		n := &narrator{t: t, w: newWorld(), policy: defaultPolicy()}
		n.policy.Placement = plan.PlaceByNomination
		for _, line := range drawBatch(chance) {
			n.tell(line)
		}
		n.comeUp()
		for _, p := range n.w.pods {
			switch {
			case p.Daemon:
			case p.Nominated != "":
				told++
			default:
				silent++
			}
		}
		n.w.schedule(chance)
		for _, name := range sortedPods(n.w) {
			if p := n.w.pods[name]; p.Node == "" {
				t.Fatalf("seed %d: %s (nominated for %q) has no place:\n%s", seed, name, n.w.called(p.Nominated), n.w.show())
			}
		}
	}
	if told == 0 || silent == 0 {
		t.Errorf("%d pods were told a node and %d were not: one of the two was not tried", told, silent)
	}
}

// drawBatch draws a few kinds of pods, some of them for a pool of their own.
func drawBatch(chance *rand.Rand) []string {
	lines := []string{"cloud cold", "type small cpu=4 memory=16Gi price=0.20 zones=a", "type big cpu=16 memory=64Gi price=0.75 zones=a",
		"pool default", "pool apart label=team=apart taint=apart:NoSchedule"}
	if chance.Intn(2) == 0 {
		lines = append(lines, "daemon agent cpu=100m")
	}
	for i := range 1 + chance.Intn(4) {
		line := fmt.Sprintf("pods k%d n=%d cpu=%dm memory=%dMi", i, 1+chance.Intn(8), 300+100*chance.Intn(30), 256+256*chance.Intn(20))
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

// comeUp plans and acts until all nodes are there and closed to pods only because their kubelets are not up.
func (n *narrator) comeUp() {
	for range 30 {
		p := plan.Make(n.w.snapshot(nil), n.policy, nil, nil)
		if len(p.Commands) == 0 {
			break
		}
		n.w.act(p, -1)
	}
	for _, node := range n.w.nodes {
		node.Ready = true
		node.Taints = slices.DeleteFunc(slices.Clone(node.Taints), func(t cluster.Taint) bool { return t.Key == "node.kubernetes.io/not-ready" })
	}
}

func sortedPods(w *world) []string {
	var out []string
	for _, p := range w.snapshot(nil).Pods {
		out = append(out, p.UID)
	}
	return out
}

// schedule is a kube-scheduler without taste: it takes the pods as they come and any node that lets one in, but keeps the
// room of those who were nominated for a node and are as important.
func (w *world) schedule(chance *rand.Rand) {
	for again := true; again; {
		again = false
		pods := sortedPods(w)
		chance.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		for _, uid := range pods {
			p := w.pods[uid]
			if p.Node != "" {
				continue
			}
			if n := w.choose(p, chance); n != nil {
				w.bindPod(p, n.Name)
				again = true
			}
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

// TestGuidanceIsBounded holds guidance to so many requests at the same time, node after node.
func TestGuidanceIsBounded(t *testing.T) {
	n := &narrator{t: t, w: newWorld(), policy: defaultPolicy()}
	n.policy.Placement = plan.PlaceByNomination
	for _, line := range []string{"cloud cold", "type big cpu=16 memory=64Gi price=0.75 zones=a", "pool default", "pods fat n=30 cpu=5", "pods thin n=90 cpu=300m"} {
		n.tell(line)
	}
	for range 2 {
		n.w.act(plan.Make(n.w.snapshot(nil), n.policy, nil, nil), -1)
	}
	p := plan.Make(n.w.snapshot(nil), n.policy, nil, nil)
	told, nodes, opened := 0, map[string]bool{}, 0
	for _, c := range p.Commands {
		switch c := c.(type) {
		case command.Nominate:
			told++
			nodes[c.Node] = true
			n.w.busy[c.Key()] = true
		case command.Register:
			opened++
		}
	}
	if told != 50 || len(nodes) > 6 || opened != 0 {
		t.Errorf("%d pods of %d nodes were told and %d nodes opened, want 50 of a few and none", told, len(nodes), opened)
	}
	for _, c := range plan.Make(n.w.snapshot(nil), n.policy, nil, nil).Commands {
		if _, ok := c.(command.Nominate); ok {
			t.Errorf("%s although 50 are under way", c.Key())
		}
	}
}
