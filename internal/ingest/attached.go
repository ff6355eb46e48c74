package ingest

import (
	"slices"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

// attachedVolume is a volume that Kubernetes attaches to a node, or has attached.
type attachedVolume struct {
	node string
	pv   string // its PersistentVolume; empty for a disk that a pod names without a claim
	// disk names one without a PersistentVolume.
	disk string
}

// SetAttachment takes in a VolumeAttachment.
func (b *Book) SetAttachment(va *storagev1.VolumeAttachment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := attachedVolume{node: va.Spec.NodeName}
	switch source := va.Spec.Source; {
	case source.PersistentVolumeName != nil:
		a.pv = *source.PersistentVolumeName
	case source.InlineVolumeSpec != nil && source.InlineVolumeSpec.CSI != nil:
		a.disk = va.Spec.Attacher + "/" + source.InlineVolumeSpec.CSI.VolumeHandle
	default:
		a.disk = va.Spec.Attacher + "/" + va.Name
	}
	if old, known := b.attachments[va.Name]; known && old == a {
		return
	}
	b.attachments[va.Name], b.attached = a, nil
	b.noteChange(noChange) // nobody waits for a volume to be attached
}

// DeleteAttachment takes in that a VolumeAttachment is gone.
func (b *Book) DeleteAttachment(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.attachments[name]; !known {
		return
	}
	delete(b.attachments, name)
	b.attached = nil
	b.noteAndWake(noChange) // a node on its way out may have been waiting for it
}

// attachedNow lists, by node, the volumes that are attached, in the words in which pods name them. The lock is held.
func (b *Book) attachedNow() map[string][]string {
	if b.attached != nil || len(b.attachments) == 0 {
		return b.attached
	}
	b.attached = make(map[string][]string)
	stay := b.disksStayingAttached()
	for _, a := range b.attachments {
		if disk := b.diskName(a); !stay[diskOn{a.node, disk}] {
			b.attached[a.node] = append(b.attached[a.node], disk)
		}
	}
	for node, list := range b.attached {
		slices.Sort(list)
		b.attached[node] = slices.Compact(list)
	}
	return b.attached
}

// diskOn is a volume on a node.
type diskOn struct{ node, disk string }

// disksStayingAttached are the volumes of pods that no drain moves: nobody should wait for them to be detached. The
// lock is held.
func (b *Book) disksStayingAttached() map[diskOn]bool {
	out := make(map[diskOn]bool)
	for uid, v := range b.volumesOfPods {
		p, found := b.pods.get(uid)
		if !found || !p.UsesRoom() || !p.Daemon && !p.Mirror && !p.StaysThroughDrain {
			continue
		}
		for _, d := range v.disks {
			out[diskOn{p.Node, d.driver + "/" + d.handle}] = true
		}
	}
	return out
}

// notePodVolumesMoved notes that a pod has changed whose volumes may be ones that stay attached. The lock is held.
func (b *Book) notePodVolumesMoved(uid string) {
	if b.volumesOfPods[uid] != nil {
		b.attached = nil
	}
}

// diskName is what pods call an attached volume; one whose PersistentVolume is not known goes by that name.
func (b *Book) diskName(a attachedVolume) string {
	if a.pv == "" {
		return a.disk
	}
	if pv := b.volumes[a.pv]; pv != nil {
		if driver, handle := decode.DiskOf(pv); driver != "" {
			return driver + "/" + handle
		}
	}
	return a.pv
}
