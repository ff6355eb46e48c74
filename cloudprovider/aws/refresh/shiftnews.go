package refresh

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// The events of NodePools about zonal shifts, with the contract's names.
const (
	EventZonalShiftActive  = "ZonalShiftActive"
	EventZonalShiftCleared = "ZonalShiftCleared"
)

// Recorder writes events.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// ShiftNews tells on NodePools that a zonal shift has left a zone which they may use, and that it is over.
type ShiftNews struct {
	// Client reads NodePools, as plain trees, and EC2NodeClasses, and may do so from a cache.
	Client client.Reader
	Events Recorder
	// Leads says whether this replica leads: only one is to tell. Nil if it always does.
	Leads func() bool

	// told are the zones, by id, of which was told that they have been left.
	told map[string]bool
}

// tell tells what is new since the last time. What could not be told is told the next time. Whoever begins to lead
// tells of the shifts that are under way.
func (n *ShiftNews) tell(ctx context.Context, left map[string]bool) error {
	if n.Leads != nil && !n.Leads() {
		n.told = nil
		return nil
	}
	if maps.Equal(n.told, left) {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1.GroupVersion().WithKind("NodePoolList"))
	if err := n.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("telling NodePools of a zonal shift: listing them: %w", err)
	}
	for i := range list.Items {
		if err := n.tellPool(ctx, &list.Items[i], left); err != nil {
			return err
		}
	}
	n.told = left
	return nil
}

func (n *ShiftNews) tellPool(ctx context.Context, pool *unstructured.Unstructured, left map[string]bool) error {
	zones, err := n.zones(ctx, pool)
	if err != nil {
		return err
	}
	about := &corev1.ObjectReference{
		APIVersion: v1.GroupVersion().String(), Kind: "NodePool", Name: pool.GetName(), UID: pool.GetUID(),
	}
	for _, id := range slices.Sorted(maps.Keys(zones)) {
		switch {
		case left[id] && !n.told[id]:
			n.Events.Eventf(about, nil, corev1.EventTypeWarning, EventZonalShiftActive, "Shift",
				"A zonal shift has left zone %s (%s): no node is launched there until it ends", zones[id], id)
		case !left[id] && n.told[id]:
			n.Events.Eventf(about, nil, corev1.EventTypeNormal, EventZonalShiftCleared, "Shift",
				"The zonal shift from zone %s (%s) has ended: nodes are launched there again", zones[id], id)
		}
	}
	return nil
}

// zones are the zones that a NodePool may use, as far as its EC2NodeClass has subnets in them: id to name. Pools of
// other controllers, and those that can't be read, have none.
func (n *ShiftNews) zones(ctx context.Context, pool *unstructured.Unstructured) (map[string]string, error) {
	template, _, _ := unstructured.NestedMap(pool.Object, "spec", "template", "spec")
	var spec v1.NodeClaimTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &spec); err != nil {
		return nil, nil // its own condition says what is wrong with it
	}
	ref := spec.NodeClassRef
	if ref == nil || ref.Group != awsv1.Group || ref.Kind != awsv1.Kind {
		return nil, nil
	}
	class := &awsv1.EC2NodeClass{}
	err := n.Client.Get(ctx, client.ObjectKey{Name: ref.Name}, class)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("telling NodePool %s of a zonal shift: reading its EC2NodeClass %s: %w",
			pool.GetName(), ref.Name, err)
	}
	out := map[string]string{}
	for _, s := range class.Status.Subnets {
		if allowed(spec.Requirements, corev1.LabelTopologyZone, s.Zone) &&
			allowed(spec.Requirements, awsv1.ZoneIDLabelKey, s.ZoneID) {
			out[s.ZoneID] = s.Zone
		}
	}
	return out, nil
}

// allowed reports whether no requirement forbids a label's value.
func allowed(requirements []v1.NodeSelectorRequirementWithMinValues, key, value string) bool {
	return !slices.ContainsFunc(requirements, func(r v1.NodeSelectorRequirementWithMinValues) bool {
		return r.Key == key && !choose.Allows(&r, value, true)
	})
}
