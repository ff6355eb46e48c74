package cluster

import (
	"slices"
	"time"
)

// view is what is derived from a snapshot once, when it is sealed.
type view struct {
	pool        map[string]*Pool
	claim       map[string]*Claim
	node        map[string]*Node
	podsOn      map[string]*tenants
	nodeOf      map[string]*Node  // by claim name
	claimOf     map[string]*Claim // by node name
	byProvider  map[string]*Node
	twins       map[string][]*Node   // by provider id, where several nodes say that they are the same machine
	claimsOf    map[string][]*Claim  // by pool
	members     map[string][]*Claim  // by move
	replaced    map[string]time.Time // moves for which claims have been made, and when the last was
	kin         map[string]*kin      // by owner UID
	pendingPods []*Pod
	refused     []*Pod          // that would be pending, were their class not in quarantine
	refusedFor  map[string]bool // the owners at the root of those
	// told are the classes of which kube-scheduler could not place a pod, and since when we know it of one that still
	// waits. What holds for one holds for all: asking after each by itself would cost minutes, because kube-scheduler
	// looks at one pod at a time. Whoever has room after all is given it, not a node.
	told      map[*PodClass]time.Time
	guards    map[string]*namespaceGuards // by namespace
	nominated map[string]bool             // nodes that kube-scheduler has chosen for a pod which is not bound yet
	// promised are the pods of DaemonSets, by the node that kube-scheduler has made others leave for them.
	promised map[string][]*Pod
}

// tenants are the pods that take up room on one node.
type tenants struct {
	count int
	pods  []*Pod
}

// kin are the pods of one owner.
type kin struct {
	there     int // that are there
	undecided int // that kube-scheduler has not looked at
}

// Seal derives the lookups. It is called once by whoever builds the snapshot; from then on the snapshot is immutable.
func (s *Snapshot) Seal() *Snapshot {
	v := &view{
		pool: make(map[string]*Pool, len(s.Pools)), claim: make(map[string]*Claim, len(s.Claims)),
		node: make(map[string]*Node, len(s.Nodes)), podsOn: make(map[string]*tenants, len(s.Nodes)),
		nodeOf: make(map[string]*Node), claimOf: make(map[string]*Claim), byProvider: make(map[string]*Node),
		claimsOf: make(map[string][]*Claim), kin: make(map[string]*kin, len(s.Owners)),
	}
	for _, p := range s.Pools {
		v.pool[p.Name] = p
	}
	for _, n := range s.Nodes {
		v.node[n.Name] = n
		if first := v.byProvider[n.ProviderID]; n.ProviderID != "" && first != nil {
			v.addTwin(first, n)
		}
		// One that is being deleted speaks for its machine only if no other does.
		if first := v.byProvider[n.ProviderID]; n.ProviderID != "" && (first == nil || n.Deleting.IsZero()) {
			v.byProvider[n.ProviderID] = n
		}
	}
	for _, c := range s.Claims {
		v.addClaim(c)
	}
	v.addPods(s.Pods)
	v.refuse(s)
	if len(s.Guards) > 0 {
		v.guards = make(map[string]*namespaceGuards)
	}
	for _, g := range s.Guards {
		here := v.guards[g.Namespace]
		if here == nil {
			here = &namespaceGuards{byLabel: make(map[Label][]int)}
			v.guards[g.Namespace] = here
		}
		here.add(g)
	}
	s.view = v
	return s
}

// addTwin notes that a node says it is a machine that another says it is.
func (v *view) addTwin(first, n *Node) {
	if v.twins == nil {
		v.twins = make(map[string][]*Node)
	}
	if len(v.twins[n.ProviderID]) == 0 {
		v.twins[n.ProviderID] = []*Node{first}
	}
	v.twins[n.ProviderID] = append(v.twins[n.ProviderID], n)
}

func (v *view) addClaim(c *Claim) {
	v.claim[c.Name] = c
	v.claimsOf[c.Pool] = append(v.claimsOf[c.Pool], c)
	if c.Move != "" {
		if v.members == nil {
			v.members = make(map[string][]*Claim)
		}
		v.members[c.Move] = append(v.members[c.Move], c)
	}
	if c.Replaces != "" && c.Deleting.IsZero() {
		if v.replaced == nil {
			v.replaced = make(map[string]time.Time)
		}
		if made, known := v.replaced[c.Replaces]; !known || c.Created.After(made) {
			v.replaced[c.Replaces] = c.Created
		}
	}
	if c.ProviderID == "" {
		return
	}
	n := v.byProvider[c.ProviderID]
	if own := v.node[c.NodeName]; own != nil && own.ProviderID == c.ProviderID {
		n = own // another node that says it is the same machine changes nothing for one that has joined
	}
	if n == nil {
		return
	}
	if first := v.claimOf[n.Name]; first != nil { // two claims say that they have the same machine: the older one does
		if !c.Created.Before(first.Created) {
			return
		}
		delete(v.nodeOf, first.Name)
	}
	v.nodeOf[c.Name], v.claimOf[n.Name] = n, c
}

// addPods sorts the pods by node and by owner. There may be a hundred thousand of them, so each name is looked up once.
func (v *view) addPods(pods []*Pod) {
	v.told = make(map[*PodClass]time.Time)
	hosts, families := make([]*tenants, len(pods)), make([]*kin, len(pods))
	held := 0
	for i, p := range pods {
		if p.Holds() {
			hosts[i] = entry(v.podsOn, p.Node)
			hosts[i].count++
			held++
		}
		if p.Daemon && p.Nominated != "" && p.Node == "" && !p.Done && p.Deleting.IsZero() {
			if v.promised == nil {
				v.promised = make(map[string][]*Pod)
			}
			v.promised[p.Nominated] = append(v.promised[p.Nominated], p)
		}
		if p.Done || !p.Deleting.IsZero() || p.Daemon || p.Mirror {
			continue
		}
		if p.Nominated != "" && !p.Pending() { // where we want a pending pod to go is for the placement to say
			if v.nominated == nil {
				v.nominated = make(map[string]bool)
			}
			v.nominated[p.Nominated] = true
		}
		family := entry(v.kin, p.Owner)
		families[i] = family
		family.there++
		if p.Owner != "" && p.Pending() {
			if since, told := v.told[p.Class]; !told || p.Seen.Before(since) {
				v.told[p.Class] = p.Seen
			}
		}
	}
	room := make([]*Pod, held)
	for i, p := range pods {
		if host := hosts[i]; host != nil {
			if host.pods == nil {
				host.pods, room = room[:0:host.count], room[host.count:]
			}
			host.pods = append(host.pods, p)
		}
		switch family := families[i]; {
		case family == nil:
		case p.Pending(), p.Waiting() && v.hopeless(p):
			v.pendingPods = append(v.pendingPods, p)
		case p.Waiting():
			family.undecided++
		}
	}
}

// refuse takes the pods out whose class is in quarantine.
func (v *view) refuse(s *Snapshot) {
	if len(s.Quarantine.Classes) == 0 {
		return
	}
	v.refusedFor = make(map[string]bool)
	v.pendingPods = slices.DeleteFunc(v.pendingPods, func(p *Pod) bool {
		if s.Quarantined(p) {
			v.refused = append(v.refused, p)
			v.refusedFor[s.Root(p)] = true
		}
		return s.Quarantined(p)
	})
}

// hopeless reports whether kube-scheduler has found no place for a pod of the same class.
func (v *view) hopeless(p *Pod) bool {
	_, told := v.told[p.Class]
	return told && p.Owner != ""
}

// entry finds the value of a key, or puts a new one there.
func entry[V any](m map[string]*V, key string) *V {
	v := m[key]
	if v == nil {
		v = new(V)
		m[key] = v
	}
	return v
}
