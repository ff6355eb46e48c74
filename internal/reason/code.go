package reason

// Code tells reasons apart. Beside each stand its arguments.
type Code int

// The codes.
const (
	Nothing Code = iota

	// What others say, and texts that are made of texts.

	Verbatim // words
	Both     // text, text
	Then     // text, text
	About    // what it is about, text
	And      // names, name
	AndMore  // names, how many more

	// Why a NodePool can't be used, or makes no node.

	PoolDeleting
	PoolStatic
	PoolInvalid          // field, what is wrong
	ClassNotReady        // why
	LaunchesRefusedUntil // Clock
	TypesUnknownBecause  // error
	TypesUnknown
	MinValuesUnmet     // least, label, values that are left
	LabelContradiction // label
	NoTypeHas          // label, values
	NothingSold
	NoTypeHasBoth      // label, values, label, values
	FewestLeft         // label, values
	LimitUncounted     // resource
	LimitOnNodes       // nodes
	LimitForbids       // resource, amount
	LimitBelowSmallest // resource, amount, of the smallest type
	LimitsTogether
	PriceEstimated  // type
	PricesEstimated // how many, a type
	MinValuesUnsold // label
	NothingAvailable
	DaemonsFillAll
	LimitOnNodesReached // nodes
	LimitsUsedUp

	// What the conditions of a NodePool say.

	NothingLaunchedYet
	LaunchesDidNotJoin
	PoolIsDeleting
	StaticCapacityOff
	PoolNotReady
	NotSoldYet
	LaunchesRefusedBefore
	LaunchesFail  // the last answer
	MadeInVain    // About for each workload
	MoreWorkloads // how many

	// Disruption budgets.

	BudgetsTogether // nodes, About for each group of reasons
	NoBudgetHolds
	BudgetForbids   // budget
	BudgetAllows    // nodes, budget
	AllowedUntil    // text, time
	AllowedFrom     // text, time, budget
	BudgetBroken    // number
	BudgetOfPercent // number, percent
	BudgetOfNodes   // number, nodes
	AllowedNow      // text, nodes, nodes that are out

	// Drift.

	LaunchesDidNotJoinLately
	ReplacementLate // claim, after how long
	ReplacementsDrift
	ReplacementDrifted // claim, why
	DriftOneAtATime    // why, how far apart at most
	DriftStopped       // why
	DriftNoRoom        // why
	DriftPodsLeaving
	DriftWatched // for how long

	// Static NodePools.

	NodesMissing     // how many, of how many, why
	NodesResting     // how many, of how many, why, until when
	PoolRefused      // the cloud's answer
	PoolAsksFor      // pool, nodes
	NodesEndSoon     // within how long
	NodesEndedSoonBy // within how long, by whom

	// Why a node goes, and where its pods go.

	NodeEmpty
	ReplacedNodesStay
	NodeDrifted // why
	NodeExpires // expireAfter
	NoPodsMove
	PodsFit
	PodsGoTo        // names
	PodsGoToNew     // how many nodes
	SavingPerHour   // dollars
	NodeInterrupted // what happens, what becomes of the pods
	GoneBy          // what happens, time
	NodeNeverCame
	PodsLeaveAnyway
	NothingAwaited

	// What a dry run would do.

	DryRunEmpty  // dollars a month
	DryRunMove   // reason, why, pods
	DryRunSaving // reason, why, pods, dollars a month
	TogetherWith // why, other nodes
	OneCheaperNode
	CheaperNodes // how many
	NoLongerAsAsked
	EndOfLife
	Unhealthy

	// Repair.

	ConditionLasts  // type, node, status, for how long
	RepairStaticOff // pool
	RepairPodStays  // pod, why, pool
	ManyUnhealthy   // nodes, of how many, whose, percent
	RepairBudgets   // whose
	PoolNamed       // pool
	StandaloneClaims

	// How a NodeClaim comes to life and ends.

	NodeDeleted  // node
	TooOld       // expireAfter
	InstanceGone // instance
	NodeRemoved  // node
	NotLaunched  // within how long
	OfferingsGone
	LaunchesFailElsewhere
	NotRegistered   // within how long
	NotInitialized  // within how long, why
	SeveralNodes    // how many, instance
	CapacityShort   // node, resource, amount, expected amount
	NodeNotReady    // node
	StartupTaint    // taint, node
	EphemeralTaint  // taint, node
	ResourceMissing // node, resource
	TimeUpForPods
	PodsLeaving
	TimeUpForVolumes
	VolumesAttached
	VolumesAwaited    // names
	PodProtected      // pod
	PodProtectedUntil // pod, time
	PodsDeletedBy     // time
	DuplicateNode     // node, instance, claim, node
	InstanceUnclaimed // instance

	// Instances that nobody claims.

	OrphansHeld   // how many, of how many, why, annotation
	AtMostUnasked // how many
	NoIdentityTag
	ManyBeforePools
	MoreBefore
	AtMostWithinHour // how many, ended

	// Evictions.

	PodNotEvicted // pod, why
	TwoBudgets    // budget, budget
	BudgetNever   // budget
	BudgetNotNow  // budget

	// DaemonSets without room.

	DaemonFitsNowhere // pool, DaemonTooLarge or DaemonCrowdedOut
	DaemonTooLarge    // resource, amount, the most there is
	DaemonCrowdedOut  // resource, amount, the most there is
	DaemonsOmitted    // names
	DaemonsSqueezed   // a pod

	// What the planner failed on.

	PartFailed    // part, failure, until
	ClaimFailed   // failure, until
	LeftOut       // classes of pods, claims
	SearchLeftOut // classes of pods, claims

	// Count is how many codes there are.

	Count
)
