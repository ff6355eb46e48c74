package cluster

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Host is a place where pods can go: a node, or a claim that will become one.
type Host struct {
	// Name of the node, or of the claim while there is no node.
	Name, Claim, Pool string
	Labels            Labels
	Taints            []Taint
	Free              resource.Vector
	Seats             []Seat
	// MadeFor are the workloads that it was made for; empty if that is not known for sure.
	MadeFor []MadeFor
	// Initialized hosts are preferred: they run pods now.
	Initialized bool
	// Fenced hosts are about to go but can still be kept: they are opened again if pods need them.
	Fenced bool
	// Undecided hosts are claims without an instance: their labels are not all known, but whoever has a seat fits.
	Undecided bool
	// Closed hosts take no more pods, but those that they have count where pods look at each other.
	Closed bool
	// Reserved hosts take only pods that have a seat there: what they are to replace waits for them.
	Reserved bool
	// Pods that are there, daemons' included; Ports that they and the daemons to come occupy.
	Pods  []*Pod
	Ports []Port
	// AttachedVolumes are the volumes attached already: another pod may share one without using up an attachment.
	// Sorted.
	AttachedVolumes []string
	// openLabel says, of an undecided host, what a label may still become, and whether the launch will decide about it.
	openLabel func(key string) (may require.Values, open bool)
}

// NameField is the key under which a node's own name is asked for, as a field and not as a label.
const NameField = "metadata.name"

// Label finds the value of a label, or of the node's name.
func (h *Host) Label(key string) (value string, present bool) {
	if key == NameField {
		return h.Name, !h.Undecided
	}
	return h.Labels.Get(key)
}

// IsOpen reports whether the launch has yet to decide about the label.
func (h *Host) IsOpen(key string) bool {
	if !h.Undecided {
		return false
	}
	_, open := h.openLabel(key)
	return open
}

// Meets reports whether the host's labels satisfy one of the terms. What a launch has yet to decide must satisfy it
// however it is decided.
func (h *Host) Meets(terms []require.Set) bool {
	return slices.ContainsFunc(terms, func(term require.Set) bool {
		for _, e := range term {
			if h.Undecided {
				if may, open := h.openLabel(e.Key); open {
					if !may.Within(e.Values) {
						return false
					}
					continue
				}
			}
			if value, present := h.Label(e.Key); !e.Values.Matches(value, present) {
				return false
			}
		}
		return true
	})
}

// Allows reports whether a pod of the class may run on the host, room aside. What a launch has yet to decide is held
// against the pod: a claim that may go to either of two zones suits nobody who must avoid one of them.
func (h *Host) Allows(c *PodClass) bool {
	if _, tainted := Untolerated(c.Tolerations, h.Taints); tainted {
		return false
	}
	return h.Meets(c.Terms)
}

// Holds reports whether the host has room for one more pod of the class, which may run there.
func (h *Host) Holds(c *PodClass) bool { return c.Requests.Fits(h.Free) && h.Allows(c) }

// mayAllow is Takes with what is undecided counted in the pod's favour: a daemon that may come needs its room.
func (h *Host) mayAllow(c *PodClass) bool {
	_, tainted := Untolerated(c.Tolerations, h.Taints)
	return !tainted && h.MayMeet(c.Terms)
}

// MayMeet is Meets with what is undecided counted in the pod's favour.
func (h *Host) MayMeet(terms []require.Set) bool {
	return slices.ContainsFunc(terms, func(term require.Set) bool {
		return !slices.ContainsFunc(term, func(e require.Entry) bool {
			if h.Undecided {
				if may, open := h.openLabel(e.Key); open {
					return may.And(e.Values).IsEmpty()
				}
			}
			value, present := h.Label(e.Key)
			return !e.Values.Matches(value, present)
		})
	})
}

// NewNodeHost is a node that is to come: open says which of its labels the launch will decide, and what they may
// become.
func NewNodeHost(name string, labels Labels, taints []Taint, open func(key string) (may require.Values,
	open bool)) Host {
	return Host{Name: name, Labels: labels, Taints: taints, Undecided: true, openLabel: open}
}
