package observe

import (
	"fmt"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/disrupt"
)

// hoursPerMonth is how prices per hour become prices per month.
const hoursPerMonth = 730

// reasoned is a node that stays, and what there is to say about it beyond the reason itself.
type reasoned struct {
	disrupt.Stay
	pool string
	// budget is what the pool's disruption budgets say about it now, if they are the reason.
	budget string
}

// explained says in plain words why a node stays, or why its disruption was given up: which pod, budget or time stands in the way,
// or what a move would have saved and had to. It is empty for a reason that nobody has put into words.
func explained(r reasoned) string {
	if text := keptByPeople(r); text != "" {
		return text
	}
	if text := keptByPool(r); text != "" {
		return text
	}
	if text := keptByPrice(r); text != "" {
		return byEstimate(text, r.Estimated)
	}
	return keptForNow(r)
}

// keptByPeople is about what pods and those who run them ask for.
func keptByPeople(r reasoned) string {
	switch r.Why {
	case disrupt.NodeDoNotDisrupt:
		return "The node or its NodeClaim carries karpenter.sh/do-not-disrupt"
	case disrupt.PodDoNotDisrupt:
		return subject("Pod", r.Pod, "A pod") + " carries karpenter.sh/do-not-disrupt" + until(", until ", r.Until)
	case disrupt.PodUnowned:
		return subject("Pod", r.Pod, "A pod") + " has no owner that would make it again elsewhere"
	case disrupt.GuardBlocks:
		return subject("PodDisruptionBudget", r.Guard, "A PodDisruptionBudget") + " allows no eviction of " + subject("pod", r.Pod, "its pods") + " now"
	case disrupt.SeveralGuards:
		guards := ""
		if r.Guard != "" {
			guards = " (" + r.Guard + ")"
		}
		return subject("Pod", r.Pod, "A pod") + " is selected by more than one PodDisruptionBudget" + guards + ", and Kubernetes does not evict such a pod; let only one of them select it"
	case disrupt.WorkloadResting:
		return "The workload of " + subject("pod", r.Pod, "a pod") + " has been evicted often enough within the hour to save money (--evictions-per-hour)" + until("; it rests until ", r.Until)
	case disrupt.PodsExpected:
		return "Pods have been promised room on the node"
	case disrupt.ShowsCause:
		return "The node was created for pods that cannot run on it. It is kept while they wait, " +
			"because they can run there as soon as the cause is removed"
	case disrupt.PlannerFails:
		return "The planner has failed on the node, on its pods, or on pods that it was made for, which is a mistake in Tenon; see the event PlannerFailed of the NodePool"
	case disrupt.PodsStranded:
		return subject("Pod", r.Pod, "Some pod") + " would find no place elsewhere"
	}
	return ""
}

// keptByPool is about what the pool says.
func keptByPool(r reasoned) string {
	pool := fmt.Sprintf("NodePool %q", r.pool)
	if r.pool == "" {
		pool = "The NodePool"
	}
	switch r.Why {
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
		if r.budget != "" {
			text += ": " + r.budget
		}
		return text
	case disrupt.DryRun:
		return pool + " only wants to be told what would be done (tenon.sh/dry-run)"
	}
	return ""
}

// keptByPrice is about what a move would cost.
func keptByPrice(r reasoned) string {
	switch r.Why {
	case disrupt.PriceUnknown:
		return "What the node costs is not known: what it is, is not in its NodePool's list of instance types"
	case disrupt.NothingCheaper:
		return "Nothing that would take its pods is sure to cost less" + figures(r.Stay)
	case disrupt.SavesTooLittle:
		return fmt.Sprintf("A move would save %s, less than the %s that it has to (--consolidation-min-saving, --consolidation-min-saving-per-pod)", atLeast(r.Stay), monthly(r.Needed))
	case disrupt.MinValuesTooDear:
		text := "Its NodePool's minValues ask for more instance types than there are at a price that saves enough"
		if r.Sure > 0 {
			text += fmt.Sprintf(": with so many of them only %s would be saved for sure, and it has to be %s", monthly(r.Sure), monthly(r.Needed))
		}
		return text
	case disrupt.NotBalanced:
		return fmt.Sprintf("A move would save %s; for the pods that it disturbs the policy Balanced asks for %s (--balanced-k)", monthly(r.Saving), monthly(r.Needed))
	case disrupt.SpotNeedsTypes:
		return "There are too few cheaper instance types for a spot node in its place (--spot-to-spot-min-types)" + forgone(r.Stay)
	case disrupt.SpotToSpotOff:
		return "Its pods would go to a cheaper spot node, which the feature gate SpotToSpotConsolidation does not allow" + forgone(r.Stay)
	}
	return ""
}

// keptForNow is about what passes by itself.
func keptForNow(r reasoned) string {
	switch r.Why {
	case disrupt.NotInitialized:
		return "The node is not ready for pods yet"
	case disrupt.BeingDisrupted:
		return "The node is being disrupted already"
	case disrupt.TooSoon:
		return "Pods came or went less than the NodePool's consolidateAfter ago" + until("; it is looked at again at ", r.Until)
	case disrupt.MoveFailedLately:
		return "A disruption of the node was given up a while ago" + until("; it rests until ", r.Until)
	case disrupt.UsesUnreadyNodes:
		return "Its pods would go to nodes that are not ready yet"
	case disrupt.OthersFirst:
		return "There is a cheaper way to run its pods, which is looked at again once other nodes have gone that were found with it"
	case disrupt.SearchCut:
		return "The search for cheaper nodes has used up its steps on rules between pods before it came to the node; it is looked at in one of the next"
	case disrupt.NoLongerDue:
		return "The node is no longer drifted, unhealthy or near the end of its life"
	case disrupt.ReplacementsLate:
		return "What was to take the node's place was not ready in time (--replacement-timeout)"
	case disrupt.NotDeleted:
		return "What takes the node's place is ready, but the node could not be deleted in time (--replacement-timeout)"
	case disrupt.ManyUnhealthy:
		return "So many nodes of the NodePool have become unhealthy that the cause is not this node (--node-repair-max-unhealthy)"
	}
	return ""
}

// blocks reports whether the reason is one of the contract's DisruptionBlocked, which keep a node whatever the disruption is for;
// the others, which are about saving money, are told as Unconsolidatable.
func blocks(why disrupt.Why) bool {
	switch why {
	case disrupt.NotManaged, disrupt.NotInitialized, disrupt.BeingDisrupted, disrupt.NodeDoNotDisrupt, disrupt.PodDoNotDisrupt,
		disrupt.GuardBlocks, disrupt.SeveralGuards, disrupt.PodsExpected, disrupt.PoolUnknown:
		return true
	}
	return false
}

// passes reports whether the reason is part of a node's everyday life: it is only worth an event if it lasts.
func passes(why disrupt.Why) bool {
	switch why {
	case disrupt.NotInitialized, disrupt.BeingDisrupted, disrupt.PodsExpected, disrupt.TooSoon, disrupt.UsesUnreadyNodes, disrupt.BudgetBlocks,
		disrupt.SearchCut, disrupt.OthersFirst:
		return true
	}
	return false
}

// weighed reports whether the node was a candidate: people and pods would have let it go.
func weighed(why disrupt.Why) bool {
	switch why {
	case disrupt.PodsStranded, disrupt.NothingCheaper, disrupt.SavesTooLittle, disrupt.MinValuesTooDear, disrupt.NotBalanced, disrupt.SpotNeedsTypes,
		disrupt.SpotToSpotOff, disrupt.UsesUnreadyNodes, disrupt.BudgetBlocks, disrupt.OthersFirst:
		return true
	}
	return false
}

// figures are what the best move would have saved, if that is known.
func figures(s disrupt.Stay) string {
	switch {
	case s.Saving < 0:
		return fmt.Sprintf(": it would cost %s more", monthly(-s.Saving))
	case s.Saving > 0 && s.Saving < s.Needed:
		return fmt.Sprintf(": at best %s could be saved, and it has to be %s", monthly(s.Saving), monthly(s.Needed))
	case s.Saving > 0 && s.Needed > 0:
		return fmt.Sprintf(": a move would save %s, and it has to save %s", atLeast(s), monthly(s.Needed))
	}
	return ""
}

// atLeast is what a move saves, with what of it is certain if that alone is too little.
func atLeast(s disrupt.Stay) string {
	switch {
	case s.Saving < s.Needed:
		return monthly(s.Saving)
	case s.Sure < 0:
		return fmt.Sprintf("%s at best, and cost up to %s more if the cloud hands out the dearest of its types and zones", monthly(s.Saving), monthly(-s.Sure))
	}
	return fmt.Sprintf("%s at best, but only %s if the cloud hands out the dearest of its types and zones", monthly(s.Saving), monthly(s.Sure))
}

// forgone is what is not saved for another reason than the amount.
func forgone(s disrupt.Stay) string {
	if s.Saving <= 0 {
		return ""
	}
	return fmt.Sprintf("; %s would be saved", monthly(s.Saving))
}

// monthly writes a price per hour as people know it from their bills.
func monthly(perHour float64) string {
	return fmt.Sprintf("$%.2f a month", rounded(perHour*hoursPerMonth))
}

// byEstimate adds to a text about money that it rests on an estimate, if it does.
func byEstimate(text string, estimated bool) string {
	if !estimated || !strings.Contains(text, "$") {
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
