package family

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// ErrNoServiceCIDR says that a family's user data needs the cluster's service CIDR and that it is not known yet.
var ErrNoServiceCIDR = errors.New("the cluster's service CIDR is not known; allow eks:DescribeCluster to the " +
	"controller's role, or wait until the EKS API answers")

// Cluster is what nodes need to know to join.
type Cluster struct {
	Name string
	// Endpoint is the API server's URL, CABundle its certificate authority in base64.
	Endpoint, CABundle string
	// ServiceCIDR and DNS are the services' range and the address of the cluster's DNS. Either may be empty while
	// unknown.
	ServiceCIDR, DNS string
}

// IPv6 tells whether nodes of the cluster need an IPv6 address of their own.
func (c Cluster) IPv6() bool {
	if prefix, err := netip.ParsePrefix(c.ServiceCIDR); err == nil {
		return prefix.Addr().Is6()
	}
	addr, err := netip.ParseAddr(c.DNS)
	return err == nil && addr.Is6()
}

// Node is what user data is made from: the cluster to join and the node to be.
type Node struct {
	Cluster

	// MaxPods is how many pods the node will run; 0 leaves it to the image.
	MaxPods int64
	// Kubelet is the class's spec.kubelet. MaxPods, and KubeReserved and SystemReserved if they are set, take the place
	// of what it says there, which may be an expression.
	Kubelet        awsv1.KubeletConfiguration
	KubeReserved   map[string]string
	SystemReserved map[string]string

	// Labels are the node's. Those that a kubelet may not give itself are left out; they are set at registration.
	Labels map[string]string
	// Taints are the node's, startup taints included. karpenter.sh/unregistered is added to them.
	Taints []corev1.Taint
	// RAID0 joins the disks of the instance.
	RAID0 bool

	// UserData is the class's spec.userData.
	UserData string
	// ImageName is the name of the image that boots; it tells Bottlerocket's version.
	ImageName string
}

// UserData is the text that the node is given when it boots: the class's own user data merged with what the node needs
// to join. The same node always gets the same bytes.
func (f Family) UserData(n Node) (string, error) {
	if f.name == awsv1.AMIFamilyCustom {
		return f.render(n)
	}
	if unknown := f.Unsupported(n.Kubelet); len(unknown) > 0 {
		return "", fmt.Errorf("spec.kubelet.%s can't be set on nodes of amiFamily %s; remove it, put it into "+
			"spec.userData, or use AL2023", unknown[0], f.name)
	}
	if f.flags.ServiceCIDR && n.ServiceCIDR == "" {
		return "", ErrNoServiceCIDR
	}
	out, err := f.render(n)
	if err != nil {
		return "", fmt.Errorf("write the user data of amiFamily %s: %w", f.name, err)
	}
	return out, nil
}

// labels are the ones that the kubelet sets when it registers. It refuses to start with most labels of Kubernetes' own
// domains, so none of them is handed to it. All taints are in the user data, too, so the label that keeps registration
// from writing them is always among the labels: an agent may have removed a startup taint by then, and it would come
// back for good. Custom has user data of its own, which may not know the taints; there the label is the class's to set.
func (n Node) labels() map[string]string {
	out := map[string]string{v1.NodeDoNotSyncTaintsLabelKey: "true"}
	for key, value := range n.Labels {
		if !reserved(key) && key != v1.NodeDoNotSyncTaintsLabelKey {
			out[key] = value
		}
	}
	return out
}

func reserved(label string) bool {
	domain, _, ok := strings.Cut(label, "/")
	if !ok {
		return false
	}
	for _, theirs := range []string{"kubernetes.io", "k8s.io"} {
		if domain == theirs || strings.HasSuffix(domain, "."+theirs) {
			return true
		}
	}
	return false
}

// labelList is the value of the kubelet's --node-labels.
func (n Node) labelList() string {
	labels := n.labels()
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, key+"="+labels[key])
	}
	return strings.Join(out, ",")
}

// taints are the node's, in a fixed order, each once, and the one that keeps pods off until the node is known.
func (n Node) taints() []corev1.Taint {
	out := []corev1.Taint{v1.UnregisteredNoExecuteTaint()}
	for _, t := range n.Taints {
		same := func(other corev1.Taint) bool { return other.Key == t.Key && other.Effect == t.Effect }
		if !slices.ContainsFunc(out, same) {
			out = append(out, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	slices.SortFunc(out, func(a, b corev1.Taint) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(string(a.Effect), string(b.Effect)))
	})
	return out
}

// taintList is the value of the kubelet's --register-with-taints.
func taintList(taints []corev1.Taint) string {
	var out []string
	for i := range taints {
		out = append(out, taints[i].ToString())
	}
	return strings.Join(out, ",")
}

// dns are the addresses of the cluster's DNS: the class's, else the cluster's own, else none.
func (n Node) dns(s settings) []string {
	if len(s.ClusterDNS) > 0 {
		return s.ClusterDNS
	}
	if n.DNS != "" {
		return []string{n.DNS}
	}
	return nil
}

// ipv6 tells whether pods and services of the cluster have IPv6 addresses.
func (n Node) ipv6(dns []string) bool {
	c := Cluster{ServiceCIDR: n.ServiceCIDR}
	if len(dns) > 0 {
		c.DNS = dns[0]
	}
	return c.IPv6()
}
