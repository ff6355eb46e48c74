package volumes

import (
	"slices"

	storagev1 "k8s.io/api/storage/v1"
)

// attachedVolume is a volume that Kubernetes attaches to a node, or has attached.
type attachedVolume struct {
	node string
	pv   string // its PersistentVolume; empty for a disk that a pod names without a claim
	// disk names one without a PersistentVolume.
	disk string
}

// Attachments are the volumes that are attached.
type Attachments struct {
	all    map[string]attachedVolume
	byNode map[string][]string // nil if it is to be made anew
}

// NewAttachments knows none yet.
func NewAttachments() Attachments { return Attachments{all: make(map[string]attachedVolume)} }

// Recount notes that what pods call their volumes, or where they are, may have changed.
func (at *Attachments) Recount() { at.byNode = nil }

// Set takes in a VolumeAttachment, and reports whether that is news.
func (at *Attachments) Set(va *storagev1.VolumeAttachment) bool {
	a := attachedVolume{node: va.Spec.NodeName}
	switch source := va.Spec.Source; {
	case source.PersistentVolumeName != nil:
		a.pv = *source.PersistentVolumeName
	case source.InlineVolumeSpec != nil && source.InlineVolumeSpec.CSI != nil:
		a.disk = va.Spec.Attacher + "/" + source.InlineVolumeSpec.CSI.VolumeHandle
	default:
		a.disk = va.Spec.Attacher + "/" + va.Name
	}
	if old, known := at.all[va.Name]; known && old == a {
		return false
	}
	at.all[va.Name], at.byNode = a, nil
	return true
}

// Delete takes in that a VolumeAttachment is gone, and reports whether there was one.
func (at *Attachments) Delete(name string) bool {
	if _, known := at.all[name]; !known {
		return false
	}
	delete(at.all, name)
	at.byNode = nil
	return true
}

// ByNode lists, by node, the volumes that are attached, in the words in which pods name them: diskName tells them for a
// PersistentVolume. Those that stay are left out.
func (at *Attachments) ByNode(diskName func(pv string) string, staying func() map[DiskOn]bool) map[string][]string {
	if at.byNode != nil || len(at.all) == 0 {
		return at.byNode
	}
	at.byNode = make(map[string][]string)
	stay := staying()
	for _, a := range at.all {
		disk := a.disk
		if a.pv != "" {
			disk = diskName(a.pv)
		}
		if !stay[DiskOn{a.node, disk}] {
			at.byNode[a.node] = append(at.byNode[a.node], disk)
		}
	}
	for node, list := range at.byNode {
		slices.Sort(list)
		at.byNode[node] = slices.Compact(list)
	}
	return at.byNode
}
