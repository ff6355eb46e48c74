// Package family knows the kinds of machine images that nodes boot on EC2: which disks they have, what they can be told
// about the kubelet, and the user data with which a node finds its way into the cluster.
//
// Everything here is a pure function of its arguments; it calls nothing and remembers nothing. What a class's own user
// data says is merged with ours in the form that each family reads: a MIME archive of scripts (AL2), a MIME archive
// with NodeConfig objects (AL2023), TOML settings (Bottlerocket) or PowerShell (Windows). Custom is used as it is.
package family

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// Flags say what a family does, where families differ.
type Flags struct {
	// ENILimitedMemory: the memory that is kept for the kubelet follows from how many pods the network interfaces can
	// carry, even if maxPods says otherwise, because that is what the image's own scripts compute.
	ENILimitedMemory bool
	// ENILimitedPods: how many pods a node runs follows from its network interfaces. Where it does not, DefaultPods
	// holds.
	ENILimitedPods bool
	// PodsPerCore: the kubelet can be told podsPerCore.
	PodsPerCore bool
	// RawKubelet: the kubelet can be told any setting that it knows, not just the ones that Tenon models.
	RawKubelet bool
	// ServiceCIDR: the user data can't be written without the cluster's service CIDR.
	ServiceCIDR bool
	// InstanceStore: the image can join the disks of the instance by itself.
	InstanceStore bool
}

// DefaultPods is how many pods a node runs if neither its network interfaces nor the class say so.
const DefaultPods = 110

// Family is a kind of machine images. Get one from Of or Named.
type Family struct {
	name    string
	flags   Flags
	build   string // of Windows
	disks   []disk
	data    string // the device that pods' files are on
	render  func(Node) (string, error)
	unpacks bool // the image takes user data that is packed with gzip
}

// disk is one disk that a family's images have by default.
type disk struct {
	device string
	size   string
}

// Of is the family of a class's images.
func Of(class *awsv1.EC2NodeClass) Family {
	f, ok := Named(class.AMIFamily())
	if !ok {
		return custom()
	}
	return f
}

// Named finds a family by its name in the API; false if there is none.
func Named(name string) (Family, bool) {
	switch name {
	case awsv1.AMIFamilyAL2:
		return amazonLinux2(), true
	case awsv1.AMIFamilyAL2023:
		return amazonLinux2023(), true
	case awsv1.AMIFamilyBottlerocket:
		return bottlerocket(), true
	case awsv1.AMIFamilyWindows2019:
		return windows(name, "10.0.17763"), true
	case awsv1.AMIFamilyWindows2022:
		return windows(name, "10.0.20348"), true
	case awsv1.AMIFamilyWindows2025:
		return windows(name, "10.0.26100"), true
	case awsv1.AMIFamilyCustom:
		return custom(), true
	default:
		return Family{}, false
	}
}

func amazonLinux2() Family {
	return Family{
		name:    awsv1.AMIFamilyAL2,
		flags:   Flags{ENILimitedMemory: true, ENILimitedPods: true, PodsPerCore: true, InstanceStore: true},
		disks:   []disk{{"/dev/xvda", defaultSize}},
		data:    "/dev/xvda",
		render:  shellData,
		unpacks: true,
	}
}

func amazonLinux2023() Family {
	return Family{
		name: awsv1.AMIFamilyAL2023,
		flags: Flags{
			ENILimitedMemory: true, ENILimitedPods: true, PodsPerCore: true,
			RawKubelet: true, ServiceCIDR: true, InstanceStore: true,
		},
		disks:   []disk{{"/dev/xvda", defaultSize}},
		data:    "/dev/xvda",
		render:  nodeConfigData,
		unpacks: true,
	}
}

func bottlerocket() Family {
	return Family{
		name:  awsv1.AMIFamilyBottlerocket,
		flags: Flags{ENILimitedPods: true, InstanceStore: true},
		// The first disk is the system's, which is read only; everything else is on the second.
		disks:   []disk{{"/dev/xvda", "4Gi"}, {"/dev/xvdb", defaultSize}},
		data:    "/dev/xvdb",
		render:  tomlData,
		unpacks: true,
	}
}

func windows(name, build string) Family {
	return Family{
		name:   name,
		flags:  Flags{PodsPerCore: true},
		build:  build,
		disks:  []disk{{"/dev/sda1", "50Gi"}},
		data:   "/dev/sda1",
		render: powerShellData,
	}
}

func custom() Family {
	return Family{
		name:   awsv1.AMIFamilyCustom,
		flags:  Flags{ENILimitedMemory: true, ENILimitedPods: true, PodsPerCore: true},
		render: func(n Node) (string, error) { return n.UserData, nil },
	}
}

// Name is the family's name in the API.
func (f Family) Name() string { return f.name }

// Flags say what the family does.
func (f Family) Flags() Flags { return f.flags }

// OS is the operating system of its images: the value of the label kubernetes.io/os.
func (f Family) OS() corev1.OSName {
	if f.build != "" {
		return corev1.Windows
	}
	return corev1.Linux
}

// WindowsBuild is the value of the label node.kubernetes.io/windows-build; empty for Linux.
func (f Family) WindowsBuild() string { return f.build }

// Excludes tells whether no image of the family boots on the instance type. AL2023 is compiled for processors with
// features that the first Graviton lacks.
func (f Family) Excludes(instanceType string) bool {
	return f.name == awsv1.AMIFamilyAL2023 && strings.HasPrefix(instanceType, "a1.")
}

// Unsupported lists the settings of the kubelet, sorted, that the family has no way to hand over.
func (f Family) Unsupported(kubelet awsv1.KubeletConfiguration) []string {
	if f.flags.RawKubelet {
		return nil
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(kubelet)) {
		_, identity := KubeletIdentity()[key]
		if !slices.Contains(modelled(), key) && !identity {
			out = append(out, key)
		}
	}
	return out
}
