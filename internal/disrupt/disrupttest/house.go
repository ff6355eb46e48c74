package disrupttest

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/require"
)

// House is a pool with one large node that carries two pods, web and db, and has been quiet for long.
type House struct {
	S       *cluster.Snapshot
	Set     disrupt.Settings
	Pool    *cluster.Pool
	Claim   *cluster.Claim
	Node    *cluster.Node
	Web, Db *cluster.Pod
}

// NewHouse builds the house.
func NewHouse() *House {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	h := &House{
		Pool: &cluster.Pool{Name: "default", Policy: cluster.WhenEmptyOrUnderutilized, Catalog: Shop(),
			NodeClass: cluster.NodeClassState{Ready: true}},
		Claim: &cluster.Claim{Name: "c", UID: "u", Pool: "default", ProviderID: "cloud://c", NodeName: "n",
			Created: now.Add(-3 * time.Hour),
			Labels:  LabelsFor("large", "a", disrupt.OnDemand), Price: 4, LastPodEvent: now.Add(-time.Hour)},
		Node: &cluster.Node{Name: "n", ProviderID: "cloud://c", Ready: true},
		Web:  Tenant("web", "deploy"), Db: Tenant("db", "stateful"),
	}
	for _, kind := range []string{cluster.Launched, cluster.Registered, cluster.Initialized} {
		h.Claim.Conditions = append(h.Claim.Conditions, cluster.Condition{Type: kind, Status: cluster.True,
			Since: now.Add(-2 * time.Hour)})
	}
	h.S = &cluster.Snapshot{Now: now, InFlight: map[string]bool{}, Pools: []*cluster.Pool{h.Pool},
		Claims: []*cluster.Claim{h.Claim},
		Nodes:  []*cluster.Node{h.Node}, Pods: []*cluster.Pod{h.Db, h.Web}, EvictedToSave: map[string]int{},
		EvictionsDropAt: map[string]time.Time{},
		Owners:          map[string]cluster.Owner{"deploy": {UID: "deploy", Known: true, Desired: 2}}}
	return h
}

// Tenant is a pod of an owner on the node of a house.
func Tenant(name, owner string) *cluster.Pod {
	return &cluster.Pod{UID: name, Namespace: "shop", Name: name, Class: &cluster.PodClass{Key: name}, Owner: owner,
		Node: "n", Ready: true,
		EvictionCost: 1, Phase: "Running", Labels: cluster.LabelsOf(map[string]string{"app": name})}
}

// Guard adds a disruption budget for the pods of an app.
func (h *House) Guard(name, app string, allowed int) *cluster.PDB {
	g := &cluster.PDB{Namespace: "shop", Name: name, Allowed: allowed, Healthy: 2, DesiredHealthy: 1 + 1 - min(allowed,
		1), Expected: 3,
		Selector: cluster.Selector{Namespaces: []string{"shop"}, Labels: require.Set{}.With("app", require.Only(app))}}
	h.S.PDBs = append(h.S.PDBs, g)
	return g
}

// Tried makes the node the given try of a workload of which so many have failed, and has it come up just now.
func (h *House) Tried(try, failed int) {
	h.Claim.MadeFor = []cluster.MadeFor{{Owner: "web", Try: try}}
	h.S.WorkloadTries = map[string]*cluster.WorkloadTries{"web": {Owner: "web", FailedTries: failed}}
	for i := range h.Claim.Conditions {
		h.Claim.Conditions[i].Since = h.S.Now
	}
}

// TakenEarly has consolidation take another node of the workload so long after the node was made.
func (h *House) TakenEarly(after time.Duration) {
	h.S.RemovedEarly = map[string]time.Time{"web": h.Claim.Created.Add(after)}
}

// Waiting adds a pod that looks for a place.
func (h *House) Waiting(class string) *cluster.Pod {
	p := &cluster.Pod{UID: "waiting", Namespace: "shop", Name: "waiting", Class: &cluster.PodClass{Key: class},
		Owner: "deploy", Unschedulable: true, SchedulerSeen: true}
	h.S.Pods = append(h.S.Pods, p)
	return p
}

// Say writes a condition on the claim.
func (h *House) Say(kind, reason string) {
	h.Claim.Conditions = append(h.Claim.Conditions, cluster.Condition{Type: kind, Status: cluster.True, Reason: reason})
}
