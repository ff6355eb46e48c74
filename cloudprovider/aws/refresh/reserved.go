package refresh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
)

// InstancesAPI is what is asked of EC2 about instances.
type InstancesAPI interface {
	DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput,
		opts ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
}

const (
	// lookAtReserved is how often nodes in capacity reservations are looked at.
	lookAtReserved = time.Minute
	reservedLimit  = 30 * time.Second
	// mostInFilter is how many values EC2 takes in one filter.
	mostInFilter = 200
)

// Reserved looks at nodes that were bought from capacity reservations. When a reservation ends, its instances run on,
// on demand: their claims and nodes are told so by their labels. When a capacity block is about to end, its instances
// are taken away: their claims are told so by an annotation (blocks.go). It runs on the leader.
type Reserved struct {
	// Client reads NodeClaims, as plain trees, and writes labels of NodeClaims and Nodes.
	Client client.Client
	EC2    InstancesAPI
	// Reservations is asked when capacity blocks end; nil if nobody is.
	Reservations ReservationFinder
	// Now is the time that ends are compared with; time.Now if it is nil.
	Now func() time.Time
	// Guard catches panics; nil to tell nobody of them.
	Guard *recovery.Guard
	// After tells when a time has passed; time.After if it is nil.
	After func(time.Duration) <-chan time.Time
}

// NeedLeaderElection makes a manager run it on the leader only.
func (r *Reserved) NeedLeaderElection() bool { return true }

// Start looks until the context ends.
func (r *Reserved) Start(ctx context.Context) error {
	after := r.After
	if after == nil {
		after = time.After
	}
	r.Guard.Keep(ctx, "looking at nodes in capacity reservations", after, func(ctx context.Context) {
		r.keep(ctx, after)
	})
	return nil
}

func (r *Reserved) keep(ctx context.Context, after func(time.Duration) <-chan time.Time) {
	for {
		if err := r.Look(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "it is not known whether nodes have lost their capacity reservations; it "+
				"will be tried again")
		}
		select {
		case <-ctx.Done():
			return
		case <-after(lookAtReserved):
		}
	}
}

// Look corrects the labels of nodes that have lost their reservation, and announces the end of capacity blocks.
func (r *Reserved) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reservedLimit)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1.GroupVersion().WithKind("NodeClaimList"))
	if err := r.Client.List(ctx, list, client.MatchingLabels{
		v1.CapacityTypeLabelKey: v1.CapacityTypeReserved,
	}); err != nil {
		return fmt.Errorf("listing NodeClaims in capacity reservations: %w", err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(c unstructured.Unstructured) bool { return !aws.IsOurs(&c) })
	byID := map[string]*unstructured.Unstructured{}
	var ids []string
	for i := range list.Items {
		providerID, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "providerID")
		if id := providerID[strings.LastIndex(providerID, "/")+1:]; strings.HasPrefix(id, "i-") {
			byID[id], ids = &list.Items[i], append(ids, id)
		}
	}
	failures := []error{r.endBlocks(ctx, list.Items)}
	for some := range slices.Chunk(ids, mostInFilter) {
		without, err := r.withoutReservation(ctx, some)
		failures = append(failures, err)
		for _, id := range without {
			failures = append(failures, r.relabel(ctx, byID[id]))
		}
	}
	return errors.Join(failures...)
}

// withoutReservation tells which of the instances run outside of any reservation.
func (r *Reserved) withoutReservation(ctx context.Context, ids []string) ([]string, error) {
	var out []string
	pages := ec2.NewDescribeInstancesPaginator(r.EC2, &ec2.DescribeInstancesInput{Filters: []ec2types.Filter{
		{Name: new("instance-id"), Values: ids}, {Name: new("instance-state-name"),
			Values: []string{string(ec2types.InstanceStateNameRunning)}},
	}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return out, fault.Explain("looking at instances in capacity reservations", err)
		}
		for _, group := range page.Reservations {
			for _, i := range group.Instances {
				if i.InstanceId != nil && (i.CapacityReservationId == nil || *i.CapacityReservationId == "") {
					out = append(out, *i.InstanceId)
				}
			}
		}
	}
	return out, nil
}

// relabel says on a claim and its node that they are on demand. The claim comes last: as long as it says otherwise it
// is looked at again.
func (r *Reserved) relabel(ctx context.Context, claim *unstructured.Unstructured) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{
		v1.CapacityTypeLabelKey: v1.CapacityTypeOnDemand, awsv1.CapacityReservationIDLabelKey: nil,
		awsv1.CapacityReservationTypeLabelKey: nil, awsv1.CapacityReservationInterruptibleLabelKey: nil,
	}}})
	if err != nil {
		return fmt.Errorf("writing labels: %w", err)
	}
	patch := client.RawPatch(types.MergePatchType, data)
	if name, _, _ := unstructured.NestedString(claim.Object, "status", "nodeName"); name != "" {
		node := &corev1.Node{}
		node.Name = name
		if err := client.IgnoreNotFound(r.Client.Patch(ctx, node, patch)); err != nil {
			return fmt.Errorf("saying on node %s that its capacity reservation is gone: %w", name, err)
		}
	}
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, claim, patch)); err != nil {
		return fmt.Errorf("saying on NodeClaim %s that its capacity reservation is gone: %w", claim.GetName(), err)
	}
	return nil
}
