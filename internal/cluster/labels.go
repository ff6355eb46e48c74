package cluster

import (
	"slices"
	"strings"
)

// Label is a key and its value.
type Label struct{ Key, Value string }

// Labels are a node's or a template's labels, sorted by key. They are immutable.
type Labels []Label

// LabelsOf sorts a map into Labels.
func LabelsOf(m map[string]string) Labels {
	out := make(Labels, 0, len(m))
	for key, value := range m {
		out = append(out, Label{key, value})
	}
	slices.SortFunc(out, func(a, b Label) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// Get finds the value of a key.
func (l Labels) Get(key string) (value string, present bool) {
	i, found := slices.BinarySearchFunc(l, key, func(a Label, key string) int { return strings.Compare(a.Key, key) })
	if !found {
		return "", false
	}
	return l[i].Value, true
}

// With returns the labels with one set or changed.
func (l Labels) With(key, value string) Labels {
	i, found := slices.BinarySearchFunc(l, key, func(a Label, key string) int { return strings.Compare(a.Key, key) })
	out := slices.Clone(l)
	if found {
		out[i].Value = value
		return out
	}
	return slices.Insert(out, i, Label{key, value})
}

// Merge returns the labels of both; where both set a key, the other's value stands.
func (l Labels) Merge(other Labels) Labels {
	for _, label := range other {
		l = l.With(label.Key, label.Value)
	}
	return l
}

// Map returns the labels as Kubernetes keeps them.
func (l Labels) Map() map[string]string {
	out := make(map[string]string, len(l))
	for _, label := range l {
		out[label.Key] = label.Value
	}
	return out
}
