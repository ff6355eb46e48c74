package aws

import (
	"hash/fnv"
	"slices"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// mold is what the instances of one launch template have in common beyond their class and pool. Types with equal molds
// share a template.
type mold struct {
	ImageID, ImageName string
	// MaxPods is how many pods the kubelet is told to run.
	MaxPods int64
	// EFAs is how many interfaces with the Elastic Fabric Adapter are attached.
	EFAs int64
	Spot bool
	// Reservation is the capacity reservation to launch into; Block says that it is a capacity block.
	Reservation string
	Block       bool
	Tenancy     string
	// Partition of the placement group; empty if it has none.
	Partition string
}

// moldOf says what a candidate is launched from; false if no image of the class boots on it.
func moldOf(class *awsv1.EC2NodeClass, claim *v1.NodeClaim, c *choose.Candidate) (mold, bool) {
	ami, ok := image.For(class.Status.AMIs, c.Type.Labels)
	if !ok {
		return mold{}, false
	}
	labels := c.Labels()
	m := mold{
		ImageID: ami.ID, ImageName: ami.Name, MaxPods: c.Type.Capacity.Pods().Value(),
		Spot: capacityTypeOf(c) == v1.CapacityTypeSpot, Reservation: c.Offering.ReservationID,
		Block:     c.Offering.Labels[awsv1.CapacityReservationTypeLabelKey] == string(awsv1.CapacityReservationTypeCapacityBlock),
		Tenancy:   labels[awsv1.InstanceTenancyLabelKey],
		Partition: partitionOf(claim, c, labels),
	}
	if wanted, ok := claim.Spec.Resources.Requests[awsv1.ResourceEFA]; ok && !wanted.IsZero() {
		have := c.Type.Capacity[awsv1.ResourceEFA]
		m.EFAs = have.Value()
	}
	return m, true
}

// partitionOf picks the partition of a placement group: the first that the claim asks for, else any, the same again for
// the same claim.
func partitionOf(claim *v1.NodeClaim, c *choose.Candidate, labels map[string]string) string {
	all := c.Type.Labels[awsv1.PlacementGroupPartitionLabelKey]
	asked := slices.ContainsFunc(claim.Spec.Requirements, func(r v1.NodeSelectorRequirementWithMinValues) bool {
		return r.Key == awsv1.PlacementGroupPartitionLabelKey
	})
	if len(all) < 2 || asked {
		return labels[awsv1.PlacementGroupPartitionLabelKey]
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(claim.UID))
	return all[int(h.Sum32()%uint32(len(all)))]
}
