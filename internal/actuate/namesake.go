package actuate

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/command"
)

// Names of claims derive from what they are for: a claim that was removed by force may come back under the same name
// while something is still being done for the first. What belongs to one must not be written to the other.

// isNamesake reports whether the claim is not the one that was meant; an empty UID means any.
func isNamesake(claim *v1.NodeClaim, uid string) bool {
	return uid != "" && claim.UID != types.UID(uid)
}

// errNamesake says that the claim that was meant is gone.
func errNamesake(claim *v1.NodeClaim) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: v1.Group, Resource: "nodeclaims"}, claim.Name)
}

// editOwnStatus changes a claim's status if it is still the one that was meant.
func (o *Objects) editOwnStatus(ctx context.Context, name, uid string, edit func(*v1.NodeClaim)) ([]command.Write,
	error) {
	return o.writeClaim(ctx, name, edit, func(claim *v1.NodeClaim, base client.Object) error {
		if isNamesake(claim, uid) {
			return errNamesake(claim)
		}
		return o.Client.Status().Patch(ctx, claim, client.MergeFromWithOptions(base,
			client.MergeFromWithOptimisticLock{}))
	})
}

// uidPatch is a merge patch without a lock on the version. It names the object's UID: the API server refuses it if the
// object is another one of the same name.
type uidPatch struct{ base client.Object }

// Type is the kind of patch.
func (p uidPatch) Type() types.PatchType { return types.MergePatchType }

// Data is the patch that makes the object of the base.
func (p uidPatch) Data(obj client.Object) ([]byte, error) {
	data, err := client.MergeFrom(p.base).Data(obj)
	if err != nil || p.base.GetUID() == "" {
		return data, err
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("reading a patch: %w", err)
	}
	metadata, ok := fields["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		fields["metadata"] = metadata
	}
	metadata["uid"] = string(p.base.GetUID())
	return json.Marshal(fields)
}
