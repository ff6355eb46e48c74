package refresh_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/refresh"
)

// machines are instances by id, each with the reservation that it runs in.
type machines map[string]string

func (m machines) DescribeInstances(_ context.Context, in *ec2.DescribeInstancesInput,
	_ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	var list []ec2types.Instance
	for _, id := range in.Filters[0].Values {
		reservation, ok := m[id]
		if !ok {
			continue
		}
		i := ec2types.Instance{InstanceId: new(id)}
		if reservation != "" {
			i.CapacityReservationId = new(reservation)
		}
		list = append(list, i)
	}
	return &ec2.DescribeInstancesOutput{Reservations: []ec2types.Reservation{{Instances: list}}}, nil
}

// TestEndedReservation looks at a node whose reservation has ended, at one whose has not, and at one that EC2 does not
// show.
func TestEndedReservation(t *testing.T) {
	for name, tc := range map[string]struct {
		there machines
		group string
		want  string
	}{
		"it has ended":    {machines{"i-1": ""}, awsv1.Group, v1.CapacityTypeOnDemand},
		"it is another's": {machines{"i-1": ""}, "eks.amazonaws.com", v1.CapacityTypeReserved},
		"it goes on":      {machines{"i-1": "cr-1"}, awsv1.Group, v1.CapacityTypeReserved},
		"it is not shown": {machines{}, awsv1.Group, v1.CapacityTypeReserved},
	} {
		t.Run(name, func(t *testing.T) {
			labels := func() map[string]string {
				return map[string]string{v1.CapacityTypeLabelKey: v1.CapacityTypeReserved,
					awsv1.CapacityReservationIDLabelKey: "cr-1", "team": "a"}
			}
			s := newNodeScene(t, func(n *corev1.Node, c *v1.NodeClaim) {
				n.Labels, c.Labels = labels(), labels()
				c.Status.ProviderID, c.Status.NodeName = n.Spec.ProviderID, n.Name
				c.Spec.NodeClassRef.Group = tc.group
			})
			if err := (&refresh.Reserved{Client: s.kube, EC2: tc.there}).Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			claim, node := &v1.NodeClaim{}, &corev1.Node{}
			for name, o := range map[string]client.Object{"general-1": claim, "ip-10-0-0-4": node} {
				if err := s.kube.Get(t.Context(), client.ObjectKey{Name: name}, o); err != nil {
					t.Fatal(err)
				}
				_, in := o.GetLabels()[awsv1.CapacityReservationIDLabelKey]
				if got := o.GetLabels(); got[v1.CapacityTypeLabelKey] != tc.want ||
					in != (tc.want == v1.CapacityTypeReserved) || got["team"] != "a" {
					t.Errorf("%s has the labels %v", name, got)
				}
			}
		})
	}
}
