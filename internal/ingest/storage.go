package ingest

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/pods"
	"github.com/tenon-sh/tenon/internal/ingest/volumes"
	"github.com/tenon-sh/tenon/internal/resource"
)

const volumeClaimKind = "PersistentVolumeClaim"

// SetVolumeClaim takes in a PersistentVolumeClaim.
func (b *Book) SetVolumeClaim(claim *corev1.PersistentVolumeClaim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := claim.Namespace + "/" + claim.Name
	b.storage.SetClaim(claim)
	b.attachments.Recount()
	b.notes.forget(volumeClaimKind, key)
	if claim.Spec.VolumeName == "" {
		b.tellTooLong(volumeClaimKind, claim,
			"pods that use it are planned for as if no existing volume matched it; select volumes by a label that "+
				"they share")
	}
	b.refreshVolumes(b.mounts.Users(key))
}

// DeleteVolumeClaim takes in that a PersistentVolumeClaim is gone.
func (b *Book) DeleteVolumeClaim(namespace, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := namespace + "/" + name
	b.storage.DeleteClaim(key)
	b.notes.forget(volumeClaimKind, key)
	b.attachments.Recount()
	b.refreshVolumes(b.mounts.Users(key))
}

// SetVolume takes in a PersistentVolume.
func (b *Book) SetVolume(pv *corev1.PersistentVolume) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.storage.SetVolume(pv)
	b.attachments.Recount()
	b.refreshVolumes(b.mounts.DependingOn(b.storage.ClaimOf(pv.Name)))
}

// DeleteVolume takes in that a PersistentVolume is gone.
func (b *Book) DeleteVolume(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.storage.DeleteVolume(name)
	b.attachments.Recount()
	b.refreshVolumes(b.mounts.DependingOn(b.storage.ClaimOf(name)))
}

// SetStorageClass takes in a StorageClass.
func (b *Book) SetStorageClass(class *storagev1.StorageClass) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.storage.SetClass(class)
	b.refreshVolumes(b.mounts.Unbound())
}

// DeleteStorageClass takes in that a StorageClass is gone.
func (b *Book) DeleteStorageClass(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.storage.DeleteClass(name)
	b.refreshVolumes(b.mounts.Unbound())
}

// SetAttachment takes in a VolumeAttachment.
func (b *Book) SetAttachment(va *storagev1.VolumeAttachment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.attachments.Set(va) {
		b.noteChange(change.None) // nobody waits for a volume to be attached
	}
}

// DeleteAttachment takes in that a VolumeAttachment is gone.
func (b *Book) DeleteAttachment(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.attachments.Delete(name) {
		b.noteAndWake(change.None) // a node on its way out may have been waiting for it
	}
}

// attachedNow lists, by node, the volumes that are attached, but for those of pods that no drain moves: nobody should
// wait for them to be detached. The lock is held.
func (b *Book) attachedNow() map[string][]string {
	return b.attachments.ByNode(b.storage.DiskName, func() map[volumes.DiskOn]bool {
		return b.mounts.Staying(func(uid string) (node string, stays bool) {
			p, found := b.pods.Get(uid)
			if !found || !p.UsesRoom() || !p.Daemon && !p.Mirror && !p.StaysThroughDrain {
				return "", false
			}
			return p.Node, true
		})
	})
}

// readPodVolumes gives a pod its class, volumes and exclusive claims. Most pods have no volume that matters. The lock
// is held.
func (b *Book) readPodVolumes(p *cluster.Pod, pod *corev1.Pod) {
	base := b.specWithDefaults(p, pod)
	if v := b.mounts.Read(pod, base); v != nil {
		b.applyVolumes(p, v)
		return
	}
	p.Class = b.specs.Class(base)
}

// applyVolumes sets what follows from a pod's volumes as they are now. The lock is held.
func (b *Book) applyVolumes(p *cluster.Pod, v *volumes.PodVolumes) {
	n := b.storage.NeedsOf(v)
	b.mounts.Apply(v, n)
	p.Class = b.specs.Class(b.specs.Derive(v.Base, n.Key(), n.Extend))
	p.ExclusiveVolumes, p.UnboundClaims, p.Volumes, p.VolumePlaces = n.Exclusive, n.Unbound, nil, n.Places
	for _, a := range n.Attached {
		if dim, ok := b.specs.Dims.Names.Lookup(resource.AttachPrefix + a.Driver); ok {
			p.Volumes = append(p.Volumes, cluster.Volume{Dim: dim, Handle: a.Driver + "/" + a.Handle})
		}
	}
}

// refreshVolumes gives pods their class anew after something has changed that their volumes depend on. The lock is
// held.
func (b *Book) refreshVolumes(uids []string) {
	if b.mounts.Defer(uids) {
		b.noteAndWake(change.None)
		return
	}
	b.refreshPods(uids, func(p *cluster.Pod) { b.applyVolumes(p, b.mounts.Of(p.UID)) })
}

// refreshStaleVolumes looks again at the volumes that events have left for later. The lock is held.
func (b *Book) refreshStaleVolumes() {
	if uids := b.mounts.TakeDeferred(); len(uids) > 0 {
		b.refreshPods(uids, func(p *cluster.Pod) {
			if v := b.mounts.Of(p.UID); v != nil {
				b.applyVolumes(p, v)
			}
		})
	}
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
	if !b.attachLimits.SetNode(node, limits) {
		return
	}
	b.noteAttachLimits(slices.Collect(maps.Keys(limits)))
	if e := b.nodes[node]; e != nil {
		n := *e.Node
		n.Allocatable = b.allocatableOf(&n, e.Allocatable)
		what := b.observeCapacity(&n)
		if n.Allocatable != e.Node.Allocatable {
			e.Node = &n
			what |= change.Room
		}
		if what != change.None {
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
	if have, known := b.namespaces.Current[ns.Name]; known && slices.Equal(have, labels) {
		return
	}
	b.namespaces.Set(ns.Name, labels)
	b.noteAndWake(change.Room)
}

// DeleteNamespace takes in that a namespace is gone.
func (b *Book) DeleteNamespace(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.namespaces.Remove(name)
	b.noteAndWake(change.Room)
}

// refreshPods gives pods anew what follows from other objects, and notes what that changes. The lock is held.
func (b *Book) refreshPods(uids []string, anew func(*cluster.Pod)) {
	what := change.None
	changed := false
	for _, uid := range uids {
		old, found := b.pods.Get(uid)
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
		b.pods.Set(uid, &p)
		what, changed = what|pods.PodChange(old, &p), true
	}
	if changed {
		b.noteAndWake(what)
	}
}

// noteVolumesMoved notes that a pod has changed whose volumes may be ones that stay attached. The lock is held.
func (b *volumeState) noteVolumesMoved(uid string) {
	if b.mounts.Of(uid) != nil {
		b.attachments.Recount()
	}
}
