package refresh_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
	"github.com/tenon-sh/tenon/cloudprovider/aws/refresh"
)

// blocks are reservations that can be found by their ids.
type blocks []network.Reservation

func (b blocks) ReservationsByID(_ context.Context, ids []string) ([]network.Reservation, error) {
	return slices.DeleteFunc(slices.Clone(b), func(r network.Reservation) bool {
		return !slices.Contains(ids, r.ID)
	}), nil
}

// TestEndingBlock: 40 minutes before the end of a capacity block its nodes have to go; EC2 ends them ten minutes later.
func TestEndingBlock(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const written = "ReservationInterruption 2026-03-01T12:10:00Z"
	for name, tc := range map[string]struct {
		kind          awsv1.CapacityReservationType
		left          time.Duration
		before, after string
	}{
		"40 minutes before its end": {awsv1.CapacityReservationTypeCapacityBlock, 40 * time.Minute, "", written},
		"a minute earlier":          {awsv1.CapacityReservationTypeCapacityBlock, 41 * time.Minute, "", ""},
		"an ordinary reservation":   {awsv1.CapacityReservationTypeDefault, 40 * time.Minute, "", ""},
		"something more urgent": {awsv1.CapacityReservationTypeCapacityBlock, 40 * time.Minute,
			"InstanceStatus force", "InstanceStatus force"},
		"the same again": {awsv1.CapacityReservationTypeCapacityBlock, 40 * time.Minute, written, written},
	} {
		t.Run(name, func(t *testing.T) {
			s := newNodeScene(t, func(n *corev1.Node, c *v1.NodeClaim) {
				c.Labels = map[string]string{
					v1.CapacityTypeLabelKey: v1.CapacityTypeReserved, awsv1.CapacityReservationIDLabelKey: "cr-1",
					awsv1.CapacityReservationTypeLabelKey: string(tc.kind),
				}
				if tc.before != "" {
					c.Annotations = map[string]string{cloudprovider.InterruptionAnnotation: tc.before}
				}
				c.Status.ProviderID, c.Status.NodeName = n.Spec.ProviderID, n.Name
			})
			r := &refresh.Reserved{
				Client: s.kube, EC2: machines{"i-1": "cr-1"}, Now: func() time.Time { return now },
				Reservations: blocks{{ID: "cr-1", Type: tc.kind, End: now.Add(tc.left)}, {ID: "cr-2", Type: tc.kind,
					End: now}},
			}
			if err := r.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			claim := &v1.NodeClaim{}
			if err := s.kube.Get(t.Context(), client.ObjectKey{Name: "general-1"}, claim); err != nil {
				t.Fatal(err)
			}
			if got := claim.Annotations[cloudprovider.InterruptionAnnotation]; got != tc.after {
				t.Errorf("the claim says %q, want %q", got, tc.after)
			}
		})
	}
}
