package cluster

import (
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Overlay is a snapshot seen with some nodes gone and their pods looking for a new place: a what-if that costs what it
// touches. The snapshot below it stays as it is.
type Overlay struct {
	Base *Snapshot
	gone map[string]bool // names of hosts
}

// Without is the snapshot without the named hosts.
func (s *Snapshot) Without(hosts ...string) *Overlay {
	o := &Overlay{Base: s, gone: make(map[string]bool, len(hosts))}
	for _, name := range hosts {
		o.gone[name] = true
	}
	return o
}

// Plain is the snapshot as a scheduler should see it: nodes that are on their way out take no more pods, and their
// pods look for a new place already.
func (s *Snapshot) Plain() *Overlay {
	var leaving []string
	for _, c := range s.Claims {
		if !c.Deleting.IsZero() {
			leaving = append(leaving, HostName(c, s.NodeOf(c.Name)))
		}
	}
	for _, n := range s.Nodes {
		if !n.Deleting.IsZero() {
			leaving = append(leaving, n.Name)
		}
	}
	return s.Without(leaving...)
}

// Host is a place where pods can go: a node, or a claim that will become one.
type Host struct {
	// Name of the node, or of the claim while there is no node.
	Name, Claim, Pool string
	Labels            Labels
	Taints            []Taint
	Free              resource.Vector
	Seats             []Seat
	// Initialized hosts are preferred: they run pods now.
	Initialized bool
	// Fenced hosts are about to go but can still be kept: they are opened again if pods need them.
	Fenced bool
	// Undecided hosts are claims without an instance: their labels are not all known, but whoever has a seat fits.
	Undecided bool
	// open says, of an undecided host, which labels the launch will decide.
	open func(key string) bool
}

// Takes reports whether a pod of the class may run on the host, room aside. What a launch has yet to decide is held
// against the pod: a claim that may go to either of two zones suits nobody who must avoid one of them.
func (h *Host) Takes(c *PodClass) bool {
	if _, tainted := Untolerated(c.Tolerations, h.Taints); tainted {
		return false
	}
	return slices.ContainsFunc(c.Terms, func(term require.Set) bool {
		if h.Undecided && slices.ContainsFunc(term, func(e require.Entry) bool { return h.open(e.Key) }) {
			return false
		}
		_, ok := term.Miss(h.Labels.Get)
		return ok
	})
}

// mayTake is Takes with what is undecided counted in the pod's favour: a daemon that may come needs its room.
func (h *Host) mayTake(c *PodClass) bool {
	if !h.Undecided {
		return Lands(c, h.Labels, h.Taints)
	}
	if _, tainted := Untolerated(c.Tolerations, h.Taints); tainted {
		return false
	}
	return slices.ContainsFunc(c.Terms, func(term require.Set) bool {
		return !slices.ContainsFunc(term, func(e require.Entry) bool {
			value, present := h.Labels.Get(e.Key)
			return !h.open(e.Key) && !e.Values.Matches(value, present)
		})
	})
}

// HostName is the name under which a claim's host goes.
func HostName(c *Claim, n *Node) string {
	if n != nil {
		return n.Name
	}
	return c.Name
}

// Hosts lists where pods can go: initialized ones first, fenced ones last, each kind by name.
func (o *Overlay) Hosts() []Host {
	var hosts []Host
	for _, n := range o.Base.Nodes {
		c := o.Base.ClaimOf(n.Name)
		if o.gone[n.Name] || n.Cordoned {
			continue
		}
		hosts = append(hosts, o.hostOfNode(n, c))
	}
	for _, c := range o.Base.Claims {
		if o.gone[c.Name] || o.Base.NodeOf(c.Name) != nil || !c.Deleting.IsZero() || c.Condition(Launched).Status == False || c.Is(Registered) {
			continue
		}
		hosts = append(hosts, o.hostOfClaim(c))
	}
	slices.SortFunc(hosts, func(a, b Host) int {
		if a.Fenced != b.Fenced {
			if b.Fenced {
				return -1
			}
			return 1
		}
		if a.Initialized != b.Initialized {
			if a.Initialized {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return hosts
}

func (o *Overlay) hostOfNode(n *Node, c *Claim) Host {
	h := Host{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Free: n.Allocatable, Initialized: true}
	if c != nil {
		if n.HasTaint(DisruptedTaint, NoSchedule) && c.Is(DisruptionReason) {
			h.Fenced, h.Taints = true, without(n.Taints, DisruptedTaint)
		}
		h.Claim, h.Pool, h.Seats = c.Name, c.Pool, c.Seats
		h.Initialized = c.Is(Initialized)
		if !h.Initialized {
			h.Labels = lasting(n.Labels.Merge(c.Labels))
			h.Taints = c.Taints
			h.Free = n.Allocatable.Max(c.Allocatable)
		}
	}
	h.Free = h.Free.Sub(daemonRoom(o.Base, n, &h))
	for _, p := range o.Base.PodsOn(n.Name) {
		h.Free = h.Free.Sub(p.Class.Requests)
	}
	return h
}

func without(taints []Taint, key string) []Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t Taint) bool { return t.Key == key })
}

// lasting are the labels that a node will have once it has joined: daemons and pods may select by them already.
func lasting(l Labels) Labels { return l.With(RegisteredLabel, "true").With(InitializedLabel, "true") }

// daemonRoom is what DaemonSets will still take of a node: those that match it and have no pod there yet.
func daemonRoom(s *Snapshot, n *Node, h *Host) resource.Vector {
	var room resource.Vector
	for _, d := range s.Daemons {
		if !h.mayTake(d.Class) {
			continue
		}
		there := n != nil && slices.ContainsFunc(s.PodsOn(n.Name), func(p *Pod) bool { return p.Owner == d.UID })
		if !there {
			room = room.Add(d.Class.Requests)
		}
	}
	return room
}

// Lands reports whether a pod of the class may run on a node with these labels and taints, room aside.
func Lands(c *PodClass, labels Labels, taints []Taint) bool {
	if _, ok := c.MatchesLabels(labels.Get); !ok {
		return false
	}
	_, tainted := Untolerated(c.Tolerations, taints)
	return !tainted
}

func (o *Overlay) hostOfClaim(c *Claim) Host {
	h := Host{Name: c.Name, Claim: c.Name, Pool: c.Pool, Labels: lasting(c.Labels), Taints: c.Taints, Seats: c.Seats}
	if c.Is(Launched) {
		h.Free = c.Allocatable
	} else {
		h.Free, h.Undecided = o.smallest(c), true
		o.decide(c, &h)
	}
	h.Free = h.Free.Sub(daemonRoom(o.Base, nil, &h))
	return h
}

// decide adds the labels of which the claim's requirements leave one value, and says which are open.
func (o *Overlay) decide(c *Claim, h *Host) {
	for _, e := range c.Requirements {
		if values, finite := e.Values.Listed(); finite && len(values) == 1 && !e.Values.AllowsAbsent() {
			h.Labels = h.Labels.With(e.Key, values[0])
		}
	}
	pool := o.Base.Pool(c.Pool)
	h.open = func(key string) bool {
		_, decided := h.Labels.Get(key)
		return !decided && (pool == nil || pool.Catalog == nil || pool.Catalog.Index().Knows(key))
	}
}

// smallest is what a claim that has not been launched will have at least, whichever of its types it becomes.
func (o *Overlay) smallest(c *Claim) resource.Vector {
	pool := o.Base.Pool(c.Pool)
	if pool == nil || pool.Catalog == nil {
		return c.Requests
	}
	var least resource.Vector
	found := false
	for _, name := range c.Types() {
		t, ok := pool.Catalog.Type(name)
		if !ok {
			continue
		}
		if !found {
			least, found = t.Allocatable, true
			continue
		}
		least = least.Min(t.Allocatable)
	}
	if !found {
		return c.Requests
	}
	return least
}

// Pending lists the pods that need a place: those that kube-scheduler could not place, and those of hosts that go.
func (o *Overlay) Pending() []*Pod {
	pods := slices.Clone(o.Base.Pending())
	for _, n := range o.Base.Nodes {
		if !o.gone[n.Name] {
			continue
		}
		for _, p := range o.Base.PodsOn(n.Name) {
			if p.Reschedulable() && !p.DoNotDisrupt {
				pods = append(pods, p)
			}
		}
	}
	slices.SortFunc(pods, func(a, b *Pod) int { return strings.Compare(a.UID, b.UID) })
	return pods
}
