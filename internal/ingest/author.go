package ingest

import (
	"bytes"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// What is kept of who wrote which field of a node, in the place of the fields.
const (
	wroteTaints = "taints"
	wroteCordon = "cordon"
)

// keepAuthors drops who wrote which field of a node, but for the names of those who wrote its taints and its cordon.
func keepAuthors(node *corev1.Node) {
	var kept []metav1.ManagedFieldsEntry
	for _, f := range node.ManagedFields {
		if f.FieldsV1 == nil {
			return // it has been here before
		}
		raw := f.FieldsV1.GetRawBytes()
		var wrote []string
		if bytes.Contains(raw, []byte(`"f:taints"`)) {
			wrote = append(wrote, wroteTaints)
		}
		if bytes.Contains(raw, []byte(`"f:unschedulable"`)) {
			wrote = append(wrote, wroteCordon)
		}
		if len(wrote) > 0 {
			kept = append(kept, metav1.ManagedFieldsEntry{Manager: f.Manager, Time: f.Time, FieldsType: strings.Join(wrote, ",")})
		}
	}
	node.ManagedFields = kept
}

// authorOf is who wrote a field of the node last, as far as is known.
func authorOf(node *corev1.Node, field string) string {
	var last *metav1.ManagedFieldsEntry
	for i := range node.ManagedFields {
		f := &node.ManagedFields[i]
		if slices.Contains(strings.Split(f.FieldsType, ","), field) && (last == nil || !f.Time.Before(last.Time)) {
			last = f
		}
	}
	if last == nil {
		return ""
	}
	return last.Manager
}

// readAuthors notes who put the taints on a node, and who cordoned it. The list of taints has one author, who wrote it last; so it is
// read when a taint is new, and remembered.
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
		n.CordonedBy = authorOf(node, wroteCordon)
	}
	for _, t := range n.Taints {
		who := ""
		if before != nil && slices.Contains(before.Taints, t) {
			who = before.TaintedBy[t.String()]
		} else {
			who = authorOf(node, wroteTaints)
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
