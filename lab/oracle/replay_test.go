package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// Kinds of disagreement.
const (
	broken   = "broken"   // the answer is no answer
	refused  = "refused"  // a pod does not pass on the existing node it was given
	accepted = "accepted" // a pod that was not given an existing node passes on one
	unfit    = "unfit"    // a pod does not pass on the new node made for it
	untimely = "untimely" // pods pass on their nodes, but not in every order
	overshot = "overshot" // a pool's limits are exceeded
	missed   = "missed"   // a pod without a place would pass on one more node
)

// disagreement is one thing in which Tenon and kube-scheduler differ.
type disagreement struct {
	kind, why, text string
}

// grave disagreements are mistakes for sure: a pod was sent where it can't run, or a node launched in vain.
func (d disagreement) grave() bool { return d.kind != missed && d.kind != untimely }

func (d disagreement) String() string { return d.kind + ": " + d.text }

// sign tells disagreements apart that look like the same mistake.
func (d disagreement) sign() string { return d.kind + " " + d.why }

// replay holds a placement against kube-scheduler's plugins.
type replay struct {
	profile *config.KubeSchedulerProfile
	w       *world // settled
	p       *placement
	seed    int
	pods    map[string]*corev1.Pod // that wait, by id
	found   []disagreement
}

// sortOf keeps of Tenon's reasons only what they are about, and others as they are.
func sortOf(why string) string {
	var about []string
	for _, word := range []string{"can't be planned for", "minValues", "taint", "asks for label", "don't match",
		"too small", "no capacity",
		"limit", "spread", "anti-affinity", "its affinity", "host port", "volume", "no instance type is left",
		"leave no instance type"} {
		if strings.Contains(why, word) {
			about = append(about, word)
		}
	}
	if strings.Contains(why, "NodePool") {
		return strings.Join(about, ", ")
	}
	return why
}

func (r *replay) find(kind, why, format string, args ...any) {
	r.found = append(r.found, disagreement{kind: kind, why: sortOf(why), text: fmt.Sprintf(format, args...)})
}

// namesHosts tells whether the pod asks for nodes by their name.
func namesHosts(pod *corev1.Pod) bool {
	return slices.ContainsFunc(kindsOf(&world{}, pod), func(kind string) bool {
		return kind == "node affinity to a host" || kind == "node affinity matchFields"
	})
}

// run returns every disagreement.
func (r *replay) run() ([]disagreement, error) {
	r.pods = make(map[string]*corev1.Pod)
	for _, p := range r.w.pending() {
		r.pods[id(p)] = p
	}
	r.account()
	if len(r.found) > 0 {
		return r.found, nil
	}
	s, err := newScheduler(r.profile, r.w)
	if err != nil {
		return nil, err
	}
	defer s.end()
	for _, n := range r.w.Coming {
		join(s, n, r.w.typeNamed(n.Labels[corev1.LabelInstanceTypeStable]))
	}
	if !r.fill(s, r.p.Assigned, refused, func(node string) string { return "existing node " + node }) {
		return r.found, nil // what follows would only repeat it
	}
	if r.tryExisting(s); slices.ContainsFunc(r.found, func(d disagreement) bool { return d.kind == accepted }) {
		return r.found, nil
	}
	for _, cheapest := range []bool{false, true} {
		final, err := newScheduler(r.profile, s.w)
		if err != nil {
			return nil, err
		}
		bound := r.launch(final, cheapest)
		if bound && cheapest {
			r.tryNew(final)
		}
		final.end()
		if !bound {
			break
		}
	}
	return r.found, nil
}

// account checks that each waiting pod has exactly one answer and that new nodes can be bought within the limits.
func (r *replay) account() {
	answers := make(map[string]int)
	for pod := range r.p.Later {
		answers[pod]++
	}
	for pod, node := range r.p.Assigned {
		answers[pod]++
		if r.w.node(node) == nil && !slices.ContainsFunc(r.w.Coming, func(n *corev1.Node) bool {
			return n.Name == node
		}) {
			r.find(broken, "unknown node", "pod %s goes to node %s, which is not there", pod, node)
		}
	}
	for pod := range r.p.Unplaced {
		answers[pod]++
	}
	for i, b := range r.p.Bins {
		for _, pod := range b.Pods {
			answers[pod]++
		}
		if len(b.Offerings) == 0 {
			r.find(broken, "nothing to buy", "nothing can be bought for new node %d of %s with pods %v", i+1,
				b.Pool, b.Pods)
		}
		if len(b.Pods) == 0 {
			r.find(broken, "empty node", "new node %d of %s is for no pod", i+1, b.Pool)
		}
	}
	for _, pod := range slices.Sorted(maps.Keys(r.pods)) {
		if answers[pod] != 1 {
			r.find(broken, "answers", "pod %s has %d answers", pod, answers[pod])
		}
	}
	if len(answers) > len(r.pods) {
		r.find(broken, "", "%d pods have an answer, %d are waiting", len(answers), len(r.pods))
	}
	for _, p := range r.w.Pools {
		if name := r.exceeded(p, nil); name != "" {
			r.find(overshot, "", "the new nodes of pool %s may exceed its limit of %s", p.Name, name)
		}
	}
}

// exceeded names the limit that the pool's new nodes, and one more of the type if there is one, may exceed.
func (r *replay) exceeded(p *nodePool, more *instanceType) string {
	for name, limit := range p.Spec.Limits {
		total, grows := amount("0"), more != nil
		for _, b := range r.p.Bins {
			if b.Pool == p.Name {
				total.Add(r.most(b, name))
				grows = true
			}
		}
		if !grows {
			continue // what is there may have been there before the limit
		}
		for _, c := range r.w.NodeClaims { // those that leave count as long as they are there
			switch {
			case c.Labels[poolLabel] != p.Name:
			case name == "nodes":
				total.Add(amount("1"))
			default:
				total.Add(c.Status.Capacity[name])
			}
		}
		switch {
		case more != nil && name == "nodes":
			total.Add(amount("1"))
		case more != nil:
			total.Add(more.Capacity[name])
		}
		if total.Cmp(limit) > 0 {
			return string(name)
		}
	}
	return ""
}

// most is what a new node may count for, whatever it becomes.
func (r *replay) most(b bin, name corev1.ResourceName) (most apiresource.Quantity) {
	if name == "nodes" {
		return amount("1")
	}
	for _, o := range b.Offerings {
		if q := r.w.typeNamed(o.Type).Capacity[name]; q.Cmp(most) > 0 {
			most = q
		}
	}
	return most
}

// In so many orders pods are tried before they count as refused: those first that were refused before, then any.
const (
	wiseOrders = 8
	mostOrders = 60
)

// fill binds pods to their nodes, in an order in which each passes where it goes. A pod that passes in no order is a
// disagreement; so is, of its own kind, a placement that holds only if kube-scheduler happens to take up some pods
// first. It returns whether all are bound.
func (r *replay) fill(s *scheduler, places map[string]string, kind string, say func(node string) string) bool {
	order := slices.Sorted(maps.Keys(places))
	before := s.w.clone()
	why := r.bindAll(s, order, places)
	if len(why) == 0 {
		return true
	}
	first, pod := why, slices.Min(slices.Collect(maps.Keys(why)))
	d := newDice(r.seed)
	for try := range mostOrders {
		if try < wiseOrders {
			slices.SortStableFunc(order, func(a, b string) int { return rank(why, a) - rank(why, b) })
		} else {
			d.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		s.reset(before)
		if why = r.bindAll(s, order, places); len(why) == 0 {
			r.find(untimely, first[pod], "pod %s is given %s, where kube-scheduler refuses it unless others come "+
				"later: %s", pod, say(places[pod]), first[pod])
			return true
		}
	}
	for _, pod := range slices.Sorted(maps.Keys(first)) {
		r.find(kind, first[pod], "pod %s is given %s, where kube-scheduler refuses it: %s", pod, say(places[pod]),
			first[pod])
	}
	return false
}

func rank(why map[string]string, pod string) int {
	if _, refused := why[pod]; refused {
		return 0
	}
	return 1
}

// bindAll binds each pod as soon as it passes on its node, those first that come first in the order, and says why the
// rest does not.
func (r *replay) bindAll(s *scheduler, order []string, places map[string]string) (why map[string]string) {
	left := slices.Clone(order)
	for {
		why = make(map[string]string)
		next := slices.IndexFunc(left, func(pod string) bool {
			node := places[pod]
			why[pod] = s.refuse(r.pods[pod], node)[node]
			return why[pod] == ""
		})
		if next < 0 {
			return why
		}
		s.bind(r.pods[left[next]], places[left[next]])
		left = slices.Delete(left, next, next+1)
	}
}

// oneAtATime is said of pods that compete for volumes of a storage class without a provisioner.
const oneAtATime = "storage class local may be used by one pod at a time"

// tryExisting looks whether pods that were not given an existing node could run on one.
func (r *replay) tryExisting(s *scheduler) {
	var open []string
	for _, n := range slices.Concat(r.w.Nodes, r.w.Coming) {
		if !n.Spec.Unschedulable {
			open = append(open, n.Name)
		}
	}
	for _, pod := range slices.Sorted(maps.Keys(r.pods)) {
		_, later := r.p.Later[pod]
		if _, assigned := r.p.Assigned[pod]; assigned || later {
			continue
		}
		if strings.Contains(r.p.Unplaced[pod], oneAtATime) {
			// kube-scheduler binds it to a node that is there by itself; new nodes are planned for the first only
			continue
		}
		why := s.refuse(r.pods[pod], open...)
		for _, node := range open {
			if r.w.node(node) == nil && namesHosts(r.pods[pod]) {
				continue // what a node will call itself is not known before it is there
			}
			if why[node] == "" {
				r.find(accepted, r.answer(pod), "pod %s is %s, though kube-scheduler would take it on existing node %s",
					pod, r.answer(pod), node)
				break
			}
		}
	}
}

// answer says what became of a pod that has no existing node.
func (r *replay) answer(pod string) string {
	if why, ok := r.p.Unplaced[pod]; ok {
		return "left without a place: " + why
	}
	return "given a new node"
}

// launch lets the new nodes join, each as the cheapest or as any of what it may become, and binds their pods. It
// returns whether all are bound.
func (r *replay) launch(s *scheduler, cheapest bool) bool {
	d := newDice(r.seed)
	places, became, used := make(map[string]string), make(map[string]string), make(map[string]int)
	for i, b := range r.p.Bins {
		left := slices.DeleteFunc(slices.Clone(b.Offerings), func(o offering) bool {
			return o.Reservation != "" && used[o.Reservation] >= o.Left
		})
		if len(left) == 0 {
			r.find(overshot, "reservation", "new node %d of %s finds nothing left of reservation %s", i+1, b.Pool,
				b.Offerings[0].Reservation)
			return false
		}
		o := left[0]
		if !cheapest {
			o = pick(d, left...)
		}
		used[o.Reservation]++
		name := fmt.Sprintf("new-%d", i+1)
		labels := maps.Clone(b.Labels)
		maps.Copy(labels, o.Labels)
		join(s, newNode(name, labels, r.w.pool(b.Pool), r.w.typeNamed(o.Type)), r.w.typeNamed(o.Type))
		became[name] = fmt.Sprintf("new node %s (%s of %s in %s, %s)", name, o.Type, b.Pool,
			labels[corev1.LabelTopologyZone], labels[capacityTypeLabel])
		for _, pod := range b.Pods {
			places[pod] = name
		}
	}
	for pod, node := range r.p.Later {
		places[pod], became[node] = node, "existing node "+node
	}
	return r.fill(s, places, unfit, func(node string) string { return became[node] })
}

// newNode is the node of an instance of the type, as it is once it is initialized.
func newNode(name string, labels map[string]string, p *nodePool, t *instanceType) *corev1.Node {
	labels = maps.Clone(labels)
	labels[corev1.LabelHostname] = name
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels},
		Spec:       corev1.NodeSpec{Taints: p.Spec.Template.Spec.Taints, ProviderID: "kwok://" + name},
		Status: corev1.NodeStatus{
			Capacity: t.Capacity, Allocatable: t.allocatable(),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// join adds a node with the daemonsets' pods on it, which come before others.
func join(s *scheduler, node *corev1.Node, t *instanceType) {
	var limits map[string]int32
	if t != nil {
		limits = t.VolumeLimits
	}
	s.addNode(node, limits)
	for _, set := range s.w.DaemonSets {
		if pod := daemonPod(set, node); pod != nil {
			s.bind(pod, node.Name)
		}
	}
}
