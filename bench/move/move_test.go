package move

import (
	"testing"

	"github.com/tenon-sh/tenon/bench/internal/report"
)

// The cluster that is handed over.
const inUse = 50

// TestThereAndBack has Karpenter run a cluster of 50 nodes in use, hands it to Tenon and back again, and then has both
// begin at once. No node is replaced and no pod is restarted on the way; and each new leader makes nodes for pods that
// come, and takes these away again.
func TestThereAndBack(t *testing.T) {
	w := newWorld(t)
	w.Log("Karpenter runs the cluster")
	karpenter := w.start(report.Peer)
	w.leads(karpenter)
	w.createPool()
	w.scale("web", inUse)
	w.scale("short", 1)
	w.eventually(w.running(inUse + 1))
	before := w.everything()

	w.Log("Tenon's definitions replace Karpenter's, and Tenon waits beside Karpenter")
	w.upgradeDefinitions()
	tenon := w.start(report.Tenon)
	w.works(karpenter, before)
	w.waits(tenon)

	w.Log("Karpenter stops")
	w.spoilStamps()
	karpenter.stop()
	w.leads(tenon)
	w.works(tenon, before)
	w.eventually(w.stamped)
	w.eventually(w.migrated)
	for _, name := range w.of("short") { // Tenon ends a machine that Karpenter has launched
		delete(before, name)
	}
	w.scale("short", 0)
	w.eventually(w.running(inUse))
	w.same(before)
	w.scale("later", 1) // and a node that Tenon has made goes the way back, too
	w.eventually(w.running(inUse + 1))
	before = w.everything()

	w.Log("Tenon stops, and Karpenter starts again")
	tenon.stop()
	karpenter = w.start(report.Peer)
	w.leads(karpenter)
	w.works(karpenter, before)
	karpenter.stop()

	w.Log("both start at once")
	tenon, karpenter = w.start(report.Tenon), w.start(report.Peer)
	leader, other := w.elected(tenon, karpenter)
	w.works(leader, before)
	w.waits(other)
}
