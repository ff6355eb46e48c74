{{/* A value that the chart does not know is refused, with the one that was probably meant. A schema alone could say the name only. */}}

{{- define "karpenter.checkValues" -}}
{{- $known := fromYaml (include "karpenter.knownValues" .) -}}
{{- include "karpenter.checkLevel" (dict "values" (omit .Values "global" "enabled") "known" $known "prefix" "") -}}
{{- $provisioner := default dict .Values.defaultProvisioner -}}
{{- if eq (toString $provisioner.create) "true" -}}
{{- fail "defaultProvisioner.create=true is not offered: set it to false, and apply a NodePool (or a Provisioner) once the chart is installed" -}}
{{- end -}}
{{- end -}}

{{- define "karpenter.checkLevel" -}}
{{- $known := .known -}}
{{- $prefix := .prefix -}}
{{- range $key, $value := .values -}}
{{- $path := printf "%s%s" $prefix $key -}}
{{- if not (hasKey $known $path) -}}
{{- fail (printf "%s is not a value of this chart; %s" $path (include "karpenter.hint" (dict "path" $path "known" $known))) -}}
{{- else if and (eq (get $known $path) "group") (kindIs "map" $value) -}}
{{- include "karpenter.checkLevel" (dict "values" $value "known" $known "prefix" (printf "%s." $path)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What became of a value, or the known name that shares the most pairs of letters with a path: a value, or a group at the same depth. */}}
{{- define "karpenter.hint" -}}
{{- $path := .path -}}
{{- $gone := get (fromYaml (include "karpenter.goneValues" .)) $path -}}
{{- $asked := lower $path -}}
{{- $best := 0 -}}
{{- $name := "" -}}
{{- $known := .known -}}
{{- range $candidate := keys $known | sortAlpha -}}
{{- if or (eq (get $known $candidate) "value") (eq (len (splitList "." $candidate)) (len (splitList "." $path))) -}}
{{- $text := lower $candidate -}}
{{- $hits := 0 -}}
{{- range $i := until (int (max 0 (sub (len $asked) 1))) -}}
{{- if contains (substr (int $i) (int (add $i 2)) $asked) $text -}}{{- $hits = add1 $hits -}}{{- end -}}
{{- end -}}
{{- $score := div (mul 2000 $hits) (sub (add (len $asked) (len $text)) 2 | max 1) -}}
{{- if gt (int $score) (int $best) -}}
{{- $best = $score -}}
{{- $name = $candidate -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $gone -}}
{{- $gone -}}
{{- else if hasPrefix "webhook." $path -}}
it is gone: the controller itself is the webhook, and has webhook.enabled and webhook.port
{{- else if ge (int $best) 500 -}}
did you mean {{ $name }}?
{{- else -}}
the values are listed in docs/reference/chart.md
{{- end -}}
{{- end -}}

{{/* Values of older charts that mean nothing any more, and what to do instead. */}}
{{- define "karpenter.goneValues" -}}
settings.assumeRoleARN: &role "it is gone: give the role to the service account (serviceAccount.annotations, or EKS Pod Identity)"
settings.assumeRoleDuration: *role
settings.aws.assumeRoleARN: *role
settings.aws.assumeRoleDuration: *role
settings.aws.tags: "it is gone: write spec.tags in the EC2NodeClass"
settings.aws.enablePodENI: &always "it is gone: the controller finds it out by itself"
settings.aws.enableENILimitedPodDensity: "it is gone: write spec.kubelet.maxPods in the EC2NodeClass, or settings.reservedENIs"
settings.featureGates.drift: "it is gone: drift is always on, and disruption budgets hold it back"
settings.featureGates.driftEnabled: "it is gone: drift is always on, and disruption budgets hold it back"
logEncoding: "it is gone: logs are JSON lines"
controller.logEncoding: "it is gone: logs are JSON lines"
logConfig: "it is gone: use logLevel, logOutputPaths and logErrorOutputPaths"
{{- end -}}
