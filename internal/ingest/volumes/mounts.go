package volumes

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/internal/ingest/podspec"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// mostChoices bounds in how many ways a pod's volumes can be combined; beyond it the rest is left out.
const mostChoices = 256

// PodVolumes is a pod with volumes: what its class is made from, to make it anew when claims, volumes or storage
// classes change.
type PodVolumes struct {
	namespace, uid string
	Base           *podspec.Spec // without the volumes
	sources        []volumeSource
	disks          []attachment
}

// Mounts knows which pods have volumes.
type Mounts struct {
	ofPods  map[string]*PodVolumes     // by UID
	users   map[string]map[string]bool // the pods that use a claim
	unbound map[string]bool            // pods with a claim that is not bound
	stale   map[string]bool            // pods whose volumes are to be looked at again
}

// NewMounts knows no pod yet.
func NewMounts() Mounts {
	return Mounts{ofPods: make(map[string]*PodVolumes), users: make(map[string]map[string]bool),
		unbound: make(map[string]bool), stale: make(map[string]bool)}
}

// Read takes in a pod's volumes; base is its spec without them. It is nil if the pod has none that matters, or too
// many, which base says.
func (m *Mounts) Read(pod *corev1.Pod, base *podspec.Spec) *PodVolumes {
	uid, sources := string(pod.UID), sourcesOf(pod)
	if len(sources) == 0 || len(sources) > podspec.MostVolumes {
		m.Drop(uid)
		return nil
	}
	if old := m.ofPods[uid]; old == nil || !slices.Equal(old.sources, sources) {
		m.Drop(uid)
		for _, s := range sources {
			if s.claim != "" {
				m.addUser(pod.Namespace+"/"+s.claim, uid)
			}
		}
	}
	v := &PodVolumes{namespace: pod.Namespace, uid: uid, Base: base, sources: sources}
	m.ofPods[uid] = v
	return v
}

// Drop forgets a pod's volumes.
func (m *Mounts) Drop(uid string) {
	v := m.ofPods[uid]
	if v == nil {
		return
	}
	delete(m.ofPods, uid)
	delete(m.unbound, uid)
	for _, s := range v.sources {
		key := v.namespace + "/" + s.claim
		if users := m.users[key]; users != nil {
			delete(users, uid)
			if len(users) == 0 {
				delete(m.users, key)
			}
		}
	}
}

func (m *Mounts) addUser(claim, uid string) {
	if m.users[claim] == nil {
		m.users[claim] = make(map[string]bool)
	}
	m.users[claim][uid] = true
}

// Of are the volumes of a pod; nil if it has none.
func (m *Mounts) Of(uid string) *PodVolumes { return m.ofPods[uid] }

// Bases yields the specs that pods with volumes are made from.
func (m *Mounts) Bases(yield func(*podspec.Spec) bool) {
	for _, v := range m.ofPods {
		if !yield(v.Base) {
			return
		}
	}
}

// Apply notes what a pod's volumes have turned out to ask for.
func (m *Mounts) Apply(v *PodVolumes, n *Needs) {
	v.disks = n.Attached
	if n.hasUnboundClaim {
		m.unbound[v.uid] = true
	} else {
		delete(m.unbound, v.uid)
	}
}

// Users are the pods that use a claim.
func (m *Mounts) Users(claim string) []string { return slices.Sorted(maps.Keys(m.users[claim])) }

// Unbound are the pods with claims that are not bound.
func (m *Mounts) Unbound() []string { return slices.Sorted(maps.Keys(m.unbound)) }

// DependingOn are the pods whose place may depend on the volume that is bound to a claim: those of the claim, and those
// with claims that are not bound.
func (m *Mounts) DependingOn(claim string) []string {
	uids := maps.Clone(m.unbound)
	maps.Copy(uids, m.users[claim])
	return slices.Sorted(maps.Keys(uids))
}

// refreshAtOnce is how many volumes are looked at again at once when something changes that they depend on. If there
// are more, they are looked at later, for all that has changed until then.
const refreshAtOnce = 256

// Defer leaves pods for later if they have many volumes.
func (m *Mounts) Defer(uids []string) bool {
	work := 0
	for _, uid := range uids {
		work += len(m.ofPods[uid].sources)
	}
	if work <= refreshAtOnce {
		return false
	}
	for _, uid := range uids {
		m.stale[uid] = true
	}
	return true
}

// TakeDeferred are the pods that were left for later.
func (m *Mounts) TakeDeferred() []string {
	uids := slices.Sorted(maps.Keys(m.stale))
	clear(m.stale)
	return uids
}

// DiskOn is a volume on a node.
type DiskOn struct{ node, disk string }

// Staying are the volumes of pods that stay on their nodes.
func (m *Mounts) Staying(stays func(uid string) (node string, is bool)) map[DiskOn]bool {
	out := make(map[DiskOn]bool)
	for uid, v := range m.ofPods {
		if node, is := stays(uid); is {
			for _, d := range v.disks {
				out[DiskOn{node, d.Driver + "/" + d.Handle}] = true
			}
		}
	}
	return out
}

// Extend adds the needs to the spec of a pod, of which they are taken to be the volumes.
func (n *Needs) Extend(r *podspec.Spec) {
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
func (n *Needs) counts() map[string]int64 {
	out := make(map[string]int64)
	for _, a := range n.Attached {
		out[a.Driver]++
	}
	return out
}

// maxCombineSteps bounds how many demands are looked at while the alternatives of volumes are combined.
const maxCombineSteps = 200_000

// terms combines a pod's alternatives with those of its volumes; none if nothing is left. It is not done if that would
// be too much work.
func (n *Needs) terms(base []require.Set) (terms []require.Set, done bool) {
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
		lists = append(slices.Clone(lists), choiceList{choices: []choice{{set: n.zones}, {set: anywhere}}})
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
func (n *Needs) distinctChoices() []choiceList {
	if len(n.choices) < 2 {
		return n.choices
	}
	var out []choiceList
	seen := make(map[string]bool)
	for _, list := range n.choices {
		if !slices.ContainsFunc(list.choices, func(c choice) bool { return c.volume != "" }) {
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

// Key names the needs, handles aside.
func (n *Needs) Key() string { return hashIfLong(n.text()) }

// text is the same for the same needs, handles aside.
func (n *Needs) text() string {
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
