package join

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/catalog"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
)

// machineOf is a machine of a type with a 20 GiB disk.
func machineOf(t *testing.T, kind, arch string, image system, s settings) machine {
	t.Helper()
	types, _, err := catalog.Region("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range types {
		if string(info.InstanceType) == kind {
			return machine{info: info, image: image, settings: s, instance: cloud.Instance{
				Type: kind, Architecture: arch, Volumes: []cloud.Volume{{Device: "/dev/xvda", SizeGiB: 20},
					{Device: "/dev/xvdb", SizeGiB: 50}},
			}}
		}
	}
	t.Fatalf("the catalog has no %s", kind)
	return machine{}
}

func TestShapes(t *testing.T) {
	for name, c := range map[string]struct {
		m        machine
		capacity map[corev1.ResourceName]int64
		free     map[corev1.ResourceName]int64 // allocatable, CPU in millicores
	}{
		"m5.large": {machineOf(t, "m5.large", "x86_64", al2023, settings{}),
			map[corev1.ResourceName]int64{"cpu": 2, "pods": 29, "ephemeral-storage": 20 << 30,
				"memory": 8589934592 - 8589934*55},
			map[corev1.ResourceName]int64{"cpu": 1930, "ephemeral-storage": 18<<30 - 1<<30, "pods": 29}},
		"with its own settings": {machineOf(t, "m5.large", "x86_64", al2023, settings{
			MaxPods: 110, PodsPerCore: 20, KubeReserved: map[string]string{"cpu": "100m"},
			SystemReserved: map[string]string{"cpu": "200m", "memory": "1Gi"},
			EvictionHard:   map[string]string{"memory.available": "10%"}}),
			map[corev1.ResourceName]int64{"pods": 40},
			map[corev1.ResourceName]int64{"cpu": 1700, "ephemeral-storage": 19 << 30}},
		"Bottlerocket's data volume": {machineOf(t, "m5.large", "x86_64", bottlerocket, settings{}),
			map[corev1.ResourceName]int64{"ephemeral-storage": 50 << 30}, nil},
		"local disks": {machineOf(t, "m5d.large", "x86_64", al2023, settings{RAID0: true}),
			map[corev1.ResourceName]int64{"ephemeral-storage": 75_000_000_000}, nil},
		"arm64": {machineOf(t, "m6g.large", "arm64", al2023, settings{}),
			map[corev1.ResourceName]int64{"cpu": 2, "memory": (8589934592 - 8589934*55 - 64<<20) / 1024 * 1024}, nil},
		"GPUs": {machineOf(t, "g4dn.12xlarge", "x86_64", al2023, settings{}),
			map[corev1.ResourceName]int64{"nvidia.com/gpu": 4}, nil},
		"Neuron": {machineOf(t, "inf2.24xlarge", "x86_64", al2023, settings{}),
			map[corev1.ResourceName]int64{"aws.amazon.com/neuron": 6, "aws.amazon.com/neuroncore": 12}, nil},
		"Windows": {machineOf(t, "m5.large", "x86_64", windows, settings{}), map[corev1.ResourceName]int64{"pods": 110,
			"vpc.amazonaws.com/PrivateIPv4Address": 9}, nil},
		"pod ENI": {machineOf(t, "m5.large", "x86_64", al2, settings{}),
			map[corev1.ResourceName]int64{"vpc.amazonaws.com/pod-eni": 9}, nil},
	} {
		capacity := c.m.capacity()
		allocatable, err := c.m.allocatable(capacity)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for resource, want := range c.capacity {
			q := capacity[resource]
			if want = want / 1024 * 1024; resource != corev1.ResourceMemory {
				want = c.capacity[resource]
			}
			if q.Value() != want {
				t.Errorf("%s has %s %d, want %d", name, resource, q.Value(), want)
			}
		}
		for resource, want := range c.free {
			q := allocatable[resource]
			got := q.Value()
			if resource == corev1.ResourceCPU {
				got = q.MilliValue()
			}
			if got != want {
				t.Errorf("%s can give away %s %d, want %d", name, resource, got, want)
			}
		}
	}
}

func TestMemoryThatCanBeGivenAway(t *testing.T) {
	m := machineOf(t, "m5.large", "x86_64", al2023, settings{})
	capacity := m.capacity()
	allocatable, err := m.allocatable(capacity)
	if err != nil {
		t.Fatal(err)
	}
	// 11 MiB for each of 29 pods and 255 MiB for the kubelet, 100 MiB before pods are evicted.
	have, free := capacity.Memory().Value(), allocatable.Memory().Value()
	if kept := have - free; kept != (11*29+255+100)<<20 {
		t.Errorf("%d MiB are kept", kept>>20)
	}
	// A provider that takes off 7.5 percent must not promise more than there is.
	if promised := int64(8192)<<20*925/1000 - (11*29+255+100)<<20; promised > free {
		t.Errorf("a provider promises %d, the machine has %d", promised, free)
	}
}

// Each machine has two volumes and one interface.
func TestVolumesLeft(t *testing.T) {
	for kind, want := range map[string]int{
		"m5.large":     25, // of 28, shared with the interface
		"m5d.large":    24, // and with a local disk
		"g4dn.xlarge":  23, // a local disk and a GPU
		"inf2.xlarge":  24, // an accelerator
		"m7i.large":    30, // of 32, for volumes only
		"m7i.48xlarge": 126,
	} {
		m := machineOf(t, kind, "x86_64", al2023, settings{})
		m.instance.Interfaces = []cloud.Interface{{}}
		if got := m.volumesLeft(); got != want {
			t.Errorf("%s has room for %d volumes, want %d", kind, got, want)
		}
	}
	if got := (machine{}).volumesLeft(); got != 1 {
		t.Errorf("a machine of an unknown kind has room for %d volumes, want 1", got)
	}
}
