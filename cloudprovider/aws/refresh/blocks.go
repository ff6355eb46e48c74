package refresh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
)

// ReservationFinder finds capacity reservations by their ids. Those that are over are not found.
type ReservationFinder interface {
	ReservationsByID(ctx context.Context, ids []string) ([]network.Reservation, error)
}

// endBlocks says on the claims of capacity blocks that are about to end that their instances will be taken away, so
// that their pods are moved while there is time. It needs no interruption queue: the end of a block is known in
// advance.
func (r *Reserved) endBlocks(ctx context.Context, claims []unstructured.Unstructured) error {
	if r.Reservations == nil {
		return nil
	}
	byID := map[string][]*unstructured.Unstructured{}
	for i := range claims {
		labels := claims[i].GetLabels()
		id := labels[awsv1.CapacityReservationIDLabelKey]
		if labels[awsv1.CapacityReservationTypeLabelKey] == string(awsv1.CapacityReservationTypeCapacityBlock) &&
			id != "" && claims[i].GetDeletionTimestamp() == nil {
			byID[id] = append(byID[id], &claims[i])
		}
	}
	if len(byID) == 0 {
		return nil
	}
	ids := make([]string, 0, len(byID))
	for id := range byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	found, err := r.Reservations.ReservationsByID(ctx, ids)
	failures := []error{err}
	now := r.now()
	for _, block := range found {
		if block.State(now) != awsv1.CapacityReservationStateExpiring {
			continue
		}
		for _, claim := range byID[block.ID] {
			failures = append(failures, r.announce(ctx, claim, block.ID, block.TakenBack()))
		}
	}
	return errors.Join(failures...)
}

func (r *Reserved) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// announce writes the end of a block on a claim, unless it says something as urgent already.
func (r *Reserved) announce(ctx context.Context, claim *unstructured.Unstructured, block string, at time.Time) error {
	known, _ := cloudprovider.ParseInterruption(claim.GetAnnotations()[cloudprovider.InterruptionAnnotation])
	end := known.Over(cloudprovider.Interruption{Kind: cloudprovider.ReservationInterruption,
		Deadline: at.UTC().Truncate(time.Second)})
	if end == known {
		return nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": claim.GetUID(), "annotations": map[string]string{cloudprovider.InterruptionAnnotation: end.String()},
	}})
	if err != nil {
		return fmt.Errorf("wording the end of capacity block %s: %w", block, err)
	}
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, claim, client.RawPatch(types.MergePatchType,
		data))); err != nil {
		return fmt.Errorf("saying on NodeClaim %s that capacity block %s ends: %w", claim.GetName(), block, err)
	}
	log.FromContext(ctx).Info("a capacity block ends", "NodeClaim", claim.GetName(), "capacity-reservation-id", block,
		"interruption", end.String())
	return nil
}
