package apitest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

const ec2NodeClass = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
spec:
  role: nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: lab}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: lab}}]
`

func TestEC2NodeClassSpec(t *testing.T) {
	run(t, ec2NodeClass, []apiCase{
		{
			name: "defaults",
			stored: `spec: {metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled,
				httpPutResponseHopLimit: 1, httpTokens: required},
          amiFamily: null, detailedMonitoring: null, associatePublicIPAddress: null, kubelet: null}`,
		},
		{name: "no spec", create: `spec: null`, refused: "spec: Required value"},
		{name: "unknown field", create: `spec: {amiSelector: {}}`, refused: `unknown field "spec.amiSelector"`},
		{name: "a launch template of the user's", create: `spec: {launchTemplate: mine}`,
			refused: `unknown field "spec.launchTemplate"`},
		{name: "an instance profile", create: `spec: {role: null, instanceProfile: mine}`,
			stored: `spec: {role: null, instanceProfile: mine}`},
		{name: "neither role nor instance profile", create: `spec: {role: null}`, refused: "exactly one of role and " +
			"instanceProfile must be set"},
		{name: "both role and instance profile", create: `spec: {instanceProfile: mine}`,
			refused: "exactly one of role and instanceProfile must be set"},
		{name: "empty role", create: `spec: {role: ""}`, refused: "spec.role"},
		{name: "empty instance profile", create: `spec: {role: null, instanceProfile: ""}`,
			refused: "spec.instanceProfile"},
		{name: "role to instance profile", update: `spec: {role: null, instanceProfile: mine}`,
			stored: `spec: {instanceProfile: mine}`},
		{name: "another role", update: `spec: {role: others}`, stored: `spec: {role: others}`},
		{
			name: "everything simple",
			create: `spec: {associatePublicIPAddress: true, ipPrefixCount: 0, userData: "echo hello", ` +
				`detailedMonitoring: true, context: abc, instanceStorePolicy: RAID0, cpuOptions: ` +
				`{nestedVirtualization: enabled}}`,
			stored: `spec: {ipPrefixCount: 0, userData: "echo hello", instanceStorePolicy: RAID0}`,
		},
		{name: "negative prefixes", create: `spec: {ipPrefixCount: -1}`, refused: "spec.ipPrefixCount"},
		{name: "another RAID", create: `spec: {instanceStorePolicy: RAID1}`,
			refused: `spec.instanceStorePolicy: Unsupported value: "RAID1"`},
		{name: "nested perhaps", create: `spec: {cpuOptions: {nestedVirtualization: perhaps}}`,
			refused: "spec.cpuOptions.nestedVirtualization: Unsupported value"},
		{name: "any setting of the kubelet",
			create: `spec: {kubelet: {maxPods: 20, kubeReserved: {cpu: 100m}, logging: {format: json}}}`,
			stored: `spec: {kubelet: {maxPods: 20, kubeReserved: {cpu: 100m}, logging: {format: json}}}`},
		{name: "an expression for the kubelet", create: `spec: {kubelet: {maxPods: "vcpus * 8"}}`,
			stored: `spec: {kubelet: {maxPods: "vcpus * 8"}}`},
		{name: "a word for the kubelet", create: `spec: {kubelet: fast}`, refused: "spec.kubelet"},
	})
}

func TestEC2NodeClassKubelet(t *testing.T) {
	kubelet := func(text string) string { return "spec: {kubelet: {" + text + "}}" }
	const soft, grace = "memory.available: 5%, nodefs.available: 10%", "memory.available: 5m, nodefs.available: 1m30s"
	cases := []apiCase{
		{name: "images are kept", create: kubelet("imageGCHighThresholdPercent: 60, imageGCLowThresholdPercent: 50")},
		{name: "only one share of images", create: kubelet("imageGCHighThresholdPercent: 10")},
		{name: "equal shares of images", create: kubelet("imageGCHighThresholdPercent: 50, " +
			"imageGCLowThresholdPercent: 50"), refused: "imageGCHighThresholdPercent must be greater than " +
			"imageGCLowThresholdPercent"},
		{name: "shares of images the wrong way around", create: kubelet("imageGCHighThresholdPercent: 50, " +
			"imageGCLowThresholdPercent: 60"), refused: "imageGCHighThresholdPercent must be greater"},
		{name: "more than all of the disk", create: kubelet("imageGCLowThresholdPercent: 101"),
			refused: "spec.kubelet.imageGCLowThresholdPercent"},
		{name: "soft eviction with grace periods", create: kubelet("evictionSoft: {" + soft +
			"}, evictionSoftGracePeriod: {" + grace + "}")},
		{name: "soft eviction without grace periods", create: kubelet("evictionSoft: {" + soft + "}"),
			refused: "evictionSoft has a threshold without a grace period"},
		{name: "soft eviction with one grace period too few", create: kubelet("evictionSoft: {" + soft +
			"}, evictionSoftGracePeriod: {memory.available: 5m}"), refused: "evictionSoft has a threshold without a " +
			"grace period"},
		{name: "grace periods without soft eviction", create: kubelet("evictionSoftGracePeriod: {" + grace + "}"),
			refused: "evictionSoftGracePeriod has a grace period without a threshold"},
		{name: "a grace period of no signal", create: kubelet("evictionSoft: {memory: 5%}, evictionSoftGracePeriod: " +
			"{memory: 5m}"), refused: "evictionSoftGracePeriod has a signal that the kubelet does not know"},
		{name: "negative pods", create: kubelet("maxPods: -1"), refused: "spec.kubelet.maxPods"},
		{name: "a fraction of a pod", create: kubelet("maxPods: 1.5"), refused: "spec.kubelet.maxPods"},
		{name: "negative pods for each core", create: kubelet("podsPerCore: -1"), refused: "spec.kubelet.podsPerCore"},
		{name: "a word for a switch", create: kubelet("cpuCFSQuota: sometimes"), refused: "spec.kubelet.cpuCFSQuota"},
		{name: "one address that is no list", create: kubelet("clusterDNS: 10.100.0.10"),
			refused: "spec.kubelet.clusterDNS"},
		{name: "settings of a newer kubelet", create: kubelet("crashLoopBackOff: {maxContainerRestartPeriod: 10s}, " +
			"memoryManagerPolicy: Static"), stored: kubelet("crashLoopBackOff: {maxContainerRestartPeriod: 10s}, " +
			"memoryManagerPolicy: Static")},
		{name: "from a class without", update: kubelet("evictionHard: {memory.available: 100Mi}"),
			stored: kubelet("evictionHard: {memory.available: 100Mi}")},
	}
	for _, field := range []string{"kubeReserved", "systemReserved"} {
		with := func(text string) string { return kubelet(field + ": {" + text + "}") }
		cases = append(cases,
			apiCase{name: field + ": all there is", create: with("cpu: 100m, memory: 1Gi, ephemeral-storage: 1Gi, " +
				"pid: '1000'"), stored: with("cpu: 100m, memory: 1Gi, ephemeral-storage: 1Gi, pid: '1000'")},
			apiCase{name: field + ": an expression", create: with(`cpu: "vcpus * 10"`)},
			apiCase{name: field + ": a resource that can't be kept", create: with("pods: '10'"), refused: field +
				" names a resource that can't be reserved"},
			apiCase{name: field + ": a negative amount", create: with("cpu: -100m"), refused: field +
				" has a negative amount"},
			apiCase{name: field + ": a number that is no text", create: with("cpu: 1"), refused: "spec.kubelet." +
				field + ".cpu"},
		)
	}
	for _, field := range []string{"evictionHard", "evictionSoft"} {
		with := func(text string) string { return kubelet(field + ": {" + text + "}, evictionSoftGracePeriod: {}") }
		if field == "evictionSoft" {
			with = func(text string) string {
				return kubelet("evictionSoft: {" + text + "}, evictionSoftGracePeriod: {memory.available: 5m, " +
					"nodefs.available: 5m, nodefs.inodesFree: 5m, imagefs.available: 5m, imagefs.inodesFree: 5m, " +
					"pid.available: 5m}")
			}
		}
		cases = append(cases,
			apiCase{name: field + ": a share, an amount and a fraction", create: with("memory.available: 5%, " +
				"nodefs.available: 1.5%, nodefs.inodesFree: 100.0%, imagefs.available: 100Mi, imagefs.inodesFree: " +
				"'1000', pid.available: '1e3'")},
			apiCase{name: field + ": no signal", create: with("memory: 5%"), refused: field + " has a signal that " +
				"the kubelet does not know"},
			apiCase{name: field + ": two points", create: with("memory.available: 5.5.5%"), refused: "spec.kubelet." +
				field + ".memory.available"},
			apiCase{name: field + ": more than everything", create: with("memory.available: 110%"),
				refused: "spec.kubelet." + field + ".memory.available"},
			apiCase{name: field + ": an amount in no unit", create: with("memory.available: 110GB"),
				refused: "spec.kubelet." + field + ".memory.available"},
		)
	}
	run(t, ec2NodeClass, cases)
}

// The longest lists that are allowed must also be cheap enough for the rules to run on them.
func TestEC2NodeClassTerms(t *testing.T) {
	tags := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("key-%d: value", i))
		}
		return "{tags: {" + strings.Join(list, ", ") + "}}"
	}
	var cases []apiCase
	for field, id := range map[string]string{"subnetSelectorTerms": "subnet-0a1b",
		"securityGroupSelectorTerms": "sg-0a1b", "capacityReservationSelectorTerms": "cr-0a1b"} {
		terms := func(text string) string { return "spec: {" + field + ": [" + text + "]}" }
		at := "spec." + field
		cases = append(cases,
			apiCase{name: field + ": by id", create: terms("{id: " + id + "}"), stored: terms("{id: " + id + "}")},
			apiCase{name: field + ": by any value", create: terms(`{tags: {Name: "*"}}`)},
			apiCase{name: field + ": several", create: terms("{id: " + id + "}, {tags: {a: b}}")},
			apiCase{name: field + ": nothing said", create: terms("{}"), refused: at + "[0]"},
			apiCase{name: field + ": id and tags", create: terms("{id: " + id + ", tags: {a: b}}"),
				refused: at + "[0]"},
			apiCase{name: field + ": id and tags in the second", create: terms("{tags: {a: b}}, {id: " + id +
				", tags: {a: b}}"), refused: at + "[1]"},
			apiCase{name: field + ": no tags in it", create: terms("{tags: {}}"), refused: at + "[0].tags"},
			apiCase{name: field + ": empty value", create: terms(`{tags: {a: ""}}`), refused: "a tag to select by " +
				"has an empty key or value"},
			apiCase{name: field + ": empty key", create: terms(`{tags: {"": a}}`), refused: "a tag to select by has " +
				"an empty key or value"},
			apiCase{name: field + ": id of something else", create: terms("{id: vpc-0a1b}"), refused: at + "[0].id"},
			apiCase{name: field + ": 20 tags", create: terms(tags(20))},
			apiCase{name: field + ": 21 tags", create: terms(tags(21)), refused: at + "[0].tags: Too many"},
			apiCase{name: field + ": 30 terms", create: terms(repeat(tags(20), 30))},
			apiCase{name: field + ": 31 terms", create: terms(repeat("{id: "+id+"}", 31)), refused: at + ": Too many"},
		)
		if field != "capacityReservationSelectorTerms" {
			cases = append(cases,
				apiCase{name: field + ": none", create: terms(""), refused: at},
				apiCase{name: field + ": left out", create: "spec: {" + field + ": null}", refused: at +
					": Required value"})
		}
	}
	run(t, ec2NodeClass, cases)
}

func TestEC2NodeClassNamedTerms(t *testing.T) {
	groups := func(text string) string { return "spec: {securityGroupSelectorTerms: [" + text + "]}" }
	reservations := func(text string) string { return "spec: {capacityReservationSelectorTerms: [" + text + "]}" }
	placement := func(text string) string { return "spec: {placementGroupSelector: {" + text + "}}" }
	run(t, ec2NodeClass, []apiCase{
		{name: "group by name", create: groups(`{name: nodes-*}`)},
		{name: "group by name and tags", create: groups(`{name: nodes, tags: {a: b}}`),
			refused: "a security group term needs exactly one of tags, id and name"},
		{name: "group by name and id", create: groups(`{name: nodes, id: sg-1}`), refused: "a security group term " +
			"needs exactly one of tags, id and name"},
		{name: "subnet by name", create: `spec: {subnetSelectorTerms: [{name: mine}]}`,
			refused: `unknown field "spec.subnetSelectorTerms[0].name"`},
		{name: "reservation by owner and tags",
			create: reservations(`{tags: {a: b}, ownerID: "123456789012", instanceMatchCriteria: targeted}`)},
		{name: "reservation by criteria", create: reservations(`{instanceMatchCriteria: open}`)},
		{name: "reservation by owner only", create: reservations(`{ownerID: "123456789012"}`),
			refused: "a capacity reservation term needs id, tags or instanceMatchCriteria"},
		{name: "reservation by id and owner", create: reservations(`{id: cr-1, ownerID: "123456789012"}`),
			refused: "a capacity reservation term with an id can't have"},
		{name: "owner that is no account", create: reservations(`{tags: {a: b}, ownerID: self}`), refused: "ownerID"},
		{name: "unknown criteria", create: reservations(`{instanceMatchCriteria: closed}`),
			refused: "Unsupported value"},
		{name: "no reservations on purpose", create: reservations(``)},
		{name: "placement group by name", create: placement(`name: mine`), stored: placement(`name: mine`)},
		{name: "placement group by id", create: placement(`id: pg-0a1b`)},
		{name: "placement group by both", create: placement(`name: mine, id: pg-0a1b`),
			refused: "placementGroupSelector needs exactly one of name and id"},
		{name: "placement group by neither", create: placement(``), refused: "placementGroupSelector needs exactly " +
			"one of name and id"},
		{name: "placement group with an empty name", create: placement(`name: ""`),
			refused: "spec.placementGroupSelector.name"},
		{name: "placement group with a strange id", create: placement(`id: mine`),
			refused: "spec.placementGroupSelector.id"},
	})
}

func TestEC2NodeClassAMIs(t *testing.T) {
	terms := func(text string) string { return "spec: {amiSelectorTerms: [" + text + "]}" }
	named := func(family, text string) string {
		return "spec: {amiFamily: " + family + ", amiSelectorTerms: [" + text + "]}"
	}
	run(t, ec2NodeClass, []apiCase{
		{name: "every alias: al2", create: terms(`{alias: al2@v20240807}`)},
		{name: "every alias: bottlerocket", create: terms(`{alias: bottlerocket@v1.20.4}`)},
		{name: "every alias: windows2019", create: terms(`{alias: windows2019@latest}`)},
		{name: "every alias: windows2022", create: terms(`{alias: windows2022@latest}`)},
		{name: "every alias: windows2025", create: terms(`{alias: windows2025@latest}`)},
		{name: "a Windows version", create: terms(`{alias: windows2022@v1}`), refused: "alias of a Windows family " +
			"can't name a version"},
		{name: "no version", create: terms(`{alias: al2023}`), refused: "alias must be a family, an @ and a version"},
		{name: "empty version", create: terms(`{alias: al2023@}`),
			refused: "alias must be a family, an @ and a version"},
		{name: "unknown family", create: terms(`{alias: ubuntu@latest}`), refused: "alias has an unknown family"},
		{name: "alias that is too long", create: terms("{alias: al2023@" + strings.Repeat("1", 24) + "}"),
			refused: "Too long"},
		{name: "alias and another term", create: terms(`{alias: al2023@latest}, {id: ami-1}`),
			refused: "an alias must be the only term"},
		{name: "alias and another field", create: terms(`{alias: al2023@latest, owner: self}`),
			refused: "an AMI term with an alias can't have another field"},
		{name: "no terms", create: terms(``), refused: "spec.amiSelectorTerms"},
		{name: "terms left out", create: `spec: {amiSelectorTerms: null}`, refused: "spec.amiSelectorTerms: Required " +
			"value"},
		{name: "no alias and no family", create: terms(`{id: ami-1}`), refused: "amiFamily is required unless " +
			"amiSelectorTerms has an alias"},
		{name: "the alias's family", create: named("AL2023", `{alias: al2023@latest}`)},
		{name: "the alias's Windows family", create: named("Windows2022", `{alias: windows2022@latest}`)},
		{name: "Custom with an alias", create: named("Custom", `{alias: bottlerocket@latest}`)},
		{name: "another family than the alias's", create: named("AL2", `{alias: al2023@latest}`),
			refused: "amiFamily differs from the family of the alias"},
		{name: "a family that is gone", create: named("Ubuntu", `{id: ami-1}`),
			refused: `spec.amiFamily: Unsupported value: "Ubuntu"`},
		{name: "every way to select", create: named("AL2023",
			`{id: ami-0a1b}, {name: my-*, owner: self}, {tags: {team: blue}, owner: "123456789012"}, {ssmParameter: `+
				`/my/parameter}`)},
		{name: "owner alone", create: named("AL2023", `{owner: self}`), refused: "an AMI term needs one of alias, " +
			"tags, id, name and ssmParameter"},
		{name: "id and owner", create: named("AL2023", `{id: ami-1, owner: self}`), refused: "an AMI term with an id " +
			"can't have another field"},
		{name: "id and name", create: named("AL2023", `{id: ami-1, name: x}`), refused: "an AMI term with an id " +
			"can't have another field"},
		{name: "parameter and tags", create: named("AL2023", `{ssmParameter: /a, tags: {a: b}}`),
			refused: "an AMI term with an ssmParameter can't have another field"},
		{name: "strange id", create: named("AL2023", `{id: image-1}`), refused: "spec.amiSelectorTerms[0].id"},
		{name: "30 terms", create: named("AL2023", repeat(`{id: ami-1}`, 30))},
		{name: "31 terms", create: named("AL2023", repeat(`{id: ami-1}`, 31)),
			refused: "spec.amiSelectorTerms: Too many"},
	})
}

func TestEC2NodeClassTags(t *testing.T) {
	tags := func(text string) string { return "spec: {tags: {" + text + "}}" }
	cases := []apiCase{
		{name: "the user's", create: tags(`team: blue, Name: node, "karpenter.sh/other": x`),
			stored: tags(`team: blue`)},
		{name: "empty value", create: tags(`team: ""`)},
		{name: "empty key", create: tags(`"": blue`), refused: "a tag has an empty key"},
	}
	for _, key := range []string{"kubernetes.io/cluster/lab", "kubernetes.io/cluster", "eks:eks-cluster-name",
		"karpenter.sh/nodepool", "karpenter.sh/nodeclaim", "karpenter.k8s.aws/ec2nodeclass"} {
		cases = append(cases, apiCase{name: key, create: tags(`"` + key + `": x`), refused: "are set by the " +
			"controller; remove them"})
	}
	run(t, ec2NodeClass, cases)
}

func TestEC2NodeClassDevices(t *testing.T) {
	disks := func(text string) string { return "spec: {blockDeviceMappings: [" + text + "]}" }
	ebs := func(text string) string { return disks("{deviceName: /dev/xvda, ebs: {" + text + "}}") }
	size := func(text string) string { return ebs("volumeSize: " + text) }
	run(t, ec2NodeClass, []apiCase{
		{name: "every field", create: disks(
			`{deviceName: /dev/xvda, rootVolume: true, ebs: {deleteOnTermination: true, encrypted: true, iops: 3000,
				kmsKeyID: alias/mine,
          snapshotID: snap-1, throughput: 125, volumeInitializationRate: 100, volumeSize: 100Gi, volumeType: gp3}}`),
			stored: `spec: {}`},
		{name: "a disk without a volume", create: disks(`{deviceName: /dev/xvdb}`)},
		{name: "a volume from a snapshot", create: ebs(`snapshotID: snap-1`)},
		{name: "a volume from nothing", create: ebs(`volumeType: gp3`), refused: "a volume needs volumeSize or " +
			"snapshotID"},
		{name: "rate without a snapshot", create: ebs(`volumeSize: 1Gi, volumeInitializationRate: 100`),
			refused: "volumeInitializationRate is for volumes that start from a snapshot"},
		{name: "rate too low", create: ebs(`snapshotID: snap-1, volumeInitializationRate: 99`),
			refused: "volumeInitializationRate"},
		{name: "rate too high", create: ebs(`snapshotID: snap-1, volumeInitializationRate: 301`),
			refused: "volumeInitializationRate"},
		{name: "two root volumes", create: disks(`{rootVolume: true}, {rootVolume: true}`),
			refused: "more than one of blockDeviceMappings has rootVolume true"},
		{name: "one root volume of two", create: disks(`{rootVolume: true}, {rootVolume: false}`)},
		{name: "another type", create: ebs(`volumeSize: 1Gi, volumeType: floppy`), refused: "Unsupported value"},
		{name: "59000Gi", create: size("59000Gi")}, {name: "64000G", create: size("64000G")},
		{name: "58Ti", create: size("58Ti")}, {name: "64T", create: size("64T")},
		{name: "59001Gi", create: size("59001Gi"), refused: "volumeSize must be at most"},
		{name: "64001G", create: size("64001G"), refused: "volumeSize must be at most"},
		{name: "59Ti", create: size("59Ti"), refused: "volumeSize must be at most"},
		{name: "65T", create: size("65T"), refused: "volumeSize must be at most"},
		{name: "no unit", create: size(`"20"`), refused: "volumeSize"},
		{name: "megabytes", create: size("500Mi"), refused: "volumeSize"},
		{name: "nothing of it", create: size("0Gi"), refused: "volumeSize"},
		{name: "50 disks", create: disks(repeat(`{deviceName: /dev/xvda, ebs: {volumeSize: 1Gi}}`, 50))},
		{name: "51 disks", create: disks(repeat(`{deviceName: /dev/xvda}`, 51)), refused: "spec.blockDeviceMappings: " +
			"Too many"},
	})
}

func TestEC2NodeClassNetworkAndMetadata(t *testing.T) {
	cards := func(text string) string { return "spec: {networkInterfaces: [" + text + "]}" }
	card := func(network, device int, kind string) string {
		return fmt.Sprintf("{networkCardIndex: %d, deviceIndex: %d, interfaceType: %s}", network, device, kind)
	}
	first := card(0, 0, "interface")
	all := []string{first}
	for i := 1; i < 150; i++ {
		all = append(all, card(i, 1, "efa-only"))
	}
	metadata := func(text string) string { return "spec: {metadataOptions: {" + text + "}}" }
	tracking := func(text string) string { return "spec: {connectionTracking: {" + text + "}}" }
	run(t, ec2NodeClass, []apiCase{
		{name: "none", create: cards("")},
		{name: "one", create: cards(first)},
		{name: "150", create: cards(strings.Join(all, ", "))},
		{name: "151", create: cards(strings.Join(append(all, card(150, 1, "interface")), ", ")),
			refused: "spec.networkInterfaces: Too many"},
		{name: "no first", create: cards(card(1, 1, "interface")), refused: "networkInterfaces has no first interface"},
		{name: "first without an address", create: cards(card(0, 0, "efa-only")), refused: "networkInterfaces has no " +
			"first interface"},
		{name: "twice the same", create: cards(first + ", " + card(0, 1, "interface") + ", " + card(0, 1, "efa-only")),
			refused: "have the same networkCardIndex and deviceIndex"},
		{name: "two adapters on a card", create: cards(first + ", " + card(1, 0, "efa-only") + ", " +
			card(1, 1, "efa-only")), refused: "a network card has more than one interface of type efa-only"},
		{name: "another type", create: cards(card(0, 0, "efa")), refused: "Unsupported value"},
		{name: "below zero", create: cards(first + ", " + card(0, -1, "interface")), refused: "deviceIndex"},
		{name: "no type", create: cards("{networkCardIndex: 0, deviceIndex: 0}"), refused: "interfaceType: Required " +
			"value"},

		{name: "some metadata options", create: metadata(`httpTokens: optional, httpPutResponseHopLimit: 2`),
			stored: metadata(`httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: ` +
				`2, httpTokens: optional`)},
		{name: "64 hops", create: metadata(`httpPutResponseHopLimit: 64`)},
		{name: "no hops", create: metadata(`httpPutResponseHopLimit: 0`), refused: "httpPutResponseHopLimit"},
		{name: "65 hops", create: metadata(`httpPutResponseHopLimit: 65`), refused: "httpPutResponseHopLimit"},
		{name: "endpoint perhaps", create: metadata(`httpEndpoint: perhaps`), refused: "Unsupported value"},
		{name: "IPv6 perhaps", create: metadata(`httpProtocolIPv6: perhaps`), refused: "Unsupported value"},
		{name: "tokens perhaps", create: metadata(`httpTokens: perhaps`), refused: "Unsupported value"},

		{name: "every timeout", create: tracking(
			`tcpEstablishedTimeout: 432000, udpStreamTimeout: 180, udpTimeout: 60`)},
		{name: "the least of every timeout",
			create: tracking(`tcpEstablishedTimeout: 60, udpStreamTimeout: 60, udpTimeout: 30`)},
		{name: "no timeout", create: tracking(``), refused: "connectionTracking needs at least one of"},
		{name: "TCP too short", create: tracking(`tcpEstablishedTimeout: 59`), refused: "tcpEstablishedTimeout"},
		{name: "TCP too long", create: tracking(`tcpEstablishedTimeout: 432001`), refused: "tcpEstablishedTimeout"},
		{name: "UDP stream too long", create: tracking(`udpStreamTimeout: 181`), refused: "udpStreamTimeout"},
		{name: "UDP too short", create: tracking(`udpTimeout: 29`), refused: "udpTimeout"},
	})
}

func TestEC2NodeClassStatus(t *testing.T) {
	c := strictClient(t)
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "found"}, Spec: awsv1.EC2NodeClassSpec{
		Role:                       "nodes",
		AMISelectorTerms:           []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
		SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{ID: "subnet-1"}},
		SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Name: "nodes"}},
	}}
	if err := c.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	end := metav1.NewTime(time.Unix(1_700_000_000, 0))
	class.Status = awsv1.EC2NodeClassStatus{
		Subnets:        []awsv1.Subnet{{ID: "subnet-1", Zone: "us-west-2a", ZoneID: "usw2-az1"}},
		SecurityGroups: []awsv1.SecurityGroup{{ID: "sg-1", Name: "nodes"}},
		AMIs: []awsv1.AMI{{ID: "ami-1", Name: "image", Deprecated: true,
			Requirements: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/arch", Operator: "In",
				Values: []string{"amd64"}}}}},
		CapacityReservations: []awsv1.CapacityReservation{{ID: "cr-1", AvailabilityZone: "us-west-2a",
			InstanceType:          "m5.large",
			InstanceMatchCriteria: "targeted", OwnerID: "123456789012", Interruptible: true, EndTime: &end}},
		InstanceProfile: "lab_1",
		Conditions:      []metav1.Condition{condition(v1.ConditionTypeReady, metav1.ConditionTrue)},
	}
	if err := c.Status().Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	got := &awsv1.EC2NodeClass{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(class), got); err != nil {
		t.Fatal(err)
	}
	s := got.Status
	if s.Subnets[0].ZoneID != "usw2-az1" || s.SecurityGroups[0].Name != "nodes" || !s.AMIs[0].Deprecated ||
		s.InstanceProfile != "lab_1" ||
		!meta.IsStatusConditionTrue(s.Conditions, v1.ConditionTypeReady) {
		t.Errorf("status is %+v", s)
	}
	if r := s.CapacityReservations[0]; r.ReservationType != awsv1.CapacityReservationTypeDefault ||
		r.State != awsv1.CapacityReservationStateActive ||
		!r.Interruptible || !r.EndTime.Equal(&end) {
		t.Errorf("the reservation is %+v, want the defaults filled in", r)
	}
	hash, err := class.Hash("")
	if again, _ := got.Hash(""); err != nil || hash != again {
		t.Errorf("the hash is %s before and %s after a trip to the API server (%v)", hash, again, err)
	}
	got.Status.CapacityReservations[0].State = "spent"
	wantRefusal(t, c.Status().Update(t.Context(), got), `Unsupported value: "spent"`)
}
