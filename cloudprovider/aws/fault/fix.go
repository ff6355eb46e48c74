package fault

import "strings"

// Fix is what a person can do about an error with AWS's code that the call got; empty if there is nothing to say.
func Fix(code, call string) string {
	switch {
	case strings.HasPrefix(call, "sts:"):
		return identity(code)
	case code == "AuthFailure.ServiceLinkedRoleCreationNotPermitted":
		return "create the role that EC2 uses for spot instances, once per account: aws iam " +
			"create-service-linked-role --aws-service-name spot.amazonaws.com"
	case expired(code):
		return "the controller's session has ended; another is asked for at the next try. If this stays, check how " +
			"its credentials are refreshed, and the clock of its node"
	case unknownKey(code):
		return "AWS does not know the controller's access key or signature; check its credentials (aws sts " +
			"get-caller-identity tells who it is)"
	case code == "OptInRequired":
		return "the account is not opted in to this region or product; enable it, or accept its terms in the AWS " +
			"Marketplace"
	case code == "AuthFailure" || code == "MissingAuthenticationToken" || code == "IncompleteSignature":
		return "AWS refused the controller's credentials; check them, and that the region is enabled for the account"
	case isDenial(code):
		return denied(call)
	}
	return byCode(code)
}

// identity is the advice on a role that the controller could not take on.
func identity(code string) string {
	switch {
	case expired(code):
		return "the token of the controller's service account is too old; check the clock of its node, and restart " +
			"the pod if it was not given a new one"
	case code == "InvalidIdentityToken" || code == "IDPCommunicationError" || code == "IDPRejectedClaim":
		return "AWS does not accept the token of the controller's service account; create the IAM OIDC provider of " +
			"this cluster in the account of the role, with the audience sts.amazonaws.com"
	case unknownKey(code):
		return "AWS does not know the access key with which the controller's role is taken on; check its credentials"
	}
	return "the trust policy of the controller's role must let its service account take it on: check there the OIDC " +
		"provider, the namespace and the name, and on the service account the annotation eks.amazonaws.com/role-arn " +
		"(with EKS Pod Identity, the association)"
}

func isDenial(code string) bool {
	switch code {
	case "UnauthorizedOperation", "Client.UnauthorizedOperation", "AccessDenied", "AccessDeniedException",
		"UnauthorizedAccess", "NotAuthorized":
		return true
	}
	return false
}

func denied(call string) string {
	if call == "" {
		call = "the call"
	}
	return "allow " + call + " in the IAM policy of the controller's role (docs/reference/aws/controller-policy.json)"
}

// byCode is the advice on errors that are not about who we are.
func byCode(code string) string {
	switch code {
	case "InvalidSubnetID.NotFound", "InvalidSubnet":
		return "the subnet is gone; check spec.subnetSelectorTerms of the EC2NodeClass and create or tag a subnet " +
			"that it selects"
	case "InsufficientFreeAddressesInSubnet", "InsufficientFreeAddresses":
		return "the subnet has no free addresses; free some, or let spec.subnetSelectorTerms select another subnet " +
			"in the zone"
	case "InsufficientCidrBlocks":
		return "the subnet has no free block of 16 addresses for spec.ipPrefixCount; reserve some for prefixes (aws " +
			"ec2 create-subnet-cidr-reservation), or let spec.subnetSelectorTerms select another subnet in the zone"
	case "InvalidAMIID.NotFound", "InvalidAMIID.Unavailable", "InvalidAMIID.Malformed":
		return "the AMI is gone or not shared with this account; check spec.amiSelectorTerms of the EC2NodeClass"
	case "InvalidGroup.NotFound", "InvalidSecurityGroupID.NotFound", "InvalidGroupId.Malformed",
		"InvalidSecurityGroup.NotFound":
		return "the security group is gone; check spec.securityGroupSelectorTerms of the EC2NodeClass"
	case "InvalidIamInstanceProfile", "InvalidIAMInstanceProfile", "NoSuchEntity":
		return "check spec.role or spec.instanceProfile of the EC2NodeClass"
	case "InvalidSnapshot.NotFound", "InvalidSnapshotID.Malformed":
		return "the snapshot is gone, in another region or not shared with this account; check snapshotID in " +
			"spec.blockDeviceMappings of the EC2NodeClass"
	case "InvalidBlockDeviceMapping":
		return "check spec.blockDeviceMappings of the EC2NodeClass: names of devices, and sizes, which can't be " +
			"below those of the snapshot or image that a volume starts from"
	case "InvalidKeyPair.NotFound":
		return "the key pair is gone"
	case "InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationState":
		return "the capacity reservation is gone; check spec.capacityReservationSelectorTerms of the EC2NodeClass"
	case "VcpuLimitExceeded", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded", "SpotInstanceCountLimitExceeded",
		"MaxFleetCountExceeded":
		return "the account's quota is used up; ask for more in Service Quotas, Amazon EC2"
	case "InvalidParameterValue", "InvalidParameterCombination", "ValidationError":
		return "check the fields of the EC2NodeClass that the message names"
	case "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist":
		return "create the queue in this account and region, with rules of EventBridge that fill it, or correct " +
			"--interruption-queue"
	case "PendingVerification", "Blocked":
		return "AWS has blocked the account or is verifying it; contact AWS Support"
	}
	if strings.HasPrefix(code, "InvalidLaunchTemplate") {
		return "the launch template is gone; it is made again"
	}
	return ""
}
