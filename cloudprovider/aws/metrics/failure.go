package metrics

import "strings"

// failureReason is the contract's word for why a launch failed. What the contract only calls LaunchFailed, which is
// everything else and a lack of capacity above all, keeps EC2's own code.
func failureReason(code, message string) string {
	text := code + ": " + message
	for _, known := range []struct{ sign, word string }{
		{"AuthFailure.ServiceLinkedRoleCreationNotPermitted", "SpotSLRCreationFailed"},
		{"Not authorized for images", "AMIAuthorizationFailure"},
		{"UnauthorizedOperation", "Unauthorized"},
		{"AccessDenied", "Unauthorized"},
		{"AuthFailure", "Unauthorized"},
		{"belong to different networks", "SecurityGroupSubnetVPCMismatch"},
		{"iamInstanceProfile.name is invalid", "InstanceProfileNameInvalid"},
		{"InvalidLaunchTemplateId.NotFound", "LaunchTemplateNotFound"},
		{"User data is limited to", "UserDataSizeLimitExceeded"},
		{"InvalidAMIID.Malformed", "InvalidAMIID"},
		{"InvalidAMIID.NotFound", "AMINotFound"},
		{"RequestLimitExceeded", "RequestLimitExceeded"},
		{"InternalError", "InternalError"},
		{"not eligible for Free Tier", "FreeTierIneligible"},
		{"MaxFleetCountExceeded", "FleetQuotaExceeded"},
		{"PendingVerification", "AccountPendingVerification"},
		{"MaxSpotInstanceCountExceeded", "SpotQuotaExceeded"},
		{"VcpuLimitExceeded", "VCPULimitExceeded"},
		{"InsufficientFreeAddressesInSubnet", "InsufficientFreeAddressesInSubnet"},
	} {
		if strings.Contains(text, known.sign) {
			return known.word
		}
	}
	return code
}
