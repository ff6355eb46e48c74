package metrics

import "testing"

func TestFailureReason(t *testing.T) {
	for _, c := range []struct{ code, message, want string }{
		{"InsufficientInstanceCapacity", "We currently do not have sufficient capacity",
			"InsufficientInstanceCapacity"},
		{"VcpuLimitExceeded", "You have requested more vCPU capacity than your limit", "VCPULimitExceeded"},
		{"MaxSpotInstanceCountExceeded", "", "SpotQuotaExceeded"},
		{"UnauthorizedOperation", "You are not authorized to perform this operation.", "Unauthorized"},
		{"AuthFailure", "Not authorized for images: [ami-1]", "AMIAuthorizationFailure"},
		{"AuthFailure.ServiceLinkedRoleCreationNotPermitted", "", "SpotSLRCreationFailed"},
		{"InvalidParameterValue", "Value (x) for parameter iamInstanceProfile.name is invalid",
			"InstanceProfileNameInvalid"},
		{"InvalidParameterValue", "User data is limited to 16384 bytes", "UserDataSizeLimitExceeded"},
		{"InvalidParameter", "Security group sg-1 and subnet subnet-1 belong to different networks.",
			"SecurityGroupSubnetVPCMismatch"},
		{"InvalidLaunchTemplateId.NotFound", "", "LaunchTemplateNotFound"},
		{"", "", ""},
	} {
		if got := failureReason(c.code, c.message); got != c.want {
			t.Errorf("%s (%s) is called %q, want %q", c.code, c.message, got, c.want)
		}
	}
}
