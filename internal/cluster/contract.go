package cluster

// The names of the contract that decisions depend on. They are repeated here because the floors below the edge may not
// import the API packages; archtest compares them with api/karpenter/v1.
const (
	InstanceTypeLabel = "node.kubernetes.io/instance-type"
	ZoneLabel         = "topology.kubernetes.io/zone"
	HostnameLabel     = "kubernetes.io/hostname"
	CapacityTypeLabel = "karpenter.sh/capacity-type"
	PoolLabel         = "karpenter.sh/nodepool"
	RegisteredLabel   = "karpenter.sh/registered"
	InitializedLabel  = "karpenter.sh/initialized"

	DisruptedTaint    = "karpenter.sh/disrupted"
	UnregisteredTaint = "karpenter.sh/unregistered"

	Launched            = "Launched"
	Registered          = "Registered"
	Initialized         = "Initialized"
	Ready               = "Ready"
	Drained             = "Drained"
	VolumesDetached     = "VolumesDetached"
	ConsistentState     = "ConsistentStateFound"
	RegistrationHealthy = "NodeRegistrationHealthy"
	InstanceTerminating = "InstanceTerminating"
	DisruptionReason    = "DisruptionReason"
	Consolidatable      = "Consolidatable"
	Drifted             = "Drifted"

	ValidationSucceeded = "ValidationSucceeded"
	NodeClassReady      = "NodeClassReady"

	// CanLaunch is an addition to the contract: whether the pool could make a node now, and why not. It does not feed
	// Ready.
	CanLaunch = "tenon.sh/CanLaunch"
	// NodesUsable is an addition: False while nodes of the pool that were made for pods are of no use to them.
	NodesUsable = "tenon.sh/NodesUsable"
	// BudgetsAllow is an addition: what the pool's disruption budgets allow now, for each reason.
	BudgetsAllow = "tenon.sh/BudgetsAllow"
	// DriftProceeds is an addition: False while the replacement of drifted nodes is paused because replacements fail,
	// Unknown while the first of them is watched.
	DriftProceeds = "tenon.sh/DriftProceeds"
	// TookOver is an addition: no pod has to leave the drifted nodes any more in whose place a claim was made. It is
	// told where the pool watches how the first of them do.
	TookOver = "tenon.sh/TookOver"
	// OrphansHeld is an addition: True while instances that nobody claims are left alone until a person has looked.
	OrphansHeld = "tenon.sh/OrphansHeld"
	// ManyOrphans is its reason if there are many.
	ManyOrphans = "ManyOrphans"
)
