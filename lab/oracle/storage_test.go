package oracle

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Volumes of a shape are drawn as names; claims gives each pod its own, or all pods of the shape the same.
const (
	ownWaiting    = "own-waiting"
	ownZonal      = "own-zonal"
	ownBound      = "own-bound"
	ownHost       = "own-host"
	ownEphemeral  = "own-ephemeral"
	ownExclusive  = "own-exclusive"
	ownLocal      = "own-local"
	sharedWaiting = "shared-waiting"
	sharedBound   = "shared-bound"
	sharedAlone   = "shared-exclusive" // only one pod in the cluster may use it
)

func (g *generator) volume(pod *corev1.Pod) {
	kind := pick(g.dice, ownWaiting, ownWaiting, ownZonal, ownBound, ownBound, ownHost, ownEphemeral, ownExclusive,
		ownLocal, sharedWaiting, sharedBound, sharedAlone)
	v := corev1.Volume{Name: g.name("v")}
	if kind == ownEphemeral {
		v.Ephemeral = &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
			Spec: claimSpec(pick(g.dice, waits, waitsZonal), corev1.ReadWriteOnce)}}
	} else {
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: kind + "-" + v.Name}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, v)
}

func claimSpec(class string, mode corev1.PersistentVolumeAccessMode) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{mode}, StorageClassName: &class,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: amount(
			"1Gi")}},
	}
}

// claims makes the claims behind a pod's volumes, as far as they are not there yet.
func (g *generator) claims(pod *corev1.Pod) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Ephemeral != nil {
			g.addClaim(pod, claimName(pod, v), v.Ephemeral.VolumeClaimTemplate.Spec, nil, true)
			continue
		}
		name := v.PersistentVolumeClaim.ClaimName
		has := func(kind string) bool { return len(name) > len(kind) && name[:len(kind)] == kind }
		if name[:4] == "own-" {
			v.PersistentVolumeClaim.ClaimName = name + "-" + pod.Name
		}
		g.claim(pod, v.PersistentVolumeClaim.ClaimName, has)
	}
}

// claim makes what the name of the volume says.
func (g *generator) claim(pod *corev1.Pod, name string, has func(kind string) bool) {
	for _, c := range g.s.w.VolumeClaims {
		if c.Namespace == pod.Namespace && c.Name == name {
			return
		}
	}
	switch {
	case has(ownWaiting):
		g.addClaim(pod, name, claimSpec(waits, corev1.ReadWriteOnce), nil, false)
	case has(ownZonal):
		g.addClaim(pod, name, claimSpec(waitsZonal, corev1.ReadWriteOnce), nil, false)
	case has(ownLocal):
		g.addClaim(pod, name, claimSpec(local, corev1.ReadWriteOnce), nil, false)
	case has(ownBound):
		zones := some(g.dice, 2, g.zones...)
		if g.chance(20) {
			zones = zones[:0] // within reach everywhere
		}
		g.addClaim(pod, name, claimSpec(immediate, corev1.ReadWriteOnce), zones, false)
	case has(ownHost):
		g.addClaim(pod, name, claimSpec(immediate, corev1.ReadWriteOnce), []string{}, false)
		g.pinVolume()
	case has(ownExclusive):
		g.addClaim(pod, name, claimSpec(waits, corev1.ReadWriteOncePod), nil, false)
	case has(sharedAlone):
		g.addClaim(pod, name, claimSpec(waits, corev1.ReadWriteOncePod), nil, false)
	case has(sharedWaiting):
		g.addClaim(pod, name, claimSpec(waits, corev1.ReadWriteMany), nil, false)
	case has(sharedBound):
		g.addClaim(pod, name, claimSpec(immediate, corev1.ReadWriteMany), some(g.dice, 1, g.zones...), false)
	}
}

// addClaim makes a claim; it is bound to a volume in the zones unless zones is nil.
func (g *generator) addClaim(pod *corev1.Pod, name string, spec corev1.PersistentVolumeClaimSpec, zones []string,
	ephemeral bool) {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name, UID: g.uid()}, Spec: spec,
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	if ephemeral {
		claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
			Controller: new(true)}}
	}
	if zones == nil {
		g.s.addClaim(claim, nil)
		return
	}
	bound, volume := boundTo(claim, zones)
	if len(zones) > 0 && g.chance(20) {
		// As in-tree drivers did: a label instead of node affinity.
		volume.Spec.NodeAffinity = nil
		volume.Labels = map[string]string{corev1.LabelTopologyZone: zones[0]}
	}
	g.s.addClaim(bound, volume)
}

// pinVolume moves the latest volume to one host, if there is one.
func (g *generator) pinVolume() {
	if len(g.s.w.Nodes) == 0 {
		return
	}
	last := len(g.s.w.Volumes) - 1
	volume := g.s.w.Volumes[last].DeepCopy()
	volume.Spec.NodeAffinity = reachable(corev1.LabelHostname, pick(g.dice, g.s.w.Nodes...).Name)
	g.s.w.Volumes = g.s.w.Volumes[:last]
	g.s.addVolume(volume)
}

func (s *scheduler) addClaim(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	s.w.VolumeClaims = append(s.w.VolumeClaims, claim)
	s.tell(s.informers.Core().V1().PersistentVolumeClaims().Informer().GetIndexer().Update(claim))
	if volume != nil {
		s.addVolume(volume)
	}
}

func (s *scheduler) addVolume(volume *corev1.PersistentVolume) {
	s.w.Volumes = append(s.w.Volumes, volume)
	s.tell(s.informers.Core().V1().PersistentVolumes().Informer().GetIndexer().Update(volume))
}
