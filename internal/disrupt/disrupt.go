package disrupt

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/purchase"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Settings are what disruption depends on besides the world. Where a pool has a word of its own, that holds.
type Settings struct {
	// Schedule says how pods are placed.
	Schedule schedule.Settings
	// Nomination is how long a new node is kept for the pods it was made for.
	Nomination time.Duration
	// MinSaving is the share of the price of the nodes that go which a move must save at least; MinSavingPerPod is what
	// it must save for each pod that it evicts, in dollars per hour.
	MinSaving, MinSavingPerPod float64
	// EvictionsPerHour bounds how often the pods of one workload are evicted to save money; 0 for no bound.
	EvictionsPerHour int
	// BalancedK is the k of the policy Balanced.
	BalancedK float64
	// SpotToSpot lets spot nodes be replaced by cheaper spot nodes (the gate SpotToSpotConsolidation). SpotTypes is how
	// many cheaper types there must be for one node; SpotRisk, if it is above 0, is used instead: a spot replacement
	// counts as that share more expensive for each halving of the types that it may be launched as below SpotTypes.
	SpotToSpot bool
	SpotTypes  int
	SpotRisk   float64
	// ReplacementTimeout is how long a move waits for its replacements before it is given up.
	ReplacementTimeout time.Duration
	// DriftWatch is how long a canary must be healthy before more drifted nodes are replaced, where its pool does not
	// say.
	DriftWatch time.Duration
	// InterruptionDrain is how long before the cloud takes an instance away the pods of its node are told to leave at
	// the latest.
	InterruptionDrain time.Duration
}

// Candidate is a node that may be taken away, as far as its pods and people allow it.
type Candidate struct {
	Claim *cluster.Claim
	Node  *cluster.Node
	Pool  *cluster.Pool
	// Pods that have to move.
	Pods []*cluster.Pod
	// Cost of disturbing them: 1, and what each of them adds.
	Cost float64
	// Evicted counts the pods that will be asked to leave: Pods, and those that nobody will make anew.
	Evicted int
	// Empty nodes carry no workload.
	Empty bool
	// Price per hour; 0 if it is not known. Type and CapacityType say what the node is.
	Price              float64
	Type, CapacityType string
}

// Move is a set of nodes that go together and what takes their place. It is begun by fencing the nodes; from then on
// everything about it can be read off the cluster: the nodes that go carry its name on their claims, and so do the
// replacements.
type Move struct {
	// ID derives from the claims' UIDs and the reason: the same move has the same name after a crash, and no other has.
	ID     string
	Reason command.Reason
	// Claims of the nodes that go, sorted.
	Claims []string
	// Bins are the new nodes that it takes; none if the pods have room elsewhere.
	Bins []market.Bin
	// Assigned are the pods that go to nodes that are there, and where: what was found, not what has to be.
	Assigned []schedule.Assignment
	// Before and After are the prices per hour of what goes and of what comes; Evicted counts the pods that move, Cost
	// is what disturbing them costs.
	Before, After float64
	Evicted       int
	Cost          float64
	// NeededSaving is what it must save per hour at least.
	NeededSaving float64
}

// Proposal is what a search over all candidates has found. It is made from a snapshot that may be old by the time it is
// read: whatever it proposes is verified, after the fence, on a newer one.
type Proposal struct {
	Rev   uint64
	Now   time.Time
	Moves []Move
	// Blocked says of every node that is not in a move why it stays.
	Blocked []BlockedNode
	// WakeAt is when the answer may change although nothing else does.
	WakeAt time.Time
	// Truncated says that the search came to the end of its budget of steps before it had looked at all nodes.
	Truncated bool
	// Faults are invariants of placements that were found violated.
	Faults []purchase.Fault
}

// BlockedNode says why a node is not taken away.
type BlockedNode struct {
	Claim, Node string
	Reason      BlockReason
	// Pod or PDB that stands in the way, as namespace/name.
	Pod, PDB string
	// Until is when it no longer does, if that is known.
	Until time.Time
	// Saving is what the best move is expected to save per hour, and CertainSaving what it saves at least, whichever of
	// the types and zones that it may have the cloud hands out. NeededSaving is what it must save for sure.
	Saving, CertainSaving, NeededSaving float64
	// Estimated says that some price in it is an estimate.
	Estimated bool
}

// BlockReason is why a node stays.
type BlockReason string

// What may keep a node.
const (
	NotManaged       BlockReason = "NotManaged" // the node is of another provider, or of no NodePool
	NotInitialized   BlockReason = "NotInitialized"
	BeingDisrupted   BlockReason = "BeingDisrupted"
	NodeDoNotDisrupt BlockReason = "NodeDoNotDisrupt"
	PodDoNotDisrupt  BlockReason = "PodDoNotDisrupt"
	PodUnowned       BlockReason = "PodUnowned" // nobody would make the pod again
	PDBBlocks        BlockReason = "PDBBlocks"  // a PodDisruptionBudget allows no eviction now
	// more than one selects the pod, which Kubernetes refuses to evict
	SeveralPDBs  BlockReason = "SeveralPDBs"
	PodsExpected BlockReason = "PodsExpected" // pods have been promised room there
	ShowsCause   BlockReason = "ShowsCause"   // it was made in vain, and shows what keeps pods off such nodes
	PlannerFails BlockReason = "PlannerFails" // the planner has failed on it, or on its pods
	PoolUnknown  BlockReason = "PoolUnknown"  // the pool is gone, or static, or can't be read
	// nobody sells what the node is, so that no price can be compared
	PriceUnknown   BlockReason = "PriceUnknown"
	PolicyForbids  BlockReason = "PolicyForbids"  // the pool consolidates empty nodes only
	TooSoon        BlockReason = "TooSoon"        // consolidateAfter
	BudgetBlocks   BlockReason = "BudgetBlocks"   // the pool's disruption budgets
	PodsStranded   BlockReason = "PodsStranded"   // some pod would find no place
	NothingCheaper BlockReason = "NothingCheaper" // nothing that would take its pods costs less
	SavesTooLittle BlockReason = "SavesTooLittle" // less than the least saving
	// with as many types as minValues asks for, the new node may cost too much
	MinValuesTooDear  BlockReason = "MinValuesTooDear"
	NotBalanced       BlockReason = "NotBalanced"       // too much disturbance for what it saves
	SpotNeedsTypes    BlockReason = "SpotNeedsTypes"    // too few cheaper types for a spot replacement
	SpotToSpotOff     BlockReason = "SpotToSpotOff"     // the gate
	WorkloadResting   BlockReason = "WorkloadResting"   // its pods have been evicted often enough within the hour
	MoveFailedLately  BlockReason = "MoveFailedLately"  // a move of this node was given up a while ago
	UsesUnreadyNodes  BlockReason = "UsesUnreadyNodes"  // its pods would need nodes that are not there yet
	ConsolidationsOff BlockReason = "ConsolidationsOff" // consolidateAfter is Never
	OthersFirst       BlockReason = "OthersFirst"       // moves that were found with its own have begun, and come first
	SearchCut         BlockReason = "SearchCut"         // the search has used up its steps on rules between pods
)

// ByPod reports whether it is pods that keep the node, by their own word or a disruption budget's.
func (b *BlockedNode) ByPod() bool {
	return b.Reason == PodDoNotDisrupt || b.Reason == SeveralPDBs || b.Reason == PDBBlocks
}

// Why moves are given up that were begun, beyond what may keep a node from being chosen.
const (
	NoLongerDue      BlockReason = "NoLongerDue"      // the node is no longer drifted, unhealthy or near its end
	ReplacementsLate BlockReason = "ReplacementsLate" // what was to take its place did not come up in time
	NotDeleted       BlockReason = "NotDeleted"       // what was to take its place is there, but it can't be deleted
	// so many nodes of the pool have fallen unhealthy that the cause is elsewhere
	ManyUnhealthy BlockReason = "ManyUnhealthy"
	DryRun        BlockReason = "DryRun" // the pool only wants to be told
)

// CapacityReserved is the capacity type of what was paid for in advance.
const CapacityReserved = "reserved"

// The capacity types of the contract.
const (
	OnDemand = "on-demand"
	Spot     = "spot"
)
