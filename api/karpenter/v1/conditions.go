package v1

// ConditionTypeReady is the condition that sums up the others, on every kind of this group and on NodeClasses.
const ConditionTypeReady = "Ready"

// Conditions of a NodeClaim. Ready is the conjunction of Launched, Registered and Initialized.
const (
	// ConditionTypeLaunched is true once the cloud has accepted the launch.
	ConditionTypeLaunched = "Launched"
	// ConditionTypeRegistered is true once the Node has joined and been matched.
	ConditionTypeRegistered = "Registered"
	// ConditionTypeInitialized is true once the Node can run the pods it was launched for.
	ConditionTypeInitialized = "Initialized"
	// ConditionTypeConsolidatable is true once consolidateAfter has passed without a pod coming or going.
	ConditionTypeConsolidatable = "Consolidatable"
	// ConditionTypeDrifted is true if the instance no longer matches its NodePool or NodeClass.
	ConditionTypeDrifted = "Drifted"
	// ConditionTypeDrained is true once no pod that must leave is left on a node that is going away.
	ConditionTypeDrained = "Drained"
	// ConditionTypeVolumesDetached is true once no volume of those pods is attached any more.
	ConditionTypeVolumesDetached = "VolumesDetached"
	// ConditionTypeInstanceTerminating is true once the cloud has been asked to end the instance.
	ConditionTypeInstanceTerminating = "InstanceTerminating"
	// ConditionTypeConsistentStateFound is false if the Node has much less than the instance type promised.
	ConditionTypeConsistentStateFound = "ConsistentStateFound"
	// ConditionTypeDisruptionReason carries, as its reason, why the node is being disrupted.
	ConditionTypeDisruptionReason = "DisruptionReason"
)

// Conditions of a NodePool. Ready is the conjunction of ValidationSucceeded and NodeClassReady.
const (
	// ConditionTypeValidationSucceeded is false if the spec breaks a rule that the API server can't check.
	ConditionTypeValidationSucceeded = "ValidationSucceeded"
	// ConditionTypeNodeClassReady is false if the NodeClass is missing or not Ready.
	ConditionTypeNodeClassReady = "NodeClassReady"
	// ConditionTypeNodeRegistrationHealthy is false if recent launches of the pool mostly failed to join. It informs
	// and does not feed Ready.
	ConditionTypeNodeRegistrationHealthy = "NodeRegistrationHealthy"
)
