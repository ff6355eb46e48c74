package cluster

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Pool is a NodePool: a template for nodes, and the rules for keeping them.
type Pool struct {
	Name, UID  string
	Generation int64
	Weight     int32
	Deleting   bool
	// Static pools keep a fixed number of nodes, Replicas; pods never make them grow.
	Static   bool
	Replicas int64
	// Timeouts of the pool's own; zero for what the settings say.
	Timeouts Timeouts

	Template Template
	Limits   Limits

	ConsolidateAfter NillableDuration
	Policy           Policy
	Budgets          []Budget
	// Hash of the template as it is now; WrittenHash is what the pool's annotations say about it.
	Hash, HashVersion string
	WrittenHash       TemplateHash
	// Overrides is what the pool's own annotations say about disruption.
	Overrides DisruptionOverrides

	// Problems are what is wrong with the pool's own text; NodeClass is the state of the class it refers to.
	Problems  []Problem
	NodeClass NodeClassState
	// Warnings are what is allowed in the pool's text and probably not meant. They change no decision.
	Warnings []Problem
	// Catalog is what the pool can buy; CatalogError says why that could not be learned.
	Catalog      *Catalog
	CatalogError string

	// InBackoff says that the pool's last launches have failed without a hint what else to try: it is left alone until
	// BackoffUntil. BackoffCause is what the cloud said.
	InBackoff    bool
	BackoffUntil time.Time
	BackoffCause string
	// Probing says that the time of a hold is over and no launch has gone well since: one at a time finds out.
	Probing bool
	// RegistrationHealth says whether the pool's latest launches have become nodes: Unknown as long as there were none.
	RegistrationHealth ConditionStatus
	// LostSlots are the slots of a static pool whose last nodes ended too soon, by number.
	LostSlots []LostSlot

	// Status is what the pool's status says now, to tell what has to be written.
	Status PoolStatus
}

// OtherPool is a NodePool whose NodeClass is of a kind that our provider does not have.
type OtherPool struct {
	Name      string
	NodeClass ClassRef
}

// HasHeldOrphans reports whether the pool's condition says that many orphans are held.
func (p *Pool) HasHeldOrphans() bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c Condition) bool {
		return c.Type == OrphansHeld && c.Status == True && c.Reason == ManyOrphans
	})
}

// IsUsable reports whether new nodes may be made for the pool.
func (p *Pool) IsUsable() bool {
	return !p.Deleting && !p.Static && !p.InBackoff && len(p.Problems) == 0 && p.NodeClass.Ready && p.Catalog != nil
}

// AwaitsCatalog reports whether the pool will be usable as soon as the cloud has said what it sells: planning without
// it could only come to a worse answer.
func (p *Pool) AwaitsCatalog() bool {
	return !p.Deleting && !p.Static && len(p.Problems) == 0 && p.NodeClass.Ready && p.Catalog == nil &&
		p.CatalogError == ""
}

// TemplateHash is a hash of a template and the version of the way in which it was computed.
type TemplateHash struct{ Hash, Version string }

// DisruptionOverrides is what goes beyond the contract in how a pool's nodes are disrupted. Fields that are not set are
// left to the settings.
type DisruptionOverrides struct {
	// DryRun tells what would be done and does nothing.
	DryRun bool
	// MinSaving and MinSavingPerPod bound from below what a move must save, if they are set.
	MinSaving, MinSavingPerPod *float64
	// EvictionsPerHour bounds how often a workload's pods are evicted to save money, if it is set.
	EvictionsPerHour *int
	// Canary replaces one drifted node first; CanaryWatch is how long it must be healthy before more follow.
	Canary      bool
	CanaryWatch time.Duration
	// SoftExpiry makes the end of a node's life a budgeted disruption that begins that long before the hard one, spread
	// over the time; zero for none.
	SoftExpiry time.Duration
	// QuietPeriods are how long a node must have been quiet for each reason, where it is not consolidateAfter.
	QuietPeriods map[string]NillableDuration
}

// Timeouts are how long a node may take to come; zero for no word about it.
type Timeouts struct{ Launch, Registration, Initialization time.Duration }

// Template is what a pool's new nodes look like.
type Template struct {
	Labels      Labels
	Annotations Labels
	// Requirements of the pool, template labels not included.
	Requirements        require.Set
	Taints              []Taint
	StartupTaints       []Taint
	NodeClass           ClassRef
	ExpireAfter         string // as the user wrote it: the text is copied, not interpreted
	TerminationGrace    time.Duration
	HasTerminationGrace bool
	// Hash is what claims that are made from it carry, so that it shows when the template has changed since.
	Hash TemplateHash
}

// ClassRef names a NodeClass.
type ClassRef struct{ Group, Kind, Name string }

// NodeClassState is what is known of a pool's NodeClass.
type NodeClassState struct {
	Ready bool
	// Reason and Message say why not, in the words of a condition.
	Reason, Message string
	// Pending says that it is not ready because nobody has judged it yet, which is no mistake. It is one from Until on,
	// if that is set.
	Pending    bool
	Until      time.Time
	Generation int64
}

// Policy says which nodes may be removed to save money.
type Policy string

// The policies of karpenter.sh/v1.
const (
	WhenEmpty                Policy = "WhenEmpty"
	WhenEmptyOrUnderutilized Policy = "WhenEmptyOrUnderutilized"
	Balanced                 Policy = "Balanced"
)

// NillableDuration is a duration that may be "never".
type NillableDuration struct {
	Never bool
	For   time.Duration
}

// Limits bound what a pool's nodes may add up to.
type Limits struct {
	Set    [resource.Size]bool
	Amount resource.Vector
	// Nodes bounds their number, if HasNodes.
	Nodes    int64
	HasNodes bool
	// Broken names a limited resource that could not be numbered: the pool then may not grow at all.
	Broken string
}

// Any reports whether anything is limited.
func (l *Limits) Any() bool {
	return l.HasNodes || l.Broken != "" || l.Set != [resource.Size]bool{}
}

// Budget bounds how many of a pool's nodes may be disrupted at once.
type Budget struct {
	// Nodes is a count, or a percentage of the pool's nodes, rounded up.
	Nodes   int
	Percent bool
	// Reasons it counts for; none means all.
	Reasons []string
	// Active says whether the budget's window is open now; ChangesAt is when that ends, zero if never.
	Active    bool
	ChangesAt time.Time
	// Broken budgets (a schedule that can't be read) allow nothing.
	Broken bool
}

// Allows is how many of total nodes the budget lets go at once.
func (b *Budget) Allows(total int) int {
	if b.Broken {
		return 0
	}
	if !b.Percent {
		return b.Nodes
	}
	return (total*b.Nodes + 99) / 100
}

// Covers reports whether the budget has a say about the reason now.
func (b *Budget) Covers(reason string) bool {
	if !b.Active {
		return b.Broken
	}
	if len(b.Reasons) == 0 {
		return true
	}
	for _, r := range b.Reasons {
		if r == reason {
			return true
		}
	}
	return false
}

// Problem is something wrong with what a user wrote.
type Problem struct {
	Field string
	Text  string
}

// ProblemsText tells of all of them, field by field.
func ProblemsText(list []Problem) reason.Text {
	texts := make([]reason.Text, len(list))
	for i, p := range list {
		texts[i] = reason.Of(reason.About, p.Field, p.Text)
	}
	return reason.Join(texts...)
}

// PoolStatus is what a NodePool's status says of what a plan keeps up to date.
type PoolStatus struct {
	Nodes           int64
	Resources       resource.Vector
	ClassGeneration int64
	Conditions      []Condition
}

// Condition is a status condition of an object; Message is written for people.
type Condition struct {
	Type    string
	Status  ConditionStatus
	Reason  string
	Message string
	// Since is when the status last changed.
	Since time.Time
	// Generation of the object that the condition was made for.
	Generation int64
}

// ConditionStatus is True, False or Unknown.
type ConditionStatus string

// The states of a condition.
const (
	True    ConditionStatus = "True"
	False   ConditionStatus = "False"
	Unknown ConditionStatus = "Unknown"
	// Absent, in what is to be written, takes a condition away.
	Absent ConditionStatus = ""
)
