package plan_test

import (
	"fmt"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// judge answers like kube-scheduler's filters, the slow way: it remembers nothing and looks at every pod and every node
// for each question. It shares no code with the engine but the selectors.
type judge struct {
	nodes      []*cluster.Node
	pods       []*cluster.Pod // those that have a node
	namespaces map[string]cluster.Labels
	// room completes what nodes can hold.
	room func(resource.Vector) resource.Vector
}

// objection is what keeps the pod from the node; empty if nothing does.
func (j *judge) objection(p *cluster.Pod, n *cluster.Node) string {
	if n.Cordoned || n.KeptFor != "" || !cluster.MayRunOn(p.Class, n.Labels, n.Taints) {
		return "the node does not suit it"
	}
	for _, ask := range []func(*cluster.Pod, *cluster.Node) string{j.askRoom, j.askPorts, j.askVolumes, j.askSpread,
		j.askAffinity, j.askApart} {
		if no := ask(p, n); no != "" {
			return no
		}
	}
	return ""
}

// on lists the pods of a node.
func (j *judge) on(n *cluster.Node) []*cluster.Pod {
	var out []*cluster.Pod
	for _, p := range j.pods {
		if p.Node == n.Name {
			out = append(out, p)
		}
	}
	return out
}

func (j *judge) askRoom(p *cluster.Pod, n *cluster.Node) string {
	free, attached := j.room(n.Allocatable), make(map[string]bool)
	need := func(q *cluster.Pod) resource.Vector {
		v := q.Class.Requests
		for _, volume := range q.Volumes {
			if attached[volume.Handle] {
				v[volume.Dim]--
			}
			attached[volume.Handle] = true
		}
		return v
	}
	for _, q := range j.on(n) {
		free = free.Sub(need(q))
	}
	if v := need(p); !v.Fits(free) {
		return fmt.Sprintf("it needs %v of %v", v, free)
	}
	return ""
}

func (j *judge) askPorts(p *cluster.Pod, n *cluster.Node) string {
	for _, q := range j.on(n) {
		for _, a := range p.Class.Ports {
			if slices.ContainsFunc(q.Class.Ports, a.Conflicts) {
				return fmt.Sprintf("port %d is taken by %s", a.Number, q.Name)
			}
		}
	}
	return ""
}

func (j *judge) askVolumes(p *cluster.Pod, _ *cluster.Node) string {
	for _, q := range j.pods {
		for _, handle := range p.ExclusiveVolumes {
			if slices.Contains(q.ExclusiveVolumes, handle) {
				return "its volume is used by " + q.Name
			}
		}
	}
	return ""
}

// selects reports whether all of the rule's selectors select the pod.
func (j *judge) selects(r *cluster.Rule, p *cluster.Pod) bool {
	for i := range r.Selectors {
		if !r.Selectors[i].Selects(p.Namespace, j.namespaces[p.Namespace], p.Labels) {
			return false
		}
	}
	return len(r.Selectors) > 0
}

// counted lists the nodes that a pod's spread rule is about.
func (j *judge) counted(p *cluster.Pod, r *cluster.Rule) []*cluster.Node {
	own := *p.Class
	if own.OwnTerms != nil {
		own.Terms = own.OwnTerms
	}
	var out []*cluster.Node
	for _, n := range j.nodes {
		use := true
		for _, other := range p.Class.Rules {
			if _, has := n.Labels.Get(other.TopologyKey); other.Kind == cluster.Spread && !has {
				use = false
			}
		}
		if _, ok := own.MatchesLabels(n.Labels.Get); !r.AnyNode && !ok {
			use = false
		}
		if _, tainted := cluster.Untolerated(own.Tolerations, n.Taints); r.HonorTaints && tainted {
			use = false
		}
		if use {
			out = append(out, n)
		}
	}
	return out
}

// domains counts the pods that a spread rule selects by domain, empty domains included.
func (j *judge) domains(p *cluster.Pod, r *cluster.Rule) map[string]int {
	out := make(map[string]int)
	for _, n := range j.counted(p, r) {
		domain, _ := n.Labels.Get(r.TopologyKey)
		out[domain] += 0
		for _, q := range j.on(n) {
			if q.Deleting.IsZero() && j.selects(r, q) {
				out[domain]++
			}
		}
	}
	return out
}

func least(r *cluster.Rule, domains map[string]int) int {
	if len(domains) < r.MinDomains {
		return 0
	}
	low := 1 << 30
	for _, n := range domains {
		low = min(low, n)
	}
	return low
}

func (j *judge) askSpread(p *cluster.Pod, n *cluster.Node) string {
	for _, r := range p.Class.Rules {
		if r.Kind != cluster.Spread {
			continue
		}
		domain, has := n.Labels.Get(r.TopologyKey)
		if !has {
			return "spread: the node has no " + r.TopologyKey
		}
		domains := j.domains(p, r)
		after := domains[domain]
		if j.selects(r, p) {
			after++
		}
		if after-least(r, domains) > r.MaxSkew {
			return fmt.Sprintf("spread: %s would have %d of %v", domain, after, domains)
		}
	}
	return ""
}

// same reports whether two nodes are in one domain of the key.
func same(a, b *cluster.Node, key string) bool {
	x, has := a.Labels.Get(key)
	y, both := b.Labels.Get(key)
	return has && both && x == y
}

// near finds a pod that the rule selects in the node's domain; anywhere says whether there is one in any domain.
func (j *judge) near(r *cluster.Rule, n *cluster.Node) (pod *cluster.Pod, anywhere bool) {
	for _, m := range j.nodes {
		_, has := m.Labels.Get(r.TopologyKey)
		for _, q := range j.on(m) {
			if !has || !j.selects(r, q) {
				continue
			}
			anywhere = true
			if same(m, n, r.TopologyKey) {
				pod = q
			}
		}
	}
	return pod, anywhere
}

func (j *judge) askAffinity(p *cluster.Pod, n *cluster.Node) string {
	missing, first := "", true
	for _, r := range p.Class.Rules {
		if r.Kind != cluster.Affinity {
			continue
		}
		if _, has := n.Labels.Get(r.TopologyKey); !has {
			return "affinity: the node has no " + r.TopologyKey
		}
		q, anywhere := j.near(r, n)
		if q == nil {
			missing = "affinity: nobody in its " + r.TopologyKey
		}
		first = first && !anywhere && j.selects(r, p)
	}
	if missing != "" && !first {
		return missing
	}
	return ""
}

func (j *judge) askApart(p *cluster.Pod, n *cluster.Node) string {
	for _, r := range p.Class.Rules {
		if r.Kind != cluster.AntiAffinity {
			continue
		}
		if q, _ := j.near(r, n); q != nil {
			return "anti-affinity: " + q.Name + " is in its " + r.TopologyKey
		}
	}
	for _, m := range j.nodes {
		for _, q := range j.on(m) {
			for _, r := range q.Class.Rules {
				if r.Kind == cluster.AntiAffinity && same(m, n, r.TopologyKey) && j.selects(r, p) {
					return "anti-affinity of " + q.Name + " in its " + r.TopologyKey
				}
			}
		}
	}
	return ""
}
