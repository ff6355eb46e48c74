package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// object is a piece of a JSON schema.
type object = map[string]any

// A duration of Go, such as 1m30s.
const duration = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`

// orExpression lets a pattern also be met by what Helm works out itself: charts that have this one as a dependency hand
// their own values on, such as {{ .Values.global.queue }}.
func orExpression(pattern string) string { return pattern + `|\{\{.*\}\}` }

// rules are the values about which more is known than the kind of their default.
func rules() map[string]object {
	text := func(pattern string) object { return object{"type": "string", "pattern": pattern} }
	choice := func(words ...any) object { return object{"enum": words} }
	number := object{"type": []string{"integer", "string"}, "pattern": orExpression("^[0-9]+$"), "minimum": 0}
	share := object{"type": []string{"integer", "string"}, "pattern": "^[0-9]+%?$", "minimum": 0}
	port := func() object { return object{"type": "integer", "minimum": 1, "maximum": 65535} }
	listOrNothing := object{"type": []string{"array", "object"}, "maxProperties": 0}
	return map[string]object{
		"imagePullPolicy":                    choice("Always", "IfNotPresent", "Never", ""),
		"replicas":                           {"type": "integer", "minimum": 0},
		"revisionHistoryLimit":               {"type": "integer", "minimum": 0},
		"terminationGracePeriodSeconds":      {"type": []string{"integer", "null"}, "minimum": 0},
		"serviceMonitor.sampleLimit":         {"type": []string{"integer", "null"}, "minimum": 0},
		"podDisruptionBudget.maxUnavailable": share,
		"dnsPolicy":                          choice("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None", ""),
		"initContainers":                     listOrNothing,
		"logLevel":                           choice("debug", "info", "error", ""),
		"controller.image.digest":            text("^(sha256:[0-9a-f]{64})?$"),
		"controller.metrics.port":            port(),
		"controller.healthProbe.port":        port(),
		"webhook.port":                       port(),
		"settings.cloudProvider":             choice("", "aws", "kwok"),
		"settings.preferencePolicy":          choice("Respect", "Ignore"),
		"settings.minValuesPolicy":           choice("Strict", "BestEffort"),
		"settings.placement":                 choice("nominate", "bind", "event"),
		"settings.batchMaxDuration":          text(orExpression(duration)),
		"settings.batchIdleDuration":         text(orExpression(duration)),
		"settings.amiRefreshInterval":        text(orExpression(duration)),
		"settings.subnetRefreshInterval":     text(orExpression(duration)),
		"settings.reservedENIs":              number,
		"settings.vmMemoryOverheadPercent": {"type": []string{"number", "string"},
			"pattern": orExpression(`^0?\.[0-9]+$|^0$`), "minimum": 0, "exclusiveMaximum": 1},
	}
}

// schemaOf is values.schema.json: what each value must be like. Which names there are is checked by a template, because
// it can say what was probably meant.
func schemaOf(values []value) ([]byte, error) {
	root := object{"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of the chart karpenter",
		"type": "object", "properties": object{}}
	at := map[string]object{"": root}
	special := rules()
	for _, v := range values {
		parent, name := "", v.path
		if i := strings.LastIndex(v.path, "."); i >= 0 {
			parent, name = v.path[:i], v.path[i+1:]
		}
		piece, ok := special[v.path]
		if delete(special, v.path); !ok {
			piece = byKind(v)
		}
		switch {
		case v.newName != "":
			piece["description"] = "Older name of " + v.newName + "."
		case v.text != "":
			piece["description"] = v.text
		}
		at[parent]["properties"].(object)[name] = piece
		at[v.path] = piece
	}
	for path := range special {
		return nil, fmt.Errorf("the rules of the schema name %s, which is not a value", path)
	}
	out, err := json.MarshalIndent(root, "", "  ")
	return append(out, '\n'), err
}

// byKind is what a value must be like, judged by its default. Truth may come as a word: --set-string and quotation
// marks do that.
func byKind(v value) object {
	switch {
	case v.group:
		return object{"type": "object", "properties": object{}}
	case v.newName != "", v.path == "defaultProvisioner.create":
		return object{"type": []string{"string", "number", "boolean"}}
	case v.kind == yaml.MappingNode:
		return object{"type": "object"}
	case v.kind == yaml.SequenceNode:
		return object{"type": "array"}
	case v.tag == "!!bool" && strings.HasPrefix(v.path, "settings.") && !strings.Contains(v.path, "eatureGates."):
		return object{"type": []string{"boolean", "string"}, "pattern": orExpression("^(true|false)$")}
	case v.tag == "!!bool":
		return object{"enum": []any{true, false, "true", "false"}}
	default:
		return object{"type": "string"}
	}
}
