package operator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// parseTolerations reads Type=Status:duration,... : which conditions of a node call for its replacement, and when.
func parseTolerations(text string) ([]disrupt.RepairPolicy, error) {
	var out []disrupt.RepairPolicy
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		part = strings.TrimSpace(part)
		bad := fmt.Errorf("--node-repair-toleration: %q is not Type=Status:duration, such as Ready=False:30m", part)
		condition, length, ok := strings.Cut(part, ":")
		kind, status, also := strings.Cut(condition, "=")
		if !ok || !also || kind == "" {
			return nil, bad
		}
		if !slices.Contains([]string{"True", "False", "Unknown"}, status) {
			return nil, fmt.Errorf("--node-repair-toleration: in %q the status %q is not one of True, False, Unknown",
				part, status)
		}
		d, err := time.ParseDuration(length)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("--node-repair-toleration: in %q the duration %q is not one of more than 0, such "+
				"as 30m", part, length)
		}
		if slices.ContainsFunc(out, func(p disrupt.RepairPolicy) bool { return p.Type == kind && p.Status == status }) {
			return nil, fmt.Errorf("--node-repair-toleration: %s=%s is there twice; keep one", kind, status)
		}
		out = append(out, disrupt.RepairPolicy{Type: kind, Status: status, Toleration: d})
	}
	return out, nil
}

// repairSettings are the provider's policies with what the settings say instead or besides.
func (o *options) repairSettings(provider []cloudprovider.RepairPolicy) disrupt.RepairSettings {
	set := disrupt.RepairSettings{Enabled: o.gates.Enabled(gateNodeRepair), Legacy: o.legacyRepair,
		MaxUnhealthy: o.repairMaxUnhealthy}
	for _, p := range provider {
		policy := disrupt.RepairPolicy{Type: string(p.Type), Status: string(p.Status), Toleration: p.Toleration}
		if grace := p.TerminationGracePeriod; grace != nil {
			policy.HasGrace, policy.Grace = true, *grace
		}
		set.Policies = append(set.Policies, policy)
	}
	for _, own := range o.tolerations {
		i := slices.IndexFunc(set.Policies, func(p disrupt.RepairPolicy) bool {
			return p.Type == own.Type && p.Status == own.Status
		})
		if i < 0 {
			set.Policies = append(set.Policies, own)
			continue
		}
		set.Policies[i].Toleration = own.Toleration
	}
	return set
}

// conditionTypes are the conditions that the policies look at.
func conditionTypes(policies []disrupt.RepairPolicy) []string {
	var out []string
	for _, p := range policies {
		out = append(out, p.Type)
	}
	return out
}
