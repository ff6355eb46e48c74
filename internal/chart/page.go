package main

import (
	"fmt"
	"strings"
)

// knownNames is the list by which the chart refuses a name that it does not know.
func knownNames(values []value) []byte {
	var out strings.Builder
	out.WriteString("{{/* Every value of the chart. Written by make generate from values.yaml; don't edit. " +
		"*/}}\n\n{{- define \"karpenter.knownValues\" -}}\n")
	for _, v := range values {
		kind := "value"
		if v.group {
			kind = "group"
		}
		fmt.Fprintf(&out, "%s: %s\n", v.path, kind)
	}
	out.WriteString("{{- end -}}\n")
	return []byte(out.String())
}

const pageHead = `# Values of the chart

The values of ` + "`charts/karpenter`" +
	`, with Karpenter's names and defaults. *Ours* marks what Karpenter's chart does not have. A name that is not
here is refused, with the one that was probably meant. How to install it is in [install](../tasks/install.md).

This page is written by ` + "`make generate`" + ` from ` + "`charts/karpenter/values.yaml`" + `.

| value | default | meaning |
|---|---|---|
`

const pageOlder = `
` + "`global`" + ` and ` + "`enabled`" +
	` are let through, for charts that have this one as a dependency. For them, too, a value below ` +
	"`settings`" + ` may be
an expression of Helm, as with Karpenter's chart: ` + "`clusterName: '{{ .Values.global.cluster }}'`" + `.

A ServiceMonitor and a PrometheusRule are left out where the cluster does not know ` + "`monitoring.coreos.com/v1`" +
	`; Helm says so at the
end. ` + "`helm template`" + ` knows no cluster: give it ` + "`--api-versions monitoring.coreos.com/v1`" + `.

## Older names

Charts before 1.0 had other names for some values. They still count, unless the newer one is given, too. Quotation marks
around the cluster's name or endpoint, as ` + "`aws ... --output json`" + ` prints them, are taken off.

| older name | now |
|---|---|
`

const pageTail = `| ` + "`defaultProvisioner.create`" + ` | only ` + "`false`" + ` is taken: the chart makes no pool |

With ` + "`controller.clusterName`" + ` and ` + "`serviceAccount.create=false`" + ` the account is the one called ` +
	"`karpenter`" + `, as in 2021; otherwise it is ` + "`default`" + ` unless
` + "`serviceAccount.name`" + ` says another. With ` + "`controller.clusterName`" +
	` there is also one replica unless more than two are asked for: the documents of
then read the log of the one pod.

## karpenter-crd

| value | default | meaning |
|---|---|---|
| ` + "`additionalAnnotations`" + ` | ` + "`{}`" + ` | Annotations for every CustomResourceDefinition. |

Values below ` + "`webhook`" + `, which Karpenter's chart had before 1.1, are refused: the controller enters itself
into the definitions.
`

// page is docs/reference/chart.md.
func page(values []value) []byte {
	var out strings.Builder
	out.WriteString(pageHead)
	for _, v := range values {
		if v.newName != "" || v.path == "defaultProvisioner.create" || v.group && v.text == "" {
			continue
		}
		if strings.Contains(v.path, "eatureGates.") {
			continue // its group shows it
		}
		text := v.text
		if plain, ours := strings.CutSuffix(text, " "+own+"."); ours {
			text = "*Ours.* " + plain + "."
		}
		fmt.Fprintf(&out, "| `%s` | `%s` | %s |\n", v.path, v.usual, strings.ReplaceAll(text, "|", `\|`))
	}
	out.WriteString(pageOlder)
	for _, v := range values {
		if v.newName != "" {
			fmt.Fprintf(&out, "| `%s` | `%s` |\n", v.path, v.newName)
		}
	}
	out.WriteString(pageTail)
	return []byte(out.String())
}
