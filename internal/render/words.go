package render

import "github.com/tenon-sh/tenon/internal/reason"

// generalWords is about texts that are made of others.
func generalWords(code reason.Code) string {
	return [reason.Count]string{
		reason.Verbatim: "%s",
		reason.Both:     "%s; %s",
		reason.Then:     "%s, %s",
		reason.About:    "%s: %s",
		reason.And:      "%s and %s",
		reason.AndMore:  "%s and %d more",
	}[code]
}

// conditionWords is about what the conditions of a NodePool say.
func conditionWords(code reason.Code) string {
	return [reason.Count]string{
		reason.NothingLaunchedYet: "no node has been launched since the pool or its NodeClass last changed",
		reason.LaunchesDidNotJoin: "at least half of the latest launches did not become nodes; see the events of " +
			"the pool's NodeClaims and the logs of its machines",
		reason.PoolIsDeleting: "the NodePool is being deleted",
		reason.StaticCapacityOff: "spec.replicas makes the pool static; turn the feature gate StaticCapacity on, " +
			"or make another NodePool without the field to let pods decide",
		reason.PoolNotReady:          "the NodePool is not ready",
		reason.NotSoldYet:            "the cloud has not said yet what it sells",
		reason.LaunchesRefusedBefore: "the cloud has refused the pool's launches; see the events of its NodeClaims",
		reason.LaunchesFail: "the pool's launches fail and are tried less and less often; the last answer: " +
			"%s",
		reason.MadeInVain: "pods cannot run on the nodes created for them, so new nodes are tried less and less " +
			"often: %s",
		reason.MoreWorkloads: "and %d more workloads",
	}[code]
}

// budgetWords is about disruption budgets.
func budgetWords(code reason.Code) string {
	return [reason.Count]string{
		reason.BudgetsTogether: "of %d nodes at the same time: %s",
		reason.NoBudgetHolds:   "all, no budget holds",
		reason.BudgetForbids:   "none (%s)",
		reason.BudgetAllows:    "up to %d (%s)",
		reason.AllowedUntil:    "%s until %s",
		reason.AllowedFrom:     "%s, from %s on %s",
		reason.BudgetBroken:    "budgets[%d] can't be read",
		reason.BudgetOfPercent: "budgets[%d], %d%%",
		reason.BudgetOfNodes:   "budgets[%d], %d",
		reason.AllowedNow:      "%s of %d nodes, and %d are out",
	}[code]
}

// driftWords is about the replacement of drifted nodes, and about static NodePools.
func driftWords(code reason.Code) string {
	return [reason.Count]string{
		reason.LaunchesDidNotJoinLately: "at least half of the pool's latest launches did not become nodes",
		reason.ReplacementLate:          "NodeClaim %s, which replaces a drifted node, is not ready for pods after %s",
		reason.ReplacementsDrift: "what was created in place of drifted nodes has drifted itself, and is being " +
			"watched",
		reason.ReplacementDrifted: "NodeClaim %s, which replaces a drifted node, has drifted itself (%s), although " +
			"neither the NodePool nor its NodeClass was changed",
		reason.DriftOneAtATime: "%s; drifted nodes are replaced one at a time, less and less often (up to %s " +
			"apart), until one does not drift. Look for what is not the same at each question: selectors, an alias, " +
			"a provider's answer",
		reason.DriftStopped: "%s; no more drifted nodes are replaced until that is mended",
		reason.DriftNoRoom: "a drifted node of a static NodePool goes when another is there in its place, and none " +
			"can be made: %s",
		reason.DriftPodsLeaving: "pods leave the first drifted nodes; others follow when these are gone and all is " +
			"well",
		reason.DriftWatched: "the first drifted nodes have gone; others follow when all is well for %s",

		reason.NodesMissing: "%d of %d nodes are missing: %s",
		reason.NodesResting: "%d of %d nodes are missing: %s. The next is created at %s",
		reason.PoolRefused:  "the cloud has refused the pool's launches: %s",
		reason.PoolAsksFor:  "NodePool %s asks for %d nodes",
		reason.NodesEndSoon: "nodes of the pool end within %s, so new ones are created less and less often; find " +
			"out who ends them (the events of its NodeClaims and Nodes, the account's log), or lower spec.replicas",
		reason.NodesEndedSoonBy: "nodes of the pool end within %s, so new ones are created less and less often; the " +
			"last one was ended by %s",
	}[code]
}

// moveWords is about why a node goes, or would, and where its pods go.
func moveWords(code reason.Code) string {
	return [reason.Count]string{
		reason.NodeEmpty:         "the node carries no workload",
		reason.ReplacedNodesStay: "the nodes that it was to replace stay",
		reason.NodeDrifted:       "it is no longer what its NodePool and NodeClass ask for (%s)",
		reason.NodeExpires:       "it comes to the end of its expireAfter of %s",
		reason.NoPodsMove:        "it has no pods that move",
		reason.PodsFit:           "its pods fit on nodes that are there",
		reason.PodsGoTo:          "its pods go to %s",
		reason.PodsGoToNew:       "its pods go to %d new nodes",
		reason.SavingPerHour:     "which saves $%.3f an hour",
		reason.NodeInterrupted:   "its instance is interrupted (%s); %s",
		reason.GoneBy:            "%s, gone by %s",
		reason.NodeNeverCame:     "no node has come of it yet",
		reason.PodsLeaveAnyway:   "its pods leave whether or not they have a place elsewhere",
		reason.NothingAwaited:    "nothing on it is waited for",

		reason.DryRunEmpty: "Dry run: would disrupt the node (Empty: it carries no workload); $%.2f a month would " +
			"be saved",
		reason.DryRunMove: "Dry run: would disrupt the node (%s: %s); %d pods would move",
		reason.DryRunSaving: "Dry run: would disrupt the node (%s: %s); %d pods would move and $%.2f a month be " +
			"saved",
		reason.TogetherWith:    "%s, together with %d other nodes",
		reason.OneCheaperNode:  "one cheaper node would take its pods",
		reason.CheaperNodes:    "%d cheaper nodes would take its pods",
		reason.NoLongerAsAsked: "it is no longer what its NodePool and NodeClass ask for",
		reason.EndOfLife:       "it comes to the end of its expireAfter",
		reason.Unhealthy:       "it is unhealthy",

		reason.ConditionLasts: "condition %s of node %s has been %s for %s or longer",
		reason.RepairStaticOff: "NodePool %s is static and the feature gate StaticCapacity is off: nothing would " +
			"take the node's place",
		reason.RepairPodStays: "pod %s may not be evicted now (%s), and nothing says after which time it may be: " +
			"set terminationGracePeriod in NodePool %s",
		reason.ManyUnhealthy: "%d of the %d nodes of %s are unhealthy, more than %d%%: the cause is not this node",
		reason.RepairBudgets: "the disruption budgets of %s allow no more nodes to be replaced now",
		reason.PoolNamed:     "NodePool %s", reason.StandaloneClaims: "all standalone NodeClaims",
	}[code]
}

// claimWords is about how a NodeClaim comes to life and ends.
func claimWords(code reason.Code) string {
	return [reason.Count]string{
		reason.NodeDeleted:           "node %s was deleted",
		reason.TooOld:                "it is older than its expireAfter of %s",
		reason.InstanceGone:          "the cloud no longer runs its instance %s",
		reason.NodeRemoved:           "its node %s was removed",
		reason.NotLaunched:           "no instance could be launched within %s",
		reason.OfferingsGone:         "none of the offerings that it may use is available any more",
		reason.LaunchesFailElsewhere: "the launches of its NodePool fail; its pods may have a place elsewhere",
		reason.NotRegistered:         "its node did not register within %s",
		reason.NotInitialized:        "its node was not ready for pods within %s: %s",
		reason.SeveralNodes:          "%d nodes say that they are instance %s; delete those that are not",
		reason.CapacityShort:         "node %s has %s %s, expected %s",
		reason.NodeNotReady:          "node %s is not Ready",
		reason.StartupTaint:          "startup taint %s is still on node %s",
		reason.EphemeralTaint:        "taint %s is still on node %s",
		reason.ResourceMissing:       "node %s does not show resource %s yet",
		reason.TimeUpForPods:         "the node's time was up before all its pods had left",
		reason.PodsLeaving:           "pods are leaving the node",
		reason.TimeUpForVolumes:      "the node's time was up before its volumes were detached",
		reason.VolumesAttached:       "volumes of pods that have left are still attached",
		reason.VolumesAwaited:        "Waiting for volumes to be detached: %s",
		reason.PodProtected:          "Pod %s asks not to be disrupted",
		reason.PodProtectedUntil:     "Pod %s asks not to be disrupted until %s",
		reason.PodsDeletedBy:         "All pods will be deleted by %s",
		reason.DuplicateNode: "Node %s says that it is instance %s, which belongs to NodeClaim %s with another " +
			"node; deleting node %s does not end the instance",
		reason.InstanceUnclaimed: "no NodeClaim has its instance %s",

		reason.OrphansHeld: "No NodeClaim accounts for %d of %d instances; %s. If the NodeClaims were lost, restore " +
			"them. If the instances may be ended, run: kubectl annotate namespace kube-system --overwrite " +
			"%s=$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ)",
		reason.AtMostUnasked: "at most %d are ended without confirmation",
		reason.NoIdentityTag: "none of them has this cluster's identity tag",
		reason.ManyBeforePools: "many were held when the last NodePool was deleted, and no new NodePool says yet " +
			"whether they still are",
		reason.MoreBefore:       "more were held before, and nobody has confirmed them yet",
		reason.AtMostWithinHour: "at most %d are ended within an hour without confirmation, and %d have been",
	}[code]
}

// planWords is about evictions, DaemonSets and failures of the planner.
func planWords(code reason.Code) string {
	return [reason.Count]string{
		reason.PodNotEvicted: "Pod %s can't be evicted: %s",
		reason.TwoBudgets: "more than one disruption budget selects it (%s and %s), which Kubernetes refuses to " +
			"evict",
		reason.BudgetNever:  "disruption budget %s never allows it, since it wants all of its pods",
		reason.BudgetNotNow: "disruption budget %s does not allow it now",

		reason.DaemonFitsNowhere: "No instance type of NodePool %s has room for the pods of this DaemonSet%s; no " +
			"room is kept for them on new nodes. Lower their requests, or let them run on other nodes only",
		reason.DaemonTooLarge: ": each asks for %s %s, and the largest instance type that suits them has %s",
		reason.DaemonCrowdedOut: ": each asks for %s %s, and DaemonSets of higher priority leave at most " +
			"%s",
		reason.DaemonsOmitted: "No instance type of the pool has room for a pod of DaemonSets %s; no room is kept " +
			"for them on new nodes",
		reason.DaemonsSqueezed: "All DaemonSets together leave no room for pods like %s on any instance type that " +
			"suits them; new nodes for these pods do not have room for all DaemonSets. Lower the requests of the " +
			"DaemonSets, or delete some",

		reason.PartFailed: "%s failed, which is a mistake in Tenon: %s. It is left out until %s; everything else " +
			"goes on",
		reason.ClaimFailed: "The planner failed on this NodeClaim, which is a mistake in Tenon: %s. It is left as " +
			"it is until %s",
		reason.LeftOut: "The planner failed on %d classes of pods and %d NodeClaims, which is a mistake in Tenon. " +
			"They are left out for a while. Nodes that carry them or were made for them are not disrupted; " +
			"everything else goes on",
		reason.SearchLeftOut: "The search for cheaper nodes failed on %d classes of pods and %d NodeClaims, which " +
			"is a mistake in Tenon. Their nodes are not replaced by cheaper ones; all other nodes can be, and pods " +
			"get nodes as usual",
	}[code]
}
