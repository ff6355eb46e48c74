package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// Document is one document of a file with manifests.
type Document struct {
	// File is where it is from, and Number which document of the file it is, from 1.
	File   string
	Number int

	// lead are comments that stand before the document, as one of their own.
	lead string
	// tail are those that stand after the last document of a file.
	tail    string
	raw     []byte
	tree    *yaml.Node
	changed bool
}

// Changed tells whether the document is another than it was.
func (d *Document) Changed() bool { return d.changed }

// YAML is the text of the document: its own if it has not changed.
func (d *Document) YAML() ([]byte, error) {
	if !d.changed {
		return slices.Concat([]byte(d.lead), d.raw, []byte(d.tail)), nil
	}
	out := bytes.NewBufferString(d.lead)
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(d.tree), encoder.Close()); err != nil {
		return nil, fmt.Errorf("writing document %d of %s: %w", d.Number, d.File, err)
	}
	out.WriteString(d.tail)
	return out.Bytes(), nil
}

// JSON is the document as JSON.
func (d *Document) JSON() (json.RawMessage, error) {
	text, err := d.YAML()
	if err != nil {
		return nil, err
	}
	out, err := sigsyaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("writing document %d of %s as JSON: %w", d.Number, d.File, err)
	}
	return out, nil
}

// separator is the line between two documents.
var separator = regexp.MustCompile(`(?m)^---(?:[ \t].*)?\r?$\n?`)

// read takes a file apart. Documents that hold nothing but comments go with the one that follows, or with the last.
func read(s Source) ([]Document, error) {
	var out []Document
	number, before := 0, ""
	for _, part := range separator.Split(string(s.Text), -1) {
		if blank(part) {
			if strings.TrimSpace(part) != "" {
				before += strings.TrimRight(part, "\n") + "\n---\n"
			}
			continue
		}
		number++
		d := Document{File: s.Name, Number: number, lead: before, raw: []byte(strings.TrimRight(part, "\n") + "\n"),
			tree: &yaml.Node{}}
		err := yaml.NewDecoder(strings.NewReader(part)).Decode(d.tree)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: document %d is not YAML (%w); templates must be rendered first, for instance "+
				"with helm template",
				s.Name, number, err)
		}
		if r := root(d.tree); r == nil || r.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("%s: document %d is not a manifest: it holds no fields such as kind", s.Name, number)
		}
		for _, name := range []string{"apiVersion", "kind"} {
			if value := at(root(d.tree), name); value != nil && value.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("%s: document %d: %s is not a text; templates must be rendered first, for "+
					"instance with helm template",
					s.Name, number, name)
			}
		}
		out, before = append(out, d), ""
	}
	if before != "" && len(out) > 0 {
		last := &out[len(out)-1]
		last.tail = "---\n" + strings.TrimSuffix(before, "---\n")
	}
	return out, nil
}

// blank tells whether a text has neither fields nor values.
func blank(text string) bool {
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

// root is the object of a document.
func root(tree *yaml.Node) *yaml.Node {
	if tree == nil || tree.Kind != yaml.DocumentNode || len(tree.Content) == 0 {
		return nil
	}
	return tree.Content[0]
}

// decode reads an object into its Go type. A field that it does not know is an error.
func decode(tree *yaml.Node, into any) error {
	text, err := yaml.Marshal(tree)
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	err = sigsyaml.UnmarshalStrict(text, into)
	if err != nil {
		return misread(tree, into, err)
	}
	return nil
}

// encode is an object as a tree in the order of its Go type. What only a cluster writes is left out.
func encode(object any) (*yaml.Node, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing it: %w", err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("writing it: %w", err)
	}
	tree := root(&document)
	plain(tree)
	remove(tree, "status")
	if metadata := at(tree, "metadata"); metadata != nil {
		remove(metadata, "creationTimestamp")
	}
	if template := at(at(tree, "spec"), "template"); template != nil && at(template,
		"metadata") != nil && len(at(template, "metadata").Content) == 0 {
		remove(template, "metadata")
	}
	return tree, nil
}

// inOrder puts the fields that every object has first, as people write them.
func inOrder(tree *yaml.Node) {
	var out []*yaml.Node
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		if key, value := pair(tree, name); key != nil {
			out = append(out, key, value)
			remove(tree, name)
		}
	}
	tree.Content = append(out, tree.Content...)
}

// plain takes the style of JSON away.
func plain(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "\n") {
		n.Style = yaml.LiteralStyle
	}
	for _, child := range n.Content {
		plain(child)
	}
}

// at is the value under a key; nil if there is none.
func at(n *yaml.Node, key string) *yaml.Node {
	_, value := pair(n, key)
	return value
}

// pair is a key and its value; nil if there is none.
func pair(n *yaml.Node, key string) (*yaml.Node, *yaml.Node) {
	if n = resolve(n); n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], resolve(n.Content[i+1])
		}
	}
	return nil, nil
}

// resolve returns what an alias stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func remove(n *yaml.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		}
	}
}

// text is the value under a key if that is a text; empty if not.
func text(n *yaml.Node, key string) string {
	if value := at(n, key); value != nil && value.Kind == yaml.ScalarNode {
		return value.Value
	}
	return ""
}

// items are those of a list.
func items(n *yaml.Node) []*yaml.Node {
	if list := at(n, "items"); list != nil {
		return list.Content
	}
	return nil
}

// split takes an apiVersion apart.
func split(apiVersion string) (group, version string) {
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		return "", apiVersion
	}
	return group, version
}
