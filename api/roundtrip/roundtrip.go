// Package roundtrip makes the conversion between two versions of an API lossless. What one version can't say is kept in
// an annotation, as differences; converting back puts them in again.
//
// A difference holds only while its field still shows what it showed when the difference was noted: whoever edits an
// object in one version is not overruled by what the other version said before. The package stands beside the API: it
// knows no kind and imports only the standard library.
package roundtrip

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Difference is one field whose value the other version can't show.
type Difference struct {
	// At is the way to the field, key by key, from the root of the object.
	At []string `json:"at"`
	// Item says that At is a list and that the difference is about one of its items. Items are found by what they show,
	// so that a list may be edited around them.
	Item bool `json:"item,omitempty"`
	// Shown is what the conversion alone makes of the value; nil for a field that is not there.
	Shown any `json:"shown,omitempty"`
	// Is is the value; nil for a field that is not there.
	Is any `json:"is,omitempty"`
	// Null says that Is is a null, and not a field that is not there.
	Null bool `json:"null,omitempty"`
	// Text says that the types of the API can't tell the two apart, or can't read one of them: see AddTexts.
	Text bool `json:"text,omitempty"`
}

// Note returns the differences between what the conversion shows and what is, as the text of an annotation; empty if
// there are none. Both are structs, or pointers to structs, that can be written as JSON objects.
func Note(shown, is any) (string, error) {
	a, err := fields(shown)
	if err != nil {
		return "", err
	}
	b, err := fields(is)
	if err != nil {
		return "", err
	}
	found := compare(nil, a, b)
	if len(found) == 0 {
		return "", nil
	}
	text, err := json.Marshal(found)
	if err != nil {
		return "", fmt.Errorf("writing what the other version can't say: %w", err)
	}
	return string(text), nil
}

// Restore puts what Note wrote into the object that was converted, as far as its fields still show what they showed
// then. A text that is none of Note's changes nothing, nor does a difference that the type of the object does not
// allow: an annotation that somebody broke must not make an object unreadable.
func Restore[T any](note string, object *T) {
	if note == "" {
		return
	}
	var differences []Difference
	if err := read([]byte(note), &differences); err != nil {
		return
	}
	differences = slices.DeleteFunc(differences, func(d Difference) bool { return d.Text })
	out, err := applied(object, differences)
	if err != nil {
		differences = slices.DeleteFunc(differences, func(d Difference) bool {
			_, err := applied(object, []Difference{d})
			return err != nil
		})
		if out, err = applied(object, differences); err != nil {
			return
		}
	}
	*object = *out
}

// applied returns an object with the differences.
func applied[T any](object *T, differences []Difference) (*T, error) {
	root, err := fields(object)
	if err != nil {
		return nil, err
	}
	apply(root, differences)
	text, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("writing an object as JSON: %w", err)
	}
	out := new(T)
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("reading an object from JSON: %w", err)
	}
	return out, nil
}

// fields returns a struct as a JSON object. Numbers keep their text.
func fields(object any) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing an object as JSON: %w", err)
	}
	var out map[string]any
	if err := read(text, &out); err != nil {
		return nil, fmt.Errorf("reading an object from JSON: %w", err)
	}
	return out, nil
}

func read(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// compare lists where two values differ: objects key by key, lists of the same length item by item, all else as a
// whole.
func compare(at []string, shown, is any) []Difference {
	if reflect.DeepEqual(shown, is) {
		return nil
	}
	if a, ok := shown.(map[string]any); ok {
		if b, ok := is.(map[string]any); ok {
			return compareObjects(at, a, b)
		}
	}
	if a, ok := shown.([]any); ok {
		if b, ok := is.([]any); ok && len(a) == len(b) {
			return compareItems(at, a, b)
		}
	}
	return []Difference{{At: slices.Clone(at), Shown: shown, Is: is}}
}

func compareObjects(at []string, shown, is map[string]any) []Difference {
	keys := maps.Clone(shown)
	maps.Copy(keys, is)
	var out []Difference
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		way := append(slices.Clone(at), key)
		a, shows := shown[key]
		b, has := is[key]
		switch {
		case b != nil || a != nil && !has:
			out = append(out, compare(way, a, b)...)
		case a != nil || shows != has:
			out = append(out, Difference{At: way, Shown: a, Null: has})
		}
	}
	return out
}

// compareItems notes every item that looks like one that differs, even if itself it does not: items are found by their
// looks, in their order.
func compareItems(at []string, shown, is []any) []Difference {
	var out []Difference
	for i := range shown {
		for j := range shown {
			if reflect.DeepEqual(shown[i], shown[j]) && !reflect.DeepEqual(shown[j], is[j]) {
				out = append(out, Difference{At: slices.Clone(at), Item: true, Shown: shown[i], Is: is[i]})
				break
			}
		}
	}
	return out
}

// apply puts the differences into an object. Whether a field shows what it showed is decided for all of them first, on
// the object as it was converted.
func apply(root map[string]any, differences []Difference) {
	taken := map[string][]bool{}
	var hold []func()
	for _, d := range differences {
		if len(d.At) == 0 {
			continue
		}
		if d.Item {
			items, _ := value(root, d.At).([]any)
			name := fmt.Sprintf("%q", d.At)
			if taken[name] == nil {
				taken[name] = make([]bool, len(items))
			}
			if i := next(items, taken[name], d.Shown); i >= 0 {
				taken[name][i] = true
				hold = append(hold, func() { items[i] = d.Is })
			}
			continue
		}
		if reflect.DeepEqual(value(root, d.At), d.Shown) {
			hold = append(hold, func() { set(root, d) })
		}
	}
	for _, put := range hold {
		put()
	}
}

// next returns the first item that shows the value and is not taken; -1 if there is none.
func next(items []any, taken []bool, shown any) int {
	for i, item := range items {
		if !taken[i] && reflect.DeepEqual(item, shown) {
			return i
		}
	}
	return -1
}

// value returns the value at the end of a way; nil if there is none.
func value(root map[string]any, at []string) any {
	var here any = root
	for _, key := range at {
		object, ok := here.(map[string]any)
		if !ok {
			return nil
		}
		here = object[key]
	}
	return here
}

// set puts the value of a difference at the end of its way and makes the objects on it. A value that is not there is
// taken out.
func set(root map[string]any, d Difference) {
	here, last := root, len(d.At)-1
	for _, key := range d.At[:last] {
		inner, ok := here[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			here[key] = inner
		}
		here = inner
	}
	if d.Is == nil && !d.Null {
		delete(here, d.At[last])
		return
	}
	here[d.At[last]] = d.Is
}
