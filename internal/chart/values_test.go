package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestGeneratedFilesAreCurrent: the schema, the names and the page follow from values.yaml.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := derived(root)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join(root, path))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what values.yaml gives (%v): run make generate", path, err)
		}
	}
}

func TestLint(t *testing.T) {
	for _, chart := range []string{"karpenter", "karpenter-crd"} {
		out, problems, err := runHelm(t, "lint", "--strict", chartPath(chart))
		if err != nil {
			t.Errorf("%s: %v\n%s%s", chart, err, out, problems)
		}
	}
}

const (
	pods      = "Deployment full:spec/template/spec/"
	container = pods + "containers/main/"
)

// shows says where each value of testdata/every-value.yaml must show: object:path, and what is there as JSON. A path
// without an object is an environment variable of the controller.
func shows() map[string][2]string {
	return map[string][2]string{
		"nameOverride":     {"Service full:spec/selector/app.kubernetes.io~name", `"tenon"`},
		"fullnameOverride": {"Deployment full:metadata/name", `"full"`},
		"additionalLabels": {"ClusterRole full-core:metadata/labels/label", `"l1"`},
		"additionalAnnotations": {"PodDisruptionBudget budget:metadata/annotations/annotation",
			`"a1"`},
		"imagePullPolicy":            {container + "imagePullPolicy", `"Always"`},
		"imagePullSecrets":           {pods + "imagePullSecrets/0/name", `"pull"`},
		"service.annotations":        {"Service full:metadata/annotations/service", `"a2"`},
		"serviceAccount.create":      {"ServiceAccount account:kind", `"ServiceAccount"`},
		"serviceAccount.name":        {pods + "serviceAccountName", `"account"`},
		"serviceAccount.annotations": {"ServiceAccount account:metadata/annotations/account", `"a3"`},
		"additionalClusterRoleRules": {"ClusterRole full-core:rules",
			`{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}`},
		"serviceMonitor.enabled":          {"ServiceMonitor full:spec/endpoints/0/scheme", `"https"`},
		"serviceMonitor.additionalLabels": {"ServiceMonitor full:metadata/labels/monitor", `"l2"`},
		"serviceMonitor.relabelings": {"ServiceMonitor full:spec/endpoints/0/relabelings/0/regex",
			`"r1"`},
		"serviceMonitor.metricRelabelings": {"ServiceMonitor full:spec/endpoints/0/metricRelabelings/0/regex",
			`"r2"`},
		"serviceMonitor.endpointConfig": {"ServiceMonitor full:spec/endpoints/0/interval", `"33s"`},
		"serviceMonitor.sampleLimit":    {"ServiceMonitor full:spec/sampleLimit", `4711`},
		"prometheusRule.enabled": {"PrometheusRule full:spec/groups/0/rules/0/alert",
			`"TenonNodesInVain"`},
		"prometheusRule.additionalLabels": {"PrometheusRule full:metadata/labels/rule", `"l3"`},
		"dashboards.enabled": {"ConfigMap full-dashboard-capacity:data/capacity.json",
			`\"panels\"`},
		"dashboards.labels": {"ConfigMap full-dashboard-capacity:metadata/labels/board",
			`"l4"`},
		"dashboards.annotations": {"ConfigMap full-dashboard-capacity:metadata/annotations/board",
			`"a4"`},
		"dashboards.namespace": {"ConfigMap full-dashboard-capacity:metadata/namespace",
			`"boards"`},
		"replicas":             {"Deployment full:spec/replicas", `3`},
		"revisionHistoryLimit": {"Deployment full:spec/revisionHistoryLimit", `4`},
		"strategy": {"Deployment full:spec/strategy/rollingUpdate/maxUnavailable",
			`2`},
		"podLabels":                          {"Deployment full:spec/template/metadata/labels/pod", `"l5"`},
		"podAnnotations":                     {"Deployment full:spec/template/metadata/annotations/pod", `"a5"`},
		"podDisruptionBudget.name":           {"PodDisruptionBudget budget:kind", `"PodDisruptionBudget"`},
		"podDisruptionBudget.maxUnavailable": {"PodDisruptionBudget budget:spec/maxUnavailable", `2`},
		"podSecurityContext":                 {pods + "securityContext/fsGroup", `7`},
		"priorityClassName":                  {pods + "priorityClassName", `"high"`},
		"terminationGracePeriodSeconds":      {pods + "terminationGracePeriodSeconds", `44`},
		"hostNetwork":                        {pods + "hostNetwork", `true`},
		"schedulerName":                      {pods + "schedulerName", `"other"`},
		"dnsPolicy":                          {pods + "dnsPolicy", `"Default"`},
		"dnsConfig":                          {pods + "dnsConfig/nameservers/0", `"192.0.2.1"`},
		"initContainers":                     {pods + "initContainers/first/image", `"init"`},
		"nodeSelector":                       {pods + "nodeSelector/disk", `"ssd"`},
		"affinity": {pods +
			"affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/podAffinityTerm/labelSelector/matchLabels/app.kubernetes.io~name", `"tenon"`},
		"topologySpreadConstraints": {pods +
			"topologySpreadConstraints/0/labelSelector/matchLabels/app.kubernetes.io~instance", `"karpenter"`},
		"tolerations":  {pods + "tolerations", `"key":"system"`},
		"extraVolumes": {pods + "volumes/extra/emptyDir", `{}`},
		"controller.containerName": {container +
			"env/MEMORY_LIMIT/valueFrom/resourceFieldRef/containerName", `"main"`},
		"controller.image.repository": {container + "image", `"example.com/mine:`},
		"controller.image.tag":        {container + "image", `:v9@`},
		"controller.image.digest": {container + "image",
			`@sha256:0000000000000000000000000000000000000000000000000000000000000001"`},
		"controller.env":     {"LEADER_ELECTION_NAME", `"mine"`},
		"controller.envFrom": {container + "envFrom/0/secretRef/name", `"more"`},
		"controller.securityContext": {container + "securityContext/seccompProfile/localhostProfile",
			`"p"`},
		"controller.resources":                      {container + "resources/limits/memory", `"2Gi"`},
		"controller.extraVolumeMounts":              {container + "volumeMounts/extra/mountPath", `"/extra"`},
		"controller.sidecarContainer":               {pods + "containers/beside/image", `"side"`},
		"controller.sidecarVolumeMounts":            {pods + "containers/beside/volumeMounts", `/side`},
		"controller.metrics.port":                   {container + "ports/http-metrics/containerPort", `9080`},
		"controller.metrics.secure":                 {"SECURE_METRICS", `"true"`},
		"controller.metrics.certificateSecret":      {pods + "volumes/metrics-certificate/secret/secretName", `"cert"`},
		"controller.healthProbe.port":               {container + "ports/http/containerPort", `9081`},
		"webhook.enabled":                           {"DISABLE_WEBHOOK", `"true"`},
		"webhook.port":                              {"WEBHOOK_PORT", `"9443"`},
		"logLevel":                                  {"LOG_LEVEL", `"error"`}, // controller.env wins
		"logOutputPaths":                            {"LOG_OUTPUT_PATHS", `"stdout,/tmp/log"`},
		"logErrorOutputPaths":                       {"LOG_ERROR_OUTPUT_PATHS", `"stderr,/tmp/errors"`},
		"settings.cloudProvider":                    {"CLOUD_PROVIDER", `"aws"`},
		"settings.batchMaxDuration":                 {"BATCH_MAX_DURATION", `"11s"`},
		"settings.batchIdleDuration":                {"BATCH_IDLE_DURATION", `"2s"`},
		"settings.preferencePolicy":                 {"PREFERENCE_POLICY", `"Ignore"`},
		"settings.minValuesPolicy":                  {"MIN_VALUES_POLICY", `"BestEffort"`},
		"settings.clusterCABundle":                  {"CLUSTER_CA_BUNDLE", `"Q0E="`},
		"settings.clusterName":                      {"CLUSTER_NAME", `"mine"`},
		"settings.clusterEndpoint":                  {"CLUSTER_ENDPOINT", `"https://mine.example"`},
		"settings.defaultInstanceProfile":           {"AWS_DEFAULT_INSTANCE_PROFILE", `"profile"`},
		"settings.isolatedVPC":                      {"ISOLATED_VPC", `"true"`},
		"settings.eksControlPlane":                  {"EKS_CONTROL_PLANE", `"true"`},
		"settings.vmMemoryOverheadPercent":          {"VM_MEMORY_OVERHEAD_PERCENT", `"0.05"`},
		"settings.interruptionQueue":                {"INTERRUPTION_QUEUE", `"queue"`},
		"settings.enableZonalShift":                 {"ENABLE_ZONAL_SHIFT", `"true"`},
		"settings.reservedENIs":                     {"RESERVED_ENIS", `"1"`},
		"settings.ignoreDRARequests":                {"IGNORE_DRA_REQUESTS", `"false"`},
		"settings.disableClusterStateObservability": {"DISABLE_CLUSTER_STATE_OBSERVABILITY", `"true"`},
		"settings.disableDryRun":                    {"DISABLE_DRY_RUN", `"true"`},
		"settings.amiRefreshInterval":               {"AMI_REFRESH_INTERVAL", `"2m"`},
		"settings.subnetRefreshInterval":            {"SUBNET_REFRESH_INTERVAL", `"3m"`},
		"settings.schedulerConfig": {"ClusterRole full-scheduler-config:rules/0/resources/0",
			`"services"`},
		"settings.disableOlderKinds": {"DISABLE_OLDER_KINDS", `"true"`},
		"settings.placement": {"ClusterRole full-placement-bind:rules/0/resources/0",
			`"pods/binding"`},
		"settings.featureGates":    {"FEATURE_GATES", `NodeOverlay=true`},
		"settings.awsFeatureGates": {"AWS_FEATURE_GATES", `"NodeClassCEL=true"`},
	}
}

// TestEveryValueReachesItsPlace: each value is set to something else than its default, and shows where it should.
func TestEveryValueReachesItsPlace(t *testing.T) {
	objects, problems := render(t, "karpenter", append(operatorThere, "--values", filepath.Join("testdata",
		"every-value.yaml"))...)
	if objects == nil {
		t.Fatal(problems)
	}
	given := everyValue(t)
	values, err := readValues(filepath.Join(root, "charts", "karpenter", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if v.group && v.text == "" {
			continue
		}
		set := at(given, strings.ReplaceAll(v.path, ".", "/"))
		if usual := usualOf(t, v); set == nil || jsonOf(t, set) == usual && v.path != "serviceAccount.create" {
			t.Errorf("testdata/every-value.yaml does not set %s to something else than %s", v.path, usual)
		}
		if strings.Contains(v.path, "eatureGates.") {
			name := v.path[strings.LastIndex(v.path, ".")+1:]
			expect(t, objects, v.path, [2]string{map[bool]string{true: "AWS_FEATURE_GATES",
				false: "FEATURE_GATES"}[strings.Contains(v.path, "aws")],
				fmt.Sprintf("%s%s=%v", strings.ToUpper(name[:1]), name[1:], set)})
			continue
		}
		place, known := shows()[v.path]
		if known {
			expect(t, objects, v.path, place)
		} else if !v.group {
			t.Errorf("no test says where %s shows", v.path)
		}
	}
	for _, fixed := range []struct{ path, want string }{{"runAsUser", "65532"}, {"runAsNonRoot", "true"},
		{"allowPrivilegeEscalation", "false"}, {"readOnlyRootFilesystem", "true"}, {"privileged", "null"}} {
		expect(t, objects, "the fixed "+fixed.path, [2]string{container + "securityContext/" + fixed.path, fixed.want})
	}
}

func everyValue(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "every-value.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var given map[string]any
	if err := yaml.Unmarshal(text, &given); err != nil {
		t.Fatal(err)
	}
	return given
}

func usualOf(t *testing.T, v value) string {
	t.Helper()
	var usual any
	if err := yaml.Unmarshal([]byte(v.usual), &usual); err != nil {
		t.Fatalf("the default of %s: %v", v.path, err)
	}
	return jsonOf(t, usual)
}

func jsonOf(t *testing.T, content any) string {
	t.Helper()
	out, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
