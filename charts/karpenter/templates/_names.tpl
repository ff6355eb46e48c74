{{/* Names, labels and the image. */}}

{{- define "karpenter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "karpenter.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What the Deployment, the Service and the budget select pods by. It never changes: a Deployment's selector can't. */}}
{{- define "karpenter.selectorLabels" -}}
app.kubernetes.io/name: {{ include "karpenter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "karpenter.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "karpenter.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ include "karpenter.strings" . }}
{{- end }}
{{- end -}}

{{/* metadata: of an object: name, namespace, labels, annotations. Takes a dict: root, name, namespace ("" for none), labels and
     annotations (optional). */}}
{{- define "karpenter.metadata" -}}
name: {{ .name }}
{{- with .namespace }}
namespace: {{ . }}
{{- end }}
labels:
  {{- $labels := fromYaml (include "karpenter.labels" .root) }}
  {{- include "karpenter.strings" (mergeOverwrite $labels (default dict .labels)) | nindent 2 }}
{{- with mergeOverwrite (deepCopy (default dict .root.Values.additionalAnnotations)) (default dict .annotations) }}
annotations:
  {{- include "karpenter.strings" . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A map whose values become strings, as labels and annotations must be. A key that --set has cut at its dots, because they were
     written in quotation marks and not with backslashes, is put together again. */}}
{{- define "karpenter.strings" -}}
{{- $flat := dict -}}
{{- include "karpenter.flatten" (dict "from" . "to" $flat "prefix" "") -}}
{{- $lines := list -}}
{{- range $key, $value := $flat -}}
{{- $lines = append $lines (printf "%s: %s" $key (quote $value)) -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}

{{- define "karpenter.flatten" -}}
{{- $to := .to -}}
{{- $prefix := .prefix -}}
{{- range $key, $value := .from -}}
{{- $name := printf "%s%s" $prefix (replace "\"" "" $key) -}}
{{- if kindIs "map" $value -}}
{{- include "karpenter.flatten" (dict "from" $value "to" $to "prefix" (printf "%s." $name)) -}}
{{- else -}}
{{- $_ := set $to $name (toString $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Documents of 2021 set the cluster's name under controller; the account was then called karpenter, created or not. */}}
{{- define "karpenter.serviceAccountName" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if or .Values.serviceAccount.create .Values.controller.clusterName -}}
{{- include "karpenter.fullname" . -}}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{- define "karpenter.containerName" -}}
{{- default "controller" .Values.controller.containerName -}}
{{- end -}}

{{- define "karpenter.image" -}}
{{- with .Values.controller.image -}}
{{- .repository }}:{{ default $.Chart.AppVersion .tag }}{{ with .digest }}@{{ . }}{{ end -}}
{{- end -}}
{{- end -}}
