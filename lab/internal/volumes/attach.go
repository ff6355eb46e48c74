package volumes

import (
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
)

// Hold is the finalizer that keeps a VolumeAttachment until its volume is
// detached, as the driver's own attacher would write it.
func Hold(driver string) string {
	return "external-attacher/" + strings.ReplaceAll(driver, ".", "-")
}

// Step is what an attacher does next with a VolumeAttachment.
type Step int

// The steps of an attachment, from its first day to its last.
const (
	Nothing Step = iota
	// TakeHold adds the finalizer, so that the attachment can't vanish unseen.
	TakeHold
	// Attach says in the status that the volume is attached.
	Attach
	// Detach takes the finalizer away: the volume is free.
	Detach
)

// Next is the next step of an attachment. A volume is attached to nodes that
// exist; it is detached whether or not the node still does. Volumes of drivers
// that are not the lab's are attached, too: nobody else here would do it, and
// Kubernetes waits minutes before it gives up.
func Next(a *storagev1.VolumeAttachment, nodeExists bool) Step {
	held := slices.Contains(a.Finalizers, Hold(a.Spec.Attacher))
	switch {
	case a.DeletionTimestamp != nil && held:
		return Detach
	case a.DeletionTimestamp != nil || !nodeExists:
		return Nothing
	case !held:
		return TakeHold
	case !a.Status.Attached:
		return Attach
	}
	return Nothing
}

// WithoutHold are the finalizers that stay when a volume is detached.
func WithoutHold(a *storagev1.VolumeAttachment) []string {
	return slices.DeleteFunc(slices.Clone(a.Finalizers), func(f string) bool { return f == Hold(a.Spec.Attacher) })
}
