{{/* From values to the controller's settings. */}}

{{/* The first of a list that is not empty, without the quotation marks that AWS's command line puts around JSON. */}}
{{- define "karpenter.first" -}}
{{- $found := "" -}}
{{- range . -}}
{{- $text := "" -}}
{{- if not (kindIs "invalid" .) -}}{{- $text = toString . | trim | trimAll "\"'" | trim -}}{{- end -}}
{{- if and (eq $found "") (ne $text "") -}}{{- $found = $text -}}{{- end -}}
{{- end -}}
{{- $found -}}
{{- end -}}

{{/* A text in which an expression of Helm stands, such as {{ .Values.global.cluster }}, with its value; charts that have this one as a
     dependency write such. Takes a dict: root, text. */}}
{{- define "karpenter.filled" -}}
{{- if contains "{{" .text -}}{{- tpl .text .root | trim -}}{{- else -}}{{- .text -}}{{- end -}}
{{- end -}}

{{/* The settings that have had other names, newest name first. */}}
{{- define "karpenter.clusterName" -}}
{{- $aws := default dict .Values.settings.aws -}}
{{- $name := include "karpenter.first" (list .Values.settings.clusterName $aws.clusterName .Values.clusterName .Values.controller.clusterName) -}}
{{- include "karpenter.filled" (dict "root" . "text" $name) -}}
{{- end -}}

{{- define "karpenter.clusterEndpoint" -}}
{{- $aws := default dict .Values.settings.aws -}}
{{- include "karpenter.first" (list .Values.settings.clusterEndpoint $aws.clusterEndpoint .Values.clusterEndpoint .Values.controller.clusterEndpoint) -}}
{{- end -}}

{{- define "karpenter.interruptionQueue" -}}
{{- $aws := default dict .Values.settings.aws -}}
{{- $queue := include "karpenter.first" (list .Values.settings.interruptionQueue $aws.interruptionQueueName) -}}
{{- include "karpenter.filled" (dict "root" . "text" $queue) -}}
{{- end -}}

{{/* A setting whose older name holds only while the newer one has its default. Takes a list: newer, its default, older. */}}
{{- define "karpenter.newer" -}}
{{- if and (eq (toString (index . 0)) (index . 1)) (not (kindIs "invalid" (index . 2))) -}}
{{- index . 2 -}}
{{- else -}}
{{- index . 0 -}}
{{- end -}}
{{- end -}}

{{- define "karpenter.cloudProvider" -}}
{{- if .Values.settings.cloudProvider -}}
{{- .Values.settings.cloudProvider -}}
{{- else if or (include "karpenter.clusterName" .) (include "karpenter.givesClusterName" .) -}}
aws
{{- else -}}
{{- include "karpenter.checkValues" . -}}{{- /* the name may only be mistyped */ -}}
{{- fail "settings.clusterName is empty: give the name of the EKS cluster, or settings.cloudProvider=kwok for simulated nodes, as in the lab" -}}
{{- end -}}
{{- end -}}

{{/* Not empty if the environment that the user adds may name the cluster. */}}
{{- define "karpenter.givesClusterName" -}}
{{- if .Values.controller.envFrom -}}yes{{- end -}}
{{- range .Values.controller.env -}}
{{- if has .name (list "CLUSTER_NAME" "CLOUD_PROVIDER") -}}yes{{- end -}}
{{- end -}}
{{- end -}}

{{/* Documents of 2021 set the cluster's name under controller, count on one replica, and read the log of "the" pod. */}}
{{- define "karpenter.replicas" -}}
{{- if and .Values.controller.clusterName (eq (int .Values.replicas) 2) -}}1{{- else -}}{{- .Values.replicas -}}{{- end -}}
{{- end -}}

{{/* The port on which objects are converted; 0 for none. What the user gives the container wins. */}}
{{- define "karpenter.webhookPort" -}}
{{- if not .Values.webhook -}}
{{- fail "webhook and other defaults of this chart are missing, as if helm upgrade had --reuse-values, which keeps those of the chart before: use --reset-then-reuse-values" -}}
{{- end -}}
{{- $port := toString .Values.webhook.port -}}
{{- if ne (toString .Values.webhook.enabled) "true" -}}{{- $port = "0" -}}{{- end -}}
{{- range .Values.controller.env -}}
{{- if and (eq .name "WEBHOOK_PORT") .value -}}{{- $port = toString .value -}}{{- end -}}
{{- end -}}
{{- $port -}}
{{- end -}}

{{/* Name=true,Other=false. */}}
{{- define "karpenter.gates" -}}
{{- $gates := list -}}
{{- range $name, $on := . -}}
{{- $gates = append $gates (printf "%s%s=%v" (upper (substr 0 1 $name)) (substr 1 -1 $name) $on) -}}
{{- end -}}
{{- join "," $gates -}}
{{- end -}}

{{/* Settings by the name of their environment variable; an empty one is left out. */}}
{{- define "karpenter.settings" -}}
{{- $s := .Values.settings -}}
KARPENTER_SERVICE: {{ include "karpenter.fullname" . | quote }}
CLOUD_PROVIDER: {{ include "karpenter.cloudProvider" . | quote }}
LOG_LEVEL: {{ include "karpenter.newer" (list .Values.logLevel "info" .Values.controller.logLevel) | quote }}
LOG_OUTPUT_PATHS: {{ join "," .Values.logOutputPaths | quote }}
LOG_ERROR_OUTPUT_PATHS: {{ join "," .Values.logErrorOutputPaths | quote }}
{{- /* The default is left unsaid: in the lab, where the controllers share a machine, any free port will do. */}}
{{- if ne (toString .Values.webhook.port) "8443" }}
WEBHOOK_PORT: {{ .Values.webhook.port | quote }}
{{- end }}
{{- if eq (include "karpenter.webhookPort" .) "0" }}
DISABLE_WEBHOOK: "true"
{{- end }}
METRICS_PORT: {{ .Values.controller.metrics.port | quote }}
HEALTH_PROBE_PORT: {{ .Values.controller.healthProbe.port | quote }}
BATCH_MAX_DURATION: {{ include "karpenter.newer" (list $s.batchMaxDuration "10s" .Values.controller.batchMaxDuration) | quote }}
BATCH_IDLE_DURATION: {{ include "karpenter.newer" (list $s.batchIdleDuration "1s" .Values.controller.batchIdleDuration) | quote }}
PREFERENCE_POLICY: {{ $s.preferencePolicy | quote }}
MIN_VALUES_POLICY: {{ $s.minValuesPolicy | quote }}
IGNORE_DRA_REQUESTS: {{ $s.ignoreDRARequests | quote }}
DISABLE_CLUSTER_STATE_OBSERVABILITY: {{ $s.disableClusterStateObservability | quote }}
SCHEDULER_CONFIG: {{ $s.schedulerConfig | quote }}
PLACEMENT: {{ $s.placement | quote }}
DISABLE_OLDER_KINDS: {{ $s.disableOlderKinds | quote }}
FEATURE_GATES: {{ include "karpenter.gates" $s.featureGates | quote }}
{{- if eq (toString .Values.controller.metrics.secure) "true" }}
SECURE_METRICS: "true"
{{- if .Values.controller.metrics.certificateSecret }}
METRICS_CERT_DIR: /etc/karpenter/metrics
{{- end }}
{{- end }}
{{- if ne (include "karpenter.cloudProvider" .) "kwok" }}
{{ include "karpenter.awsSettings" . }}
{{- end }}
{{- end -}}

{{- define "karpenter.awsSettings" -}}
{{- $s := .Values.settings -}}
{{- $aws := default dict $s.aws -}}
CLUSTER_NAME: {{ include "karpenter.clusterName" . | quote }}
CLUSTER_ENDPOINT: {{ include "karpenter.clusterEndpoint" . | quote }}
CLUSTER_CA_BUNDLE: {{ include "karpenter.first" (list $s.clusterCABundle $aws.clusterCABundle) | quote }}
INTERRUPTION_QUEUE: {{ include "karpenter.interruptionQueue" . | quote }}
AWS_DEFAULT_INSTANCE_PROFILE: {{ include "karpenter.first" (list $s.defaultInstanceProfile $aws.defaultInstanceProfile (default dict .Values.aws).defaultInstanceProfile) | quote }}
ISOLATED_VPC: {{ include "karpenter.newer" (list $s.isolatedVPC "false" $aws.isolatedVPC) | quote }}
EKS_CONTROL_PLANE: {{ $s.eksControlPlane | quote }}
VM_MEMORY_OVERHEAD_PERCENT: {{ include "karpenter.newer" (list $s.vmMemoryOverheadPercent "0.075" $aws.vmMemoryOverheadPercent) | quote }}
ENABLE_ZONAL_SHIFT: {{ $s.enableZonalShift | quote }}
RESERVED_ENIS: {{ include "karpenter.newer" (list $s.reservedENIs "0" $aws.reservedENIs) | quote }}
DISABLE_DRY_RUN: {{ $s.disableDryRun | quote }}
AMI_REFRESH_INTERVAL: {{ $s.amiRefreshInterval | quote }}
SUBNET_REFRESH_INTERVAL: {{ $s.subnetRefreshInterval | quote }}
AWS_FEATURE_GATES: {{ include "karpenter.gates" $s.awsFeatureGates | quote }}
{{- end -}}

{{/* The container's environment. What the user gives wins: a name that comes twice is refused by the API server. */}}
{{- define "karpenter.env" -}}
{{- $env := list -}}
{{- $root := . -}}
{{- range $name, $value := fromYaml (include "karpenter.settings" .) -}}
{{- $value = include "karpenter.filled" (dict "root" $root "text" $value) -}}
{{- if ne $value "" -}}{{- $env = append $env (dict "name" $name "value" $value) -}}{{- end -}}
{{- end -}}
{{- $of := include "karpenter.containerName" . -}}
{{- $env = concat $env (list
  (dict "name" "SYSTEM_NAMESPACE" "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.namespace")))
  (dict "name" "CPU_REQUESTS" "valueFrom" (dict "resourceFieldRef" (dict "containerName" $of "resource" "requests.cpu" "divisor" "1m")))
  (dict "name" "MEMORY_LIMIT" "valueFrom" (dict "resourceFieldRef" (dict "containerName" $of "resource" "limits.memory" "divisor" "0")))) -}}
{{- $own := list -}}
{{- range .Values.controller.env -}}{{- $own = append $own .name -}}{{- end -}}
{{- range $env -}}
{{- if not (has .name $own) }}
{{ toYaml (list .) }}
{{- end -}}
{{- end -}}
{{- with .Values.controller.env }}
{{ toYaml . }}
{{- end -}}
{{- end -}}
