package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConsolidationPolicy says which nodes consolidation may touch.
type ConsolidationPolicy string

// The consolidation policies.
const (
	// ConsolidationPolicyWhenEmpty removes nodes without pods that would have to move.
	ConsolidationPolicyWhenEmpty ConsolidationPolicy = "WhenEmpty"
	// ConsolidationPolicyWhenEmptyOrUnderutilized also removes or replaces nodes if that saves money.
	ConsolidationPolicyWhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized"
	// ConsolidationPolicyBalanced does so only if what is saved is worth the pods that have to move.
	ConsolidationPolicyBalanced ConsolidationPolicy = "Balanced"
)

// DisruptionReason is why a node is removed or replaced voluntarily.
// +kubebuilder:validation:Enum=Underutilized;Empty;Drifted;Unhealthy
type DisruptionReason string

// The reasons that a budget can name.
const (
	DisruptionReasonUnderutilized DisruptionReason = "Underutilized"
	DisruptionReasonEmpty         DisruptionReason = "Empty"
	DisruptionReasonDrifted       DisruptionReason = "Drifted"
	DisruptionReasonUnhealthy     DisruptionReason = "Unhealthy"
)

// Disruption says when nodes of a pool may be removed or replaced, and how many at a time.
type Disruption struct {
	// consolidateAfter is how long a node must have seen no pod come or go before it may be consolidated, such as 30s,
	// or Never. A static pool ignores it.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == 'Never' || duration(self) >= duration('0s')",message="consolidateAfter must be a duration in h, m and s of less than 292 years, such as 1h30m, or Never"
	// +kubebuilder:default="0s"
	// +optional
	ConsolidateAfter NillableDuration `json:"consolidateAfter,omitzero"`

	// consolidationPolicy says which nodes consolidation may touch: WhenEmpty, those without pods that would have to
	// move; WhenEmptyOrUnderutilized, also those that cost more than needed; Balanced, the latter only if the saving is
	// worth the pods that move. A static pool ignores it.
	// +kubebuilder:validation:Enum=WhenEmpty;WhenEmptyOrUnderutilized;Balanced
	// +kubebuilder:default=WhenEmptyOrUnderutilized
	// +optional
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`

	// budgets bound how many nodes may be disrupted at a time. Of all that are active, the smallest counts.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:default={{nodes: "10%"}}
	// +listType=atomic
	// +optional
	Budgets []Budget `json:"budgets,omitempty"`
}

// Budget bounds how many nodes of a pool may be disrupted at a time: always, or for a while after each moment of a
// schedule.
// +kubebuilder:validation:XValidation:rule="has(self.schedule) == has(self.duration)",message="schedule and duration of a budget belong together; set both, or neither for a budget that always holds"
type Budget struct {
	// reasons are what the budget is about; without any, it is about every reason.
	// +kubebuilder:validation:MaxItems=50
	// +listType=set
	// +optional
	Reasons []DisruptionReason `json:"reasons,omitempty"`

	// nodes is how many nodes may be disrupted at a time: a number, or a percentage of the pool's nodes, rounded up.
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	// +kubebuilder:default="10%"
	// +required
	Nodes string `json:"nodes"`

	// schedule is when the budget begins to hold, in UTC: five cron fields, such as "0 9 * * mon-fri", or one of
	// @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually. Five fields may follow the name of an IANA
	// time zone, such as "CRON_TZ=Europe/Berlin 0 9 * * mon-fri"; then they mean its clock.
	// +kubebuilder:validation:Pattern=`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|\s*(CRON_TZ=\S+\s+)?[^@\s]\S*(\s+\S+){4}\s*)$`
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('@') || self in ['@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually']",message="a schedule that begins with @ must be one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually; for other moments use five cron fields, such as 0 9 * * mon-fri"
	// +optional
	Schedule *string `json:"schedule,omitempty"`

	// duration is how long the budget holds after each moment of the schedule, in hours and minutes, such as 8h or
	// 1h30m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$`
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="duration must be a duration in h and m of less than 292 years, such as 1h30m"
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
}
