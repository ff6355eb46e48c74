package decode

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// A list of a Go type fails as a whole if one object does not fit, and nothing of that kind is known any more. So what
// users and other programs write is watched as it is stored and read here, object by object.

// Unreadable is a value in an object that does not fit its Go type.
type Unreadable struct {
	Path string
	Err  error
}

// ReadPool reads a NodePool. What can't be read is left out and reported.
func ReadPool(u *unstructured.Unstructured) (*v1.NodePool, []Unreadable) {
	return readObject[v1.NodePool](u.Object)
}

// ReadClaim reads a NodeClaim. What can't be read is left out and reported.
func ReadClaim(u *unstructured.Unstructured) (*v1.NodeClaim, []Unreadable) {
	return readObject[v1.NodeClaim](u.Object)
}

func readObject[T any](object map[string]any) (*T, []Unreadable) {
	out := new(T)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object, out) == nil {
		return out, nil
	}
	s := partialReader{try: func(object map[string]any) error {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(object, new(T))
	}}
	whole := func(v any) map[string]any { return v.(map[string]any) }
	rest, _ := s.readable(object, "", whole)
	out = new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole(rest), out); err != nil {
		s.unreadable = append(s.unreadable, Unreadable{Path: "the object", Err: err})
	}
	return out, s.unreadable
}

// partialReader finds the smallest parts of an object that can't be read.
type partialReader struct {
	try        func(map[string]any) error
	unreadable []Unreadable
}

// readable returns what can be read of a part; around makes an object that has nothing but the part.
func (r *partialReader) readable(part any, path string, around func(any) map[string]any) (rest any, ok bool) {
	err := r.try(around(part))
	if err == nil {
		return part, true
	}
	switch p := part.(type) {
	case map[string]any:
		if r.try(around(map[string]any{})) == nil {
			return r.readableFields(p, path, around), true
		}
	case []any:
		if r.try(around([]any{})) == nil {
			return r.readableItems(p, path, around), true
		}
	}
	r.unreadable = append(r.unreadable, Unreadable{Path: path, Err: err})
	return nil, false
}

func (r *partialReader) readableFields(in map[string]any, path string, around func(any) map[string]any) map[string]any {
	out := make(map[string]any, len(in))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		rest, ok := r.readable(in[key], fieldPath(path, key), func(v any) map[string]any {
			return around(map[string]any{key: v})
		})
		if ok {
			out[key] = rest
		}
	}
	return out
}

func (r *partialReader) readableItems(in []any, path string, around func(any) map[string]any) []any {
	out := make([]any, 0, len(in))
	for i, item := range in {
		rest, ok := r.readable(item, fmt.Sprintf("%s[%d]", path, i), func(v any) map[string]any {
			return around([]any{v})
		})
		if ok {
			out = append(out, rest)
		}
	}
	return out
}

func fieldPath(path, key string) string {
	switch {
	case path == "":
		return key
	case strings.ContainsAny(key, "./"):
		return fmt.Sprintf("%s[%q]", path, key)
	}
	return path + "." + key
}
