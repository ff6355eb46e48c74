package cloud

import (
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// State is where an instance is in its life.
type State string

// The states, with EC2's names.
const (
	Pending      State = "pending"
	Running      State = "running"
	ShuttingDown State = "shutting-down"
	Terminated   State = "terminated"
)

// Code is EC2's number for the state.
func (s State) Code() int32 {
	switch s {
	case Running:
		return 16
	case ShuttingDown:
		return 32
	case Terminated:
		return 48
	}
	return 0
}

// Alive says whether the machine exists.
func (s State) Alive() bool { return s == Pending || s == Running }

// Market is how an instance is bought.
type Market string

// The markets.
const (
	OnDemand      Market = "on-demand"
	Spot          Market = "spot"
	CapacityBlock Market = "capacity-block"
	Interruptible Market = "interruptible-capacity-reservation"
)

// Instance is one machine.
type Instance struct {
	ID, Type, Architecture          string
	Zone, ZoneID, Subnet, VPC       string
	Image                           string
	Market                          Market
	State                           State
	ReasonCode, ReasonMessage       string // why it ends or ended
	Launched, RunAt, EndAt          time.Time
	VisibleAt, InterruptAt          time.Time
	Before                          State // the state until ChangedAt
	ChangedAt                       time.Time
	PrivateIP, PublicIP, PrivateDNS string
	Groups                          []string
	Profile                         string
	UserData                        []byte // as the machine reads it, not encoded
	Interfaces                      []Interface
	Volumes                         []Volume
	Reservation                     string // r-…: the call that made it
	CapacityReservation             string // cr-…, if it runs in one
	PlacementGroup                  string // by id
	Partition                       int32
	Fleet, SpotRequest              string
	Template                        string // lt-…
	TemplateVersion                 int64
	HourlyPrice                     float64 // when it was bought
	// SystemImpaired and MachineImpaired are the two status checks. A Dead machine answers nobody, whatever EC2 says.
	SystemImpaired, MachineImpaired bool
	ImpairedSince                   time.Time
	Dead                            bool
	Protected                       bool // from termination by calls
	Events                          []Event
	Tags                            map[string]string
	// Request is everything that was asked for. It is shared by copies: read only.
	Request *ec2.RunInstancesInput
}

// Interface is a network interface of an instance.
type Interface struct {
	ID, MAC, Type, Description string
	Device, Card               int32
	Subnet                     string
	Addresses                  []string // the first is the primary one
	Prefixes                   []string
	Groups                     []string
	AttachmentID               string
}

// Primary is the interface that carries the instance's address.
func (i *Instance) Primary() Interface {
	for _, n := range i.Interfaces {
		if n.Device == 0 && n.Card == 0 {
			return n
		}
	}
	return Interface{}
}

// Volume is a volume of an instance.
type Volume struct {
	ID, Device string
	SizeGiB    int32
	// Stays says that it is not deleted with its instance.
	Stays bool
}

// Event is something that AWS plans to do to an instance.
type Event struct {
	ID, Code, Description string
	NotBefore, NotAfter   time.Time
}

// copyOf is an instance that the caller may keep. The lock is held.
func (w *World) copyOf(i *Instance) Instance {
	c := *i
	c.Groups = slices.Clone(i.Groups)
	c.Interfaces = slices.Clone(i.Interfaces)
	c.Volumes = slices.Clone(i.Volumes)
	c.Events = slices.Clone(i.Events)
	c.Tags = maps.Clone(w.tags[i.ID])
	return c
}

// visible says whether other calls than the one that made it see an instance. The lock is held.
func (w *World) visible(i *Instance) bool { return !w.clock.Now().Before(i.VisibleAt) }

// Instances lists all instances by id, those that calls can't see yet included: this is the truth.
func (w *World) Instances() []Instance {
	defer w.enter()()
	return w.list(func(*Instance) bool { return true })
}

// Instance finds one instance.
func (w *World) Instance(id string) (Instance, bool) {
	defer w.enter()()
	i := w.instances[id]
	if i == nil {
		return Instance{}, false
	}
	return w.copyOf(i), true
}

// Visible lists the instances as a describing call sees them: those with the given ids, which must all be there, or
// all.
func (w *World) Visible(ids []string) ([]Instance, *wire.Error) {
	defer w.enter()()
	all := w.list(func(i *Instance) bool { return len(ids) == 0 && w.visible(i) })
	if len(ids) > 0 {
		found, err := w.find(ids)
		if err != nil {
			return nil, err
		}
		for _, i := range found {
			all = append(all, w.copyOf(i))
		}
	}
	for n := range all {
		if i := &all[n]; i.Before != "" && w.clock.Now().Before(i.ChangedAt.Add(w.cfg.Timing.StateLag)) {
			i.State = i.Before
		}
	}
	return all, nil
}

func (w *World) list(keep func(*Instance) bool) []Instance {
	all := make([]Instance, 0, len(w.instances))
	for _, i := range w.instances {
		if keep(i) {
			all = append(all, w.copyOf(i))
		}
	}
	sort.Slice(all, func(a, b int) bool { return all[a].ID < all[b].ID })
	return all
}

// find gets visible instances in the order of their ids, each once. The lock is held.
func (w *World) find(ids []string) ([]*Instance, *wire.Error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	found := make([]*Instance, 0, len(ids))
	var missing []string
	for _, id := range ids {
		if !wellFormed(id, "i") {
			return nil, wire.Errorf("InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
		}
		if i := w.instances[id]; i != nil && w.visible(i) {
			found = append(found, i)
		} else {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return nil, noSuchInstances(missing)
	}
	return found, nil
}

// wellFormed says whether an id has the prefix and 8 or 17 hexadecimal digits.
func wellFormed(id, prefix string) bool {
	digits, ok := strings.CutPrefix(id, prefix+"-")
	if !ok || len(digits) != 8 && len(digits) != 17 {
		return false
	}
	return strings.Trim(digits, "0123456789abcdef") == ""
}

func noSuchInstances(ids []string) *wire.Error {
	if len(ids) == 1 {
		return wire.Errorf("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", ids[0])
	}
	return wire.Errorf("InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist", strings.Join(ids, ", "))
}
