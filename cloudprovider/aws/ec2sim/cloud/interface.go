package cloud

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// checkInterfaces holds the network interfaces against what the type can carry, and wants a primary one.
func checkInterfaces(p *place) *wire.Error {
	specs, info := p.request.NetworkInterfaces, p.info.NetworkInfo
	seen := map[[2]int32]bool{}
	for i := range specs {
		n := &specs[i]
		at := [2]int32{aws.ToInt32(n.NetworkCardIndex), aws.ToInt32(n.DeviceIndex)}
		if seen[at] {
			return wire.Errorf("InvalidParameterValue", "Each network interface must have its own device index: %d "+
				"on card %d is there twice.", at[1], at[0])
		}
		if err := checkInterface(p, n); err != nil {
			return err
		}
		seen[at] = aws.ToString(n.InterfaceType) != "efa-only" || at != [2]int32{}
	}
	if len(specs) > 0 && !seen[[2]int32{}] {
		return wire.Errorf("InvalidParameterCombination", "The request must have a primary network interface with an "+
			"address: device index 0 on network card 0.")
	}
	if info != nil && info.MaximumNetworkInterfaces != nil && len(specs) > int(*info.MaximumNetworkInterfaces) {
		return wire.Errorf("AttachmentLimitExceeded", "Interface count %d exceeds the limit for %s", len(specs),
			p.info.InstanceType)
	}
	if most := mostEFAs(p); most >= 0 && efas(specs) > most {
		return wire.Errorf("AttachmentLimitExceeded", "EFA interface count %d exceeds the limit of %d for %s",
			efas(specs), most, p.info.InstanceType)
	}
	return nil
}

// checkInterface holds one network interface against the type and against its company.
func checkInterface(p *place, n *ec2types.InstanceNetworkInterfaceSpecification) *wire.Error {
	info, card := p.info.NetworkInfo, aws.ToInt32(n.NetworkCardIndex)
	switch {
	case isEFA(n) && (info == nil || !aws.ToBool(info.EfaSupported)):
		return wire.Errorf("InvalidParameterCombination", "The instance type %s does not support EFA interfaces.",
			p.info.InstanceType)
	case info != nil && info.MaximumNetworkCards != nil && card >= *info.MaximumNetworkCards:
		return wire.Errorf("InvalidParameterValue", "The network card index %d is invalid: %s has %d network cards.",
			card, p.info.InstanceType, *info.MaximumNetworkCards)
	case n.AssociatePublicIpAddress != nil && len(p.request.NetworkInterfaces) > 1:
		return wire.Errorf("InvalidParameterCombination", "The associatePublicIPAddress parameter cannot be "+
			"specified when launching with multiple network interfaces.")
	}
	return nil
}

func isEFA(n *ec2types.InstanceNetworkInterfaceSpecification) bool {
	return strings.HasPrefix(aws.ToString(n.InterfaceType), "efa")
}

func efas(specs []ec2types.InstanceNetworkInterfaceSpecification) int {
	count := 0
	for i := range specs {
		if isEFA(&specs[i]) {
			count++
		}
	}
	return count
}

// mostEFAs is how many interfaces with the fabric adapter the type can carry; -1 if that is not known.
func mostEFAs(p *place) int {
	if info := p.info.NetworkInfo; info != nil && info.EfaInfo != nil && info.EfaInfo.MaximumEfaInterfaces != nil {
		return int(*info.EfaInfo.MaximumEfaInterfaces)
	}
	return -1
}
