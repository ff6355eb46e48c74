package translate

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/api/aws/v1alpha1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha5"
)

func target() Target { return Target{Cloud: AWS, Cluster: "my-cluster"} }

func readProvisioner(t *testing.T, spec string) *v1alpha5.Provisioner {
	t.Helper()
	p := &v1alpha5.Provisioner{}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatalf("reading the case: %v\n%s", err, spec)
	}
	p.Name = "default"
	return p
}

// contains says which part of want is not in have; a list must be equal, null means absent.
func contains(path string, have, want any) string {
	wanted, ok := want.(map[string]any)
	if !ok {
		if !reflect.DeepEqual(have, want) {
			return fmt.Sprintf("%s is %v, want %v", path, have, want)
		}
		return ""
	}
	fields, _ := have.(map[string]any)
	for key, value := range wanted {
		if value == nil && fields[key] != nil {
			return fmt.Sprintf("%s.%s is %v, want it absent", path, key, fields[key])
		}
		if missing := contains(path+"."+key, fields[key], value); value != nil && missing != "" {
			return missing
		}
	}
	return ""
}

func fields(t *testing.T, object any) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func want(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestProvisioner(t *testing.T) {
	const implied = `
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
      - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["2"]}`
	cases := []struct {
		name, spec string
		to         Target
		pool       string
		class      string
		notes      []string
	}{
		{
			name: "what is not said is what it was", spec: `provider: {}`, to: target(),
			pool: `
spec:
  weight: null
  limits: null
  template:
    metadata: {labels: {karpenter.sh/provisioner-name: default}}
    spec:
      expireAfter: Never
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: provisioner-default}
      requirements:` + implied + `
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: Never
    budgets: [{nodes: 100%, reasons: [Empty]}, {nodes: 10%, reasons: [Underutilized, Drifted]}]`,
			class: `
metadata: {name: provisioner-default}
spec:
  role: KarpenterNodeRole-my-cluster
  instanceProfile: null
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: my-cluster}}, {tags: {kubernetes.io/cluster/my-cluster: "*"}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: my-cluster}},
    {tags: {kubernetes.io/cluster/my-cluster: "*"}}]
  metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2,
    httpTokens: required}`,
			notes: []string{"720h", "empty nodes stay", "Amazon Linux 2", "which meant 2; the default of v1 is 1"},
		},
		{
			name: "times", spec: "provider: {}\nttlSecondsAfterEmpty: 30\nttlSecondsUntilExpired: 2592000",
			to: target(),
			pool: `spec: {template: {spec: {expireAfter: 720h}}, disruption: {consolidationPolicy: ` +
				`WhenEmpty, consolidateAfter: 30s}}`,
			notes: []string{"without regard to budgets"},
		},
		{
			name: "odd times", spec: "provider: {}\nttlSecondsAfterEmpty: 0\nttlSecondsUntilExpired: 90", to: target(),
			pool: `spec: {template: {spec: {expireAfter: 90s}}, disruption: {consolidationPolicy: ` +
				`WhenEmpty, consolidateAfter: 0s}}`,
		},
		{
			name: "consolidation", spec: "provider: {}\nconsolidation: {enabled: true}", to: target(),
			pool: `spec: {template: {spec: {expireAfter: Never}}, disruption: {consolidationPolicy: ` +
				`WhenEmptyOrUnderutilized, consolidateAfter: 0s}}`,
		},
		{
			name: "consolidation that is off", spec: "provider: {}\nconsolidation: {enabled: " +
				"false}\nttlSecondsAfterEmpty: 300", to: target(),
			pool: `spec: {disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 5m}}`,
		},
		{
			name: "what is said stays", to: target(),
			spec: `
providerRef: {name: mine}
weight: 10
limits: {resources: {cpu: 1000, memory: 1000Gi}}
labels: {team: blue, kubernetes.io/os: windows}
annotations: {example.com/owner: me}
taints: [{key: a, value: b, effect: NoSchedule}]
startupTaints: [{key: c, effect: NoExecute}]
requirements:
- {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
- {key: beta.kubernetes.io/arch, operator: In, values: [arm64]}
- {key: karpenter.k8s.aws/instance-family, operator: NotIn, values: [t3]}`,
			pool: `
spec:
  weight: 10
  limits: {cpu: 1k, memory: 1000Gi}
  template:
    metadata:
      labels: {team: blue, kubernetes.io/os: windows, karpenter.sh/provisioner-name: default}
      annotations: {example.com/owner: me}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: mine}
      taints: [{key: a, value: b, effect: NoSchedule}]
      startupTaints: [{key: c, effect: NoExecute}]
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
      - {key: beta.kubernetes.io/arch, operator: In, values: [arm64]}
      - {key: karpenter.k8s.aws/instance-family, operator: NotIn, values: [t3]}`,
		},
		{
			name: "a provider in place", to: Target{Cloud: AWS, Cluster: "my-cluster", InstanceProfile: "fallback"},
			spec: `
provider:
  apiVersion: extensions.karpenter.sh/v1alpha1
  kind: AWS
  amiFamily: Bottlerocket
  subnetSelector: {karpenter.sh/discovery: my-cluster}
  securityGroupSelector: {aws-ids: "sg-1, sg-2"}
  tags: {team: blue}
  metadataOptions: {httpPutResponseHopLimit: 1}
  blockDeviceMappings: [{deviceName: /dev/xvdb, ebs: {volumeSize: 100Gi}}]
kubeletConfiguration: {maxPods: 20, containerRuntime: dockerd, kubeReserved: {cpu: 1}}`,
			class: `
spec:
  instanceProfile: fallback
  role: null
  amiSelectorTerms: [{alias: bottlerocket@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: my-cluster}}]
  securityGroupSelectorTerms: [{id: sg-1}, {id: sg-2}]
  tags: {team: blue}
  metadataOptions: {httpPutResponseHopLimit: 1}
  blockDeviceMappings: [{deviceName: /dev/xvdb, ebs: {volumeSize: 100Gi}}]
  kubelet: {maxPods: 20, containerRuntime: null, kubeReserved: {cpu: "1"}}`,
			notes: []string{"dockerd was asked for"},
		},
		{
			name: "a cluster whose name is not known", spec: `provider: {}`, to: Target{Cloud: AWS},
			class: `
spec:
  role: KarpenterNodeRole-${CLUSTER_NAME}
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: "${CLUSTER_NAME}"}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: "${CLUSTER_NAME}"}}]`,
		},
		{
			name: "simulated nodes", spec: "provider: {instanceProfile: nodes}", to: Target{Cloud: KWOK},
			pool: `
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: provisioner-default}
      requirements:
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}`,
			class: `{kind: KWOKNodeClass, metadata: {name: provisioner-default}}`,
			notes: []string{"no effect on simulated nodes"},
		},
		{
			name: "a class of simulated nodes", spec: "providerRef: {apiVersion: karpenter.kwok.sh/v1alpha1, kind: " +
				"KWOKNodeClass, name: slow}", to: Target{Cloud: KWOK},
			pool: `spec: {template: {spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: ` +
				`slow}}}}`,
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, problems := Provisioner(readProvisioner(t, tc.spec), nil, tc.to)
			if len(problems) > 0 {
				t.Fatalf("problems: %v", problems)
			}
			if missing := contains("pool", fields(t, got.NodePool), want(t, tc.pool)); missing != "" {
				t.Error(missing)
			}
			if missing := contains("class", fields(t, got.Class), want(t, tc.class)); tc.class != "" && missing != "" {
				t.Error(missing)
			}
			text := fmt.Sprint(got.Notes)
			for _, note := range tc.notes {
				if !strings.Contains(text, note) {
					t.Errorf("no note says %q: %s", note, text)
				}
			}
		})
	}
}

func TestProvisionerWithKubeletSettings(t *testing.T) {
	p := readProvisioner(t, "providerRef: {name: mine}\nkubeletConfiguration: {podsPerCore: 4}")
	template := &v1alpha1.AWSNodeTemplate{}
	template.Spec.Tags = map[string]string{"team": "blue"}
	got, problems := Provisioner(p, template, target())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	class := want(t, `{metadata: {name: provisioner-default}, spec: {tags: {team: blue}, kubelet: {podsPerCore: 4}}}`)
	if missing := contains("class", fields(t, got.Class), class); missing != "" {
		t.Error(missing)
	}
	if got.NodePool.Spec.Template.Spec.NodeClassRef.Name != "provisioner-default" {
		t.Errorf("the pool refers to %v", got.NodePool.Spec.Template.Spec.NodeClassRef)
	}
}

func TestObjectsWithoutAName(t *testing.T) {
	p := readProvisioner(t, `{provider: {}}`)
	p.Name = ""
	_, ofProvisioner := Provisioner(p, nil, target())
	_, _, ofTemplate := AWSNodeTemplate(&v1alpha1.AWSNodeTemplate{}, target())
	for _, problems := range [][]Problem{ofProvisioner, ofTemplate} {
		if len(problems) != 1 || problems[0].Field != "metadata.name" || !strings.Contains(problems[0].Fix, "a name") {
			t.Errorf("problems %v, want one with metadata.name", problems)
		}
	}
}

func TestProvisionerThatCantBeSaid(t *testing.T) {
	cases := []struct{ name, spec, field, fix string }{
		{"no provider", `{}`, "spec.providerRef", "spec.provider to {}"},
		{"two providers", `{provider: {}, providerRef: {name: a}}`, "spec.provider", "remove one"},
		{"a field that is not known", `{provider: {instanceProfil: a}}`, "spec.provider.instanceProfil",
			"write instanceProfile"},
		{"a wrong type", `{provider: {tags: [a]}}`, "spec.provider", "AWSNodeTemplate"},
		{"a field of templates only", `{provider: {userData: a}}`, "spec.provider.userData", "spec.providerRef"},
		{"no object", `{provider: []}`, "spec.provider", "use {}"},
		{"a launch template", `{provider: {launchTemplate: mine}}`, "spec.provider.launchTemplate", "other fields"},
		{"Ubuntu without images", `{provider: {amiFamily: Ubuntu}}`, "spec.provider.amiFamily", "amiSelector"},
		{"ids and tags", `{provider: {subnetSelector: {aws-ids: subnet-1, a: b}}}`, "spec.provider.subnetSelector",
			"ids alone"},
		{"a tag without a value", `{provider: {subnetSelector: {a: ""}}}`, "spec.provider.subnetSelector", "write *"},
		{"a size with a fraction", `{provider: {blockDeviceMappings: [{ebs: {volumeSize: 512Mi}}]}}`,
			"spec.provider.blockDeviceMappings[0].ebs.volumeSize", "100Gi"},
		{"another kind", `{providerRef: {kind: GCPNodeTemplate, apiVersion: example.com/v1, name: a}}`,
			"spec.providerRef.kind", "AWSNodeTemplate"},
		{"a template that is not there", `{providerRef: {name: a}, kubeletConfiguration: {maxPods: 4}}`,
			"spec.providerRef.name", "create"},
		{"two ways to lose nodes", `{provider: {}, ttlSecondsAfterEmpty: 1, consolidation: {enabled: true}}`,
			"spec.ttlSecondsAfterEmpty", "remove one"},
		{"a label of the controller", `{provider: {}, labels: {karpenter.sh/provisioner-name: a}}`,
			"spec.labels[karpenter.sh/provisioner-name]", "remove"},
		{"a requirement of the controller",
			`{provider: {}, requirements: [{key: karpenter.sh/provisioner-name, operator: Exists}]}`,
			"spec.requirements[0].key", "remove"},
		{"an operator", `{provider: {}, requirements: [{key: a, operator: Near}]}`, "spec.requirements[0].operator",
			"NotIn"},
		{"a negative limit", `{provider: {}, limits: {resources: {cpu: -5, memory: 1Gi}}}`, "spec.limits.resources.cpu",
			"0 or more"},
		{"a negative time until empty nodes go", `{provider: {}, ttlSecondsAfterEmpty: -30}`,
			"spec.ttlSecondsAfterEmpty", "0 or more"},
		{"a negative age", `{provider: {}, ttlSecondsUntilExpired: -1}`, "spec.ttlSecondsUntilExpired", "0 or more"},
		{"a family that is not there", `{provider: {amiFamily: AL22}}`, "spec.provider.amiFamily", "AL2023"},
		{"an effect", `{provider: {}, taints: [{key: a}]}`, "spec.taints[0].effect", "NoExecute"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, problems := Provisioner(readProvisioner(t, tc.spec), nil, target())
			if len(problems) != 1 || problems[0].Field != tc.field || !strings.Contains(problems[0].Fix, tc.fix) {
				t.Errorf("problems are %v, want one about %s whose fix says %q", problems, tc.field, tc.fix)
			}
		})
	}
	long := readProvisioner(t, `provider: {}`)
	long.Name = strings.Repeat("a", 64)
	if _, problems := Provisioner(long, nil, target()); len(problems) != 1 || problems[0].Field != "metadata.name" {
		t.Errorf("a long name gives %v", problems)
	}
	if name := ClassName(strings.Repeat("a", 63)); len(name) != 63 || name == ClassName(strings.Repeat("a", 62)+"b") {
		t.Errorf("the class of a long name is %s", name)
	}
}

func TestAWSNodeTemplate(t *testing.T) {
	cases := []struct{ name, spec, class string }{
		{"images by id", `amiSelector: {"aws::ids": "ami-1,ami-2"}`,
			`spec: {amiFamily: AL2, amiSelectorTerms: [{id: ami-1}, {id: ami-2}]}`},
		{
			"images by name and owner",
			`{amiFamily: Custom, amiSelector: {"aws::name": "a,b", "aws::owners": "self,123456789012"}}`,
			`spec: {amiFamily: Custom, amiSelectorTerms: [{name: a, owner: self}, {name: a, owner: "123456789012"}, ` +
				`{name: b, owner: self}, {name: b, owner: "123456789012"}]}`,
		},
		{"images by tags", `amiSelector: {stage: "prod,canary", os: "*"}`,
			`spec: {amiSelectorTerms: [{tags: {os: "*", stage: prod}}, {tags: {os: "*", stage: canary}}]}`},
		{"values of tags", `subnetSelector: {Name: "one, two"}`,
			`spec: {subnetSelectorTerms: [{tags: {Name: one}}, {tags: {Name: two}}]}`},
		{"Ubuntu", `{amiFamily: Ubuntu, amiSelector: {"aws::ids": ami-1}}`,
			`spec: {amiFamily: AL2, amiSelectorTerms: [{id: ami-1}], blockDeviceMappings: [{deviceName: /dev/sda1, ` +
				`rootVolume: true, ebs: {volumeSize: 20Gi, volumeType: gp3, encrypted: true}}]}`},
		{"Windows", `amiFamily: Windows2022`,
			`spec: {amiFamily: null, amiSelectorTerms: [{alias: windows2022@latest}]}`},
		{"the rest", `{userData: hello, detailedMonitoring: true, context: c, instanceProfile: p}`,
			`spec: {userData: hello, detailedMonitoring: true, context: c, instanceProfile: p, role: null}`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			template := &v1alpha1.AWSNodeTemplate{}
			template.Name = "mine"
			if err := yaml.UnmarshalStrict([]byte(tc.spec), &template.Spec); err != nil {
				t.Fatal(err)
			}
			class, _, problems := AWSNodeTemplate(template, target())
			if len(problems) > 0 || class.Name != "mine" {
				t.Fatalf("class %s, problems %v", class.Name, problems)
			}
			if missing := contains("class", fields(t, class), want(t, tc.class)); missing != "" {
				t.Error(missing)
			}
		})
	}
	for spec, field := range map[string]string{
		`amiFamily: Custom`: "spec.amiSelector",
		`amiFamily: al2023`: "spec.amiFamily",
		`{amiFamily: AL22, amiSelector: {"aws::ids": ami-1}}`:     "spec.amiFamily",
		`amiSelector: {"aws::owners": self}`:                      "spec.amiSelector",
		`amiSelector: {"aws::ids": ami-1, "aws::name": a}`:        "spec.amiSelector",
		`subnetSelector: {"aws::name": a}`:                        "spec.subnetSelector",
		`subnetSelector: {a: "` + strings.Repeat("x,", 31) + `"}`: "spec.subnetSelector",
	} {
		template := &v1alpha1.AWSNodeTemplate{}
		template.Name = "mine"
		if err := yaml.UnmarshalStrict([]byte(spec), &template.Spec); err != nil {
			t.Fatal(err)
		}
		if _, _, problems := AWSNodeTemplate(template, target()); len(problems) != 1 || problems[0].Field != field {
			t.Errorf("%s gives %v, want one problem with %s", spec, problems, field)
		}
	}
}
