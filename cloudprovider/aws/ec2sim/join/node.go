package join

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// simulated on a Node makes the lab play its kubelet.
	simulated, simulatedValue = "kwok.x-k8s.io/node", "fake"
	zoneIDLabel               = "topology.k8s.aws/zone-id"
	// volumeLimit tells the lab, which plays EBS's driver, how many volumes the driver would find room for.
	volumeLimit = "lab.tenon.sh/volume-limit"
)

// node is the Node that the machine's kubelet registers, with what a cloud controller manager adds. Like every kubelet
// it says first that it is not ready: of a node that says nothing Kubernetes thinks well and takes its taints away.
func (m machine) node(region, windowsBuild, kubelet string, now time.Time) (*corev1.Node, error) {
	capacity := m.capacity()
	allocatable, err := m.allocatable(capacity)
	if err != nil {
		return nil, err
	}
	stamp := metav1.NewTime(now)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.instance.PrivateDNS, Labels: m.labels(region, windowsBuild),
			Annotations: map[string]string{simulated: simulatedValue, volumeLimit: strconv.Itoa(m.volumesLeft())},
		},
		Spec: corev1.NodeSpec{ProviderID: providerID(m.instance.Zone, m.instance.ID), Taints: m.settings.Taints},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: allocatable,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: m.instance.PrivateIP},
				{Type: corev1.NodeInternalDNS, Address: m.instance.PrivateDNS},
				{Type: corev1.NodeHostName, Address: m.instance.PrivateDNS},
			},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: m.instance.ID, SystemUUID: m.instance.ID, BootID: m.instance.ID, OperatingSystem: m.os(),
				Architecture: m.arch(),
				OSImage:      string(m.image), KernelVersion: "simulated",
				ContainerRuntimeVersion: "containerd://simulated",
				KubeletVersion:          kubelet,
			},
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady",
				Message:           "the machine is booting",
				LastHeartbeatTime: stamp, LastTransitionTime: stamp,
			}},
		},
	}, nil
}

// labels are those of the user data, then what the kubelet and the cloud know better.
func (m machine) labels(region, windowsBuild string) map[string]string {
	all := map[string]string{}
	for key, value := range m.settings.Labels {
		all[key] = value
	}
	all[corev1.LabelHostname] = m.instance.PrivateDNS
	all[corev1.LabelOSStable] = m.os()
	all[corev1.LabelArchStable] = m.arch()
	all[corev1.LabelInstanceTypeStable] = m.instance.Type
	all[corev1.LabelTopologyZone] = m.instance.Zone
	all[corev1.LabelTopologyRegion] = region
	all[zoneIDLabel] = m.instance.ZoneID
	all[simulated] = simulatedValue
	if windowsBuild != "" {
		all[corev1.LabelWindowsBuild] = windowsBuild
	}
	return all
}

func (m machine) os() string {
	if m.image == windows {
		return "windows"
	}
	return "linux"
}

func (m machine) arch() string {
	if m.instance.Architecture == "arm64" {
		return "arm64"
	}
	return "amd64"
}

// windowsBuild tells the build by the image's name.
func windowsBuild(imageName string) string {
	for year, build := range map[string]string{"2019": "10.0.17763", "2022": "10.0.20348", "2025": "10.0.26100"} {
		if strings.HasPrefix(imageName, "Windows_Server-"+year) {
			return build
		}
	}
	return ""
}

func providerID(zone, id string) string { return fmt.Sprintf("aws:///%s/%s", zone, id) }

// instanceOf is the id at the end of a provider ID of ours.
func instanceOf(providerID string) (string, bool) {
	if !strings.HasPrefix(providerID, "aws:///") {
		return "", false
	}
	id := providerID[strings.LastIndexByte(providerID, '/')+1:]
	return id, strings.HasPrefix(id, "i-")
}
