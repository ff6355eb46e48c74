{{/* Affinity and spread with the selector of the controller's pods where the user gave none. */}}

{{- define "karpenter.affinity" -}}
{{- $selector := dict "matchLabels" (fromYaml (include "karpenter.selectorLabels" .)) -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- range $kind := list "podAffinity" "podAntiAffinity" -}}
{{- $rules := default dict (get $affinity $kind) -}}
{{- range default list (get $rules "requiredDuringSchedulingIgnoredDuringExecution") -}}
{{- if not (hasKey . "labelSelector") -}}{{- $_ := set . "labelSelector" $selector -}}{{- end -}}
{{- end -}}
{{- range default list (get $rules "preferredDuringSchedulingIgnoredDuringExecution") -}}
{{- $term := .podAffinityTerm -}}
{{- if not (hasKey $term "labelSelector") -}}{{- $_ := set $term "labelSelector" $selector -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}

{{- define "karpenter.spread" -}}
{{- $selector := dict "matchLabels" (fromYaml (include "karpenter.selectorLabels" .)) -}}
{{- $constraints := deepCopy .Values.topologySpreadConstraints -}}
{{- range $constraints -}}
{{- if not (hasKey . "labelSelector") -}}{{- $_ := set . "labelSelector" $selector -}}{{- end -}}
{{- end -}}
{{- toYaml $constraints -}}
{{- end -}}

{{- define "karpenter.securityContext" -}}
{{- $fixed := dict "runAsUser" 65532 "runAsGroup" 65532 "runAsNonRoot" true "allowPrivilegeEscalation" false
  "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- $context := dict "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- range $key, $value := pick .Values.controller.securityContext "appArmorProfile" "seLinuxOptions" "seccompProfile" -}}
{{- if $value -}}{{- $_ := set $context $key $value -}}{{- end -}}
{{- end -}}
{{- toYaml (mergeOverwrite $context $fixed) -}}
{{- end -}}

{{/* Containers beside the controller, with the mounts that all of them get. */}}
{{- define "karpenter.sidecars" -}}
{{- $mounts := concat .Values.controller.extraVolumeMounts .Values.controller.sidecarVolumeMounts -}}
{{- range .Values.controller.sidecarContainer -}}
{{- $container := deepCopy . -}}
{{- with concat (default list $container.volumeMounts) $mounts -}}
{{- $_ := set $container "volumeMounts" . -}}
{{- end }}
{{ toYaml (list $container) }}
{{- end -}}
{{- end -}}
