package template

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
	"github.com/tenon-sh/tenon/cloudprovider/aws/machine"
	"github.com/tenon-sh/tenon/cloudprovider/aws/offer"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// Variant is what the instances of one launch template have in common beyond their class and pool. Types with
// equal variants share a template.
type Variant struct {
	ImageID, ImageName string
	// MaxPods is how many pods the kubelet is told to run.
	MaxPods int64
	// KubeReserved and SystemReserved are what the kubelet is told to keep, as JSON, where that differs from type to
	// type.
	KubeReserved, SystemReserved string
	// EFAs is how many interfaces with the Elastic Fabric Adapter are attached.
	EFAs int64
	Spot bool
	// Reservation is the capacity reservation to launch into; Block says that it is a capacity block, Interruptible
	// that its owner may take it back.
	Reservation          string
	Block, Interruptible bool
	Tenancy              string
	// Partition of the placement group; empty if it has none.
	Partition string
	// NoIPv6Metadata says that EC2 in the region refuses to be told about IPv6 in the metadata service.
	NoIPv6Metadata bool
}

// VariantOf says what a candidate is launched from; false if no image of the class boots on it.
func VariantOf(class *awsv1.EC2NodeClass, claim *v1.NodeClaim, c *choose.Candidate) (Variant, bool) {
	ami, ok := image.For(class.Status.AMIs, c.Type.Labels)
	if !ok {
		return Variant{}, false
	}
	v := Variant{
		ImageID: ami.ID, ImageName: ami.Name, MaxPods: c.Type.Capacity.Pods().Value(),
		Spot: c.Ref().CapacityType == v1.CapacityTypeSpot, Reservation: c.Offering.ReservationID,
		Block: offer.IsBlock(c.Offering), Interruptible: offer.IsInterruptible(c.Offering),
		Tenancy:   c.Label(awsv1.InstanceTenancyLabelKey),
		Partition: partitionOf(claim, c),
		// The regions of the isolated partitions: us-iso-east-1, us-isob-east-1, us-isof-south-1 and so on.
		NoIPv6Metadata: strings.HasPrefix(c.Label(corev1.LabelTopologyRegion), "us-iso"),
	}
	if wanted, ok := claim.Spec.Resources.Requests[awsv1.ResourceEFA]; ok && !wanted.IsZero() {
		have := c.Type.Capacity[awsv1.ResourceEFA]
		v.EFAs = have.Value()
	}
	return v, true
}

// partitionOf picks the partition of a placement group: the first that the claim asks for, else any, the same again for
// the same claim.
func partitionOf(claim *v1.NodeClaim, c *choose.Candidate) string {
	all := c.Type.Labels[awsv1.PlacementGroupPartitionLabelKey]
	asked := slices.ContainsFunc(claim.Spec.Requirements, func(r v1.NodeSelectorRequirementWithMinValues) bool {
		return r.Key == awsv1.PlacementGroupPartitionLabelKey
	})
	if len(all) < 2 || asked {
		return c.Label(awsv1.PlacementGroupPartitionLabelKey)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(claim.UID))
	return all[int(h.Sum32()%uint32(len(all)))]
}

// SetReserved writes down what was computed for the type of the variant.
func (v *Variant) SetReserved(k machine.Kept) error {
	for _, part := range []struct {
		to   *string
		from map[string]string
	}{{&v.KubeReserved, k.KubeReserved}, {&v.SystemReserved, k.SystemReserved}} {
		if part.from == nil {
			continue
		}
		text, err := json.Marshal(part.from) // with sorted keys
		if err != nil {
			return fmt.Errorf("writing what is kept for the kubelet: %w", err)
		}
		*part.to = string(text)
	}
	return nil
}

// readReserved reads what keep wrote; nil if that is nothing.
func readReserved(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	out := map[string]string{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("reading what is kept for the kubelet: %w", err)
	}
	return out, nil
}
