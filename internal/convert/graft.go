package convert

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
)

// path says where a part of an old object has gone. Comments go with it, and where the value has stayed the same, so do
// its quotation marks and its place among its neighbours.
type path struct {
	from, to string
	// comments says that the two have only the comments in common.
	comments bool
	// unless names a field of the new object without which the path holds only.
	unless string
}

// provisionerPaths are those from a Provisioner to its NodePool.
func provisionerPaths() []path {
	const template = "spec.template.spec."
	return []path{
		{from: "apiVersion", to: "apiVersion"}, {from: "kind", to: "kind"}, {from: "metadata", to: "metadata"},
		{from: "spec.labels", to: "spec.template.metadata.labels"}, {from: "spec.annotations",
			to: "spec.template.metadata.annotations"},
		{from: "spec.taints", to: template + "taints"}, {from: "spec.startupTaints", to: template + "startupTaints"},
		{from: "spec.requirements", to: template + "requirements"},
		{from: "spec.providerRef", to: template + "nodeClassRef"},
		{from: "spec.limits.resources", to: "spec.limits"}, {from: "spec.weight", to: "spec.weight"},
		{from: "spec.ttlSecondsUntilExpired", to: template + "expireAfter", comments: true},
		{from: "spec.ttlSecondsAfterEmpty", to: "spec.disruption.consolidateAfter", comments: true},
		{from: "spec.consolidation", to: "spec.disruption.consolidationPolicy", comments: true},
	}
}

// settingsPaths are those of an AWSNodeTemplate's settings, which stand under a field.
func settingsPaths(field string) []path {
	var out []path
	for _, name := range []string{"context", "instanceProfile", "tags", "metadataOptions", "blockDeviceMappings",
		"userData", "detailedMonitoring", "amiFamily"} {
		out = append(out, path{from: field + "." + name, to: "spec." + name})
	}
	return append(out,
		path{from: field + ".subnetSelector", to: "spec.subnetSelectorTerms", comments: true},
		path{from: field + ".securityGroupSelector", to: "spec.securityGroupSelectorTerms", comments: true},
		path{from: field + ".amiSelector", to: "spec.amiSelectorTerms", comments: true},
		path{from: field + ".amiFamily", to: "spec.amiSelectorTerms", comments: true, unless: "spec.amiFamily"},
	)
}

// providerPaths are those from a Provisioner to the EC2NodeClass that it has for itself.
func providerPaths() []path {
	return append(settingsPaths("spec.provider"), path{from: "spec.kubeletConfiguration", to: "spec.kubelet"})
}

// templatePaths are those from an AWSNodeTemplate to its EC2NodeClass.
func templatePaths() []path {
	return append([]path{{from: "apiVersion", to: "apiVersion"}, {from: "kind", to: "kind"},
		{from: "metadata", to: "metadata"}}, settingsPaths("spec")...)
}

// graft takes over what a path says.
func (p path) graft(tree, old *yaml.Node) {
	fromKey, from := find(old, p.from)
	toKey, to := find(tree, p.to)
	if from == nil || to == nil {
		return
	}
	if _, instead := find(tree, p.unless); p.unless != "" && instead != nil {
		return
	}
	if fromKey != nil && toKey != nil {
		takeComments(toKey, fromKey)
	}
	switch {
	case !p.comments:
		merge(to, from)
	case to.Kind == yaml.ScalarNode && from.Kind == yaml.ScalarNode:
		takeComments(to, from)
	case toKey != nil:
		// What had a line of its own has none in a list or an object of other fields.
		toKey.HeadComment = joinComments(append([]string{toKey.HeadComment, toKey.LineComment},
			allComments(from)...)...)
		toKey.LineComment = ""
	}
}

// allComments are those of a node and of all that is in it.
func allComments(n *yaml.Node) []string {
	out := []string{n.HeadComment, n.LineComment}
	for _, child := range n.Content {
		out = append(out, allComments(child)...)
	}
	return append(out, n.FootComment)
}

// find is the key and the value at a path such as spec.template.spec.requirements[2].
func find(n *yaml.Node, path string) (key, value *yaml.Node) {
	value = n
	for _, step := range steps(path) {
		if i, err := strconv.Atoi(step); err == nil {
			if value = resolve(value); value == nil || value.Kind != yaml.SequenceNode || i >= len(value.Content) {
				return nil, nil
			}
			key, value = nil, value.Content[i]
			continue
		}
		if key, value = pair(value, step); value == nil {
			return nil, nil
		}
	}
	return key, value
}

// stepForm is a step of a path: a name, or a number in brackets.
var stepForm = regexp.MustCompile(`[^.\[\]]+`)

func steps(path string) []string { return stepForm.FindAllString(path, -1) }

// takeComments adds the comments of one node to those of another.
func takeComments(to, from *yaml.Node) {
	to.HeadComment = joinComments(to.HeadComment, from.HeadComment)
	to.LineComment = joinComments(to.LineComment, from.LineComment)
	to.FootComment = joinComments(to.FootComment, from.FootComment)
}

// joinComments puts comments below each other, each once.
func joinComments(comments ...string) string {
	var out []string
	for _, c := range comments {
		if c != "" && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return strings.Join(out, "\n")
}

// merge takes over from an old value how it was written, as far as the new one is the same.
func merge(to, from *yaml.Node) {
	from = resolve(from)
	takeComments(to, from)
	switch {
	case to.Kind != from.Kind:
	case to.Kind == yaml.MappingNode:
		mergeFields(to, from)
	case to.Kind == yaml.SequenceNode:
		mergeItems(to, from)
	case sameValue(to, from):
		to.Value, to.Style, to.Tag = from.Value, from.Style, from.Tag
	}
}

// mergeFields brings the fields that both have into the old order, before the new ones.
func mergeFields(to, from *yaml.Node) {
	if len(to.Content) <= len(from.Content) {
		to.Style = from.Style
	}
	var known, fresh []*yaml.Node
	for i := 0; i+1 < len(from.Content); i += 2 {
		if key, value := pair(to, from.Content[i].Value); key != nil {
			takeComments(key, from.Content[i])
			merge(value, from.Content[i+1])
			known = append(known, key, value)
		}
	}
	for i := 0; i+1 < len(to.Content); i += 2 {
		if !slices.Contains(known, to.Content[i]) {
			fresh = append(fresh, to.Content[i], to.Content[i+1])
		}
	}
	to.Content = append(known, fresh...)
}

// mergeItems finds for each item the old one that it came from.
func mergeItems(to, from *yaml.Node) {
	if len(to.Content) == len(from.Content) {
		to.Style = from.Style
	}
	taken := map[*yaml.Node]bool{}
	for _, item := range to.Content {
		i := slices.IndexFunc(from.Content,
			func(other *yaml.Node) bool { return !taken[other] && sameItem(item, resolve(other)) })
		if i >= 0 {
			taken[from.Content[i]] = true
			merge(item, from.Content[i])
		}
	}
}

// sameItem tells whether two items are about the same: equal texts, or objects with the same key, name or nodes.
func sameItem(a, b *yaml.Node) bool {
	if a.Kind != b.Kind {
		return false
	}
	if a.Kind == yaml.ScalarNode {
		return sameValue(a, b)
	}
	for _, key := range []string{"key", "deviceName", "id", "name", "nodes", "alias"} {
		if x, y := text(a, key), text(b, key); x != y {
			return false
		}
	}
	return true
}

// sameValue tells whether two texts mean the same: they are equal, or the same duration or quantity.
func sameValue(a, b *yaml.Node) bool {
	if a.Value == b.Value {
		return true
	}
	if long, err := time.ParseDuration(a.Value); err == nil {
		other, err := time.ParseDuration(b.Value)
		return err == nil && long == other
	}
	x, err := resource.ParseQuantity(a.Value)
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(b.Value)
	return err == nil && x.Cmp(y) == 0
}

// comment puts a note before the field that it is about.
func comment(tree *yaml.Node, path, note string) {
	key, value := find(tree, path)
	node := key
	if node == nil {
		node = value
	}
	if node == nil {
		return
	}
	node.HeadComment = joinComments(node.HeadComment, "# "+note)
}
