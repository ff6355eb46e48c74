package actuate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operation is one step of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patchNode writes what changed between base and node. Every list that changes is guarded by a test of what it was, so
// that nobody's taint or finalizer is overwritten; a kubelet's heartbeat, which changes the node's version many times
// while it joins, does not get in the way as it would with a lock on the version.
func (o *Objects) patchNode(ctx context.Context, base, node *corev1.Node) error {
	steps := slices.Concat(
		mapSteps("/metadata/labels", base.Labels, node.Labels),
		mapSteps("/metadata/annotations", base.Annotations, node.Annotations),
		listSteps("/metadata/finalizers", base.Finalizers, node.Finalizers),
		listSteps("/metadata/ownerReferences", base.OwnerReferences, node.OwnerReferences),
		listSteps("/spec/taints", base.Spec.Taints, node.Spec.Taints),
	)
	if base.Spec.Unschedulable != node.Spec.Unschedulable {
		// which also replaces
		steps = append(steps, operation{Op: "add", Path: "/spec/unschedulable", Value: node.Spec.Unschedulable})
	}
	if len(steps) == 0 {
		return nil
	}
	if base.UID != "" { // a namesake is another machine
		steps = append([]operation{{Op: "test", Path: "/metadata/uid", Value: base.UID}}, steps...)
	}
	data, err := json.Marshal(steps)
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	err = o.Client.Patch(ctx, node, client.RawPatch(types.JSONPatchType, data))
	if apierrors.IsInvalid(err) {
		return apierrors.NewConflict(corev1.Resource("nodes"), base.Name, err) // a test of the patch failed: read again
	}
	return err
}

// mapSteps sets and removes single keys; others' keys are left as they are.
func mapSteps(path string, before, after map[string]string) []operation {
	var steps []operation
	if before == nil && len(after) > 0 {
		return []operation{{Op: "test", Path: path}, {Op: "add", Path: path, Value: after}}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if have, ok := before[key]; !ok || have != after[key] {
			steps = append(steps, operation{Op: "add", Path: path + "/" + escape(key), Value: after[key]})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[key]; !ok {
			steps = append(steps, operation{Op: "remove", Path: path + "/" + escape(key)})
		}
	}
	return steps
}

// listSteps replaces a list as a whole if it still is what it was.
func listSteps[T any](path string, before, after []T) []operation {
	if len(before) == 0 && len(after) == 0 || reflect.DeepEqual(before, after) {
		return nil
	}
	pdb := operation{Op: "test", Path: path}
	if len(before) > 0 {
		pdb.Value = before
	}
	if len(after) == 0 {
		return []operation{pdb, {Op: "remove", Path: path}}
	}
	return []operation{pdb, {Op: "add", Path: path, Value: after}}
}

// escape writes a key as a step of a JSON pointer.
func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
