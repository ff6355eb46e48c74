package ingest

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// mostChoices bounds in how many ways a pod's volumes can be combined; beyond it the rest is left out.
const mostChoices = 256

// mount is a pod with volumes: what its class is made from, to make it anew when claims, volumes or storage classes
// change.
type mount struct {
	namespace, uid string
	base           *recipe // without the volumes
	sources        []source
	disks          []attachment
}

// mountKey names a recipe that was made from another by adding volumes or default spread constraints.
type mountKey struct {
	base *recipe
	text string
}

// mountPod gives a pod its class, volumes and exclusive claims. Most pods have no volume that matters. The lock is held.
func (b *Book) mountPod(p *cluster.Pod, pod *corev1.Pod) {
	base := b.baseOf(p, pod)
	sources := sourcesOf(pod)
	if len(sources) == 0 || len(sources) > mostVolumes { // the base says that there are too many

		b.unmount(p.UID)
		p.Class = b.classOf(base)
		return
	}
	if old := b.mounts[p.UID]; old == nil || !slices.Equal(old.sources, sources) {
		b.unmount(p.UID)
		for _, s := range sources {
			if s.claim != "" {
				b.use(p.Namespace+"/"+s.claim, p.UID)
			}
		}
	}
	m := &mount{namespace: p.Namespace, uid: p.UID, base: base, sources: sources}
	b.mounts[p.UID] = m
	b.fill(p, m)
}

// unmount forgets a pod's volumes. The lock is held.
func (b *Book) unmount(uid string) {
	m := b.mounts[uid]
	if m == nil {
		return
	}
	delete(b.mounts, uid)
	b.opened(uid, false)
	for _, s := range m.sources {
		key := m.namespace + "/" + s.claim
		if users := b.users[key]; users != nil {
			delete(users, uid)
			if len(users) == 0 {
				delete(b.users, key)
			}
		}
	}
}

func (b *Book) use(claim, uid string) {
	if b.users[claim] == nil {
		b.users[claim] = make(map[string]bool)
	}
	b.users[claim][uid] = true
}

// fill sets what follows from a pod's volumes as they are now. The lock is held.
func (b *Book) fill(p *cluster.Pod, m *mount) {
	n := b.needsOf(m)
	m.disks = n.attached
	b.opened(m.uid, n.open)
	p.Class = b.classOf(b.mounted(m.base, n))
	p.Exclusive, p.Unbound, p.Volumes, p.Places = n.exclusive, n.unbound, nil, n.places
	for _, a := range n.attached {
		if dim, ok := b.names.Lookup(resource.AttachPrefix + a.driver); ok {
			p.Volumes = append(p.Volumes, cluster.Volume{Dim: dim, Handle: a.driver + "/" + a.handle})
		}
	}
}

// atOnce is how many volumes are looked at again at once when something changes that they depend on. If there are more, the
// next snapshot does it, for all that has changed until then.
const atOnce = 256

// remount gives pods their class anew after something has changed that their volumes depend on. The lock is held.
func (b *Book) remount(uids []string) {
	work := 0
	for _, uid := range uids {
		work += len(b.mounts[uid].sources)
	}
	if work <= atOnce {
		b.renew(uids, func(p *cluster.Pod) { b.fill(p, b.mounts[p.UID]) })
		return
	}
	for _, uid := range uids {
		b.stale[uid] = true
	}
	b.touch(nothing)
}

// remountStale looks again at the volumes that events have left for later. The lock is held.
func (b *Book) remountStale() {
	if len(b.stale) == 0 {
		return
	}
	uids := sortedKeys(b.stale)
	clear(b.stale)
	b.renew(uids, func(p *cluster.Pod) {
		if m := b.mounts[p.UID]; m != nil {
			b.fill(p, m)
		}
	})
}

// renew gives pods anew what follows from other objects, and notes what that changes. The lock is held.
func (b *Book) renew(uids []string, anew func(*cluster.Pod)) {
	what := nothing
	changed := false
	for _, uid := range uids {
		old, found := b.pods.get(uid)
		if !found {
			continue
		}
		p := *old
		anew(&p)
		if p.Class == old.Class && slices.Equal(p.Volumes, old.Volumes) && slices.Equal(p.Exclusive, old.Exclusive) && slices.Equal(p.Unbound, old.Unbound) &&
			slices.EqualFunc(p.Places, old.Places, cluster.VolumePlace.Equal) {
			continue
		}
		b.pods.set(uid, &p)
		what, changed = what|podChange(old, &p), true
	}
	if changed {
		b.touch(what)
	}
}

// mounted finds or makes the recipe of pods that have volumes with these needs. The lock is held.
func (b *Book) mounted(base *recipe, n *needs) *recipe {
	key := mountKey{base: base, text: shortened(n.text())}
	if r := b.mountedRecipes[key]; r != nil {
		return r
	}
	r := *base
	r.class = nil
	r.requests = slices.Clone(base.requests)
	for driver, count := range n.counts() {
		name := resource.AttachPrefix + driver
		r.requests = slices.DeleteFunc(r.requests, func(had request) bool { return had.name == name })
		r.requests = append(r.requests, request{name, *apiresource.NewQuantity(count, apiresource.DecimalSI)})
	}
	slices.SortFunc(r.requests, func(a, b request) int { return strings.Compare(a.name, b.name) })
	r.unsupported = append(slices.Clone(base.unsupported), firstFew(n.bad)...)
	terms, read := n.terms(base.terms)
	switch {
	case len(terms) > 0 && read:
		r.own, r.terms = base.terms, terms
	case !read:
		r.unsupported = append(r.unsupported, "volumes whose places can be combined in too many ways to be read; use fewer volumes, or volumes with fewer places")
	case len(n.bad) == 0:
		r.unsupported = append(r.unsupported, "volumes that can't be had together where the pod may run")
	}
	if slices.EqualFunc(r.own, r.terms, func(x, y require.Set) bool { return x.String() == y.String() }) {
		r.own = nil
	}
	b.mountedRecipes[key] = &r
	b.kept += len(key.text) + recipeCost(&r)
	return &r
}

// counts is how many volumes of each driver are attached.
func (n *needs) counts() map[string]int64 {
	out := make(map[string]int64)
	for _, a := range n.attached {
		out[a.driver]++
	}
	return out
}

// mostSteps bounds how many demands are looked at while the alternatives of volumes are combined.
const mostSteps = 200_000

// terms combines a pod's alternatives with those of its volumes; none if nothing is left. It is not done if that would be too
// much work.
func (n *needs) terms(base []require.Set) (terms []require.Set, done bool) {
	steps := 0
	type combination struct {
		set  require.Set
		used []string
	}
	var now []combination
	for _, term := range base {
		now = append(now, combination{set: term})
	}
	lists := n.different()
	if len(n.zones) > 0 {
		// A node without any such label is in a cluster of one zone: nothing is asked of it.
		absent, _ := require.Make(require.DoesNotExist, nil)
		anywhere := require.Set{}.With(corev1.LabelTopologyZone, absent).With(corev1.LabelTopologyRegion, absent)
		lists = append(slices.Clone(lists), choiceList{ways: []choice{{set: n.zones}, {set: anywhere}}})
	}
	for _, list := range lists {
		var next []combination
		for _, c := range now {
			for _, with := range list.ways {
				if with.volume != "" && slices.Contains(c.used, with.volume) {
					continue // another claim of the pod has it
				}
				if steps += 1 + len(c.set) + len(with.set); steps > mostSteps {
					return nil, false
				}
				set := c.set.And(with.set)
				if _, ok := set.Conflict(); !ok || len(next) == mostChoices {
					continue
				}
				used := c.used
				if with.volume != "" {
					used = append(slices.Clone(used), with.volume)
				}
				next = append(next, combination{set, used})
			}
		}
		now = next
	}
	var out []require.Set
	for _, c := range now {
		out = append(out, c.set)
	}
	return merge(out), true
}

// different are the lists of choices without those that say again what another says: claims of one storage class mostly do.
func (n *needs) different() []choiceList {
	if len(n.choices) < 2 {
		return n.choices
	}
	var out []choiceList
	seen := make(map[string]bool)
	for _, list := range n.choices {
		if !slices.ContainsFunc(list.ways, func(c choice) bool { return c.volume != "" }) { // each volume can be had once
			if seen[list.text] {
				continue
			}
			seen[list.text] = true
		}
		out = append(out, list)
	}
	return out
}

// merge joins alternatives that differ in the listed values of one key only, and drops repeated ones: a claim that any of
// a hundred volumes suits, each on its own node, is one alternative with a hundred names.
func merge(sets []require.Set) []require.Set {
	if len(sets) < 2 {
		return sets
	}
	var out []require.Set
	at := make(map[string]int)
	for _, set := range sets {
		key, joined := pattern(set)
		i, known := at[key]
		if !known {
			at[key] = len(out)
			out = append(out, set)
			continue
		}
		if joined == "" {
			continue // the same again
		}
		have, _ := out[i].Get(joined)
		more, _ := set.Get(joined)
		x, _ := have.Listed()
		y, _ := more.Listed()
		out[i] = out[i].Replace(joined, require.Only(append(slices.Clone(x), y...)...))
	}
	return out
}

// pattern is the text of a set with the values of its last finite key left out, and that key.
func pattern(set require.Set) (text, key string) {
	for _, e := range set {
		if _, finite := e.Values.Listed(); finite && !e.Values.AllowsAbsent() {
			key = e.Key
		}
	}
	var parts []string
	for _, e := range set {
		if e.Key == key {
			parts = append(parts, key+" in")
			continue
		}
		parts = append(parts, e.Key+" "+e.Values.String())
	}
	return strings.Join(parts, "; "), key
}

// text is the same for the same needs, handles aside.
func (n *needs) text() string {
	out := new(strings.Builder)
	for _, list := range n.choices {
		out.WriteString(list.text)
		out.WriteByte('\n')
	}
	fmt.Fprintf(out, "%s\n%q\n", n.zones, n.bad)
	counts := n.counts()
	for _, driver := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "%s=%d\n", driver, counts[driver])
	}
	return out.String()
}

// shortened is the text, or a hash of it if it is long.
func shortened(text string) string {
	if len(text) < longText {
		return text
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
