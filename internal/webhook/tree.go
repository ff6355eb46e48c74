package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// The API's types, seen from the JSON that they read.

// parse reads a JSON object. Numbers keep their text.
func parse(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		return nil, err
	}
	return out, nil
}

// treeOf returns an object as it would be written.
func treeOf(object any) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing an object: %w", err)
	}
	out, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading an object again: %w", err)
	}
	return out, nil
}

// plain is a type without its pointers.
func plain(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// isLeaf says whether values of a type are read as a whole.
func isLeaf(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return true
	}
	return !slices.Contains([]reflect.Kind{reflect.Struct, reflect.Map, reflect.Slice}, t.Kind())
}

// item is the type of the items of a list; nil if the type is none.
func item(t reflect.Type) reflect.Type {
	if t = plain(t); isLeaf(t) || t.Kind() != reflect.Slice {
		return nil
	}
	return t.Elem()
}

// child is the type of a field of an object; nil if there is none of that name.
func child(t reflect.Type, key string) reflect.Type {
	t = plain(t)
	switch {
	case isLeaf(t):
		return nil
	case t.Kind() == reflect.Map:
		return t.Elem()
	case t.Kind() != reflect.Struct:
		return nil
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "" && field.Anonymous:
			if inner := child(field.Type, key); inner != nil {
				return inner
			}
		case name == key && name != "-":
			return field.Type
		}
	}
	return nil
}

// prune takes out what a type has no field for, as the API server will.
func prune(t reflect.Type, value any) {
	switch v := value.(type) {
	case map[string]any:
		if t = plain(t); isLeaf(t) {
			return
		}
		maps.DeleteFunc(v, func(key string, _ any) bool { return child(t, key) == nil })
		for key, inner := range v {
			prune(child(t, key), inner)
		}
	case []any:
		if inner := item(t); inner != nil {
			for i := range v {
				prune(inner, v[i])
			}
		}
	}
}

// isAny says whether a type takes any JSON.
func isAny(t reflect.Type) bool { return plain(t) == reflect.TypeFor[apiextensionsv1.JSON]() }

// fits says whether a value has the form that a type reads. A type that reads by itself may read a text or a number.
func fits(t reflect.Type, value any) bool {
	t = plain(t)
	if value == nil || isAny(t) {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if c := child(t, key); c == nil || !fits(c, inner) {
				return false
			}
		}
		return !isLeaf(t) && t.Kind() != reflect.Slice
	case []any:
		inner := item(t)
		return inner != nil && !slices.ContainsFunc(v, func(i any) bool { return !fits(inner, i) })
	case bool:
		return t.Kind() == reflect.Bool
	case string:
		return t.Kind() == reflect.String || isLeaf(t) && t.Kind() == reflect.Struct
	}
	return isLeaf(t) && t.Kind() != reflect.Bool && t.Kind() != reflect.String
}
