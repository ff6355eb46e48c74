package cloud

import (
	"fmt"
	"maps"
)

// Network is what AddStarterNetwork made.
type Network struct {
	VPC, SecurityGroup string
	Private, Public    []string // subnets, one a zone
}

// AddStarterNetwork makes the network that Karpenter's getting-started guide ends with: a VPC with a private and a
// public subnet in each zone; the private ones and the nodes' security group carry the tag karpenter.sh/discovery with
// the cluster's name, as node classes select them.
func (w *World) AddStarterNetwork(cluster string) (Network, error) {
	discovery := map[string]string{"karpenter.sh/discovery": cluster}
	net := Network{VPC: w.AddVPC("10.0.0.0/16", map[string]string{"Name": cluster + "/VPC"})}
	for i, zone := range w.cfg.Zones {
		tags := map[string]string{"Name": cluster + "/private-" + zone.Name, "kubernetes.io/role/internal-elb": "1"}
		maps.Copy(tags, discovery)
		id, err := w.AddSubnet(SubnetSpec{VPC: net.VPC, Zone: zone.Name, CIDR: fmt.Sprintf("10.0.%d.0/19", 32*i),
			Tags: tags})
		if err != nil {
			return net, err
		}
		net.Private = append(net.Private, id)
		id, err = w.AddSubnet(SubnetSpec{VPC: net.VPC, Zone: zone.Name, CIDR: fmt.Sprintf("10.0.%d.0/24", 192+i),
			Public: true,
			Tags:   map[string]string{"Name": cluster + "/public-" + zone.Name, "kubernetes.io/role/elb": "1"}})
		if err != nil {
			return net, err
		}
		net.Public = append(net.Public, id)
	}
	tags := map[string]string{"Name": "eks-cluster-sg-" + cluster, "kubernetes.io/cluster/" + cluster: "owned"}
	maps.Copy(tags, discovery)
	id, err := w.AddSecurityGroup(net.VPC, "eks-cluster-sg-"+cluster, tags)
	net.SecurityGroup = id
	return net, err
}
