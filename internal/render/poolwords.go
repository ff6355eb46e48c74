package render

import "github.com/tenon-sh/tenon/internal/reason"

// fixLimit is what to do about a limit that leaves nothing.
const fixLimit = "; raise the limit or remove it to let the pool make nodes"

// poolWords is about what a NodePool may buy.
func poolWords(code reason.Code) string {
	return [reason.Count]string{
		reason.PoolDeleting:         "it is being deleted",
		reason.PoolStatic:           "it is static (spec.replicas is set) and takes no part in provisioning",
		reason.PoolInvalid:          "it is not valid: %s: %s",
		reason.ClassNotReady:        "its NodeClass is not ready: %s",
		reason.LaunchesRefusedUntil: "the cloud has refused its launches; the next try is at %s",
		reason.TypesUnknownBecause:  "its instance types are not known: %s",
		reason.TypesUnknown:         "its instance types are not known yet",
		reason.MinValuesUnmet:       "minValues %d of %s can't be met: the requirements leave %d values",
		reason.LabelContradiction: "what the requirements and labels ask of %s contradicts itself: no value is " +
			"left",
		reason.NoTypeHas:     "no instance type has %s %s",
		reason.NothingSold:   "the cloud sells no instance type",
		reason.NoTypeHasBoth: "no instance type has both %s %s and %s %s",
		reason.FewestLeft: "the requirements together leave no instance type; %s %s leaves the fewest by " +
			"itself",
		reason.LimitUncounted: "spec.limits.%s can't be counted, because too many kinds of resources are in use; " +
			"remove it to let the pool make nodes",
		reason.LimitOnNodes: "spec.limits.nodes is %d" + fixLimit,
		reason.LimitForbids: "spec.limits.%s is %s, and every node has some" + fixLimit,
		reason.LimitBelowSmallest: "spec.limits.%s is %s, and each instance type that the requirements leave has " +
			"%s or more" + fixLimit,
		reason.LimitsTogether: "spec.limits together leave no instance type: each has more of something than its " +
			"limit; raise or remove one of them",
		reason.PriceEstimated: "the price of %s is estimated from those of other instance types",
		reason.PricesEstimated: "the prices of %d of its instance types, such as %s, are estimated from those of " +
			"others",
		reason.MinValuesUnsold:     "minValues of %s can't be met by what is for sale",
		reason.NothingAvailable:    "nothing that the pool's requirements allow is available now",
		reason.DaemonsFillAll:      "no instance type that the pool's requirements allow holds its daemonsets",
		reason.LimitOnNodesReached: "spec.limits.nodes is %d",
		reason.LimitsUsedUp:        "the pool's limits or reservations are used up",
	}[code]
}
