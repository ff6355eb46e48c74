package volumes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
	"github.com/tenon-sh/tenon/internal/require"
)

// volumeSource is a volume in a pod's spec that ties the pod to places or counts against what a node can attach.
type volumeSource struct {
	name string // in the pod
	// claim is the PersistentVolumeClaim that it refers to, or that is made for it from the template.
	claim    string
	template *corev1.PersistentVolumeClaimTemplate
	// driver and disk are set for a disk that the pod names without a claim.
	driver, disk string
}

// sourcesOf lists a pod's volumes that matter to where it may run.
func sourcesOf(pod *corev1.Pod) []volumeSource {
	var out []volumeSource
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			out = append(out, volumeSource{name: v.Name, claim: v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			out = append(out, volumeSource{name: v.Name, claim: pod.Name + "-" + v.Name,
				template: v.Ephemeral.VolumeClaimTemplate})
		default:
			if driver, disk := decode.InlineDisk(v); driver != "" {
				out = append(out, volumeSource{name: v.Name, driver: driver, disk: disk})
			}
		}
	}
	return out
}

// choice is one way in which a volume can be had on a node.
type choice struct {
	set require.Set
	// volume is the PersistentVolume that it would use up; empty if any number can be had.
	volume string
}

// choiceList is the ways in which a volume can be had; lists with the same text are the same.
type choiceList struct {
	choices []choice
	text    string
}

func choiceListOf(choices []choice) choiceList {
	text := new(strings.Builder)
	for _, c := range choices {
		text.WriteString("(" + c.set.String() + ")" + c.volume)
	}
	return choiceList{choices, hashIfLong(text.String())}
}

// Needs is what a pod's volumes ask for, taken together.
type Needs struct {
	choices []choiceList // one of each list must hold
	zones   require.Set  // what the zone labels of volumes ask of nodes that have such labels
	// Attached are the volumes by driver and handle; exclusive the claims that one pod alone may use.
	Attached  []attachment
	known     map[attachment]bool
	Exclusive []string
	problems  []string
	// Places are where volumes are, for people.
	Places []cluster.VolumePlace
	// Unbound are claims whose volume will be made where their first pod goes.
	Unbound []string
	// hasUnboundClaim says that a claim is not bound: other objects than the claim decide.
	hasUnboundClaim bool
	// steps counts the volumes that were looked at for unbound claims.
	steps int
}

type attachment struct{ Driver, Handle string }

// NeedsOf finds out what the volumes of a pod ask for.
func (st *Storage) NeedsOf(v *PodVolumes) *Needs {
	n := &Needs{}
	for i := range v.sources {
		s := &v.sources[i]
		if s.driver != "" {
			n.attach(s.driver, s.disk)
			continue
		}
		claim, found := st.claims[v.namespace+"/"+s.claim]
		if !found && s.template != nil {
			// The claim will be made from the template in a moment.
			claim = &corev1.PersistentVolumeClaim{ObjectMeta: *s.template.ObjectMeta.DeepCopy(), Spec: s.template.Spec}
			claim.Namespace, claim.Name, found = v.namespace, s.claim, true
		} else if found && s.template != nil && !ownedBy(claim, v.uid) {
			n.reject("persistent volume claim %s is not the one made for volume %s of this pod", s.claim, s.name)
			continue
		}
		if !found {
			n.reject("persistent volume claim %s does not exist", s.claim)
			continue
		}
		st.addClaimNeeds(n, s, claim)
	}
	return n
}

func ownedBy(claim *corev1.PersistentVolumeClaim, uid string) bool {
	return slices.ContainsFunc(claim.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Controller != nil && *o.Controller && string(o.UID) == uid
	})
}

func (n *Needs) reject(format string, args ...any) {
	n.problems = append(n.problems, fmt.Sprintf(format, args...))
	n.hasUnboundClaim = true
}

func (n *Needs) attach(driver, handle string) {
	a := attachment{driver, handle}
	if driver == "" || handle == "" || n.known[a] {
		return
	}
	if n.known == nil {
		n.known = make(map[attachment]bool)
	}
	n.known[a] = true
	n.Attached = append(n.Attached, a)
}

// addClaimNeeds adds what one claim asks for.
func (st *Storage) addClaimNeeds(n *Needs, s *volumeSource, claim *corev1.PersistentVolumeClaim) {
	if s.template == nil && slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
		n.Exclusive = append(n.Exclusive, claim.Namespace+"/"+claim.Name)
	}
	_, complete := claim.Annotations[volume.AnnBindCompleted]
	switch {
	case claim.Status.Phase == corev1.ClaimLost:
		n.reject("persistent volume claim %s has lost its volume %s", claim.Name, claim.Spec.VolumeName)
	case claim.DeletionTimestamp != nil:
		n.reject("persistent volume claim %s is being deleted", claim.Name)
	case claim.Spec.VolumeName == "":
		st.addUnboundNeeds(n, claim)
	case !complete:
		n.reject("persistent volume claim %s is still being bound to volume %s", claim.Name, claim.Spec.VolumeName)
	default:
		st.addBoundNeeds(n, s, claim)
	}
}

func (st *Storage) addBoundNeeds(n *Needs, s *volumeSource, claim *corev1.PersistentVolumeClaim) {
	pv := st.volumes[claim.Spec.VolumeName]
	if pv == nil {
		n.reject("volume %s of persistent volume claim %s does not exist", claim.Spec.VolumeName, claim.Name)
		return
	}
	if places := placesOf(pv); places > podspec.MostPlaces {
		n.reject("volume %s of persistent volume claim %s: %d terms in spec.nodeAffinity found, at most %d are read; "+
			"name several values in one term",
			pv.Name, claim.Name, places, podspec.MostPlaces)
		return
	}
	sets, bound := reachableFrom(pv)
	if bound {
		n.choose(sets, "")
	}
	if s.template == nil {
		n.zones = n.zones.And(zonesOf(pv))
		sets = append(slices.Clone(sets), zonesOf(pv))
	}
	n.addPlace(pv.Name, sets)
	n.attach(decode.DiskOf(pv))
}

// addPlace writes down where a volume is.
func (n *Needs) addPlace(volume string, sets []require.Set) {
	at := make(map[string][]string)
	for _, set := range sets {
		for _, e := range set {
			if values, finite := e.Values.Listed(); finite {
				at[e.Key] = append(at[e.Key], values...)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(at)) {
		slices.Sort(at[key])
		n.Places = append(n.Places, cluster.VolumePlace{Volume: volume, Key: key, Values: slices.Compact(at[key])})
	}
}

func (n *Needs) choose(sets []require.Set, volume string) {
	list := make([]choice, 0, len(sets))
	for _, set := range sets {
		list = append(list, choice{set: set, volume: volume})
	}
	n.choices = append(n.choices, choiceListOf(list))
}

// addUnboundNeeds adds what a claim asks for that is bound once its pod has a node.
func (st *Storage) addUnboundNeeds(n *Needs, claim *corev1.PersistentVolumeClaim) {
	n.hasUnboundClaim = true
	name := volume.GetPersistentVolumeClaimClass(claim)
	class := st.classes[name]
	switch {
	case name == "":
		n.reject("persistent volume claim %s is not bound and names no storage class", claim.Name)
		return
	case class == nil:
		n.reject("storage class %s of persistent volume claim %s does not exist", name, claim.Name)
		return
	case class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer:
		n.reject("persistent volume claim %s is not bound, and its storage class %s does not wait for the pod to "+
			"have a node", claim.Name, name)
		return
	}
	if n.steps += len(st.ofClass[name]); len(class.AllowedTopologies) > podspec.MostPlaces ||
		n.steps > maxCombineSteps {
		n.reject("storage class %s of persistent volume claim %s has %d allowedTopologies (at most %d are read) and "+
			"%d volumes to choose from for all claims of the pod (at most %d); "+
			"use fewer", name, claim.Name, len(class.AllowedTopologies), podspec.MostPlaces, n.steps, maxCombineSteps)
		return
	}
	list, any := st.choicesOf(n, claim, class)
	if len(list.choices) == 0 && !any {
		n.problems = append(n.problems, fmt.Sprintf("no volume of storage class %s is free for persistent volume "+
			"claim %s", name, claim.Name))
	}
	if class.Provisioner == volume.NotSupportedProvisioner {
		// Its volumes are there and each can be had once. Which one a pod gets is kube-scheduler's choice, so such pods
		// are planned for one after the other.
		n.Exclusive = append(n.Exclusive, "storage class "+name)
		return
	}
	n.attach(decode.CsiDriver(class.Provisioner), claim.Namespace+"/"+claim.Name)
	n.Unbound = append(n.Unbound, claim.Namespace+"/"+claim.Name)
}

// choicesOf adds the ways in which an unbound claim's volume can be had. any says that one can be made everywhere.
func (st *Storage) choicesOf(n *Needs, claim *corev1.PersistentVolumeClaim,
	class *storagev1.StorageClass) (list choiceList, any bool) {
	list, any = st.provisionableIn(class)
	selected, taken := claim.Annotations[volume.AnnSelectedNode]
	switch {
	case taken:
		made := list.choices
		if any {
			made = []choice{{}}
		}
		var choices []choice
		for _, c := range made {
			choices = append(choices, choice{set: c.set.With(podspec.NameField, require.Only(selected))})
		}
		list = choiceListOf(choices)
	case !any:
		if ready := st.bindableVolumes(claim, class.Name); len(ready) > 0 {
			list = choiceListOf(append(ready, list.choices...))
		}
	default:
		return list, any
	}
	n.choices = append(n.choices, list)
	return list, any
}

// provisionableIn says where a class can make new volumes: everywhere if any is set.
func (st *Storage) provisionableIn(class *storagev1.StorageClass) (list choiceList, any bool) {
	if class.Provisioner == "" || class.Provisioner == volume.NotSupportedProvisioner {
		return choiceList{}, false
	}
	if len(class.AllowedTopologies) == 0 {
		return choiceList{}, true
	}
	if list, known := st.madeBy[class]; known {
		return list, false
	}
	var choices []choice
	for _, term := range class.AllowedTopologies {
		if len(term.MatchLabelExpressions) == 0 {
			continue // such a term matches no node
		}
		var entries []require.Entry
		for _, e := range term.MatchLabelExpressions {
			entries = append(entries, require.Entry{Key: decode.TopologyKey(e.Key), Values: require.Only(e.Values...)})
		}
		choices = append(choices, choice{set: require.Of(entries)})
	}
	list = choiceListOf(choices)
	st.madeBy[class] = list
	return list, false
}

// bindableVolumes are the volumes that are there and that the claim could be bound to, by name.
func (st *Storage) bindableVolumes(claim *corev1.PersistentVolumeClaim, class string) []choice {
	var out []choice
	for _, name := range st.volumeNames(class) {
		pv := st.ofClass[class][name]
		if !volumeSuits(pv, claim) || placesOf(pv) > podspec.MostPlaces {
			continue
		}
		sets, bound := reachableFrom(pv)
		if !bound {
			sets = []require.Set{nil}
		}
		var own []choice
		for _, set := range sets {
			own = append(own, choice{set: set, volume: name})
		}
		if volume.IsVolumeBoundToClaim(pv, claim) {
			return own // it is kept for this claim, which takes no other
		}
		if pv.Status.Phase == corev1.VolumeAvailable && claimSelects(claim, pv) && volume.CheckAccessModes(claim, pv) {
			out = append(out, own...)
		}
	}
	return out
}

// volumeNames are the volumes of a storage class, sorted.
func (st *Storage) volumeNames(class string) []string {
	names, known := st.sorted[class]
	if !known {
		names = slices.Sorted(maps.Keys(st.ofClass[class]))
		st.sorted[class] = names
	}
	return names
}

// volumeSuits reports whether the volume is neither kept for another claim nor too small nor of another kind.
func volumeSuits(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	if pv.Spec.ClaimRef != nil && !volume.IsVolumeBoundToClaim(pv, claim) {
		return false
	}
	have, want := pv.Spec.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if have.Cmp(want) < 0 || pv.DeletionTimestamp != nil {
		return false
	}
	return !volume.CheckVolumeModeMismatches(&claim.Spec, &pv.Spec) &&
		deref(claim.Spec.VolumeAttributesClassName) == deref(pv.Spec.VolumeAttributesClassName)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// claimSelects reports whether the claim's selector allows the volume.
func claimSelects(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) bool {
	if claim.Spec.Selector == nil {
		return true
	}
	s, _ := podspec.ReadSelector(claim.Spec.Selector)
	_, ok := s.Labels.FirstMiss(cluster.LabelsOf(pv.Labels).Get)
	return ok && !s.MatchesNone
}

// placesOf counts the terms of a volume's node affinity.
func placesOf(pv *corev1.PersistentVolume) int {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return 0
	}
	return len(pv.Spec.NodeAffinity.Required.NodeSelectorTerms)
}

// reachableFrom says from which nodes a volume can be used; from all if bound is false.
func reachableFrom(pv *corev1.PersistentVolume) (sets []require.Set, bound bool) {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return nil, false
	}
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		if len(term.MatchExpressions) == 0 || len(term.MatchFields) > 0 {
			continue // Kubernetes matches volumes by labels alone
		}
		var entries []require.Entry
		ok := true
		for _, e := range term.MatchExpressions {
			values, readable := require.Make(require.Operator(e.Operator), e.Values)
			entries, ok = append(entries, require.Entry{Key: decode.TopologyKey(e.Key), Values: values}), ok && readable
		}
		if ok {
			sets = append(sets, require.Of(entries))
		}
	}
	return sets, true
}

// zonesOf reads the zone and region labels of a volume; several values are joined by two underscores.
func zonesOf(pv *corev1.PersistentVolume) require.Set {
	var set require.Set
	for _, key := range []string{corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
		corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
		text, ok := pv.Labels[key]
		if !ok {
			continue
		}
		values := strings.Split(text, "__")
		for i := range values {
			values[i] = strings.TrimSpace(values[i])
		}
		if !slices.Contains(values, "") {
			set = set.With(decode.TopologyKey(key), require.Only(values...))
		}
	}
	return set
}
