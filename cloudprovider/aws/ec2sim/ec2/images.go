package ec2

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

func (s *Service) describeImages(_ *request, in *sdk.DescribeImagesInput) (*sdk.DescribeImagesOutput, *wire.Error) {
	if in.MaxResults != nil && len(in.ImageIds) > 0 {
		return nil, wire.Errorf("InvalidParameterCombination", "The parameter imageIdsSet cannot be used with the "+
			"parameter maxResults")
	}
	id := func(m *ec2types.Image) string { return aws.ToString(m.ImageId) }
	all, err := named(s.world.Images(), in.ImageIds, id, func(id string) *wire.Error {
		return wire.Errorf("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
	})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m ec2types.Image) bool { return !s.shows(&m, in) })
	all, err = filtered(all, in.Filters, func(m *ec2types.Image) []ec2types.Tag { return m.Tags }, imageAttribute)
	if err != nil {
		return nil, err
	}
	all, next, err := page(all, pages{1, 1000, 0}, in.MaxResults, in.NextToken, id)
	return &sdk.DescribeImagesOutput{Images: all, NextToken: next}, err
}

// shows says whether an image is for this caller to see: public or their own, of an owner that they ask for, and not
// deprecated unless it is theirs, they ask for it by id or for deprecated ones too.
func (s *Service) shows(m *ec2types.Image, in *sdk.DescribeImagesInput) bool {
	mine := aws.ToString(m.OwnerId) == s.world.Account()
	if !mine && !aws.ToBool(m.Public) {
		return false
	}
	if len(in.Owners) > 0 && !slices.ContainsFunc(in.Owners, func(o string) bool {
		return o == aws.ToString(m.OwnerId) || o == aws.ToString(m.ImageOwnerAlias) || o == "self" && mine
	}) {
		return false
	}
	if mine || len(in.ImageIds) > 0 || aws.ToBool(in.IncludeDeprecated) {
		return true
	}
	at, err := time.Parse(time.RFC3339, aws.ToString(m.DeprecationTime))
	return err != nil || s.world.Now().Before(at)
}

func imageAttribute(m *ec2types.Image, filter string) ([]string, bool) {
	switch filter {
	case "image-id":
		return str(m.ImageId), true
	case "name":
		return str(m.Name), true
	case "description":
		return str(m.Description), true
	case "owner-id":
		return str(m.OwnerId), true
	case "owner-alias":
		return str(m.ImageOwnerAlias), true
	case "architecture":
		return []string{string(m.Architecture)}, true
	case "state":
		return []string{string(m.State)}, true
	case "platform":
		return []string{string(m.Platform)}, true
	case "platform-details":
		return str(m.PlatformDetails), true
	case "creation-date":
		return str(m.CreationDate), true
	case "deprecation-time":
		return str(m.DeprecationTime), true
	case "is-public":
		return boolean(m.Public), true
	case "ena-support":
		return boolean(m.EnaSupport), true
	case "image-type":
		return []string{string(m.ImageType)}, true
	case "hypervisor":
		return []string{string(m.Hypervisor)}, true
	case "virtualization-type":
		return []string{string(m.VirtualizationType)}, true
	case "root-device-type":
		return []string{string(m.RootDeviceType)}, true
	case "root-device-name":
		return str(m.RootDeviceName), true
	}
	return nil, false
}
