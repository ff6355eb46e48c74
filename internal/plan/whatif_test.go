package plan_test

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/resource"
)

// playback is the cluster on which a plan is played: first on the nodes that are there, then on the new ones as well,
// each of which has become one of those that its claim allows, by chance.
type playback struct {
	judge
	s       *cluster.Snapshot
	planned map[*cluster.Pod]string // to which node
	// now are the pods that go to nodes that are there, in the plan's order, later those that go to new ones.
	now, later []*cluster.Pod
	come       func()
	// open are the new nodes that might have become something else.
	open map[string]bool
}

func newPlayback(s *cluster.Snapshot, p *plan.Plan, chance *rand.Rand) *playback {
	st := &playback{s: s, planned: make(map[*cluster.Pod]string), open: make(map[string]bool)}
	st.namespaces = s.Namespaces
	st.room = func(v resource.Vector) resource.Vector { return v }
	st.raise()
	for _, a := range p.Placement.Assigned {
		pod := copyOf(a.Pod)
		if st.planned[pod] = a.Host; a.Later {
			st.later = append(st.later, pod)
			continue
		}
		st.now = append(st.now, pod)
	}
	made := creates(p)
	for _, c := range made {
		for _, pod := range c.Pods {
			st.later = append(st.later, copyOf(pod))
			st.planned[st.later[len(st.later)-1]] = c.Name
		}
	}
	st.come = func() {
		for _, c := range made {
			choice := futures(s.Pools[0].Catalog, &c)
			st.open[c.Name] = len(choice) > 1
			st.add(c.Name, choice[chance.Intn(len(choice))], c.Template.Taints, c.Pods...)
		}
	}
	return st
}

// raise puts in the nodes that are there, with their pods. Those that are on their way out are fenced and drained.
func (st *playback) raise() {
	for _, n := range st.s.Nodes {
		c := st.s.ClaimOf(n.Name)
		leaving := c != nil && !c.Deleting.IsZero()
		if leaving {
			fenced := *n
			fenced.Taints = append(slices.Clone(n.Taints), cluster.Taint{Key: cluster.DisruptedTaint,
				Effect: cluster.NoSchedule})
			n = &fenced
		}
		st.nodes = append(st.nodes, n)
		for _, pod := range st.s.PodsOn(n.Name) {
			if !leaving || !pod.IsReschedulable() || pod.DoNotDisrupt {
				st.pods = append(st.pods, pod)
			}
		}
	}
}

func copyOf(p *cluster.Pod) *cluster.Pod {
	out := *p
	out.Node = ""
	return &out
}

// add puts in a new node with its daemons. If it is made for pods, those of their priority and lower come only if they
// find room beside them.
func (st *playback) add(name string, f future, taints []cluster.Taint, pods ...*cluster.Pod) *cluster.Node {
	n := &cluster.Node{Name: name, Labels: f.labels.With(cluster.HostnameLabel, name), Taints: taints,
		Allocatable: f.kind.Allocatable}
	st.nodes = append(st.nodes, n)
	daemons := slices.DeleteFunc(slices.Clone(st.s.Daemons), func(d *cluster.Daemon) bool {
		return !slices.Contains(f.daemons, d) && !cluster.MayRunOn(d.Class, n.Labels, n.Taints)
	})
	if len(pods) > 0 {
		daemons = coming(daemons, n.Allocatable, pods)
	}
	for _, d := range daemons {
		pod := &cluster.Pod{Name: d.Name + "-" + name, Class: d.Class, Namespace: d.Namespace,
			Owner: cluster.OwnerKey(d.Namespace, d.UID), Node: name, Daemon: true}
		st.pods = append(st.pods, pod)
	}
	return n
}

func (st *playback) node(name string) *cluster.Node {
	return st.nodes[slices.IndexFunc(st.nodes, func(n *cluster.Node) bool { return n.Name == name })]
}

// play lets the pods in, one after the other, as kube-scheduler would. Which of those comes first that wait for new
// nodes is up to it: order says how they queue. It returns what keeps one of those out who never get in.
func (st *playback) play(order func(a, b *cluster.Pod) int) string {
	if no := st.enter(st.now); no != "" {
		return no
	}
	st.come()
	slices.SortStableFunc(st.later, order)
	return st.enter(st.later)
}

// enter lets the first in that may come in, again and again.
func (st *playback) enter(waiting []*cluster.Pod) string {
	for waiting = slices.Clone(waiting); len(waiting) > 0; {
		reason := ""
		in := slices.IndexFunc(waiting, func(p *cluster.Pod) bool {
			no := st.objection(p, st.node(st.planned[p]))
			if no != "" {
				reason = fmt.Sprintf("%s on %s: %s", p.Name, st.planned[p], no)
			}
			return no == ""
		})
		if in < 0 {
			return reason
		}
		waiting[in].Node = st.planned[waiting[in]]
		st.pods = append(st.pods, waiting[in])
		waiting = slices.Delete(waiting, in, in+1)
	}
	return ""
}

// freeFirst is the order that is hardest on rules: pods without any come first.
func freeFirst(a, b *cluster.Pod) int { return len(a.Class.Rules) - len(b.Class.Rules) }

func boundFirst(a, b *cluster.Pod) int { return len(b.Class.Rules) - len(a.Class.Rules) }

func asPlanned(_, _ *cluster.Pod) int { return 0 }

// played is a stage on which all pods got in, whatever the order; where rules of several classes cross, in some order.
// Otherwise why tells who did not.
func played(s *cluster.Snapshot, p *plan.Plan, seed int64) (st *playback, reason string) {
	lenient := crossed(s)
	for _, order := range []func(a, b *cluster.Pod) int{boundFirst, freeFirst, asPlanned} {
		st = newPlayback(s, p, rand.New(rand.NewSource(seed)))
		if reason = st.play(order); (reason == "") == lenient {
			break
		}
	}
	return st, reason
}

// settled looks at the end from scratch: what holds between pods must hold whoever came first.
func (st *playback) settled() string {
	alone := make(map[string]string)
	for _, p := range slices.Concat(st.now, st.later) {
		n := st.node(p.Node)
		for _, q := range st.pods {
			if q == p {
				continue
			}
			if no := st.quarrel(p, n, q, st.node(q.Node)); no != "" {
				return no
			}
		}
		for _, r := range p.Class.Rules {
			switch {
			case r.Kind == cluster.Spread:
				if no := st.lopsided(r, p); no != "" {
					return no
				}
			case r.Kind == cluster.Affinity && st.lonely(r, p, n):
				if first := alone[r.Key]; first != "" || !st.selects(r, p) { // the first of a kind may begin alone
					return fmt.Sprintf("%s has nobody near it, like %q (%s)", p.Name, first, r.Key)
				}
				alone[r.Key] = p.Name
			}
		}
	}
	return ""
}

// quarrel says why two pods can't be where they are.
func (st *playback) quarrel(p *cluster.Pod, n *cluster.Node, q *cluster.Pod, m *cluster.Node) string {
	for _, x := range [][2]*cluster.Pod{{p, q}, {q, p}} {
		for _, r := range x[0].Class.Rules {
			if r.Kind == cluster.AntiAffinity && same(n, m, r.TopologyKey) && st.selects(r, x[1]) {
				return fmt.Sprintf("%s and %s are in one %s", x[0].Name, x[1].Name, r.TopologyKey)
			}
		}
	}
	for _, port := range p.Class.Ports {
		if n == m && slices.ContainsFunc(q.Class.Ports, port.Conflicts) {
			return fmt.Sprintf("%s and %s share port %d", p.Name, q.Name, port.Number)
		}
	}
	for _, handle := range p.ExclusiveVolumes {
		if slices.Contains(q.ExclusiveVolumes, handle) {
			return fmt.Sprintf("%s and %s share volume %s", p.Name, q.Name, handle)
		}
	}
	return ""
}

// lonely says that a pod with affinity has no partner.
func (st *playback) lonely(r *cluster.Rule, p *cluster.Pod, n *cluster.Node) bool {
	return !slices.ContainsFunc(st.pods, func(q *cluster.Pod) bool {
		return q != p && st.selects(r, q) && same(n, st.node(q.Node), r.TopologyKey)
	})
}

// lopsided says that a spread does not hold at the end. It is asked only where nobody else can have upset it: all the
// pods that it counts are of one class and came when all nodes were there.
func (st *playback) lopsided(r *cluster.Rule, p *cluster.Pod) string {
	for _, q := range st.pods {
		if st.selects(r, q) && (q.Class != p.Class || q.Namespace != p.Namespace || !slices.Contains(st.later, q)) {
			return ""
		}
	}
	if !st.selects(r, p) {
		return ""
	}
	domains := st.domains(p, r)
	for domain, n := range domains {
		if n-least(r, domains) > r.MaxSkew {
			return fmt.Sprintf("%s: %s has %d of %v", r.Key, domain, n, domains)
		}
	}
	return ""
}

// describe tells a drawn world and what was planned for it, for whoever has to find out what went wrong.
func (w *world) describe(p *plan.Plan) string {
	out := new(strings.Builder)
	for i := range w.offerings {
		o := &w.offerings[i]
		arch, _ := o.Labels.Get("arch")
		generation, _ := o.Labels.Get("generation")
		fmt.Fprintf(out, "offering %s %s %s %s %s available=%v $%.2f room %s\n", w.types[o.Type].Name, o.Zone,
			o.CapacityType, arch, generation, o.Available,
			o.Price, w.names.String(w.types[o.Type].Allocatable))
	}
	for _, name := range slices.Sorted(maps.Keys(w.pools)) {
		pool := w.pools[name]
		fmt.Fprintf(out, "pool %s weight=%d usable=%v labels=%v require=%v taints=%v limits %s %v %d\n", name,
			pool.Weight, pool.NodeClass.Ready,
			pool.Template.Labels, pool.Template.Requirements, pool.Template.Taints, w.names.String(pool.Limits.Amount),
			pool.Limits.HasNodes, pool.Limits.Nodes)
	}
	for _, name := range slices.Sorted(maps.Keys(w.daemons)) {
		fmt.Fprintf(out, "daemon %s %s\n", name, w.describeClass(w.daemons[name].Class))
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		leaving := w.claims[name] != nil && !w.claims[name].Deleting.IsZero()
		fmt.Fprintf(out, "node %s leaving=%v %v taints=%v room %s\n", name, leaving, w.nodes[name].Labels,
			w.nodes[name].Taints, w.names.String(w.nodes[name].Allocatable))
	}
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		pod := w.pods[name]
		fmt.Fprintf(out, "pod %s/%s %v on %q volumes=%v once=%v %s\n", pod.Namespace, name, pod.Labels, pod.Node,
			pod.Volumes, pod.ExclusiveVolumes, w.describeClass(pod.Class))
	}
	if p == nil {
		return out.String()
	}
	for _, c := range p.Commands {
		if create, ok := c.(command.CreateClaim); ok {
			fmt.Fprintf(out, "create %s: %s; pods", create.Name, describeClaim(&create))
			for _, pod := range create.Pods {
				fmt.Fprintf(out, " %s", pod.Name)
			}
			fmt.Fprintln(out)
		}
	}
	for _, a := range p.Placement.Assigned {
		fmt.Fprintf(out, "assign %s to %s\n", a.Pod.Name, a.Host)
	}
	for i := range p.Placement.Unplaced {
		fmt.Fprintf(out, "no place for %s: %s\n", p.Placement.Unplaced[i].Pod.Name,
			render.Unplaced(&p.Placement.Unplaced[i]))
	}
	return out.String()
}

func (w *world) describeClass(c *cluster.PodClass) string {
	out := fmt.Sprintf("%s %s terms=%v priority=%d tolerations=%v ports=%v", c.Key, w.names.String(c.Requests), c.Terms,
		c.Priority, c.Tolerations, c.Ports)
	for _, r := range c.Rules {
		out += " {" + r.Key + "}"
	}
	for _, wish := range c.Preferences {
		out += fmt.Sprintf(" wish %d %v", wish.Weight, wish.Term)
		if wish.Rule != nil {
			out += "{" + wish.Rule.Key + "}"
		}
	}
	return out
}
