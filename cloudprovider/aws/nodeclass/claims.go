package nodeclass

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// NodeClaims are read as plain trees, not as the API's type: the controller's core watches them so, and a second watch
// would keep them twice; and one that can't be read as the type must not hide the others.

// newClaim is what is watched.
func newClaim() *unstructured.Unstructured {
	claim := &unstructured.Unstructured{}
	claim.SetGroupVersionKind(v1.GroupVersion().WithKind("NodeClaim"))
	return claim
}

// listClaims lists the NodeClaims that refer to an EC2NodeClass of the name, or to any if it is empty.
func listClaims(ctx context.Context, api client.Reader, class string) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1.GroupVersion().WithKind("NodeClaimList"))
	if err := api.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	var out []*unstructured.Unstructured
	for i := range list.Items {
		if name, ok := className(&list.Items[i]); ok && (class == "" || name == class) {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// className is the name of the EC2NodeClass that a NodeClaim refers to; false if it refers to something else.
func className(claim *unstructured.Unstructured) (string, bool) {
	ref, _, err := unstructured.NestedMap(claim.Object, "spec", "nodeClassRef")
	if err != nil || ref["group"] != awsv1.Group || ref["kind"] != awsv1.Kind {
		return "", false
	}
	name, ok := ref["name"].(string)
	return name, ok
}

// drifted tells whether a NodeClaim is known to differ from what it was launched from.
func drifted(claim *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(claim.Object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == v1.ConditionTypeDrifted {
			return c["status"] == string(metav1.ConditionTrue)
		}
	}
	return false
}

// classOf asks for a look at the class that a NodeClaim refers to: if it is waiting to go, one NodeClaim less may let
// it.
func classOf(_ context.Context, object client.Object) []reconcile.Request {
	claim, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	name, ok := className(claim)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// annotate gives an object annotations, unless it has them.
func annotate(ctx context.Context, api client.Writer, object client.Object, want map[string]string) error {
	have := object.GetAnnotations()
	same := true
	for key, value := range want {
		got, ok := have[key]
		same = same && ok && got == value
	}
	if same {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": want}})
	if err != nil {
		return fmt.Errorf("writing annotations of %s: %w", object.GetName(), err)
	}
	if err := api.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("writing annotations of %s: %w", object.GetName(), err)
	}
	return nil
}
