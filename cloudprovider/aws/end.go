package aws

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// endTries is how often an instance is asked to end that one part of EC2 knows and another does not yet, or no longer.
// That it is gone is only believed if it is not described any more.
const endTries = 5

// Delete implements cloudprovider.Provider. Whose the instance is, is asked of EC2 each time.
func (p *Provider) Delete(ctx context.Context, providerID string, owner cloudprovider.Owner) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	id, err := ownership.InstanceID(providerID)
	if err != nil {
		return &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	i, unseen, err := p.instances.FindInstance(ctx, id, providerID)
	if err != nil {
		return err
	}
	if err := p.mayEnd(ctx, i, unseen, providerID, owner); err != nil {
		return err
	}
	if i != nil && i.State.Name == ec2types.InstanceStateNameShuttingDown {
		return nil
	}
	for try := 1; ; try++ {
		_, err := p.terminator.Ask(ctx, p.instances.ShiftedZone(i), id)
		switch {
		case err == nil:
			p.register.NoteEnding(id, p.o.Now())
			return nil
		case fault.IsNotFound(err) && try < endTries && ctx.Err() == nil:
			p.o.Wait(ctx, ownership.ScanAgainAfter) // it is so new that EC2 does not know it everywhere
			continue
		}
		zone, zoneID := "", ""
		if i != nil && i.Placement != nil {
			zone, zoneID = aws.ToString(i.Placement.AvailabilityZone), aws.ToString(i.Placement.AvailabilityZoneId)
		}
		p.o.Metrics.NoteNotEnded(zone, zoneID)
		return err
	}
}

// mayEnd is nil if the instance is this cluster's and the owner's. EC2 may not show it yet (i is nil) if this process
// has just launched it.
func (p *Provider) mayEnd(ctx context.Context, i *ec2types.Instance, unseen *ownership.Assignment, providerID string,
	owner cloudprovider.Owner) error {
	have := cloudprovider.Owner{}
	switch {
	case i == nil:
		have = unseen.CloudOwner()
	case p.instances.IsForeign(i):
		return &cloudprovider.NotOwnedError{ProviderID: providerID, Want: owner, Cluster: "the cluster with identity " +
			ownership.TagOf(i, ownership.IdentityTagKey)}
	case ownership.TagOf(i, awsv1.ClusterTagPrefix+p.o.ClusterName) != "owned" || !slices.ContainsFunc(i.Tags,
		func(t ec2types.Tag) bool { return aws.ToString(t.Key) == awsv1.NodePoolTagKey }):
		return &cloudprovider.NotOwnedError{ProviderID: providerID, Want: owner, Cluster: "somebody who has not " +
			"tagged it as a node of cluster " + p.o.ClusterName}
	default:
		var err error
		if have, err = p.instances.OwnerOf(ctx, i); err != nil {
			return err
		}
	}
	if !owner.Of(have.ClaimUID) {
		return &cloudprovider.NotOwnedError{ProviderID: providerID, Want: owner, Owner: have}
	}
	return nil
}
