package ingest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
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

// setStoredPool takes in a NodePool as it is stored.
func (b *Book) setStoredPool(u *unstructured.Unstructured) {
	pool, lost := ReadPool(u)
	if len(lost) == 0 {
		b.SetPool(pool)
		return
	}
	b.setBrokenPool(pool, lost)
}

// setBrokenPool takes in a NodePool of which parts can't be read. No node is made for it and none is taken from it to
// save money, since what was left out may have been the reason not to; its status tells what to correct.
func (b *Book) setBrokenPool(pool *v1.NodePool, lost []Unreadable) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.setOtherPool(pool) {
		return
	}
	p := &cluster.Pool{
		Name: pool.Name, UID: string(pool.UID), Generation: pool.Generation, Deleting: pool.DeletionTimestamp != nil,
		Static: pool.Spec.Replicas != nil, ConsolidateAfter: cluster.NillableDuration{Never: true},
		Budgets: []cluster.Budget{{Broken: true}},
		Status: cluster.PoolStatus{
			Nodes: pool.Status.Nodes, Resources: b.measure(pool.Status.Resources),
			ClassGeneration: pool.Status.NodeClassObservedGeneration, Conditions: conditionsOf(pool.Status.Conditions),
		},
	}
	if ref := pool.Spec.Template.Spec.NodeClassRef; ref != nil {
		p.Template.NodeClass = cluster.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}
	}
	for _, l := range lost {
		p.Problems = append(p.Problems, cluster.Problem{Field: l.Path, Text: fmt.Sprintf("it can't be read: %v; "+
			"correct or remove it", l.Err)})
	}
	b.putPool(&poolEntry{pool: p, object: pool, version: parseVersion(pool.ResourceVersion),
		windows: make([]window, 1)})
}

// setStoredClaim takes in a NodeClaim as it is stored. One of which parts can't be read is still a machine that holds
// pods, counts against limits and has to be ended some day: it is known by the rest. Whoever launches it reads it
// strictly.
func (b *Book) setStoredClaim(u *unstructured.Unstructured) {
	claim, _ := ReadClaim(u)
	b.SetClaim(claim)
}

// storedKind is the kind as it is stored, to be watched or read without a Go type.
func storedKind(kind string) client.Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1.GroupVersion().WithKind(kind))
	return u
}
