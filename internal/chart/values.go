package main

import (
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// value is one value of the chart, or a group of values.
type value struct {
	path string
	// text says what it is for; empty for a group.
	text string
	// usual is the default as YAML on one line.
	usual string
	kind  yaml.Kind
	tag   string
	// group says that only known names may stand below it.
	group bool
	// newName is the value that this one is an older name of, or a word on what it does.
	newName string
}

// own marks what Karpenter's chart does not have.
const own = "(Tenon's own)"

// readValues reads values.yaml: every value has a comment, a group has none and its children have.
func readValues(file string) ([]value, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return valuesBelow("", document.Content[0])
}

func valuesBelow(prefix string, mapping *yaml.Node) ([]value, error) {
	var out []value
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, content := mapping.Content[i], mapping.Content[i+1]
		v := value{path: prefix + key.Value, text: comment(key), kind: content.Kind, tag: content.Tag}
		gates := strings.HasSuffix(strings.ToLower(v.path), "featuregates")
		v.group = gates || content.Kind == yaml.MappingNode && v.text == "" && len(content.Content) > 0
		if v.text == "" && !v.group && !strings.Contains(strings.ToLower(prefix), "featuregates") {
			return nil, fmt.Errorf("%s has no comment that says what it is for", v.path)
		}
		usual, err := oneLine(content)
		if err != nil {
			return nil, err
		}
		v.usual = usual
		out = append(out, v)
		if v.group {
			children, err := valuesBelow(v.path+".", content)
			if err != nil {
				return nil, err
			}
			out = append(out, children...)
		}
	}
	return out, nil
}

// comment is the comment above a key, as one line.
func comment(key *yaml.Node) string {
	var words []string
	for _, line := range strings.Split(key.HeadComment, "\n") {
		words = append(words, strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "#"))...)
	}
	return strings.Join(words, " ")
}

// oneLine is a default as people would write it in one line.
func oneLine(node *yaml.Node) (string, error) {
	flow := *node
	flow.HeadComment, flow.LineComment, flow.FootComment = "", "", ""
	if flow.Kind != yaml.ScalarNode {
		flow.Style = yaml.FlowStyle
	}
	text, err := yaml.Marshal(&flow)
	if err != nil {
		return "", fmt.Errorf("writing a default: %w", err)
	}
	return strings.Join(strings.Fields(string(text)), " "), nil
}

// olderNames are the names that founding documents and charts before 1.0 use.
func olderNames() []value {
	var out []value
	group := func(path string) { out = append(out, value{path: path, group: true, kind: yaml.MappingNode}) }
	older := func(path, now string) {
		out = append(out, value{path: path, kind: yaml.ScalarNode, newName: now})
	}
	older("controller.clusterName", "settings.clusterName")
	older("controller.clusterEndpoint", "settings.clusterEndpoint")
	older("controller.logLevel", "logLevel")
	older("controller.batchMaxDuration", "settings.batchMaxDuration")
	older("controller.batchIdleDuration", "settings.batchIdleDuration")
	older("clusterName", "settings.clusterName")
	older("clusterEndpoint", "settings.clusterEndpoint")
	group("settings.aws")
	for _, same := range []string{"clusterName", "clusterEndpoint", "clusterCABundle", "isolatedVPC",
		"vmMemoryOverheadPercent", "reservedENIs"} {
		older("settings.aws."+same, "settings."+same)
	}
	older("settings.aws.interruptionQueueName", "settings.interruptionQueue")
	older("settings.aws.defaultInstanceProfile", "settings.defaultInstanceProfile")
	group("aws")
	older("aws.defaultInstanceProfile", "settings.defaultInstanceProfile")
	group("defaultProvisioner")
	older("defaultProvisioner.create", "")
	return out
}
