package resource

import "fmt"

// Names numbers the resources of a snapshot. The zero value knows the four fixed ones. It only ever grows, so that a
// vector made earlier keeps its meaning.
type Names struct {
	extra []string
	index map[string]int
}

// Index numbers the name, making a new dimension if there is room for one; ok is false once Size are taken.
func (n *Names) Index(name string) (dim int, ok bool) {
	if dim, ok := n.Lookup(name); ok {
		return dim, true
	}
	if fixed+len(n.extra) == Size {
		return 0, false
	}
	if n.index == nil {
		n.index = make(map[string]int)
	}
	dim = fixed + len(n.extra)
	n.extra = append(n.extra, name)
	n.index[name] = dim
	return dim, true
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
	if dim-fixed < len(n.extra) {
		return n.extra[dim-fixed]
	}
	return fmt.Sprintf("resource-%d", dim)
}

// Len is how many dimensions are in use.
func (n *Names) Len() int { return fixed + len(n.extra) }

// Clone returns a copy that grows apart from n.
func (n *Names) Clone() *Names {
	out := &Names{extra: append([]string(nil), n.extra...), index: make(map[string]int, len(n.index))}
	for name, dim := range n.index {
		out.index[name] = dim
	}
	return out
}
