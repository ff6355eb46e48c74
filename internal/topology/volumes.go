package topology

import (
	"maps"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// volumeUse knows which volumes are used by more than one pod.
type volumeUse struct {
	users map[string]int
	// unboundUsers counts the pods of claims whose volumes don't exist yet.
	unboundUsers map[string]int
	// taken are exclusive volumes that a pod with a place uses.
	taken map[string]bool
}

// copyTo makes out, if there is one, a copy of which volumes are taken.
func (v *volumeUse) copyTo(out *volumeUse) *volumeUse {
	if out == nil {
		out = &volumeUse{taken: make(map[string]bool, len(v.taken))}
	}
	out.users, out.unboundUsers = v.users, v.unboundUsers
	clear(out.taken)
	maps.Copy(out.taken, v.taken)
	return out
}

func newVolumeUse(pods []*cluster.Pod) *volumeUse {
	v := &volumeUse{users: make(map[string]int), unboundUsers: make(map[string]int), taken: make(map[string]bool)}
	for _, p := range pods {
		if p.Finished {
			continue
		}
		for _, volume := range p.Volumes {
			v.users[volume.Handle]++
		}
		for _, claim := range p.UnboundClaims {
			v.unboundUsers[claim]++
		}
	}
	return v
}

// volumesOf lists the pod's volumes that other pods use, too, and those that nobody else may use.
func (v *volumeUse) volumesOf(p *cluster.Pod) (shared []cluster.Volume, exclusive []string) {
	for _, volume := range p.Volumes {
		if v.users[volume.Handle] > 1 {
			shared = append(shared, volume)
		}
	}
	return shared, p.ExclusiveVolumes
}

// Reserve takes hold of the volumes that only one pod may use; it is false if another has one.
func (v *volumeUse) Reserve(handles []string) bool {
	if v.Holder(handles) != "" {
		return false
	}
	v.Hold(handles, true)
	return true
}

// Hold notes whether pods with a place use the volumes.
func (v *volumeUse) Hold(handles []string, taken bool) {
	for _, handle := range handles {
		v.taken[handle] = taken
	}
}

// Holder names an exclusive volume that another pod has; empty if there is none.
func (v *volumeUse) Holder(handles []string) string {
	for _, handle := range handles {
		if v.taken[handle] {
			return handle
		}
	}
	return ""
}
