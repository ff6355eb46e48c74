package convert

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// misread says which field could not be read. Some of the decoder's errors name the field without its place, and those
// of quantities name none. So the field is looked for: it is the one without which there is no such error.
func misread(tree *yaml.Node, into any, err error) error {
	why := err.Error()
	for _, words := range []string{"error unmarshaling JSON: ", "while decoding JSON: ", "json: "} {
		why = strings.TrimPrefix(why, words)
	}
	if strings.HasPrefix(why, "quantities must match") {
		why = "it is not a quantity; write one such as 500m, 100 or 64Gi"
	}
	if field := culprit(tree, into, err.Error()); field != "" {
		return fmt.Errorf("%s can't be read (correct or remove it): %s", field, why)
	}
	return fmt.Errorf("it can't be read (correct or remove the field): %s", why)
}

// culprit is the path of the innermost field without which reading no longer fails in this way; empty if there is none.
func culprit(tree *yaml.Node, into any, failure string) string {
	path, n := "", root(tree)
	if n == nil {
		n = tree
	}
	for {
		name, child := guilty(n, func() bool {
			text, err := yaml.Marshal(tree)
			if err != nil {
				return false
			}
			err = sigsyaml.UnmarshalStrict(text, reflect.New(reflect.TypeOf(into).Elem()).Interface())
			return err == nil || err.Error() != failure
		})
		if child == nil {
			return strings.TrimPrefix(path, ".")
		}
		path, n = path+name, child
	}
}

// guilty is the part of a node without which it helps; nil if there is no such part. It leaves out half of what is
// suspected each time, so that a long document takes a few readings and not one for each part.
func guilty(n *yaml.Node, helps func() bool) (string, *yaml.Node) {
	n = resolve(n)
	width := map[yaml.Kind]int{yaml.MappingNode: 2, yaml.SequenceNode: 1}[n.Kind]
	if width == 0 || len(n.Content) == 0 {
		return "", nil
	}
	all := n.Content
	defer func() { n.Content = all }()
	without := func(from, to int) bool {
		n.Content = slices.Concat(all[:from*width], all[to*width:])
		return helps()
	}
	from, to := 0, len(all)/width
	for to-from > 1 {
		switch middle := (from + to) / 2; {
		case without(from, middle):
			to = middle
		case without(middle, to):
			from = middle
		default: // one in each half
			return "", nil
		}
	}
	switch {
	case !without(from, to):
		return "", nil
	case width == 1:
		return fmt.Sprintf("[%d]", from), all[from]
	}
	return "." + all[from*width].Value, all[from*width+1]
}
