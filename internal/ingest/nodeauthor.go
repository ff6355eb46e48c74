package ingest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

// readAuthors notes who put the taints on a node, and who cordoned it. The list of taints has one author, who wrote it
// last; so it is read when a taint is new, and remembered.
func readAuthors(n *cluster.Node, old *nodeEntry, node *corev1.Node) {
	var before *cluster.Node
	if old != nil && old.node.UID == n.UID {
		before = old.node
	}
	switch {
	case !n.Cordoned:
	case before != nil && before.Cordoned:
		n.CordonedBy = before.CordonedBy
	default:
		n.CordonedBy = decode.AuthorOf(node.ManagedFields, decode.WroteCordon)
	}
	for _, t := range n.Taints {
		who := ""
		if before != nil && slices.Contains(before.Taints, t) {
			who = before.TaintedBy[t.String()]
		} else {
			who = decode.AuthorOf(node.ManagedFields, decode.WroteTaints)
		}
		if who == "" {
			continue
		}
		if n.TaintedBy == nil {
			n.TaintedBy = make(map[string]string)
		}
		n.TaintedBy[t.String()] = who
	}
}

// addCauseAuthor adds to a cause who wrote the label that changed, or the allocatable that shrank. A label that was
// taken away has no writer any more. The lock is held.
func (b *machineState) addCauseAuthor(node string, cause *cluster.Cause) {
	e := b.nodes[node]
	if e == nil {
		return
	}
	switch {
	case cause.Kind == cluster.CauseLabel && cause.Is != "":
		cause.By = decode.AuthorOf(e.fieldAuthors, decode.WroteLabel+cause.Label)
	case cause.Kind == cluster.CauseShrunk:
		cause.By = decode.AuthorOf(e.fieldAuthors, decode.WroteAllocatable+cause.Resource)
	}
}
