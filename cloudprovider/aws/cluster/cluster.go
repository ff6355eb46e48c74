// Package cluster finds out what nodes must be told of the cluster in order to join it: where its API server is, whom
// to trust, the range of its services, the address of its DNS, and its version, by which images are chosen.
//
// It is an edge: it asks EKS and the Kubernetes API. What the user has set wins over what they say. Answers are kept
// for a while, and for as long as nothing better is to be had, so that a quiet hour of EKS keeps no node from coming.
package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
)

// API is what is asked of EKS.
type API interface {
	DescribeCluster(ctx context.Context, in *eks.DescribeClusterInput,
		opts ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
}

// Discovery tells the version of the API server; client-go's discovery client does.
type Discovery interface {
	ServerVersion() (*version.Info, error)
}

const (
	// keeps is how long an answer is used before it is asked for again; retry after how long a question is repeated
	// that was not answered.
	keeps = 5 * time.Minute
	retry = 15 * time.Second
	// eksLimit is how long EKS has to answer: where its endpoint is not to be reached, packets vanish. otherLimit is
	// for what may wait for EKS itself.
	eksLimit   = 5 * time.Second
	otherLimit = 2 * eksLimit
)

// Options are what a Finder works with.
type Options struct {
	EKS API
	// Name is the cluster's. Required.
	Name string
	// Endpoint and CABundle (in base64) are what the user has set; empty to find out.
	Endpoint, CABundle string
	// OwnCA is the certificate authority that the controller itself trusts, as PEM.
	OwnCA []byte
	// FromEKS takes the version of Kubernetes from EKS; otherwise from Discovery.
	FromEKS   bool
	Discovery Discovery
	// Services reads Services.
	Services client.Reader
	// Guard catches panics of questions that are asked in the background; may be nil.
	Guard *recovery.Guard
	// Now tells the time.
	Now func() time.Time
}

// Finder finds out about the cluster. It is safe for concurrent use.
type Finder struct {
	o       Options
	eks     *answer[*ekstypes.Cluster]
	dns     *answer[string]
	version *answer[string]
}

// New returns a Finder that has asked nothing yet.
func New(o Options) *Finder {
	f := &Finder{o: o}
	f.eks = newAnswer(o.Guard, o.Now, eksLimit, f.askEKS)
	f.dns = newAnswer(o.Guard, o.Now, otherLimit, f.askDNS)
	f.version = newAnswer(o.Guard, o.Now, otherLimit, f.askVersion)
	return f
}

// Cluster is what goes into the user data of nodes.
func (f *Finder) Cluster(ctx context.Context) (family.Cluster, error) {
	out := family.Cluster{Name: f.o.Name, Endpoint: f.o.Endpoint}
	ask := f.eks.get
	if out.Endpoint != "" {
		ask = f.eks.glance // EKS is not needed, so it keeps nobody waiting
	}
	described, err := ask(ctx)
	if err != nil && out.Endpoint == "" {
		return family.Cluster{}, fmt.Errorf("finding the endpoint of the cluster (--cluster-endpoint is not set): %w",
			err)
	}
	// Without EKS only the range of services is missing, which not every image needs: who needs it says so.
	if described != nil {
		if out.Endpoint == "" {
			out.Endpoint = text(described.Endpoint)
		}
		out.ServiceCIDR = serviceCIDR(described)
	}
	if out.CABundle, err = f.CABundle(ctx); err != nil {
		return family.Cluster{}, err
	}
	if out.DNS, err = f.dns.get(ctx); err != nil {
		return family.Cluster{}, err
	}
	return out, nil
}

// CABundle is the certificate authority of the API server in base64: the one set, the controller's own, or EKS's.
func (f *Finder) CABundle(ctx context.Context) (string, error) {
	if f.o.CABundle != "" {
		return f.o.CABundle, nil
	}
	if len(f.o.OwnCA) > 0 {
		return base64.StdEncoding.EncodeToString(f.o.OwnCA), nil
	}
	described, err := f.eks.get(ctx)
	if err != nil {
		return "", fmt.Errorf("finding the certificate authority of the cluster (--cluster-ca-bundle is not set): %w",
			err)
	}
	if described.CertificateAuthority == nil || text(described.CertificateAuthority.Data) == "" {
		return "", errors.New("EKS does not say what the cluster's certificate authority is; set --cluster-ca-bundle")
	}
	return *described.CertificateAuthority.Data, nil
}

// Version is the cluster's version of Kubernetes without its patch: 1.33.
func (f *Finder) Version(ctx context.Context) (string, error) { return f.version.get(ctx) }

func (f *Finder) askVersion(ctx context.Context) (string, error) {
	if f.o.FromEKS {
		described, err := f.eks.get(ctx)
		if err != nil {
			return "", fmt.Errorf("finding the version of the cluster: %w", err)
		}
		if text(described.Version) == "" {
			return "", errors.New("EKS does not say which version the cluster has; leave --eks-control-plane unset")
		}
		return *described.Version, nil
	}
	info, err := f.o.Discovery.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking the API server for its version: %w", err)
	}
	// Some providers write 33+ for a build of their own.
	return info.Major + "." + strings.TrimRight(info.Minor, "+"), nil
}

// VPC is the network of the cluster; empty while EKS does not say.
func (f *Finder) VPC(ctx context.Context) string {
	described, err := f.eks.get(ctx)
	if err != nil || described.ResourcesVpcConfig == nil {
		return ""
	}
	return text(described.ResourcesVpcConfig.VpcId)
}

// ARN is the name by which other services know the cluster.
func (f *Finder) ARN(ctx context.Context) (string, error) {
	described, err := f.eks.get(ctx)
	if err != nil {
		return "", err
	}
	return text(described.Arn), nil
}

func (f *Finder) askEKS(ctx context.Context) (*ekstypes.Cluster, error) {
	out, err := f.o.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &f.o.Name})
	if err != nil {
		return nil, fault.Explain(fmt.Sprintf("describing the cluster %q (--cluster-name)", f.o.Name), err)
	}
	if out.Cluster == nil {
		return nil, fmt.Errorf("describing the cluster %q (--cluster-name): EKS answered without a cluster", f.o.Name)
	}
	return out.Cluster, nil
}

// askDNS finds the address of the DNS service. A cluster without that service is fine: nodes then find it themselves.
func (f *Finder) askDNS(ctx context.Context) (string, error) {
	service := &corev1.Service{}
	err := f.o.Services.Get(ctx, types.NamespacedName{Namespace: "kube-system", Name: "kube-dns"}, service)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("finding the address of the cluster's DNS: %w", err)
	}
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		return "", nil
	}
	return service.Spec.ClusterIP, nil
}

func serviceCIDR(c *ekstypes.Cluster) string {
	n := c.KubernetesNetworkConfig
	if n == nil {
		return ""
	}
	if n.IpFamily == ekstypes.IpFamilyIpv6 {
		return text(n.ServiceIpv6Cidr)
	}
	return text(n.ServiceIpv4Cidr)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
