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
	Base    *Snapshot
	removed map[string]bool // names of hosts
	// placed are pods that count as being on a host already; handled are those that are looked after elsewhere, by UID.
	placed  map[string][]*Pod
	handled map[string]bool
	avoided map[string]bool // names of hosts
	// expected are pods that will need a place soon.
	expected []*Pod
	// schedulerView is how a scheduler sees it, and not what would be if nodes went.
	schedulerView bool
	// classes are the pods' classes by key, once somebody has asked for them.
	classes map[string]*PodClass
}

// Without is the snapshot without the named hosts. With a claim's node all other nodes of the same machine go.
func (s *Snapshot) Without(hosts ...string) *Overlay {
	o := &Overlay{Base: s, removed: make(map[string]bool, len(hosts))}
	for _, name := range hosts {
		o.removed[name] = true
		if len(s.lookups.duplicates) == 0 || s.ClaimOf(name) == nil {
			continue
		}
		for _, duplicate := range s.DuplicateNodes(s.Node(name)) {
			o.removed[duplicate.Name] = true
		}
	}
	return o
}

// WithPlaced is the overlay with pods that a placement has given a place: on the hosts that it names, they count as
// being there. cared holds the UIDs of all pods that no place has to be found for any more, those included.
func (o *Overlay) WithPlaced(on map[string][]*Pod, handled map[string]bool) *Overlay {
	out := *o
	out.placed, out.handled = on, handled
	return &out
}

// isReserved reports whether the claim's node is made to replace others that wait for it: until the first of them goes,
// its room is for pods that have a seat there.
func (o *Overlay) isReserved(c *Claim) bool {
	return len(c.Seats) > 0 && o.Base.IsWaitingReplacement(c)
}

// goesAnyway reports whether a fenced node is spoken for: it goes whether or not pods could use it. One that goes only
// to save money is opened again if they can, as long as nothing has been bought to take its place.
func (o *Overlay) goesAnyway(c *Claim) bool {
	switch c.Condition(DisruptionReason).Reason {
	case "Empty", "Underutilized":
		made, replaced := o.Base.lookups.replaced[c.Move]
		return replaced && !made.Before(c.Condition(DisruptionReason).Since.Add(-sameTry))
	}
	return c.Move != ""
}

// WithExpected is the overlay with pods that nobody has asked for a place yet, and that will need one.
func (o *Overlay) WithExpected(pods []*Pod) *Overlay {
	out := *o
	out.expected = pods
	return &out
}

// WithAvoided is the overlay in which some hosts take no more pods.
func (o *Overlay) WithAvoided(hosts map[string]bool) *Overlay {
	out := *o
	out.avoided = hosts
	return &out
}

// SchedulerView is the snapshot as a scheduler should see it: nodes that are on their way out take no more pods, and
// their pods look for a new place already. A node that the cloud only advises to let go is used as before, for
// kube-scheduler does; but nobody is moved to it.
func (s *Snapshot) SchedulerView() *Overlay {
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
	o := s.Without(leaving...)
	o.schedulerView = true
	return o
}

// HostName is the name under which a claim's host goes.
func HostName(c *Claim, n *Node) string {
	if n != nil {
		return n.Name
	}
	return c.Name
}

// Hosts lists where pods can go: initialized ones first, fenced ones last, each kind by name. Pods that wait find those
// last, too, that are kept for a move: a seat says of which class a pod is, and that may be theirs.
func (o *Overlay) Hosts() []Host {
	var hosts []Host
	for _, n := range o.Base.Nodes {
		c := o.Base.ClaimOf(n.Name)
		if o.removed[n.Name] {
			continue
		}
		hosts = append(hosts, o.hostOfNode(n, c))
	}
	for _, c := range o.Base.Claims {
		if o.removed[c.Name] || o.Base.NodeOf(c.Name) != nil || !c.Deleting.IsZero() ||
			c.Condition(Launched).Status == False || !c.NodeMayCome(o.Base.Now) {
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
		if a.Reserved != b.Reserved && o.schedulerView {
			if b.Reserved {
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

// LeavingHosts lists the nodes that are on their way out, with the pods that stay to the end: until a node is gone, it
// and they count where pods look at each other.
func (o *Overlay) LeavingHosts() []Host {
	var hosts []Host
	for _, n := range o.Base.Nodes {
		if !o.removed[n.Name] {
			continue
		}
		h := Host{Name: n.Name, Labels: n.Labels, Initialized: true, Closed: true,
			Taints: append(withoutTaint(n.Taints, DisruptedTaint), Taint{Key: DisruptedTaint, Effect: NoSchedule})}
		for _, p := range o.Base.PodsOn(n.Name) {
			if !o.Base.NeedsNewPlace(p) {
				h.Pods = append(h.Pods, p)
			}
		}
		hosts = append(hosts, h)
	}
	return hosts
}

func (o *Overlay) hostOfNode(n *Node, c *Claim) Host {
	h := Host{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Free: n.Allocatable, Initialized: true,
		Closed: n.Cordoned || o.avoided[n.Name], Pods: o.podsOn(n.Name)}
	if c == nil && o.Base.isDuplicate(n) {
		h.Closed = true // its room is that of the claim's node
	}
	if c != nil {
		if n.HasTaint(DisruptedTaint, NoSchedule) && c.Is(DisruptionReason) {
			h.Fenced, h.Taints = true, withoutTaint(n.Taints, DisruptedTaint)
			h.Closed = h.Closed || o.goesAnyway(c)
		}
		h.Reserved = o.isReserved(c)
		h.Closed = h.Closed || c.IsInterrupted() && !(o.schedulerView && c.IsAdvisedToGo())
		h.Claim, h.Pool, h.Seats, h.MadeFor = c.Name, c.Pool, c.Seats, c.madeForAll()
		h.Initialized = c.Is(Initialized)
		if !h.Initialized {
			h.Labels = JoinedLabels(n.Labels.Merge(c.Labels))
			h.Taints = c.Taints
			h.Free = promisedCapacity(n, c)
			if !c.HasLabels() {
				h.Undecided = true
				o.decideLabels(c, &h)
			}
		}
	}
	o.reserveForDaemons(&h)
	h.takeRoom()
	return h
}

// takeRoom takes the room that the host's pods need.
func (h *Host) takeRoom() {
	for _, p := range h.Pods {
		h.Free = h.Free.Sub(p.Class.Requests)
		h.Ports = append(h.Ports, p.Class.Ports...)
	}
	h.countAttached()
}

// podsOn lists the pods of a host, those that are to be there included.
func (o *Overlay) podsOn(host string) []*Pod {
	there, coming := o.Base.PodsOn(host), o.placed[host]
	if len(coming) == 0 {
		return there
	}
	return slices.Concat(there, coming)
}

// promisedCapacity is what a node that is still coming up will offer: what its kubelet says, and what the cloud
// promised of what it has not spoken of yet.
func promisedCapacity(n *Node, c *Claim) resource.Vector {
	v := n.Allocatable
	for dim := range v {
		if v[dim] <= 0 {
			v[dim] = c.Allocatable[dim]
		}
	}
	return v
}

// countAttached counts volumes that several pods share only once.
func (h *Host) countAttached() {
	for _, p := range h.Pods {
		for _, v := range p.Volumes {
			i, there := slices.BinarySearch(h.AttachedVolumes, v.Handle)
			if there {
				h.Free[v.Dim]++
				continue
			}
			h.AttachedVolumes = slices.Insert(h.AttachedVolumes, i, v.Handle)
		}
	}
}

func withoutTaint(taints []Taint, key string) []Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t Taint) bool { return t.Key == key })
}

// JoinedLabels are the labels that a node will have once it has joined: daemons and pods may select by them already.
func JoinedLabels(l Labels) Labels {
	return l.With(RegisteredLabel, "true").With(InitializedLabel, "true")
}

// MayRunOn reports whether a pod of the class may run on a node with these labels and taints, room aside.
func MayRunOn(c *PodClass, labels Labels, taints []Taint) bool {
	if _, ok := c.MatchesLabels(labels.Get); !ok {
		return false
	}
	_, tainted := Untolerated(c.Tolerations, taints)
	return !tainted
}

func (o *Overlay) hostOfClaim(c *Claim) Host {
	h := Host{Name: c.Name, Claim: c.Name, Pool: c.Pool, Labels: JoinedLabels(c.Labels), Taints: c.Taints,
		Seats: c.Seats, MadeFor: c.madeForAll(),
		Reserved: o.isReserved(c), Closed: o.avoided[c.Name], Pods: o.podsOn(c.Name)}
	if c.HasLabels() {
		h.Free = c.Allocatable
	} else {
		h.Free, h.Undecided = o.smallestCapacity(c), true
		o.decideLabels(c, &h)
	}
	o.reserveForDaemons(&h)
	h.takeRoom()
	return h
}

// decideLabels adds the labels of which the claim's requirements leave one value, and says which are open.
func (o *Overlay) decideLabels(c *Claim, h *Host) {
	for _, e := range c.Requirements {
		if values, finite := e.Values.Listed(); finite && len(values) == 1 && !e.Values.AllowsAbsent() {
			h.Labels = h.Labels.With(e.Key, values[0])
		}
	}
	pool := o.Base.Pool(c.Pool)
	h.openLabel = func(key string) (require.Values, bool) {
		_, decided := h.Labels.Get(key)
		may, _ := c.Requirements.Get(key)
		return may, !decided && (pool == nil || pool.Catalog == nil || pool.Catalog.Index().Knows(key))
	}
}

// smallestCapacity is what a claim that has not been launched will have at least, whichever of its types it becomes.
func (o *Overlay) smallestCapacity(c *Claim) resource.Vector {
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
	pods := slices.Concat(o.Base.Pending(), o.expected)
	for _, n := range o.Base.Nodes {
		if !o.removed[n.Name] {
			continue
		}
		for _, p := range o.Base.PodsOn(n.Name) {
			if o.Base.NeedsNewPlace(p) {
				pods = append(pods, p)
			}
		}
	}
	if len(o.handled) > 0 {
		pods = slices.DeleteFunc(pods, func(p *Pod) bool { return o.handled[p.UID] })
	}
	slices.SortFunc(pods, func(a, b *Pod) int { return strings.Compare(a.UID, b.UID) })
	return pods
}
