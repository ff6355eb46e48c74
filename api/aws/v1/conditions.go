package v1

// Conditions of an EC2NodeClass. Ready, which karpenter.sh names, is the conjunction of them; CapacityReservationsReady
// counts only while reserved capacity is in use at all.
const (
	// ConditionTypeSubnetsReady is true once subnetSelectorTerms find a subnet.
	ConditionTypeSubnetsReady = "SubnetsReady"
	// ConditionTypeSecurityGroupsReady is true once securityGroupSelectorTerms find a security group.
	ConditionTypeSecurityGroupsReady = "SecurityGroupsReady"
	// ConditionTypeAMIsReady is true once amiSelectorTerms find an AMI.
	ConditionTypeAMIsReady = "AMIsReady"
	// ConditionTypeInstanceProfileReady is true once there is an instance profile to launch with.
	ConditionTypeInstanceProfileReady = "InstanceProfileReady"
	// ConditionTypeCapacityReservationsReady is true once the reservations have been looked up.
	ConditionTypeCapacityReservationsReady = "CapacityReservationsReady"
	// ConditionTypePlacementGroupReady is true once the placement group was found, or if none is asked for.
	ConditionTypePlacementGroupReady = "PlacementGroupReady"
	// ConditionTypeValidationSucceeded is true once EC2 has said, to calls that change nothing, that a launch would be
	// allowed.
	ConditionTypeValidationSucceeded = "ValidationSucceeded"
)
