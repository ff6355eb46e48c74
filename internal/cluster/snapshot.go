// Package cluster is the world as values: what the API server and the cloud have told us, in the small form in which
// decisions are made.
//
// Floor 1: pure. A Snapshot never changes once it is made; everything in it may be shared freely.
package cluster

import (
	"time"

	"github.com/tenon-sh/tenon/internal/resource"
)

// Snapshot is the world at one moment. All slices are sorted by name (pods by UID), so that whoever walks them gets
// the same answer each time.
type Snapshot struct {
	// Rev grows with every change; Now is the only clock that decisions know.
	Rev uint64
	Now time.Time
	// Demand and Supply are the Rev of the last change to pods that need a place, and to anything else that a
	// placement depends on; Help is that of the last change that may give room to a pod that found none. Two snapshots
	// with the same Demand and Supply have the same placement.
	Demand, Supply, Help uint64

	Names   *resource.Names
	Pools   []*Pool
	Claims  []*Claim
	Nodes   []*Node
	Pods    []*Pod
	Daemons []*Daemon
	Owners  map[string]Owner // by UID
	// Namespaces holds the labels of each namespace.
	Namespaces map[string]Labels

	// Planned is when pods were last planned for: pods seen since then have not been in any plan.
	Planned time.Time
	// Gone holds the provider ids of instances that the cloud has said it no longer knows.
	Gone map[string]bool
	// Busy holds the keys of commands that are under way, or whose effect the watch has not shown yet.
	Busy map[string]bool
	// Retry says, for commands that have failed, how often and when to try again.
	Retry map[string]Retry

	view *view
}

// Retry is what is known of a command that failed.
type Retry struct {
	Attempts  int
	NotBefore time.Time
	Message   string
}

// view is what is derived from a snapshot once, when it is sealed.
type view struct {
	pool        map[string]*Pool
	claim       map[string]*Claim
	node        map[string]*Node
	podsOn      map[string][]*Pod
	nodeOf      map[string]*Node  // by claim name
	claimOf     map[string]*Claim // by node name
	byProvider  map[string]*Node
	claimsOf    map[string][]*Claim // by pool
	ownedPods   map[string]int      // by owner UID: pods that are there
	undecided   map[string]int      // by owner UID: pods that kube-scheduler has not looked at
	pendingPods []*Pod
}

// Seal derives the lookups. It is called once by whoever builds the snapshot; from then on the snapshot is immutable.
func (s *Snapshot) Seal() *Snapshot {
	v := &view{
		pool: make(map[string]*Pool, len(s.Pools)), claim: make(map[string]*Claim, len(s.Claims)),
		node: make(map[string]*Node, len(s.Nodes)), podsOn: make(map[string][]*Pod, len(s.Nodes)),
		nodeOf: make(map[string]*Node), claimOf: make(map[string]*Claim), byProvider: make(map[string]*Node),
		claimsOf: make(map[string][]*Claim), ownedPods: make(map[string]int), undecided: make(map[string]int),
	}
	for _, p := range s.Pools {
		v.pool[p.Name] = p
	}
	for _, n := range s.Nodes {
		v.node[n.Name] = n
		if n.ProviderID != "" {
			v.byProvider[n.ProviderID] = n
		}
	}
	for _, c := range s.Claims {
		v.addClaim(c)
	}
	told := verdicts(s.Pods)
	for _, p := range s.Pods {
		v.addPod(p, told)
	}
	s.view = v
	return s
}

// kin are the pods of one owner and one class.
type kin struct {
	owner string
	class *PodClass
}

// verdicts are the kin of whom kube-scheduler could not place one. What holds for one holds for all: asking after each by
// itself would cost seconds, because kube-scheduler looks at one pod at a time.
func verdicts(pods []*Pod) map[kin]bool {
	told := make(map[kin]bool)
	for _, p := range pods {
		if p.Owner != "" && p.Pending() {
			told[kin{p.Owner, p.Class}] = true
		}
	}
	return told
}

func (v *view) addClaim(c *Claim) {
	v.claim[c.Name] = c
	v.claimsOf[c.Pool] = append(v.claimsOf[c.Pool], c)
	if c.ProviderID == "" {
		return
	}
	if n := v.byProvider[c.ProviderID]; n != nil {
		v.nodeOf[c.Name], v.claimOf[n.Name] = n, c
	}
}

func (v *view) addPod(p *Pod, told map[kin]bool) {
	if p.Holds() {
		v.podsOn[p.Node] = append(v.podsOn[p.Node], p)
	}
	if p.Done || !p.Deleting.IsZero() || p.Daemon || p.Mirror {
		return
	}
	v.ownedPods[p.Owner]++
	switch {
	case p.Pending(), p.Waiting() && told[kin{p.Owner, p.Class}]:
		v.pendingPods = append(v.pendingPods, p)
	case p.Waiting():
		v.undecided[p.Owner]++
	}
}

// Pool finds a pool by name, or nil.
func (s *Snapshot) Pool(name string) *Pool { return s.view.pool[name] }

// Claim finds a claim by name, or nil.
func (s *Snapshot) Claim(name string) *Claim { return s.view.claim[name] }

// Node finds a node by name, or nil.
func (s *Snapshot) Node(name string) *Node { return s.view.node[name] }

// NodeOf is the node that a claim has become, or nil.
func (s *Snapshot) NodeOf(claim string) *Node { return s.view.nodeOf[claim] }

// ClaimOf is the claim that a node came from, or nil if it is none of ours.
func (s *Snapshot) ClaimOf(node string) *Claim { return s.view.claimOf[node] }

// ClaimsOf lists a pool's claims.
func (s *Snapshot) ClaimsOf(pool string) []*Claim { return s.view.claimsOf[pool] }

// PodsOn lists the pods that take up room on a node.
func (s *Snapshot) PodsOn(node string) []*Pod { return s.view.podsOn[node] }

// Pending lists the pods that kube-scheduler could not place, and those of the same owner and class that it has not
// looked at yet.
func (s *Snapshot) Pending() []*Pod { return s.view.pendingPods }

// Complete reports whether every pod that the owner wants has appeared and its fate is known; known
// is false if that can't be told.
func (s *Snapshot) Complete(owner string) (complete, known bool) {
	if owner == "" {
		return s.view.undecided[""] == 0, true
	}
	o, ok := s.Owners[owner]
	if !ok || !o.Known {
		return false, false
	}
	return s.view.undecided[owner] == 0 && s.view.ownedPods[owner] >= o.Desired, true
}
