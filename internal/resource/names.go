package resource

import (
	"fmt"
	"slices"
	"strings"
)

// AttachPrefix, followed by the name of a CSI driver, names the resource of which each attached volume takes one. It is
// ours alone: neither nodes nor claims carry it.
const AttachPrefix = "attachable-volumes-csi-"

// Names numbers the resources of a snapshot. The zero value knows the four fixed ones. A name keeps its number until it
// is freed, so that a vector made earlier keeps its meaning.
type Names struct {
	extra []string // empty for a number that was freed
	index map[string]int
}

// Index numbers the name, making a new dimension if there is room for one; ok is false once Size are taken.
func (n *Names) Index(name string) (dim int, ok bool) {
	if dim, ok := n.Lookup(name); ok {
		return dim, true
	}
	i := slices.Index(n.extra, "")
	if i < 0 {
		if fixed+len(n.extra) == Size {
			return 0, false
		}
		i = len(n.extra)
		n.extra = append(n.extra, "")
	}
	if n.index == nil {
		n.index = make(map[string]int)
	}
	n.extra[i] = name
	n.index[name] = fixed + i
	return fixed + i, true
}

// Free lets another name have the number. It is for whoever knows that no vector counts by it any more.
func (n *Names) Free(dim int) {
	if i := dim - fixed; i >= 0 && i < len(n.extra) {
		delete(n.index, n.extra[i])
		n.extra[i] = ""
	}
}

// Lookup finds the number of a name that has one.
func (n *Names) Lookup(name string) (dim int, ok bool) {
	switch name {
	case "cpu":
		return CPU, true
	case "memory":
		return Memory, true
	case "ephemeral-storage":
		return Storage, true
	case "pods":
		return Pods, true
	}
	dim, ok = n.index[name]
	return dim, ok
}

// Name is the resource's name in Kubernetes.
func (n *Names) Name(dim int) string {
	if dim < fixed {
		return [fixed]string{"cpu", "memory", "ephemeral-storage", "pods"}[dim]
	}
	if dim-fixed < len(n.extra) && n.extra[dim-fixed] != "" {
		return n.extra[dim-fixed]
	}
	return fmt.Sprintf("resource-%d", dim)
}

// Attaches reports whether the dimension counts attached volumes.
func (n *Names) Attaches(dim int) bool { return strings.HasPrefix(n.Name(dim), AttachPrefix) }

// Len is one more than the highest number that has been given.
func (n *Names) Len() int { return fixed + len(n.extra) }

// Clone returns a copy that grows apart from n.
func (n *Names) Clone() *Names {
	out := &Names{extra: append([]string(nil), n.extra...), index: make(map[string]int, len(n.index))}
	for name, dim := range n.index {
		out.index[name] = dim
	}
	return out
}

// Extra lists the names beyond the fixed ones, by number; empty for a number that nobody has.
func (n *Names) Extra() []string { return slices.Clone(n.extra) }

// NamesOf numbers names as Extra lists them.
func NamesOf(extra []string) (*Names, error) {
	out := &Names{extra: slices.Clone(extra)}
	if fixed+len(extra) > Size {
		return nil, fmt.Errorf("%d resources beyond the %d fixed ones, and there is room for %d", len(extra), fixed,
			Size-fixed)
	}
	for i, name := range extra {
		if name == "" {
			continue
		}
		if _, taken := out.Lookup(name); taken {
			return nil, fmt.Errorf("resource %q has two numbers", name)
		}
		if out.index == nil {
			out.index = make(map[string]int)
		}
		out.index[name] = fixed + i
	}
	return out, nil
}
