package cluster

import (
	"slices"
	"time"
)

// lookups is what is derived from a snapshot once, when it is sealed.
type lookups struct {
	pool              map[string]*Pool
	claim             map[string]*Claim
	node              map[string]*Node
	podsOn            map[string]*nodePods
	nodeOf            map[string]*Node  // by claim name
	claimOf           map[string]*Claim // by node name
	byProvider        map[string]*Node
	duplicates        map[string][]*Node    // by provider id, where several nodes say that they are the same machine
	claimsOf          map[string][]*Claim   // by pool
	members           map[string][]*Claim   // by move
	replaced          map[string]time.Time  // moves for which claims have been made, and when the last was
	byOwner           map[string]*ownerPods // by owner UID
	pendingPods       []*Pod
	quarantinedPods   []*Pod          // that would be pending, were their class not in quarantine
	quarantinedOwners map[string]bool // the owners at the root of those
	// unschedulable are the classes of which kube-scheduler could not place a pod, and since when we know it of one
	// that still waits. What holds for one holds for all: asking after each by itself would cost minutes, because
	// kube-scheduler looks at one pod at a time. Whoever has room after all is given it, not a node.
	unschedulable map[*PodClass]time.Time
	pdbs          map[string]*namespacePDBs // by namespace
	nominated     map[string]bool           // nodes that kube-scheduler has chosen for a pod which is not bound yet
	// daemonsNominated are the pods of DaemonSets, by the node that kube-scheduler has made others leave for them.
	daemonsNominated map[string][]*Pod
}

// nodePods are the pods that take up room on one node.
type nodePods struct {
	count int
	pods  []*Pod
}

// ownerPods are the pods of one owner.
type ownerPods struct {
	there     int // that are there
	undecided int // that kube-scheduler has not looked at
}

// Seal derives the lookups. It is called once by whoever builds the snapshot; from then on the snapshot is immutable.
func (s *Snapshot) Seal() *Snapshot {
	v := &lookups{
		pool: make(map[string]*Pool, len(s.Pools)), claim: make(map[string]*Claim, len(s.Claims)),
		node: make(map[string]*Node, len(s.Nodes)), podsOn: make(map[string]*nodePods, len(s.Nodes)),
		nodeOf: make(map[string]*Node), claimOf: make(map[string]*Claim), byProvider: make(map[string]*Node),
		claimsOf: make(map[string][]*Claim), byOwner: make(map[string]*ownerPods, len(s.Owners)),
	}
	for _, p := range s.Pools {
		v.pool[p.Name] = p
	}
	for _, n := range s.Nodes {
		v.node[n.Name] = n
		if first := v.byProvider[n.ProviderID]; n.ProviderID != "" && first != nil {
			v.addDuplicate(first, n)
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
	v.dropQuarantined(s)
	if len(s.PDBs) > 0 {
		v.pdbs = make(map[string]*namespacePDBs)
	}
	for _, pdb := range s.PDBs {
		here := v.pdbs[pdb.Namespace]
		if here == nil {
			here = &namespacePDBs{byLabel: make(map[Label][]int)}
			v.pdbs[pdb.Namespace] = here
		}
		here.add(pdb)
	}
	s.lookups = v
	return s
}

// addDuplicate notes that a node says it is a machine that another says it is.
func (l *lookups) addDuplicate(first, n *Node) {
	if l.duplicates == nil {
		l.duplicates = make(map[string][]*Node)
	}
	if len(l.duplicates[n.ProviderID]) == 0 {
		l.duplicates[n.ProviderID] = []*Node{first}
	}
	l.duplicates[n.ProviderID] = append(l.duplicates[n.ProviderID], n)
}

func (l *lookups) addClaim(c *Claim) {
	l.claim[c.Name] = c
	l.claimsOf[c.Pool] = append(l.claimsOf[c.Pool], c)
	if c.Move != "" {
		if l.members == nil {
			l.members = make(map[string][]*Claim)
		}
		l.members[c.Move] = append(l.members[c.Move], c)
	}
	if c.Replaces != "" && c.Deleting.IsZero() {
		if l.replaced == nil {
			l.replaced = make(map[string]time.Time)
		}
		if made, known := l.replaced[c.Replaces]; !known || c.Created.After(made) {
			l.replaced[c.Replaces] = c.Created
		}
	}
	if c.ProviderID == "" {
		return
	}
	n := l.byProvider[c.ProviderID]
	if own := l.node[c.NodeName]; own != nil && own.ProviderID == c.ProviderID {
		n = own // another node that says it is the same machine changes nothing for one that has joined
	}
	if n == nil {
		return
	}
	if first := l.claimOf[n.Name]; first != nil { // two claims say that they have the same machine: the older one does
		if !c.Created.Before(first.Created) {
			return
		}
		delete(l.nodeOf, first.Name)
	}
	l.nodeOf[c.Name], l.claimOf[n.Name] = n, c
}

// addNominated notes where a pod is expected. Where we want a pending pod to go is for the placement to say.
func (l *lookups) addNominated(p *Pod) {
	switch {
	case p.Finished, !p.Deleting.IsZero():
	case p.Daemon && p.Node == "":
		if l.daemonsNominated == nil {
			l.daemonsNominated = make(map[string][]*Pod)
		}
		l.daemonsNominated[p.Nominated] = append(l.daemonsNominated[p.Nominated], p)
	case !p.Daemon && !p.Mirror && !p.IsPending():
		if l.nominated == nil {
			l.nominated = make(map[string]bool)
		}
		l.nominated[p.Nominated] = true
	}
}

// addPods sorts the pods by node and by owner. There may be a hundred thousand of them, so each name is looked up once.
func (l *lookups) addPods(pods []*Pod) {
	l.unschedulable = make(map[*PodClass]time.Time)
	hosts, families := make([]*nodePods, len(pods)), make([]*ownerPods, len(pods))
	held := 0
	for i, p := range pods {
		if p.UsesRoom() {
			hosts[i] = entry(l.podsOn, p.Node)
			hosts[i].count++
			held++
		}
		if p.Nominated != "" {
			l.addNominated(p)
		}
		if p.Finished || !p.Deleting.IsZero() || p.Daemon || p.Mirror {
			continue
		}
		workloadClaims := entry(l.byOwner, p.Owner)
		families[i] = workloadClaims
		workloadClaims.there++
		if p.Owner != "" && p.IsPending() {
			if since, told := l.unschedulable[p.Class]; !told || p.UnschedulableSince.Before(since) {
				l.unschedulable[p.Class] = p.UnschedulableSince
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
		switch workloadClaims := families[i]; {
		case workloadClaims == nil:
		case p.IsPending(), p.AwaitsScheduler() && l.isUnschedulable(p):
			l.pendingPods = append(l.pendingPods, p)
		case p.AwaitsScheduler():
			workloadClaims.undecided++
		}
	}
}

// dropQuarantined takes the pods out whose class is in quarantine.
func (l *lookups) dropQuarantined(s *Snapshot) {
	if len(s.Quarantine.Classes) == 0 {
		return
	}
	l.quarantinedOwners = make(map[string]bool)
	l.pendingPods = slices.DeleteFunc(l.pendingPods, func(p *Pod) bool {
		if s.IsQuarantined(p) {
			l.quarantinedPods = append(l.quarantinedPods, p)
			l.quarantinedOwners[s.Workload(p)] = true
		}
		return s.IsQuarantined(p)
	})
}

// isUnschedulable reports whether kube-scheduler has found no place for a pod of the same class.
func (l *lookups) isUnschedulable(p *Pod) bool {
	_, told := l.unschedulable[p.Class]
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
