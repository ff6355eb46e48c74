// Package eks is the part of the simulated cloud that knows Kubernetes clusters. It describes them; they themselves are
// somewhere else (in a lab) or nowhere.
package eks

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/protocol"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Cluster is a cluster.
type Cluster struct {
	Name     string
	Version  string // 1.33
	Endpoint string
	CABundle string // base64
	// ServiceCIDR is the block of service addresses; of IPv6 if it has a colon.
	ServiceCIDR   string
	VPC           string
	Subnets       []string
	SecurityGroup string
	RoleARN       string
	ZonalShift    bool // whether zonal shifts may touch it
	Created       time.Time
	Tags          map[string]string
}

// Service describes clusters. It is a wire.Service.
type Service struct {
	protocol.REST
	region, account string

	mu       sync.Mutex
	clusters map[string]Cluster
}

// New makes a service without clusters.
func New(region, account string) *Service {
	s := &Service{region: region, account: account, clusters: map[string]Cluster{}}
	s.REST = protocol.REST{Service: "eks", Routes: []protocol.Route{
		{Method: http.MethodGet, Path: "/clusters/{name}", Action: "DescribeCluster", Do: s.describe},
	}}
	return s
}

// Put adds or replaces a cluster.
func (s *Service) Put(c Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusters[c.Name] = c
}

// Cluster finds a cluster.
func (s *Service) Cluster(name string) (Cluster, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.clusters[name]
	return c, ok
}

// ARN is the cluster's resource name.
func (s *Service) ARN(name string) string {
	return fmt.Sprintf("arn:aws:eks:%s:%s:cluster/%s", s.region, s.account, name)
}

type describeOut struct {
	Cluster clusterOut `json:"cluster"`
}

type clusterOut struct {
	Name            string            `json:"name"`
	ARN             string            `json:"arn"`
	CreatedAt       protocol.Time     `json:"createdAt"`
	Version         string            `json:"version"`
	Endpoint        string            `json:"endpoint"`
	RoleARN         string            `json:"roleArn"`
	VPC             vpcOut            `json:"resourcesVpcConfig"`
	Network         networkOut        `json:"kubernetesNetworkConfig"`
	Identity        identityOut       `json:"identity"`
	Status          string            `json:"status"`
	CA              caOut             `json:"certificateAuthority"`
	PlatformVersion string            `json:"platformVersion"`
	Tags            map[string]string `json:"tags"`
	ZonalShift      enabledOut        `json:"zonalShiftConfig"`
}

type vpcOut struct {
	Subnets        []string `json:"subnetIds"`
	SecurityGroups []string `json:"securityGroupIds"`
	ClusterGroup   string   `json:"clusterSecurityGroupId"`
	VPC            string   `json:"vpcId"`
	Public         bool     `json:"endpointPublicAccess"`
	Private        bool     `json:"endpointPrivateAccess"`
}

type networkOut struct {
	IPv4   string `json:"serviceIpv4Cidr,omitempty"`
	IPv6   string `json:"serviceIpv6Cidr,omitempty"`
	Family string `json:"ipFamily"`
}

type identityOut struct {
	OIDC struct {
		Issuer string `json:"issuer"`
	} `json:"oidc"`
}

type caOut struct {
	Data string `json:"data"`
}

type enabledOut struct {
	Enabled bool `json:"enabled"`
}

func (s *Service) describe(_ *wire.Call, path map[string]string, _ url.Values) (any, *wire.Error) {
	c, ok := s.Cluster(path["name"])
	if !ok {
		return nil, &wire.Error{Code: "ResourceNotFoundException", Status: http.StatusNotFound,
			Message: fmt.Sprintf("No cluster found for name: %s.", path["name"])}
	}
	out := clusterOut{
		Name: c.Name, ARN: s.ARN(c.Name), CreatedAt: protocol.Time(c.Created), Version: c.Version, Endpoint: c.Endpoint,
		RoleARN: c.RoleARN, Status: "ACTIVE", CA: caOut{Data: c.CABundle}, PlatformVersion: "eks.1", Tags: c.Tags,
		VPC: vpcOut{Subnets: c.Subnets, SecurityGroups: []string{}, ClusterGroup: c.SecurityGroup, VPC: c.VPC,
			Public: true},
		ZonalShift: enabledOut{Enabled: c.ZonalShift}, Network: networkOut{IPv4: c.ServiceCIDR, Family: "ipv4"},
	}
	if strings.Contains(c.ServiceCIDR, ":") {
		out.Network = networkOut{IPv6: c.ServiceCIDR, Family: "ipv6"}
	}
	out.Identity.OIDC.Issuer = fmt.Sprintf("https://oidc.eks.%s.amazonaws.com/id/%s", s.region, c.Name)
	return describeOut{Cluster: out}, nil
}
