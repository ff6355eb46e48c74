package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// expect finds a text in a place: "object:path", or the name of an environment variable of the controller.
func expect(t *testing.T, objects map[string]*unstructured.Unstructured, what string, place [2]string) {
	t.Helper()
	name, path, found := strings.Cut(place[0], ":")
	if !found {
		name, path = theDeployment(objects), "spec/template/spec/containers/0/env/"+place[0]+"/value"
	}
	object, ok := objects[name]
	if !ok {
		t.Errorf("%s: there is no %s among %v", what, name, slices.Sorted(maps.Keys(objects)))
		return
	}
	if got := jsonOf(t, at(object.Object, path)); !strings.Contains(got, place[1]) {
		t.Errorf("%s: %s is %.300s, want %s", what, place[0], got, place[1])
	}
}

func theDeployment(objects map[string]*unstructured.Unstructured) string {
	for name := range objects {
		if strings.HasPrefix(name, "Deployment ") {
			return name
		}
	}
	return ""
}

// TestDocumentsCommandLines: the flags of three generations of documents, as they are printed there.
func TestDocumentsCommandLines(t *testing.T) {
	// AWS's command line prints JSON
	endpoint := `controller.clusterEndpoint="https://0123456789.gr7.us-east-1.eks.amazonaws.com"`
	account := [2]string{"Deployment karpenter:spec/template/spec/serviceAccountName", `"karpenter"`}
	for _, document := range []struct {
		name  string
		flags []string
		want  [][2]string
	}{
		{"2021", []string{"--skip-crds", "--set", "serviceAccount.create=false", "--version", "0.5.0", "--set",
			"controller.clusterName=eks-karpenter-demo", "--set", endpoint, "--set", "defaultProvisioner.create=false"},
			[][2]string{{"CLUSTER_NAME", `"eks-karpenter-demo"`},
				{"CLUSTER_ENDPOINT", `"https://0123456789.gr7.us-east-1.eks.amazonaws.com"`},
				{"Deployment karpenter:spec/replicas", "1"}, account}},
		{"v1beta1", []string{"--version", "v0.32.0", "--set",
			`serviceAccount.annotations."eks\.amazonaws\.com/role-arn"=arn:aws:iam::123456789012:role/karpenter`,
			"--set", "settings.aws.clusterName=demo",
			"--set", "settings.aws.defaultInstanceProfile=KarpenterNodeInstanceProfile", "--set",
			"settings.aws.interruptionQueueName=q"},
			[][2]string{{"CLUSTER_NAME", `"demo"`}, {"AWS_DEFAULT_INSTANCE_PROFILE", `"KarpenterNodeInstanceProfile"`},
				{"INTERRUPTION_QUEUE", `"q"`},
				{"ServiceAccount karpenter:metadata/annotations/eks.amazonaws.com~role-arn",
					`"arn:aws:iam::123456789012:role/karpenter"`}, account}},
		{"v1", []string{"--version", "1.1.1", "--set", "settings.clusterName=myCluster", "--set",
			"settings.interruptionQueue=myCluster", "--set", "controller.resources.requests.cpu=1", "--set",
			"controller.resources.requests.memory=1Gi",
			"--set", "controller.resources.limits.cpu=1", "--set", "controller.resources.limits.memory=1Gi", "--set",
			`serviceAccount.annotations."eks.amazonaws.com/role-arn"=arn:aws:iam::012345678901:role/myCluster-karpenter`},
			[][2]string{{"CLUSTER_NAME", `"myCluster"`}, {"INTERRUPTION_QUEUE", `"myCluster"`},
				{"ServiceAccount karpenter:metadata/annotations/eks.amazonaws.com~role-arn",
					`"arn:aws:iam::012345678901:role/myCluster-karpenter"`},
				{"Deployment karpenter:spec/template/spec/containers/0/resources/limits", `{"cpu":1,"memory":"1Gi"}`},
				account}},
		{"an account of one's own", []string{"--set", "settings.clusterName=c", "--set", "serviceAccount.create=false"},
			[][2]string{{account[0], `"default"`}, {"ClusterRoleBinding karpenter-core:subjects/0/name", `"default"`}}},
		{"older names of the rest", []string{"--set",
			"clusterName=c,clusterEndpoint=https://c,controller.logLevel=debug,controller.batchMaxDuration=20s,settings.aws.isolatedVPC=true,settings.aws.vmMemoryOverheadPercent=0.1,settings.aws.reservedENIs=2,settings.aws.clusterCABundle=Q0E="},
			[][2]string{{"CLUSTER_NAME", `"c"`}, {"CLUSTER_ENDPOINT", `"https://c"`}, {"LOG_LEVEL", `"debug"`},
				{"BATCH_MAX_DURATION", `"20s"`}, {"ISOLATED_VPC", `"true"`}, {"VM_MEMORY_OVERHEAD_PERCENT", `"0.1"`},
				{"RESERVED_ENIS", `"2"`}, {"CLUSTER_CA_BUNDLE", `"Q0E="`}}},
		{"the newer name wins", []string{"--set",
			"settings.clusterName=new,settings.aws.clusterName=old,controller.clusterName=older"},
			[][2]string{{"CLUSTER_NAME", `"new"`}}},
		{"the name in the environment", []string{"--set",
			"controller.env[0].name=CLUSTER_NAME,controller.env[0].value=e"}, [][2]string{{"CLUSTER_NAME", `"e"`},
			{"CLOUD_PROVIDER", `"aws"`}}},
		{"text for truth", []string{"--set-string",
			"settings.clusterName=1,settings.isolatedVPC=true,serviceAccount.create=false,hostNetwork=false"},
			[][2]string{{"CLUSTER_NAME", `"1"`}, {"ISOLATED_VPC", `"true"`},
				{"Deployment karpenter:spec/template/spec/hostNetwork", "null"}}},
		{"expressions of a chart that has this one as a part", []string{"--set", "global.a=prod,global.no=false",
			"--set-json",
			`settings={"clusterName": "{{ .Values.global.a }}", "interruptionQueue": "{{ printf \"%s-queue\" ` +
				`.Values.global.a }}", "isolatedVPC": "{{ .Values.global.no }}", "batchMaxDuration": "{{ \"7s\" }}", ` +
				`"reservedENIs": "{{ 1 }}"}`},
			[][2]string{{"CLUSTER_NAME", `"prod"`}, {"INTERRUPTION_QUEUE", `"prod-queue"`}, {"ISOLATED_VPC", `"false"`},
				{"BATCH_MAX_DURATION", `"7s"`}, {"RESERVED_ENIS", `"1"`}}},
		{"an account that hands out no token", []string{"--set", "settings.clusterName=c,controller.containerName="},
			[][2]string{{"ServiceAccount karpenter:automountServiceAccountToken", "false"},
				{"Deployment karpenter:spec/template/spec/automountServiceAccountToken", "true"},
				{"Deployment karpenter:spec/template/spec/containers/0/name", `"controller"`}}},
		{"a part of another chart", []string{"--set", "global.a=b,enabled=true,settings.clusterName=c"},
			[][2]string{{"CLUSTER_NAME", `"c"`}}},
	} {
		objects, problems := render(t, "karpenter", document.flags...)
		if objects == nil {
			t.Errorf("%s: %s", document.name, problems)
			continue
		}
		for _, place := range append(document.want, [2]string{theDeployment(objects) + ":spec/template/metadata/labels",
			`"karpenter":"controller"`},
			[2]string{theDeployment(objects) + ":spec/template/metadata/labels",
				`"app.kubernetes.io/name":"karpenter"`}) {
			expect(t, objects, document.name, place)
		}
	}
}

// TestMistakesAreNamed: what the chart does not know or can't use is refused, with what was probably meant.
func TestMistakesAreNamed(t *testing.T) {
	for _, try := range []struct {
		set  string
		want []string
	}{
		{"settings.clusterNme=c", []string{"settings.clusterNme is not a value of this chart; did you mean " +
			"settings.clusterName?"}},
		{"resources.limits.cpu=1", []string{"resources is not", "did you mean controller.resources?"}},
		{"setings.clusterName=c", []string{"setings is not a value of this chart; did you mean settings?"}},
		{"settings.featureGate.staticCapacity=true", []string{"did you mean settings.featureGates?"}},
		{"replica=3", []string{"did you mean replicas?"}},
		{"settings.featureGates.spotToSpot=true",
			[]string{"did you mean settings.featureGates.spotToSpotConsolidation?"}},
		{"serviceAccount.annotation.a=b", []string{"did you mean serviceAccount.annotations?"}},
		{"settings.aws.tags.a=b", []string{"settings.aws.tags is not", "spec.tags in the EC2NodeClass"}},
		{"webhook.metrics.port=8001", []string{"webhook.metrics is not", "webhook.enabled and webhook.port"}},
		{"webhook.serviceName=w", []string{"webhook.serviceName is not", "webhook.enabled and webhook.port"}},
		{"webhook.port=none", []string{"port", "integer"}},
		{"qqq=1", []string{"qqq is not", "docs/reference/chart.md"}},
		{"replicas=two", []string{"replicas", "integer"}},
		{"settings.placement=bound", []string{"placement", "'nominate', 'bind'"}},
		{"settings.batchMaxDuration=10", []string{"batchMaxDuration"}},
		{"settings.isolatedVPC=yes", []string{"isolatedVPC"}},
		{"settings.cloudProvider=gcp", []string{"cloudProvider", "'kwok'"}},
		{"logLevel=loud", []string{"logLevel", "'debug'"}},
		{"defaultProvisioner.create=true", []string{"defaultProvisioner.create=true is not offered"}},
		{"settings.clusterName=", []string{"settings.clusterName is empty", "settings.cloudProvider=kwok"}},
	} {
		objects, problems := render(t, "karpenter", "--set", "settings.clusterName=c", "--set", try.set)
		for _, want := range try.want {
			if objects != nil || !strings.Contains(problems, want) {
				t.Errorf("%s: refused with %q, want %q", try.set, problems, want)
			}
		}
	}
	for settings, want := range map[string]string{
		`{"clusterName": "{{ .Values.global.cluster.name }}"}`: "global.cluster.name",
		`{"clusterName": "{{ print }}"}`:                       "settings.clusterName is empty",
	} {
		objects, problems := render(t, "karpenter", "--set-json", "settings="+settings)
		if objects != nil || !strings.Contains(problems, want) {
			t.Errorf("%s: refused with %q, want %q", settings, problems, want)
		}
	}
	for set, want := range map[string]string{
		"additionalAnnotation.a=b": "additionalAnnotation.a is not a value of this chart; the only value is " +
			"additional",
		"webhook.serviceName=karpenter":   "webhook.serviceName is not a value of this chart; it is gone",
		"additionalAnnotations.number=1":  "/additionalAnnotations/number",
		"global.a=b,enabled=true,other=1": "other is not a value of this chart",
	} {
		objects, problems := render(t, "karpenter-crd", "--set", set)
		if objects != nil || !strings.Contains(problems, want) {
			t.Errorf("karpenter-crd, %s: refused with %q, want %q", set, problems, want)
		}
	}
}

// TestDefaultsOfAnotherChart: "helm upgrade --reuse-values" from Karpenter's chart keeps its defaults, and ours are
// missing.
func TestDefaultsOfAnotherChart(t *testing.T) {
	objects, problems := render(t, "karpenter", "--set", "settings.clusterName=c,webhook=null,dashboards=null,"+
		"prometheusRule=null,settings.placement=null,settings.cloudProvider=null,settings.awsFeatureGates=null,controller.metrics.secure=null")
	if objects != nil || !strings.Contains(problems, "use --reset-then-reuse-values") {
		t.Errorf("refused with %q, want what to do", problems)
	}
}

// TestWithoutThePrometheusOperator: where its definitions are missing the rest is installed, as with Karpenter's chart:
// the operator may wait for nodes that only the controller makes.
func TestWithoutThePrometheusOperator(t *testing.T) {
	flags := []string{"--set", "settings.clusterName=c,serviceMonitor.enabled=true,prometheusRule.enabled=true"}
	objects, problems := render(t, "karpenter", flags...)
	if objects == nil {
		t.Fatal(problems)
	}
	for _, name := range []string{"ServiceMonitor karpenter", "PrometheusRule karpenter"} {
		if objects[name] != nil {
			t.Errorf("there is a %s for a cluster that does not know the kind", name)
		}
	}
	objects, problems = render(t, "karpenter", append(flags, operatorThere...)...)
	if objects["ServiceMonitor karpenter"] == nil || objects["PrometheusRule karpenter"] == nil {
		t.Errorf("with the operator there is no ServiceMonitor or no PrometheusRule: %s", problems)
	}
}

// TestTheControllerKnowsItsEnvironment: each variable that the chart sets is a flag of the controller.
func TestTheControllerKnowsItsEnvironment(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "reference", "settings.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"--values", filepath.Join("testdata", "every-value.yaml")},
		{"--set", "settings.cloudProvider=kwok"}} {
		objects, problems := render(t, "karpenter", flags...)
		if objects == nil {
			t.Fatal(problems)
		}
		env, _ := at(objects[theDeployment(objects)].Object, "spec/template/spec/containers/0/env").([]any)
		if len(env) < 15 {
			t.Fatalf("the environment is %v", env)
		}
		for _, one := range env {
			name, _ := at(one, "name").(string)
			flag := "`--" + strings.ReplaceAll(strings.ToLower(name), "_", "-") + "`"
			if name != "SYSTEM_NAMESPACE" && !strings.Contains(string(text), flag) {
				t.Errorf("the chart sets %s, and the controller has no flag %s", name, flag)
			}
			if flags[0] == "--set" && strings.Contains(flag, "cluster-name") {
				t.Errorf("%s is set for simulated nodes, where it means nothing", name)
			}
		}
	}
}

// TestRulesAreThoseOfTheFiles: the chart grants what the files in rbac say, which the end-to-end tests compare with
// what the controller asks for.
func TestRulesAreThoseOfTheFiles(t *testing.T) {
	for flags, files := range map[string][]string{
		"settings.clusterName=c":      {"core", "people", "aws"},
		"settings.cloudProvider=kwok": {"core", "people", "optional/kwok"},
		"settings.clusterName=c,settings.placement=bind,settings.schedulerConfig=x,controller.metrics.secure=true": {
			"core", "people", "aws", "optional/placement-bind", "optional/scheduler-config", "optional/secure-metrics",
		},
	} {
		objects, problems := render(t, "karpenter", "--set", flags)
		if objects == nil {
			t.Fatal(problems)
		}
		want := map[string]bool{}
		for _, file := range files {
			for name, rules := range rulesOf(t, file) {
				want[name] = true
				if got := objects[name]; got == nil || jsonOf(t, got.Object["rules"]) != rules {
					t.Errorf("%s: %s is not that of rbac/%s.yaml", flags, name, file)
				}
			}
		}
		for name, object := range objects {
			if object.Object["rules"] != nil && !want[name] {
				t.Errorf("%s: %s comes from no file", flags, name)
			}
		}
	}
}

func rulesOf(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "charts", "karpenter", "rbac", file+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, document := range regexp.MustCompile(`(?m)^---$`).Split(string(text), -1) {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if rules := object.Object["rules"]; rules != nil {
			out[object.GetKind()+" "+object.GetName()] = jsonOf(t, rules)
		}
	}
	return out
}

// TestDefinitionsOfTheTwoCharts: both charts bring the same definitions, and karpenter-crd annotates them.
func TestDefinitionsOfTheTwoCharts(t *testing.T) {
	objects, problems := render(t, "karpenter-crd", "--set", `additionalAnnotations.helm\.sh/resource-policy=keep`)
	if objects == nil {
		t.Fatal(problems)
	}
	plain, problems := render(t, "karpenter", "--include-crds", "--set", "settings.clusterName=c")
	if plain == nil {
		t.Fatal(problems)
	}
	if len(objects) < 4 {
		t.Fatalf("karpenter-crd has only %d definitions", len(objects))
	}
	for name, object := range objects {
		expect(t, objects, name, [2]string{name + ":metadata/annotations/helm.sh~resource-policy", `"keep"`})
		if other := plain[name]; other == nil || jsonOf(t, other.Object["spec"]) != jsonOf(t, object.Object["spec"]) {
			t.Errorf("the chart karpenter has not the same %s", name)
		}
	}
}

// TestTheWebhooksPort: one value, or the controller's own variable, moves it in every place.
func TestTheWebhooksPort(t *testing.T) {
	for _, try := range []struct{ set, port, variable, off string }{
		{"webhook.enabled=true", "8443", "null", "null"},
		{"webhook.port=9443", "9443", "9443", "null"},
		{"controller.env[0].name=WEBHOOK_PORT,controller.env[0].value=9443", "9443", "9443", "null"},
		{"webhook.enabled=false", "null", "null", "true"},
	} {
		objects, problems := render(t, "karpenter", "--set", "settings.clusterName=c", "--set", try.set)
		if objects == nil {
			t.Fatal(problems)
		}
		for place, want := range map[string]string{
			"Service karpenter:spec/ports/https-webhook/port": try.port,
			container0 + "ports/https-webhook/containerPort":  try.port,
			"WEBHOOK_PORT": try.variable, "DISABLE_WEBHOOK": try.off,
			// With it the Service would lead to a replica that has stopped answering, as long as its pod is there.
			"Service karpenter:spec/publishNotReadyAddresses": "null",
		} {
			expect(t, objects, try.set, [2]string{place, want})
		}
	}
}

// container0 is where the controller's container is if the release is called karpenter.
const container0 = "Deployment karpenter:spec/template/spec/containers/0/"

// TestBesideKarpenter: a release of another name shares no object with one called karpenter in the same namespace,
// which may be Karpenter's.
func TestBesideKarpenter(t *testing.T) {
	both := map[string]bool{}
	for _, release := range []string{"karpenter", "tenon"} {
		objects, problems := renderAs(t, release, "karpenter", "--skip-crds", "--set", "settings.clusterName=c")
		if objects == nil {
			t.Fatal(problems)
		}
		for name := range objects {
			if both[name] {
				t.Errorf("both releases have %s", name)
			}
			both[name] = true
		}
		instance := theDeployment(objects) + ":spec/template/metadata/labels/app.kubernetes.io~instance"
		expect(t, objects, release, [2]string{instance, release})
	}
	if !both["PodDisruptionBudget karpenter"] || !both["PodDisruptionBudget tenon-karpenter"] {
		t.Errorf("the objects are %v", slices.Sorted(maps.Keys(both)))
	}
}

// TestAReleaseOfKarpentersChart can be upgraded to this chart in place: what Kubernetes lets nobody change is called
// and selected as in Karpenter's chart 1.14.
func TestAReleaseOfKarpentersChart(t *testing.T) {
	objects, problems := render(t, "karpenter", "--set", "settings.clusterName=c")
	if objects == nil {
		t.Fatal(problems)
	}
	selector := `{"app.kubernetes.io/instance":"karpenter","app.kubernetes.io/name":"karpenter"}`
	for _, place := range [][2]string{
		{"Deployment karpenter:spec/selector/matchLabels", selector},
		{"Service karpenter:spec/selector", selector},
		{"PodDisruptionBudget karpenter:spec/selector/matchLabels", selector},
		{"ServiceAccount karpenter:metadata/namespace", `"karpenter"`},
		{"ClusterRoleBinding karpenter:roleRef", `"kind":"ClusterRole","name":"karpenter"`},
		{"ClusterRoleBinding karpenter-core:roleRef", `"kind":"ClusterRole","name":"karpenter-core"`},
		{"RoleBinding karpenter:roleRef", `"kind":"Role","name":"karpenter"`},
		{"RoleBinding karpenter-dns:roleRef", `"kind":"Role","name":"karpenter-dns"`},
		{"ClusterRole karpenter-admin:kind", "ClusterRole"},
	} {
		expect(t, objects, "Karpenter's chart", place)
	}
}
