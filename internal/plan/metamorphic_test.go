package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// What is true of one cluster says what must be true of another that differs from it in a known way. Nobody has to know
// the right answer for either. That the order in which objects turn up changes nothing is TestPlansAreDeterministic.

func placed(w *world) schedule.Placement {
	return schedule.Place(w.snapshot(nil).SchedulerView(), schedule.Settings{})
}

// whereabouts says where each pod is: the host, or the pods that it shares a new node with; and why it is nowhere.
func whereabouts(p *schedule.Placement) map[string]string {
	out := make(map[string]string)
	for _, a := range p.Assigned {
		out[a.Pod.UID] = "host " + a.Host
	}
	for i := range p.Bins {
		b := &p.Bins[i]
		var pods []string
		for _, pod := range b.Pods {
			pods = append(pods, pod.UID)
		}
		slices.Sort(pods)
		for _, pod := range pods {
			out[pod] = fmt.Sprintf("new node of %s for %.4f with %s: %s", b.Pool.Name, b.Price, strings.Join(pods, " "),
				b.Requirements)
		}
	}
	for i := range p.Unplaced {
		out[p.Unplaced[i].Pod.UID] = "nowhere"
	}
	return out
}

// A pod that can be placed nowhere changes nobody's place, whatever rules it has about others.
func TestAnUnplaceablePodMoreChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		before := placed(w)
		sh := drawShape(t, 4000)
		sh.requests[resource.CPU] = 1 << 40 // no machine has so much
		for range rapid.IntRange(0, 3).Draw(t, "rules of the giant") {
			sh.ties.rules = append(sh.ties.rules, drawRule(t))
		}
		sh.ties.labels, sh.ties.namespace = cluster.Labels{}.With("app",
			rapid.SampledFrom(append(apps, "nobody")).Draw(t, "whose")), "default"
		w.tie(&sh, "giant")
		giant := w.addPod(cluster.Pod{Name: rapid.SampledFrom([]string{"aaa", "pod0-00", "zzz"}).Draw(t, "name"),
			Class: w.class("giant", sh), Owner: "giant", Namespace: sh.ties.namespace, Labels: sh.ties.labels})
		after := placed(w)
		have, want := whereabouts(&after), whereabouts(&before)
		if have[giant.UID] != "nowhere" {
			t.Fatalf("the giant is at %s", have[giant.UID])
		}
		delete(have, giant.UID)
		if !maps.Equal(have, want) {
			t.Fatalf("with a pod that has no place:\n%v\nwithout it:\n%v", have, want)
		}
	})
}

// withNames is the world with every pod, node, claim, daemon and owner called otherwise, in the same order.
func (w *world) withNames(as func(string) string) *world {
	out := *w
	out.pods, out.nodes, out.claims, out.owners = map[string]*cluster.Pod{}, map[string]*cluster.Node{},
		map[string]*cluster.Claim{}, map[string]cluster.Owner{}
	for _, p := range w.pods {
		q := *p
		q.UID, q.Name, q.Owner = as(p.UID), as(p.Name), as(p.Owner)
		if namespace, uid, ok := strings.Cut(p.Owner, "/"); ok {
			q.Owner = namespace + "/" + as(uid)
		}
		if q.Node != "" {
			q.Node = as(p.Node)
		}
		out.pods[q.UID] = &q
	}
	for _, n := range w.nodes {
		m := *n
		m.Name, m.ProviderID, m.Labels = as(n.Name), as(n.ProviderID), n.Labels.With(cluster.HostnameLabel, as(n.Name))
		out.nodes[m.Name] = &m
	}
	for _, c := range w.claims {
		d := *c
		d.Name, d.UID, d.ProviderID, d.NodeName, d.Labels = as(c.Name), as(c.UID), as(c.ProviderID), as(c.NodeName),
			c.Labels.With(cluster.HostnameLabel, as(c.NodeName))
		out.claims[d.Name] = &d
	}
	out.daemons = map[string]*cluster.Daemon{}
	for _, d := range w.daemons {
		e := *d
		e.UID, e.Name = as(d.UID), as(d.Name)
		out.daemons[e.UID] = &e
	}
	for uid, o := range w.owners {
		o.UID = as(uid)
		out.owners[o.UID] = o
	}
	return &out
}

// Names mean nothing: if all are changed and their order is not, everything stays as it was. The order does mean
// something, because of pods and nodes that are alike somebody has to come first.
func TestRenamingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		as := func(name string) string { return "x-" + name + "-y" }
		before, after := placed(w), placed(w.withNames(as))
		have, want := whereabouts(&after), map[string]string{}
		for pod, place := range whereabouts(&before) {
			if host, ok := strings.CutPrefix(place, "host "); ok {
				place = "host " + as(host)
			} else if head, rest, ok := strings.Cut(place, " with "); ok {
				pods, what, _ := strings.Cut(rest, ":")
				names := strings.Fields(pods)
				for i := range names {
					names[i] = as(names[i])
				}
				slices.Sort(names)
				place = head + " with " + strings.Join(names, " ") + ":" + what
			}
			want[as(pod)] = place
		}
		if !maps.Equal(have, want) {
			t.Fatalf("with other names:\n%v\nwith the old ones:\n%v", have, want)
		}
	})
}

// drawPlain makes a cluster in which nothing but size, price and labels matters: no rules between pods, no limits, no
// least number of types, one weight. There the price is all that a placement is judged by.
func drawPlain(t *rapid.T, nodes int) *world {
	w := newWorld()
	for i := range rapid.IntRange(1, 5).Draw(t, "types") {
		w.drawType(t, i)
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "pools") {
		w.drawPool(t, i)
	}
	w.level()
	w.old = []shape{{requests: resource.Vector{resource.CPU: 200}}}
	for i := range rapid.IntRange(0, nodes).Draw(t, "nodes") {
		w.drawNode(t, i)
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "classes") {
		sh := drawShape(t, 4000)
		sh.priority = 0
		class := w.class(fmt.Sprint("class", i), sh)
		for j := range rapid.IntRange(1, 6).Draw(t, "pods") {
			w.addPod(cluster.Pod{Name: fmt.Sprintf("pod%d-%d", i, j), Class: class, Owner: fmt.Sprint("rs", i)})
		}
	}
	return w
}

// level makes all pools equal but for their requirements.
func (w *world) level() {
	w.freely()
	for _, p := range w.pools {
		p.Weight, p.NodeClass.Ready = 0, true
	}
}

// dearer is by how much a heuristic may miss: a placement that is no worse in principle may cost this part more, and no
// more than one node of the cheapest offering that it uses. The search is bounded by steps, so that now and then it
// ends elsewhere.
const dearer = 0.15

// noDearer reports whether a price is at most another, give or take what the heuristic may miss.
func noDearer(price, than float64, p *schedule.Placement) bool {
	cheapest := 0.0
	for i := range p.Bins {
		if b := p.Bins[i].Price; cheapest == 0 || b < cheapest {
			cheapest = b
		}
	}
	return price <= than*(1+dearer)+1e-9 || price <= than+cheapest+1e-9
}

// Twice the pods cost at most twice as much: each half could have nodes of its own.
func TestTwiceThePodsCostAtMostTwice(t *testing.T) {
	exact, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawPlain(t, 0)
		before := placed(w)
		for _, name := range slices.Sorted(maps.Keys(w.pods)) {
			p := *w.pods[name]
			p.Name += "-again"
			w.addPod(p)
		}
		after := placed(w)
		if len(after.Unplaced) != 2*len(before.Unplaced) {
			t.Fatalf("%d of the pods have no place, and %d of twice as many", len(before.Unplaced), len(after.Unplaced))
		}
		if all++; after.Price <= 2*before.Price+1e-9 {
			exact++
		}
		if !noDearer(after.Price, 2*before.Price, &after) {
			t.Fatalf("the pods cost %.4f, and twice as many %.4f\n%v\n%v", before.Price, after.Price,
				whereabouts(&before), whereabouts(&after))
		}
		if after.Bound > after.Price+1e-9 || before.Bound > before.Price+1e-9 {
			t.Fatalf("the bounds %.4f and %.4f are above the prices %.4f and %.4f", before.Bound, after.Bound,
				before.Price, after.Price)
		}
	})
	t.Logf("in %d of %d clusters exactly", exact, all)
}

// A pool more is a choice more: it takes no place away and makes nothing dearer.
func TestAPoolMoreMakesNothingDearer(t *testing.T) {
	exact, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawPlain(t, 3)
		before := placed(w)
		w.drawPool(t, 9)
		w.level()
		after := placed(w)
		if len(after.Unplaced) > len(before.Unplaced) {
			t.Fatalf("%d pods have no place, and %d with a pool more", len(before.Unplaced), len(after.Unplaced))
		}
		if len(after.Unplaced) < len(before.Unplaced) {
			return // whoever has a place now has to be paid for
		}
		if all++; after.Price <= before.Price+1e-9 {
			exact++
		}
		if !noDearer(after.Price, before.Price, &after) {
			t.Fatalf("the pods cost %.4f, and %.4f with a pool more\n%v\n%v", before.Price, after.Price,
				whereabouts(&before), whereabouts(&after))
		}
	})
	t.Logf("in %d of %d clusters exactly", exact, all)
}

// A node more that is empty makes nothing dearer, and takes no place away.
func TestAnEmptyNodeMoreMakesNothingDearer(t *testing.T) {
	exact, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawPlain(t, 3)
		before := placed(w)
		if len(w.offerings) == 0 {
			return
		}
		pods := maps.Clone(w.pods)
		w.drawNode(t, 77)
		w.pods = pods // nobody is on it
		if n := w.nodes["node77"]; n != nil {
			n.Ready = true
		}
		after := placed(w)
		if len(after.Unplaced) > len(before.Unplaced) {
			t.Fatalf("%d pods have no place, and %d with a node more", len(before.Unplaced), len(after.Unplaced))
		}
		if all++; after.Price <= before.Price+1e-9 {
			exact++
		}
		if len(after.Unplaced) == len(before.Unplaced) && !noDearer(after.Price, before.Price, &after) {
			t.Fatalf("the pods cost %.4f, and %.4f with a node more\n%v\n%v", before.Price, after.Price,
				whereabouts(&before), whereabouts(&after))
		}
	})
	t.Logf("in %d of %d clusters exactly", exact, all)
}
