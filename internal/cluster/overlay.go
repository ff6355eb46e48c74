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
	// settled are pods that count as being on a host already; cared are those that are looked after elsewhere, by UID.
	settled map[string][]*Pod
	cared   map[string]bool
	avoided map[string]bool // names of hosts
	// expected are pods that will need a place soon.
	expected []*Pod
	// plain is how a scheduler sees it, and not what would be if nodes went.
	plain bool
	// classes are the pods' classes by key, once somebody has asked for them.
	classes map[string]*PodClass
}

// Without is the snapshot without the named hosts. With a claim's node all other nodes of the same machine go.
func (s *Snapshot) Without(hosts ...string) *Overlay {
	o := &Overlay{Base: s, gone: make(map[string]bool, len(hosts))}
	for _, name := range hosts {
		o.gone[name] = true
		if len(s.view.twins) == 0 || s.ClaimOf(name) == nil {
			continue
		}
		for _, twin := range s.Twins(s.Node(name)) {
			o.gone[twin.Name] = true
		}
	}
	return o
}

// Settled is the overlay with pods that a placement has given a place: on the hosts that it names, they count as being there.
// cared holds the UIDs of all pods that no place has to be found for any more, those included.
func (o *Overlay) Settled(on map[string][]*Pod, cared map[string]bool) *Overlay {
	out := *o
	out.settled, out.cared = on, cared
	return &out
}

// kept reports whether the claim's node is made to replace others that wait for it: until the first of them goes, its room is
// for pods that have a seat there.
func (o *Overlay) kept(c *Claim) bool { return len(c.Seats) > 0 && o.Base.StandsBy(c) }

// spoken reports whether a fenced node is spoken for: it goes whether or not pods could use it. One that goes only to save
// money is opened again if they can, as long as nothing has been bought to take its place.
func (o *Overlay) spoken(c *Claim) bool {
	switch c.Condition(DisruptionReason).Reason {
	case "Empty", "Underutilized":
		made, replaced := o.Base.view.replaced[c.Move]
		return replaced && !made.Before(c.Condition(DisruptionReason).Since.Add(-sameTry))
	}
	return c.Move != ""
}

// Expecting is the overlay with pods that nobody has asked for a place yet, and that will need one.
func (o *Overlay) Expecting(pods []*Pod) *Overlay {
	out := *o
	out.expected = pods
	return &out
}

// Avoiding is the overlay in which some hosts take no more pods.
func (o *Overlay) Avoiding(hosts map[string]bool) *Overlay {
	out := *o
	out.avoided = hosts
	return &out
}

// Plain is the snapshot as a scheduler should see it: nodes that are on their way out take no more pods, and their
// pods look for a new place already. A node that the cloud only advises to let go is used as before, for kube-scheduler does;
// but nobody is moved to it.
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
	o := s.Without(leaving...)
	o.plain = true
	return o
}

// HostName is the name under which a claim's host goes.
func HostName(c *Claim, n *Node) string {
	if n != nil {
		return n.Name
	}
	return c.Name
}

// Hosts lists where pods can go: initialized ones first, fenced ones last, each kind by name. Pods that wait find those last, too, that are
// kept for a move: a seat says of which class a pod is, and that may be theirs.
func (o *Overlay) Hosts() []Host {
	var hosts []Host
	for _, n := range o.Base.Nodes {
		c := o.Base.ClaimOf(n.Name)
		if o.gone[n.Name] {
			continue
		}
		hosts = append(hosts, o.hostOfNode(n, c))
	}
	for _, c := range o.Base.Claims {
		if o.gone[c.Name] || o.Base.NodeOf(c.Name) != nil || !c.Deleting.IsZero() || c.Condition(Launched).Status == False || !c.NodeMayCome(o.Base.Now) {
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
		if a.Reserved != b.Reserved && o.plain {
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

// Leaving lists the nodes that are on their way out, with the pods that stay to the end: until a node is gone, it and they
// count where pods look at each other.
func (o *Overlay) Leaving() []Host {
	var hosts []Host
	for _, n := range o.Base.Nodes {
		if !o.gone[n.Name] {
			continue
		}
		h := Host{Name: n.Name, Labels: n.Labels, Initialized: true, Closed: true,
			Taints: append(without(n.Taints, DisruptedTaint), Taint{Key: DisruptedTaint, Effect: NoSchedule})}
		for _, p := range o.Base.PodsOn(n.Name) {
			if !o.Base.Moves(p) {
				h.Pods = append(h.Pods, p)
			}
		}
		hosts = append(hosts, h)
	}
	return hosts
}

func (o *Overlay) hostOfNode(n *Node, c *Claim) Host {
	h := Host{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Free: n.Allocatable, Initialized: true, Closed: n.Cordoned || o.avoided[n.Name], Pods: o.podsOn(n.Name)}
	if c == nil && o.Base.isTwin(n) {
		h.Closed = true // its room is that of the claim's node
	}
	if c != nil {
		if n.HasTaint(DisruptedTaint, NoSchedule) && c.Is(DisruptionReason) {
			h.Fenced, h.Taints = true, without(n.Taints, DisruptedTaint)
			h.Closed = h.Closed || o.spoken(c)
		}
		h.Reserved = o.kept(c)
		h.Closed = h.Closed || c.Interrupted() && !(o.plain && c.Advised())
		h.Claim, h.Pool, h.Seats, h.MadeFor = c.Name, c.Pool, c.Seats, c.madeForAll()
		h.Initialized = c.Is(Initialized)
		if !h.Initialized {
			h.Labels = Lasting(n.Labels.Merge(c.Labels))
			h.Taints = c.Taints
			h.Free = promised(n, c)
			if !c.Labelled() {
				h.Undecided = true
				o.decide(c, &h)
			}
		}
	}
	o.awaitDaemons(&h)
	h.settle()
	return h
}

// settle takes the room that the host's pods need.
func (h *Host) settle() {
	for _, p := range h.Pods {
		h.Free = h.Free.Sub(p.Class.Requests)
		h.Ports = append(h.Ports, p.Class.Ports...)
	}
	h.attach()
}

// podsOn lists the pods of a host, those that are to be there included.
func (o *Overlay) podsOn(host string) []*Pod {
	there, coming := o.Base.PodsOn(host), o.settled[host]
	if len(coming) == 0 {
		return there
	}
	return slices.Concat(there, coming)
}

// promised is what a node that is still coming up will offer: what its kubelet says, and what the cloud promised of what it
// has not spoken of yet.
func promised(n *Node, c *Claim) resource.Vector {
	v := n.Allocatable
	for dim := range v {
		if v[dim] <= 0 {
			v[dim] = c.Allocatable[dim]
		}
	}
	return v
}

// attach counts volumes that several pods share only once.
func (h *Host) attach() {
	for _, p := range h.Pods {
		for _, v := range p.Volumes {
			i, there := slices.BinarySearch(h.Handles, v.Handle)
			if there {
				h.Free[v.Dim]++
				continue
			}
			h.Handles = slices.Insert(h.Handles, i, v.Handle)
		}
	}
}

func without(taints []Taint, key string) []Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t Taint) bool { return t.Key == key })
}

// Lasting are the labels that a node will have once it has joined: daemons and pods may select by them already.
func Lasting(l Labels) Labels { return l.With(RegisteredLabel, "true").With(InitializedLabel, "true") }

// Lands reports whether a pod of the class may run on a node with these labels and taints, room aside.
func Lands(c *PodClass, labels Labels, taints []Taint) bool {
	if _, ok := c.MatchesLabels(labels.Get); !ok {
		return false
	}
	_, tainted := Untolerated(c.Tolerations, taints)
	return !tainted
}

func (o *Overlay) hostOfClaim(c *Claim) Host {
	h := Host{Name: c.Name, Claim: c.Name, Pool: c.Pool, Labels: Lasting(c.Labels), Taints: c.Taints, Seats: c.Seats, MadeFor: c.madeForAll(),
		Reserved: o.kept(c), Closed: o.avoided[c.Name], Pods: o.podsOn(c.Name)}
	if c.Labelled() {
		h.Free = c.Allocatable
	} else {
		h.Free, h.Undecided = o.smallest(c), true
		o.decide(c, &h)
	}
	o.awaitDaemons(&h)
	h.settle()
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
	h.open = func(key string) (require.Values, bool) {
		_, decided := h.Labels.Get(key)
		may, _ := c.Requirements.Get(key)
		return may, !decided && (pool == nil || pool.Catalog == nil || pool.Catalog.Index().Knows(key))
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
	pods := slices.Concat(o.Base.Pending(), o.expected)
	for _, n := range o.Base.Nodes {
		if !o.gone[n.Name] {
			continue
		}
		for _, p := range o.Base.PodsOn(n.Name) {
			if o.Base.Moves(p) {
				pods = append(pods, p)
			}
		}
	}
	if len(o.cared) > 0 {
		pods = slices.DeleteFunc(pods, func(p *Pod) bool { return o.cared[p.UID] })
	}
	slices.SortFunc(pods, func(a, b *Pod) int { return strings.Compare(a.UID, b.UID) })
	return pods
}
