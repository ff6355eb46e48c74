package archtest

import (
	"testing"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// The floors that decide may not import the API, so they repeat the names that they depend on. Here they are compared.
func TestNamesOfTheContract(t *testing.T) {
	for _, c := range []struct{ have, want string }{
		{cluster.CapacityTypeLabel, v1.CapacityTypeLabelKey},
		{cluster.PoolLabel, v1.NodePoolLabelKey},
		{cluster.RegisteredLabel, v1.NodeRegisteredLabelKey},
		{cluster.InitializedLabel, v1.NodeInitializedLabelKey},
		{cluster.DisruptedTaint, v1.DisruptedTaintKey},
		{cluster.UnregisteredTaint, v1.UnregisteredTaintKey},
		{cluster.Launched, v1.ConditionTypeLaunched},
		{cluster.Registered, v1.ConditionTypeRegistered},
		{cluster.Initialized, v1.ConditionTypeInitialized},
		{cluster.Ready, v1.ConditionTypeReady},
		{cluster.Drained, v1.ConditionTypeDrained},
		{cluster.VolumesDetached, v1.ConditionTypeVolumesDetached},
		{cluster.ConsistentState, v1.ConditionTypeConsistentStateFound},
		{cluster.RegistrationHealthy, v1.ConditionTypeNodeRegistrationHealthy},
		{cluster.InstanceTerminating, v1.ConditionTypeInstanceTerminating},
		{cluster.DisruptionReason, v1.ConditionTypeDisruptionReason},
		{cluster.Consolidatable, v1.ConditionTypeConsolidatable},
		{cluster.ValidationSucceeded, v1.ConditionTypeValidationSucceeded},
		{cluster.NodeClassReady, v1.ConditionTypeNodeClassReady},
		{string(cluster.WhenEmpty), string(v1.ConsolidationPolicyWhenEmpty)},
		{string(cluster.WhenEmptyOrUnderutilized), string(v1.ConsolidationPolicyWhenEmptyOrUnderutilized)},
		{string(cluster.Balanced), string(v1.ConsolidationPolicyBalanced)},
	} {
		if c.have != c.want {
			t.Errorf("cluster says %q, the API %q", c.have, c.want)
		}
	}
}
