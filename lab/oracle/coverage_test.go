package oracle

import (
	"slices"
	"testing"
)

// allKinds are the kinds of constraint that must have been tried, successfully, for a run to say anything.
func allKinds() []string {
	return []string{
		"anti-affinity of a running pod", "ephemeral storage", "extended resource", "from a leaving node", "host port",
		"host port with an address", "hugepages", "init container", "new node that is reserved",
		"new node with a label that its pods decided", "new node with daemonsets", "no request",
		"node affinity DoesNotExist", "node affinity Exists", "node affinity Gt", "node affinity In",
		"node affinity Lt",
		"node affinity NotIn", "node affinity matchFields", "node affinity to a host", "node affinity, ORed terms",
		"node selector", "overhead", "plain", "pod affinity in capacity type", "pod affinity in custom key",
		"pod affinity in hostname", "pod affinity in zone", "pod affinity to its kind", "pod affinity to others",
		"pod affinity, matchLabelKeys", "pod affinity, mismatchLabelKeys", "pod affinity, namespaceSelector",
		"pod affinity, namespaces", "pod affinity, several terms", "pod anti-affinity in capacity type",
		"pod anti-affinity in custom key", "pod anti-affinity in hostname", "pod anti-affinity in zone",
		"pod anti-affinity to its kind", "pod anti-affinity to others", "pod anti-affinity, matchLabelKeys",
		"pod anti-affinity, mismatchLabelKeys", "pod anti-affinity, namespaceSelector", "pod anti-affinity, namespaces",
		"pod anti-affinity, several terms", "pod-level resources", "pool with limits", "pool with minValues",
		"pool with startup taints", "pool with taints", "pool with weight", "preferences", "priority",
		"several spreads",
		"sidecar", "spread of other pods", "spread over capacity type", "spread over custom key",
		"spread over hostname",
		"spread over zone", "spread, ScheduleAnyway", "spread, matchLabelKeys", "spread, maxSkew above 1",
		"spread, minDomains", "spread, nodeAffinityPolicy Ignore", "spread, nodeTaintsPolicy Honor", "tolerations",
		"volume, ReadWriteOncePod", "volume, WaitForFirstConsumer", "volume, allowedTopologies", "volume, attach limit",
		"volume, bound to a host", "volume, bound to a zone by label", "volume, bound to no place",
		"volume, bound to zones", "volume, ephemeral", "volume, shared", "volume, waits for one that is there",
	}
}

// enoughClusters is how many clusters it takes for every kind to show up.
const enoughClusters = 1000

// checkCoverage fails if a kind never found a place: nothing is known about it then.
func checkCoverage(t *testing.T, counts tally, clusters int) {
	t.Helper()
	for kind := range counts {
		if !slices.Contains(allKinds(), kind) {
			t.Errorf("pods with %q are counted, but not asked for: add it to allKinds", kind)
		}
	}
	if clusters < enoughClusters {
		return
	}
	for _, kind := range allKinds() {
		if n := counts[kind]; n == nil || n[onExisting]+n[onNew] == 0 {
			t.Errorf("no pod with %q found a place in %d clusters: nothing is known about it", kind, clusters)
		}
	}
}
