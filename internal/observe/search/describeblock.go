package search

import (
	"fmt"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/disrupt"
)

// HoursPerMonth is how prices per hour become prices per month.
const HoursPerMonth = 730

// Block is a node that stays, and what there is to say about it beyond the reason itself.
type Block struct {
	disrupt.BlockedNode
	Pool string
	// Budget is what the pool's disruption budgets say about it now, if they are the reason.
	Budget string
}

// Describe says in plain words why a node stays, or why its disruption was given up: which pod, budget or time
// stands in the way, or what a move would have saved and had to. It is empty for a reason that nobody has put into
// words.
func Describe(r Block) string {
	if text := describeByPeople(r); text != "" {
		return text
	}
	if text := describeByPool(r); text != "" {
		return text
	}
	if text := describeByPrice(r); text != "" {
		return ByEstimate(text, r.Estimated && namesAmount(r))
	}
	return describeForNow(r)
}

// describeByPeople is about what pods and those who run them ask for.
func describeByPeople(r Block) string {
	switch r.Reason {
	case disrupt.NodeDoNotDisrupt:
		return "The node or its NodeClaim carries karpenter.sh/do-not-disrupt"
	case disrupt.PodDoNotDisrupt:
		return subject("Pod", r.Pod, "A pod") + " carries karpenter.sh/do-not-disrupt" + until(", until ", r.Until)
	case disrupt.PodUnowned:
		return subject("Pod", r.Pod, "A pod") + " has no owner that would make it again elsewhere"
	case disrupt.PDBBlocks:
		return subject("PodDisruptionBudget", r.PDB, "A PodDisruptionBudget") + " allows no eviction of " +
			subject("pod", r.Pod, "its pods") + " now"
	case disrupt.SeveralPDBs:
		pdbs := ""
		if r.PDB != "" {
			pdbs = " (" + r.PDB + ")"
		}
		return subject("Pod", r.Pod, "A pod") + " is selected by more than one PodDisruptionBudget" + pdbs +
			", and Kubernetes does not evict such a pod; let only one of them select it"
	case disrupt.WorkloadResting:
		return "The workload of " + subject("pod", r.Pod, "a pod") + " has been evicted often enough within the hour " +
			"to save money (--evictions-per-hour)" + until("; it rests until ", r.Until)
	case disrupt.PodsExpected:
		return "Pods have been promised room on the node"
	case disrupt.ShowsCause:
		return "The node was created for pods that cannot run on it. It is kept while they wait, " +
			"because they can run there as soon as the cause is removed"
	case disrupt.PlannerFails:
		return "The planner has failed on the node, on its pods, or on pods that it was made for, which is a mistake " +
			"in Tenon; see the event PlannerFailed of the NodePool"
	case disrupt.PodsStranded:
		return subject("Pod", r.Pod, "Some pod") + " would find no place elsewhere"
	}
	return ""
}

// describeByPool is about what the pool says.
func describeByPool(r Block) string {
	pool := fmt.Sprintf("NodePool %q", r.Pool)
	if r.Pool == "" {
		pool = "The NodePool"
	}
	switch r.Reason {
	case disrupt.NotManaged:
		return "The node is of no NodePool of ours"
	case disrupt.PoolUnknown:
		return pool + " is gone, can't be read, or keeps a fixed number of nodes"
	case disrupt.PolicyForbids:
		return pool + " consolidates empty nodes only (consolidationPolicy WhenEmpty), and the node carries pods"
	case disrupt.ConsolidationsOff:
		return pool + " does not consolidate (consolidateAfter Never)"
	case disrupt.BudgetBlocks:
		text := "The disruption budgets of " + pool + " let no more nodes go now"
		if r.Budget != "" {
			text += ": " + r.Budget
		}
		return text
	case disrupt.DryRun:
		return pool + " only wants to be told what would be done (tenon.sh/dry-run)"
	}
	return ""
}

// describeByPrice is about what a move would cost.
func describeByPrice(r Block) string {
	switch r.Reason {
	case disrupt.PriceUnknown:
		return "What the node costs is not known: what it is, is not in its NodePool's list of instance types"
	case disrupt.NothingCheaper:
		return "Nothing that would take its pods is sure to cost less" + figures(r.BlockedNode)
	case disrupt.SavesTooLittle:
		return fmt.Sprintf("A move would save %s, less than the %s that it has to (--consolidation-min-saving, "+
			"--consolidation-min-saving-per-pod)", atLeast(r.BlockedNode), Monthly(r.NeededSaving))
	case disrupt.MinValuesTooDear:
		text := "Its NodePool's minValues ask for more instance types than there are at a price that saves enough"
		if r.CertainSaving > 0 {
			text += fmt.Sprintf(": with so many of them only %s would be saved for sure, and it has to be %s",
				Monthly(r.CertainSaving), Monthly(r.NeededSaving))
		}
		return text
	case disrupt.NotBalanced:
		return fmt.Sprintf("A move would save %s; for the pods that it disturbs the policy Balanced asks for %s "+
			"(--balanced-k)", Monthly(r.Saving), Monthly(r.NeededSaving))
	case disrupt.SpotNeedsTypes:
		return "There are too few cheaper instance types for a spot node in its place (--spot-to-spot-min-types)" +
			forgone(r.BlockedNode)
	case disrupt.SpotToSpotOff:
		return "Its pods would go to a cheaper spot node, " +
			"which the feature gate SpotToSpotConsolidation does not allow" + forgone(r.BlockedNode)
	}
	return ""
}

// describeForNow is about what passes by itself.
func describeForNow(r Block) string {
	switch r.Reason {
	case disrupt.NotInitialized:
		return "The node is not ready for pods yet"
	case disrupt.BeingDisrupted:
		return "The node is being disrupted already"
	case disrupt.TooSoon:
		return "Pods came or went less than the NodePool's consolidateAfter ago" +
			until("; it is looked at again at ", r.Until)
	case disrupt.MoveFailedLately:
		return "A disruption of the node was given up a while ago" + until("; it rests until ", r.Until)
	case disrupt.UsesUnreadyNodes:
		return "Its pods would go to nodes that are not ready yet"
	case disrupt.OthersFirst:
		return "There is a cheaper way to run its pods, which is looked at again once other nodes have gone that " +
			"were found with it"
	case disrupt.SearchCut:
		return "The search for cheaper nodes has used up its steps on rules between pods before it came to the node; " +
			"it is looked at in one of the next"
	case disrupt.NoLongerDue:
		return "The node is no longer drifted, unhealthy or near the end of its life"
	case disrupt.ReplacementsLate:
		return "What was to take the node's place was not ready in time (--replacement-timeout)"
	case disrupt.NotDeleted:
		return "What takes the node's place is ready, but the node could not be deleted in time (--replacement-timeout)"
	case disrupt.ManyUnhealthy:
		return "So many nodes of the NodePool have become unhealthy that the cause is not this node " +
			"(--node-repair-max-unhealthy)"
	}
	return ""
}

// IsDisruptionBlocked reports whether the reason is one of the contract's DisruptionBlocked, which keep a node whatever
// the disruption is for; the others, which are about saving money, are told as Unconsolidatable.
func IsDisruptionBlocked(reason disrupt.BlockReason) bool {
	switch reason {
	case disrupt.NotManaged, disrupt.NotInitialized, disrupt.BeingDisrupted, disrupt.NodeDoNotDisrupt,
		disrupt.PodDoNotDisrupt,
		disrupt.PDBBlocks, disrupt.SeveralPDBs, disrupt.PodsExpected, disrupt.PoolUnknown:
		return true
	}
	return false
}

// IsPassing reports whether the reason is part of a node's everyday life: it is only worth an event if it lasts.
func IsPassing(reason disrupt.BlockReason) bool {
	switch reason {
	case disrupt.NotInitialized, disrupt.BeingDisrupted, disrupt.PodsExpected, disrupt.TooSoon,
		disrupt.UsesUnreadyNodes, disrupt.BudgetBlocks,
		disrupt.SearchCut, disrupt.OthersFirst:
		return true
	}
	return false
}

// wasCandidate reports whether the node was a candidate: people and pods would have let it go.
func wasCandidate(reason disrupt.BlockReason) bool {
	switch reason {
	case disrupt.PodsStranded, disrupt.NothingCheaper, disrupt.SavesTooLittle, disrupt.MinValuesTooDear,
		disrupt.NotBalanced, disrupt.SpotNeedsTypes,
		disrupt.SpotToSpotOff, disrupt.UsesUnreadyNodes, disrupt.BudgetBlocks, disrupt.OthersFirst:
		return true
	}
	return false
}

// namesAmount reports whether what is said about the price names an amount of money.
func namesAmount(r Block) bool {
	switch r.Reason {
	case disrupt.SavesTooLittle, disrupt.NotBalanced:
		return true
	case disrupt.NothingCheaper:
		return figures(r.BlockedNode) != ""
	case disrupt.MinValuesTooDear:
		return r.CertainSaving > 0
	case disrupt.SpotNeedsTypes, disrupt.SpotToSpotOff:
		return r.Saving > 0
	}
	return false
}

// figures are what the best move would have saved, if that is known.
func figures(s disrupt.BlockedNode) string {
	switch {
	case s.Saving < 0:
		return fmt.Sprintf(": it would cost %s more", Monthly(-s.Saving))
	case s.Saving > 0 && s.Saving < s.NeededSaving:
		return fmt.Sprintf(": at best %s could be saved, and it has to be %s", Monthly(s.Saving),
			Monthly(s.NeededSaving))
	case s.Saving > 0 && s.NeededSaving > 0:
		return fmt.Sprintf(": a move would save %s, and it has to save %s", atLeast(s), Monthly(s.NeededSaving))
	}
	return ""
}

// atLeast is what a move saves, with what of it is certain if that alone is too little.
func atLeast(s disrupt.BlockedNode) string {
	switch {
	case s.Saving < s.NeededSaving:
		return Monthly(s.Saving)
	case s.CertainSaving < 0:
		return fmt.Sprintf("%s at best, and cost up to %s more if the cloud hands out the dearest of its types and "+
			"zones", Monthly(s.Saving), Monthly(-s.CertainSaving))
	}
	return fmt.Sprintf("%s at best, but only %s if the cloud hands out the dearest of its types and zones",
		Monthly(s.Saving), Monthly(s.CertainSaving))
}

// forgone is what is not saved for another reason than the amount.
func forgone(s disrupt.BlockedNode) string {
	if s.Saving <= 0 {
		return ""
	}
	return fmt.Sprintf("; %s would be saved", Monthly(s.Saving))
}

// Monthly writes a price per hour as people know it from their bills.
func Monthly(perHour float64) string {
	return fmt.Sprintf("$%.2f a month", Rounded(perHour*HoursPerMonth))
}

// ByEstimate adds to a text about money that it rests on an estimate, if it does.
func ByEstimate(text string, estimated bool) string {
	if !estimated {
		return text
	}
	return text + "; a price in this is an estimate"
}

func subject(kind, name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return kind + " " + name
}

func until(say string, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return say + at.UTC().Format(time.RFC3339)
}

// LowerFirst makes a sentence the continuation of another. Names that begin with a capital keep it.
func LowerFirst(text string) string {
	word, _, _ := strings.Cut(text, " ")
	switch word {
	case "The", "A", "Some", "Its", "Nothing", "Pods", "There", "What":
		return strings.ToLower(text[:1]) + text[1:]
	}
	return text
}
