package decode

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is kept of who wrote which field of a node or a pod, in the place of the fields. Labels and kinds of resource
// follow their prefix.
const (
	WroteTaints      = "taints"
	WroteCordon      = "cordon"
	WroteLabel       = "labels/"
	WroteAllocatable = "allocatable/"
	WroteEnd         = "disruption-target"
)

// keepFieldAuthors drops who wrote which field of a node, but for the names of those who wrote what may keep pods away:
// its taints, its cordon, its labels and its allocatable.
func keepFieldAuthors(node *corev1.Node) {
	var kept []metav1.ManagedFieldsEntry
	for _, f := range node.ManagedFields {
		if f.FieldsV1 == nil {
			return // it has been here before
		}
		raw := f.FieldsV1.GetRawBytes()
		var wrote []string
		if bytes.Contains(raw, []byte(`"f:taints"`)) {
			wrote = append(wrote, WroteTaints)
		}
		if bytes.Contains(raw, []byte(`"f:unschedulable"`)) {
			wrote = append(wrote, WroteCordon)
		}
		wrote = append(wrote, fieldsAfter(raw, `"f:labels":`, WroteLabel)...)
		wrote = append(wrote, fieldsAfter(raw, `"f:allocatable":`, WroteAllocatable)...)
		if len(wrote) > 0 {
			// Most nodes are written by the same few, in the same words: they share one text.
			text := unique.Make(strings.Join(wrote, ",")).Value()
			kept = append(kept, metav1.ManagedFieldsEntry{Manager: f.Manager, Time: f.Time, FieldsType: text})
		}
	}
	node.ManagedFields = kept
}

// fieldsAfter lists the fields of the object that follows a name in a set of fields, each behind the prefix.
func fieldsAfter(raw []byte, name, prefix string) []string {
	at := bytes.Index(raw, []byte(name))
	if at < 0 {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(raw[at+len(name):])).Decode(&object); err != nil {
		return nil // what can't be read names nobody
	}
	out := make([]string, 0, len(object))
	for key := range object {
		if field, is := strings.CutPrefix(key, "f:"); is {
			out = append(out, prefix+field)
		}
	}
	slices.Sort(out)
	return out
}

// AuthorOf is who wrote a field last, as far as is known from what was kept.
func AuthorOf(kept []metav1.ManagedFieldsEntry, field string) string {
	var last *metav1.ManagedFieldsEntry
	for i := range kept {
		f := &kept[i]
		if slices.Contains(strings.Split(f.FieldsType, ","), field) && (last == nil || !f.Time.Before(last.Time)) {
			last = f
		}
	}
	if last == nil {
		return ""
	}
	return last.Manager
}
