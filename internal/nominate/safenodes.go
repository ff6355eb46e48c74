package nominate

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// safeNodes finds the nodes on which nothing can go wrong without guidance.
//
// If all pods without a place that may run on a node are of one class, and no rule ties them, each of them may take any
// seat of the class: kube-scheduler can't put them so that one is left over. It refuses a pod only if every node of the
// class is full for it, then each holds as many of the class as were planned or more, and so all have a place.
type safeNodes struct {
	ready   bool
	classes []*cluster.PodClass
	rules   []*cluster.Rule
	tied    map[*cluster.PodClass]bool // some pod of the class is tied to others or to volumes
	known   map[string]bool            // by node
}

// readClasses takes in the classes of all pods that look for a place, those of nodes that are leaving included.
func (sn *safeNodes) readClasses(n *nominator) {
	sn.ready, sn.tied, sn.known = true, make(map[*cluster.PodClass]bool), make(map[string]bool)
	var last *cluster.PodClass
	seen := make(map[*cluster.PodClass]bool)
	pods := n.s.SchedulerView().Pending()
	for _, p := range pods {
		if p.Class != last && !seen[p.Class] {
			sn.classes = append(sn.classes, p.Class)
			sn.rules = append(sn.rules, p.Class.Rules...)
			seen[p.Class] = true
		}
		last = p.Class
	}
	tribes := make(map[cluster.InterchangeKey]bool)
	for _, p := range pods {
		t := cluster.InterchangeKeyOf(p)
		if p.IsTied() {
			sn.tied[p.Class] = true
		}
		if len(sn.rules) == 0 || sn.tied[p.Class] || tribes[t] {
			continue
		}
		tribes[t] = true
		sn.tied[p.Class] = slices.ContainsFunc(sn.rules, func(r *cluster.Rule) bool {
			return r.Selects(n.s, p.Namespace, p.Labels)
		})
	}
}

// isSingleClass reports whether the node takes pods of one class only, whom nothing ties, and DaemonSets leave them
// their room.
func (nom *nominator) isSingleClass(c *cluster.Claim, n *cluster.Node) bool {
	if !nom.safeNodes.ready {
		nom.safeNodes.readClasses(nom)
	}
	answer, known := nom.safeNodes.known[n.Name]
	if !known {
		answer = !daemonsContest(nom.s, c, n, nom.needOnNode(n)) && nom.safeNodes.isSafe(c, n)
		nom.safeNodes.known[n.Name] = answer
	}
	return answer
}

func (sn *safeNodes) isSafe(c *cluster.Claim, n *cluster.Node) bool {
	if len(sn.classes) == 1 {
		return !sn.tied[sn.classes[0]]
	}
	labels := cluster.JoinedLabels(n.Labels.Merge(c.Labels))
	visitors := 0
	for _, class := range sn.classes {
		if !cluster.MayRunOn(class, labels, c.Taints) {
			continue
		}
		if visitors++; visitors > 1 || sn.tied[class] {
			return false
		}
	}
	return visitors == 1
}

// daemonsContest reports whether the node has not room for all DaemonSets beside pods that need so much and that it was
// made for: then the pods must have been told their node when it opens, or DaemonSets of their own priority take it.
// One that is too large for the node by itself never comes.
func daemonsContest(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node, need resource.Vector) bool {
	if len(s.Daemons) == 0 {
		return false
	}
	all, labels := c.Allocatable, cluster.JoinedLabels(n.Labels.Merge(c.Labels))
	if !n.Allocatable.IsZero() {
		all = n.Allocatable
	}
	for _, d := range s.Daemons {
		if d.Class.Requests.Fits(all) && cluster.MayRunOn(d.Class, labels, c.Taints) {
			need = need.Add(d.Class.Requests)
		}
	}
	return !need.Fits(all)
}

// needOnNode is what the pods need that the node is meant for.
func (nom *nominator) needOnNode(n *cluster.Node) resource.Vector {
	var sum resource.Vector
	for _, p := range nom.s.Pending() {
		if nom.targetNode[p.UID] == n.Name {
			sum = sum.Add(p.Class.Requests)
		}
	}
	return sum
}

// nominatedPods remembers who has been told to go to a node.
type nominatedPods struct {
	ready  bool
	byNode map[string][]*cluster.Pod
}

// mayNominateBeside reports whether the pod can be nominated for the node beside those that are, and counts it in if
// so.
//
// kube-scheduler counts the pods that are nominated for a node as if they were there, but when it asks whether pods are
// spread evenly, not those that are nominated for other nodes. Two pods of one spread that are both nominated for a
// node would each find it too full because of the other, and wait for ever. So they are told one after the other.
func (nom *nominator) mayNominateBeside(pod *cluster.Pod, node string) bool {
	if !nom.nominated.ready {
		nom.nominated.ready, nom.nominated.byNode = true, make(map[string][]*cluster.Pod)
		for _, p := range nom.s.Pending() {
			if p.Nominated != "" {
				nom.nominated.add(p, p.Nominated)
			}
		}
	}
	for _, other := range nom.nominated.byNode[node] {
		if nom.spreadsOver(pod, other) || nom.spreadsOver(other, pod) {
			return false
		}
	}
	nom.nominated.add(pod, node)
	return true
}

// add counts a pod in; of interchangeable pods the first stands for all.
func (p *nominatedPods) add(pod *cluster.Pod, node string) {
	t := cluster.InterchangeKeyOf(pod)
	if !slices.ContainsFunc(p.byNode[node], func(q *cluster.Pod) bool { return cluster.InterchangeKeyOf(q) == t }) {
		p.byNode[node] = append(p.byNode[node], pod)
	}
}

// spreadsOver reports whether the pod is spread over pods like the other.
func (nom *nominator) spreadsOver(pod, other *cluster.Pod) bool {
	return slices.ContainsFunc(pod.Class.Rules, func(r *cluster.Rule) bool {
		return r.Kind == cluster.Spread && r.Selects(nom.s, other.Namespace, other.Labels)
	})
}
