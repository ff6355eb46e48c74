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
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// mostChoices bounds in how many ways a pod's volumes can be combined; beyond it the rest is left out.
const mostChoices = 256

// podVolumes is a pod with volumes: what its class is made from, to make it anew when claims, volumes or storage
// classes change.
type podVolumes struct {
	namespace, uid string
	base           *podspec.Spec // without the volumes
	sources        []volumeSource
	disks          []attachment
}

// readPodVolumes gives a pod its class, volumes and exclusive claims. Most pods have no volume that matters. The lock
// is held.
func (b *Book) readPodVolumes(p *cluster.Pod, pod *corev1.Pod) {
	base := b.specWithDefaults(p, pod)
	sources := sourcesOf(pod)
	if len(sources) == 0 || len(sources) > podspec.MostVolumes { // the base says that there are too many

		b.dropPodVolumes(p.UID)
		p.Class = b.specs.Class(base)
		return
	}
	if old := b.volumesOfPods[p.UID]; old == nil || !slices.Equal(old.sources, sources) {
		b.dropPodVolumes(p.UID)
		for _, s := range sources {
			if s.claim != "" {
				b.addClaimUser(p.Namespace+"/"+s.claim, p.UID)
			}
		}
	}
	v := &podVolumes{namespace: p.Namespace, uid: p.UID, base: base, sources: sources}
	b.volumesOfPods[p.UID] = v
	b.applyVolumes(p, v)
}

// dropPodVolumes forgets a pod's volumes. The lock is held.
func (b *Book) dropPodVolumes(uid string) {
	v := b.volumesOfPods[uid]
	if v == nil {
		return
	}
	delete(b.volumesOfPods, uid)
	b.setUnbound(uid, false)
	for _, s := range v.sources {
		key := v.namespace + "/" + s.claim
		if users := b.claimUsers[key]; users != nil {
			delete(users, uid)
			if len(users) == 0 {
				delete(b.claimUsers, key)
			}
		}
	}
}

func (b *Book) addClaimUser(claim, uid string) {
	if b.claimUsers[claim] == nil {
		b.claimUsers[claim] = make(map[string]bool)
	}
	b.claimUsers[claim][uid] = true
}

// applyVolumes sets what follows from a pod's volumes as they are now. The lock is held.
func (b *Book) applyVolumes(p *cluster.Pod, v *podVolumes) {
	n := b.volumeNeedsOf(v)
	v.disks = n.attached
	b.setUnbound(v.uid, n.hasUnboundClaim)
	p.Class = b.specs.Class(b.specs.Derive(v.base, hashIfLong(n.text()), n.extend))
	p.ExclusiveVolumes, p.UnboundClaims, p.Volumes, p.VolumePlaces = n.exclusive, n.unbound, nil, n.places
	for _, a := range n.attached {
		if dim, ok := b.specs.Dims.Names.Lookup(resource.AttachPrefix + a.driver); ok {
			p.Volumes = append(p.Volumes, cluster.Volume{Dim: dim, Handle: a.driver + "/" + a.handle})
		}
	}
}

// refreshAtOnce is how many volumes are looked at again at once when something changes that they depend on. If there
// are more, the next snapshot does it, for all that has changed until then.
const refreshAtOnce = 256

// refreshVolumes gives pods their class anew after something has changed that their volumes depend on. The lock is
// held.
func (b *Book) refreshVolumes(uids []string) {
	work := 0
	for _, uid := range uids {
		work += len(b.volumesOfPods[uid].sources)
	}
	if work <= refreshAtOnce {
		b.refreshPods(uids, func(p *cluster.Pod) { b.applyVolumes(p, b.volumesOfPods[p.UID]) })
		return
	}
	for _, uid := range uids {
		b.stalePods[uid] = true
	}
	b.noteAndWake(noChange)
}

// refreshStaleVolumes looks again at the volumes that events have left for later. The lock is held.
func (b *Book) refreshStaleVolumes() {
	if len(b.stalePods) == 0 {
		return
	}
	uids := sortedKeys(b.stalePods)
	clear(b.stalePods)
	b.refreshPods(uids, func(p *cluster.Pod) {
		if v := b.volumesOfPods[p.UID]; v != nil {
			b.applyVolumes(p, v)
		}
	})
}

// refreshPods gives pods anew what follows from other objects, and notes what that changes. The lock is held.
func (b *Book) refreshPods(uids []string, anew func(*cluster.Pod)) {
	what := noChange
	changed := false
	for _, uid := range uids {
		old, found := b.pods.get(uid)
		if !found {
			continue
		}
		p := *old
		anew(&p)
		if p.Class == old.Class && slices.Equal(p.Volumes, old.Volumes) && slices.Equal(p.ExclusiveVolumes,
			old.ExclusiveVolumes) && slices.Equal(p.UnboundClaims, old.UnboundClaims) &&
			slices.EqualFunc(p.VolumePlaces, old.VolumePlaces, cluster.VolumePlace.Equal) {
			continue
		}
		b.pods.set(uid, &p)
		what, changed = what|podChange(old, &p), true
	}
	if changed {
		b.noteAndWake(what)
	}
}

// extend adds the needs to the spec of a pod, of which they are taken to be the volumes.
func (n *volumeNeeds) extend(r *podspec.Spec) {
	base := r.Terms
	r.Requests = slices.Clone(r.Requests)
	for driver, count := range n.counts() {
		name := resource.AttachPrefix + driver
		r.Requests = slices.DeleteFunc(r.Requests, func(had podspec.Request) bool { return had.Name == name })
		r.Requests = append(r.Requests, podspec.Request{Name: name, Amount: *apiresource.NewQuantity(count,
			apiresource.DecimalSI)})
	}
	slices.SortFunc(r.Requests, func(a, b podspec.Request) int { return strings.Compare(a.Name, b.Name) })
	r.Unsupported = append(slices.Clone(r.Unsupported), podspec.FirstFew(n.problems)...)
	terms, read := n.terms(base)
	switch {
	case len(terms) > 0 && read:
		r.OwnTerms, r.Terms = base, terms
	case !read:
		r.Unsupported = append(r.Unsupported, "volumes whose places can be combined in too many ways to be read; use "+
			"fewer volumes, or volumes with fewer places")
	case len(n.problems) == 0:
		r.Unsupported = append(r.Unsupported, "volumes that can't be had together where the pod may run")
	}
	if slices.EqualFunc(r.OwnTerms, r.Terms, func(x, y require.Set) bool { return x.String() == y.String() }) {
		r.OwnTerms = nil
	}
}

// counts is how many volumes of each driver are attached.
func (n *volumeNeeds) counts() map[string]int64 {
	out := make(map[string]int64)
	for _, a := range n.attached {
		out[a.driver]++
	}
	return out
}

// maxCombineSteps bounds how many demands are looked at while the alternatives of volumes are combined.
const maxCombineSteps = 200_000

// terms combines a pod's alternatives with those of its volumes; none if nothing is left. It is not done if that would
// be too much work.
func (n *volumeNeeds) terms(base []require.Set) (terms []require.Set, done bool) {
	steps := 0
	type combination struct {
		set  require.Set
		used []string
	}
	var now []combination
	for _, term := range base {
		now = append(now, combination{set: term})
	}
	lists := n.distinctChoices()
	if len(n.zones) > 0 {
		// A node without any such label is in a cluster of one zone: nothing is asked of it.
		absent, _ := require.Make(require.DoesNotExist, nil)
		anywhere := require.Set{}.With(corev1.LabelTopologyZone, absent).With(corev1.LabelTopologyRegion, absent)
		lists = append(slices.Clone(lists), volumeChoices{choices: []volumeChoice{{set: n.zones}, {set: anywhere}}})
	}
	for _, list := range lists {
		var next []combination
		for _, c := range now {
			for _, with := range list.choices {
				if with.volume != "" && slices.Contains(c.used, with.volume) {
					continue // another claim of the pod has it
				}
				if steps += 1 + len(c.set) + len(with.set); steps > maxCombineSteps {
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
	return mergeTerms(out), true
}

// distinctChoices are the lists of choices without those that say again what another says: claims of one storage class
// mostly do.
func (n *volumeNeeds) distinctChoices() []volumeChoices {
	if len(n.choices) < 2 {
		return n.choices
	}
	var out []volumeChoices
	seen := make(map[string]bool)
	for _, list := range n.choices {
		if !slices.ContainsFunc(list.choices, func(c volumeChoice) bool { return c.volume != "" }) {
			// each volume can be had once
			if seen[list.text] {
				continue
			}
			seen[list.text] = true
		}
		out = append(out, list)
	}
	return out
}

// mergeTerms joins alternatives that differ in the listed values of one key only, and drops repeated ones: a claim that
// any of a hundred volumes suits, each on its own node, is one alternative with a hundred names.
func mergeTerms(sets []require.Set) []require.Set {
	if len(sets) < 2 {
		return sets
	}
	var out []require.Set
	at := make(map[string]int)
	for _, set := range sets {
		key, joined := termPattern(set)
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

// termPattern is the text of a set with the values of its last finite key left out, and that key.
func termPattern(set require.Set) (text, key string) {
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
func (n *volumeNeeds) text() string {
	out := new(strings.Builder)
	for _, list := range n.choices {
		out.WriteString(list.text)
		out.WriteByte('\n')
	}
	fmt.Fprintf(out, "%s\n%q\n", n.zones, n.problems)
	counts := n.counts()
	for _, driver := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "%s=%d\n", driver, counts[driver])
	}
	return out.String()
}

// hashIfLong is the text, or a hash of it if it is long.
func hashIfLong(text string) string {
	if len(text) < podspec.LongText {
		return text
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
