package plan_test

import (
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
)

// bindPod gives a pod its node, whoever does it.
func (w *world) bindPod(p *cluster.Pod, node string) {
	p.Node, p.Unschedulable, p.Nominated = node, false, ""
	w.podEvent(p)
}

// placePolicy: placement=nominate|bind|event, static-capacity, repair=PERCENT (nodes that are not Ready for a
// minute, or whose KernelReady or DiskReady is False for ten seconds), repair-grace=30s (how long pods have if it is
// KernelReady; the policy of DiskReady says nothing about that).
func (n *storyRunner) placePolicy(word string) bool {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "placement":
		n.policy.Placement = plan.PlacementMode(value)
	case "static-capacity":
		n.policy.StaticCapacity = true
	case "repair":
		n.policy.Repair = disrupt.RepairSettings{Enabled: true, MaxUnhealthy: n.integer(value),
			Policies: []disrupt.RepairPolicy{
				{Type: "Ready", Status: "False", Toleration: time.Minute, HasGrace: true},
				{Type: "Ready", Status: "Unknown", Toleration: time.Minute, HasGrace: true},
				{Type: "KernelReady", Status: "False", Toleration: 10 * time.Second, HasGrace: true},
				{Type: "DiskReady", Status: "False", Toleration: 10 * time.Second}}}
	case "repair-grace":
		n.policy.Repair.Policies[2].Grace = n.duration(value)
	case "legacy-repair":
		n.policy.Repair.Legacy = true
	case "spot-to-spot":
		n.policy.Disrupt.SpotToSpot, n.policy.Disrupt.SpotTypes = true, n.integer(value)
	case "min-saving":
		n.policy.Disrupt.MinSaving = n.price(value)
	case "replacement-timeout":
		n.policy.Disrupt.ReplacementTimeout = n.duration(value)
	default:
		return false
	}
	return true
}

// chill makes a node whose kubelet is not up.
func (w *world) chill(n *cluster.Node) {
	n.Ready = false
	n.Taints = append(slices.Clone(n.Taints), cluster.Taint{Key: "node.kubernetes.io/not-ready",
		Effect: cluster.NoSchedule})
}

// stirUp notes that kube-scheduler is at work.
func (w *world) stirUp() {
	if w.now.Sub(w.stir.Last) > 200*time.Millisecond {
		w.stir.Began = w.now
	}
	w.stir.Last = w.now
}

// healthHappens: ails NODE Ready=False, heals NODE, marks NODE do-not-repair, warms NODE (its kubelet is up).
func (n *storyRunner) healthHappens(words []string) bool {
	node := n.w.nodes[n.w.realName(words[1])]
	switch words[0] {
	case "ails":
		kind, status, _ := strings.Cut(words[2], "=")
		node.Conditions = append(slices.Clone(node.Conditions), cluster.NodeCondition{Type: kind, Status: status,
			Since: n.w.now})
	case "heals":
		node.Conditions = nil
	case "warms":
		node.Ready, node.ReadySince = true, n.w.now
		node.Taints = slices.DeleteFunc(slices.Clone(node.Taints), func(t cluster.Taint) bool {
			return t.Key == "node.kubernetes.io/not-ready"
		})
	case "marks":
		node.DoNotRepair = words[2] == "do-not-repair"
	}
	return true
}
