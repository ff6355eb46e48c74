package volumes

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

// Storage is which volumes there are, and which can be made.
type Storage struct {
	claims  map[string]*corev1.PersistentVolumeClaim // by namespace/name
	claimOf map[string]string                        // the claim that is bound to a volume
	volumes map[string]*corev1.PersistentVolume
	ofClass map[string]map[string]*corev1.PersistentVolume // by storage class and name
	sorted  map[string][]string                            // names of ofClass, as they are asked for
	classes map[string]*storagev1.StorageClass
	madeBy  map[*storagev1.StorageClass]choiceList // where they make volumes, as it is asked for
}

// NewStorage knows nothing yet.
func NewStorage() Storage {
	return Storage{
		claims: make(map[string]*corev1.PersistentVolumeClaim), claimOf: make(map[string]string),
		volumes: make(map[string]*corev1.PersistentVolume),
		ofClass: make(map[string]map[string]*corev1.PersistentVolume), sorted: make(map[string][]string),
		classes: make(map[string]*storagev1.StorageClass), madeBy: make(map[*storagev1.StorageClass]choiceList),
	}
}

// SetClaim takes in a PersistentVolumeClaim.
func (s *Storage) SetClaim(claim *corev1.PersistentVolumeClaim) {
	key := claim.Namespace + "/" + claim.Name
	s.claims[key] = claim
	if pv := claim.Spec.VolumeName; pv != "" {
		s.claimOf[pv] = key
	}
}

// DeleteClaim takes in that a PersistentVolumeClaim is gone.
func (s *Storage) DeleteClaim(key string) {
	if old := s.claims[key]; old != nil && s.claimOf[old.Spec.VolumeName] == key {
		delete(s.claimOf, old.Spec.VolumeName)
	}
	delete(s.claims, key)
}

// ClaimOf is the claim that is bound to a volume; empty if none is.
func (s *Storage) ClaimOf(pv string) string { return s.claimOf[pv] }

// SetVolume takes in a PersistentVolume.
func (s *Storage) SetVolume(pv *corev1.PersistentVolume) {
	s.DeleteVolume(pv.Name)
	class := volume.GetPersistentVolumeClass(pv)
	delete(s.sorted, class)
	if s.ofClass[class] == nil {
		s.ofClass[class] = make(map[string]*corev1.PersistentVolume)
	}
	s.volumes[pv.Name], s.ofClass[class][pv.Name] = pv, pv
}

// DeleteVolume takes in that a PersistentVolume is gone.
func (s *Storage) DeleteVolume(name string) {
	old := s.volumes[name]
	if old == nil {
		return
	}
	class := volume.GetPersistentVolumeClass(old)
	delete(s.sorted, class)
	delete(s.volumes, name)
	delete(s.ofClass[class], name)
	if len(s.ofClass[class]) == 0 {
		delete(s.ofClass, class)
	}
}

// SetClass takes in a StorageClass.
func (s *Storage) SetClass(class *storagev1.StorageClass) {
	clear(s.madeBy)
	s.classes[class.Name] = class
}

// DeleteClass takes in that a StorageClass is gone.
func (s *Storage) DeleteClass(name string) {
	clear(s.madeBy)
	delete(s.classes, name)
}

// DiskName is what pods call a volume; one that is not known goes by its name.
func (s *Storage) DiskName(pv string) string {
	if v := s.volumes[pv]; v != nil {
		if driver, handle := decode.DiskOf(v); driver != "" {
			return driver + "/" + handle
		}
	}
	return pv
}
