package aws

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

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
	id, err := instanceID(providerID)
	if err != nil {
		return &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	i, unseen, err := p.findInstance(ctx, id, providerID)
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
		_, err := p.terminator.Ask(ctx, p.shiftedZone(i), id)
		switch {
		case err == nil:
			p.ownership.noteEnding(id, p.now())
			return nil
		case fault.IsNotFound(err) && try < endTries && ctx.Err() == nil:
			p.pause(ctx, scanAgainAfter) // it is so new that EC2 does not know it everywhere
			continue
		}
		zone, zoneID := "", ""
		if i != nil && i.Placement != nil {
			zone, zoneID = aws.ToString(i.Placement.AvailabilityZone), aws.ToString(i.Placement.AvailabilityZoneId)
		}
		p.metrics.NoteNotEnded(zone, zoneID)
		return err
	}
}

// mayEnd is nil if the instance is this cluster's and the owner's. EC2 may not show it yet (i is nil) if this process
// has just launched it.
func (p *Provider) mayEnd(ctx context.Context, i *ec2types.Instance, unseen *assignment, providerID string,
	owner cloudprovider.Owner) error {
	have := cloudprovider.Owner{}
	switch {
	case i == nil:
		have = unseen.cloudOwner()
	case p.isForeign(i):
		return &cloudprovider.NotOwnedError{ProviderID: providerID, Want: owner, Cluster: "the cluster with identity " +
			tagOf(i, IdentityTagKey)}
	case tagOf(i, awsv1.ClusterTagPrefix+p.clusterName) != "owned" || !hasTag(i, awsv1.NodePoolTagKey):
		return &cloudprovider.NotOwnedError{ProviderID: providerID, Want: owner, Cluster: "somebody who has not " +
			"tagged it as a node of cluster " + p.clusterName}
	default:
		var err error
		if have, err = p.ownerOf(ctx, i); err != nil {
			return err
		}
	}
	if !owner.Of(have.ClaimUID) {
		return &cloudprovider.NotOwnedError{ProviderID: providerID, Want: owner, Owner: have}
	}
	return nil
}

// ownerOf is whose the instance is. That may only show in the company of those that it was launched with.
func (p *Provider) ownerOf(ctx context.Context, i *ec2types.Instance) (cloudprovider.Owner, error) {
	a := p.ownership.assignmentOf(*i.InstanceId)
	if a == nil || a.uid == "" {
		if _, err := p.scan(ctx); err != nil {
			return cloudprovider.Owner{}, err
		}
		a = p.ownership.assignmentOf(*i.InstanceId)
	}
	if a == nil || a.uid == "" {
		return cloudprovider.Owner{ClaimName: claimName(i)}, nil
	}
	return a.cloudOwner(), nil
}

func (a *assignment) cloudOwner() cloudprovider.Owner {
	return cloudprovider.Owner{ClaimName: a.claim, ClaimUID: string(a.uid)}
}

// isForeign tells whether the instance is that of a cluster with the same name. One without an identity was launched by
// Karpenter, or by Tenon before it wrote one: it may be ours.
func (p *Provider) isForeign(i *ec2types.Instance) bool {
	tag := tagOf(i, IdentityTagKey)
	return p.identity != "" && tag != "" && tag != p.identity
}

func hasTag(i *ec2types.Instance, key string) bool {
	_, has := tagsOf(i)[key]
	return has
}
