package ingest

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/tenon-sh/tenon/internal/cluster"
)

const volumeClaimKind = "PersistentVolumeClaim"

// SetVolumeClaim takes in a PersistentVolumeClaim.
func (b *Book) SetVolumeClaim(claim *corev1.PersistentVolumeClaim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := claim.Namespace + "/" + claim.Name
	b.volumeClaims[key], b.attached = claim, nil
	b.forgetNote(volumeClaimKind, key)
	if pv := claim.Spec.VolumeName; pv != "" {
		b.claimOf[pv] = key
	} else {
		b.tellTooLong(volumeClaimKind, claim,
			"pods that use it are planned for as if no existing volume matched it; select volumes by a label that "+
				"they share")
	}
	b.refreshVolumes(sortedKeys(b.claimUsers[key]))
}

// DeleteVolumeClaim takes in that a PersistentVolumeClaim is gone.
func (b *Book) DeleteVolumeClaim(namespace, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := namespace + "/" + name
	if old := b.volumeClaims[key]; old != nil && b.claimOf[old.Spec.VolumeName] == key {
		delete(b.claimOf, old.Spec.VolumeName)
	}
	delete(b.volumeClaims, key)
	b.forgetNote(volumeClaimKind, key)
	b.attached = nil
	b.refreshVolumes(sortedKeys(b.claimUsers[key]))
}

// SetVolume takes in a PersistentVolume.
func (b *Book) SetVolume(pv *corev1.PersistentVolume) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.volumes[pv.Name]
	b.indexVolume(old, pv)
	b.refreshVolumes(b.podsDependingOn(pv.Name))
}

// DeleteVolume takes in that a PersistentVolume is gone.
func (b *Book) DeleteVolume(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.volumes[name]
	b.indexVolume(old, nil)
	b.refreshVolumes(b.podsDependingOn(name))
}

// indexVolume keeps a volume under its name and its storage class. The lock is held.
func (b *Book) indexVolume(old, now *corev1.PersistentVolume) {
	b.attached = nil
	if old != nil {
		class := volume.GetPersistentVolumeClass(old)
		delete(b.sortedVolumes, class)
		delete(b.volumes, old.Name)
		delete(b.volumesOf[class], old.Name)
		if len(b.volumesOf[class]) == 0 {
			delete(b.volumesOf, class)
		}
	}
	if now != nil {
		class := volume.GetPersistentVolumeClass(now)
		delete(b.sortedVolumes, class)
		if b.volumesOf[class] == nil {
			b.volumesOf[class] = make(map[string]*corev1.PersistentVolume)
		}
		b.volumes[now.Name], b.volumesOf[class][now.Name] = now, now
	}
}

// podsDependingOn are the pods whose place may depend on a volume: those of the claim that is bound to it, and those
// with claims that are not bound. The lock is held.
func (b *Book) podsDependingOn(pv string) []string {
	uids := b.podsWithUnbound()
	for uid := range b.claimUsers[b.claimOf[pv]] {
		uids[uid] = true
	}
	return sortedKeys(uids)
}

func (b *Book) podsWithUnbound() map[string]bool { return maps.Clone(b.unboundPods) }

// setUnbound notes whether some claim of a pod is not bound. The lock is held.
func (b *Book) setUnbound(uid string, open bool) {
	if open {
		b.unboundPods[uid] = true
	} else {
		delete(b.unboundPods, uid)
	}
}

// SetStorageClass takes in a StorageClass.
func (b *Book) SetStorageClass(class *storagev1.StorageClass) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.madeBy)
	b.storageClasses[class.Name] = class
	b.refreshVolumes(sortedKeys(b.podsWithUnbound()))
}

// DeleteStorageClass takes in that a StorageClass is gone.
func (b *Book) DeleteStorageClass(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.madeBy)
	delete(b.storageClasses, name)
	b.refreshVolumes(sortedKeys(b.podsWithUnbound()))
}

// SetCSINode takes in how many volumes each driver can attach to a node.
func (b *Book) SetCSINode(csi *storagev1.CSINode) {
	b.mu.Lock()
	defer b.mu.Unlock()
	limits := make(map[string]int32)
	for _, d := range csi.Spec.Drivers {
		if d.Allocatable != nil && d.Allocatable.Count != nil {
			limits[d.Name] = *d.Allocatable.Count
		}
	}
	b.setCSILimits(csi.Name, limits)
}

// DeleteCSINode takes in that nothing is known any more of what a node can attach.
func (b *Book) DeleteCSINode(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setCSILimits(name, nil)
}

func (b *Book) setCSILimits(node string, limits map[string]int32) {
	if maps.Equal(b.csiLimits[node], limits) {
		return
	}
	if len(limits) == 0 {
		delete(b.csiLimits, node)
	} else {
		b.csiLimits[node] = limits
	}
	b.noteAttachLimits(slices.Collect(maps.Keys(limits)))
	if e := b.nodes[node]; e != nil {
		n := *e.node
		n.Allocatable = b.allocatableOf(&n, e.allocatable)
		what := b.observeCapacity(&n)
		if n.Allocatable != e.node.Allocatable {
			e.node = &n
			what |= changesRoom
		}
		if what != noChange {
			b.noteAndWake(what)
		}
	}
}

// SetNamespace takes in a namespace's labels, and what kube-system says about the cluster.
func (b *Book) SetNamespace(ns *corev1.Namespace) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ns.Name == metav1.NamespaceSystem {
		b.readKubeSystem(ns)
	}
	labels := cluster.LabelsOf(ns.Labels)
	if have, known := b.namespaces.current[ns.Name]; known && slices.Equal(have, labels) {
		return
	}
	b.namespaces.set(ns.Name, labels)
	b.noteAndWake(changesRoom)
}

// DeleteNamespace takes in that a namespace is gone.
func (b *Book) DeleteNamespace(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.namespaces.remove(name)
	b.noteAndWake(changesRoom)
}
