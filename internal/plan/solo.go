package plan

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// solo finds the nodes on which nothing can go wrong without guidance.
//
// If all pods without a place that may run on a node are of one class, and no rule ties them, each of them may take any seat
// of the class: kube-scheduler can't put them so that one is left over. It refuses a pod only if every node of the class
// is full for it, then each holds as many of the class as were planned or more, and so all have a place.
type solo struct {
	ready   bool
	classes []*cluster.PodClass
	rules   []*cluster.Rule
	bound   map[*cluster.PodClass]bool // some pod of the class is tied to others or to volumes
	known   map[string]bool            // by node
}

// survey takes in the classes of all pods that look for a place, those of nodes that are leaving included.
func (o *solo) survey(g *guide) {
	o.ready, o.bound, o.known = true, make(map[*cluster.PodClass]bool), make(map[string]bool)
	var last *cluster.PodClass
	seen := make(map[*cluster.PodClass]bool)
	pods := g.s.Plain().Pending()
	for _, p := range pods {
		if p.Class != last && !seen[p.Class] {
			o.classes = append(o.classes, p.Class)
			o.rules = append(o.rules, p.Class.Rules...)
			seen[p.Class] = true
		}
		last = p.Class
	}
	tribes := make(map[cluster.Twins]bool)
	for _, p := range pods {
		t := cluster.TwinsOf(p)
		if t.Alone() || len(p.Class.Rules)+len(p.Class.Ports) > 0 {
			o.bound[p.Class] = true
		}
		if len(o.rules) == 0 || o.bound[p.Class] || tribes[t] {
			continue
		}
		tribes[t] = true
		o.bound[p.Class] = slices.ContainsFunc(o.rules, func(r *cluster.Rule) bool { return counts(g.s, r, p) })
	}
}

// counts reports whether the rule is about the pod.
func counts(s *cluster.Snapshot, r *cluster.Rule, p *cluster.Pod) bool {
	for i := range r.Selectors {
		if !r.Selectors[i].Selects(p.Namespace, s.Namespaces[p.Namespace], p.Labels) {
			return false
		}
	}
	return len(r.Selectors) > 0
}

// alone reports whether the node takes pods of one class only, whom nothing ties, and DaemonSets leave them their room.
func (g *guide) alone(c *cluster.Claim, n *cluster.Node) bool {
	if !g.solo.ready {
		g.solo.survey(g)
	}
	answer, known := g.solo.known[n.Name]
	if !known {
		answer = !contested(g.s, c, n, g.needsOf(n)) && g.solo.ask(c, n)
		g.solo.known[n.Name] = answer
	}
	return answer
}

func (o *solo) ask(c *cluster.Claim, n *cluster.Node) bool {
	if len(o.classes) == 1 {
		return !o.bound[o.classes[0]]
	}
	labels := cluster.Lasting(n.Labels.Merge(c.Labels))
	visitors := 0
	for _, class := range o.classes {
		if !cluster.Lands(class, labels, c.Taints) {
			continue
		}
		if visitors++; visitors > 1 || o.bound[class] {
			return false
		}
	}
	return visitors == 1
}

// contested reports whether the node has not room for all DaemonSets beside pods that need so much and that it was made
// for: then the pods must have been told their node when it opens, or DaemonSets of their own priority take it. One
// that is too large for the node by itself never comes.
func contested(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node, need resource.Vector) bool {
	if len(s.Daemons) == 0 {
		return false
	}
	all, labels := c.Allocatable, cluster.Lasting(n.Labels.Merge(c.Labels))
	if !n.Allocatable.IsZero() {
		all = n.Allocatable
	}
	for _, d := range s.Daemons {
		if d.Class.Requests.Fits(all) && cluster.Lands(d.Class, labels, c.Taints) {
			need = need.Add(d.Class.Requests)
		}
	}
	return !need.Fits(all)
}

// needsOf is what the pods need that the node is meant for.
func (g *guide) needsOf(n *cluster.Node) resource.Vector {
	var sum resource.Vector
	for _, p := range g.s.Pending() {
		if g.home[p.UID] == n.Name {
			sum = sum.Add(p.Class.Requests)
		}
	}
	return sum
}

// peace remembers who has been told to go to a node.
type peace struct {
	ready bool
	told  map[string][]*cluster.Pod
}

// peaceful reports whether the pod can be nominated for the node beside those that are, and counts it in if so.
//
// kube-scheduler counts the pods that are nominated for a node as if they were there, but when it asks whether pods are
// spread evenly, not those that are nominated for other nodes. Two pods of one spread that are both nominated for a node
// would each find it too full because of the other, and wait for ever. So they are told one after the other.
func (g *guide) peaceful(pod *cluster.Pod, node string) bool {
	if !g.peace.ready {
		g.peace.ready, g.peace.told = true, make(map[string][]*cluster.Pod)
		for _, p := range g.s.Pending() {
			if p.Nominated != "" {
				g.peace.add(p, p.Nominated)
			}
		}
	}
	for _, other := range g.peace.told[node] {
		if g.crowds(pod, other) || g.crowds(other, pod) {
			return false
		}
	}
	g.peace.add(pod, node)
	return true
}

// add counts a pod in; of twins the first stands for all.
func (p *peace) add(pod *cluster.Pod, node string) {
	t := cluster.TwinsOf(pod)
	if !slices.ContainsFunc(p.told[node], func(q *cluster.Pod) bool { return cluster.TwinsOf(q) == t }) {
		p.told[node] = append(p.told[node], pod)
	}
}

// crowds reports whether the pod is spread over pods like the other.
func (g *guide) crowds(pod, other *cluster.Pod) bool {
	return slices.ContainsFunc(pod.Class.Rules, func(r *cluster.Rule) bool { return r.Kind == cluster.Spread && counts(g.s, r, other) })
}
