package webhook

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenon-sh/tenon/api/roundtrip"
)

// noteOn is the annotation in which an object of a kind keeps what it can't say itself.
func noteOn(kind schema.GroupVersionKind) string {
	if kind.Version == newerVersion {
		return roundtrip.V1Beta1OnlyAnnotationKey
	}
	return roundtrip.V1OnlyAnnotationKey
}

// annotation returns an annotation of an object; empty if there is none.
func annotation(object map[string]any, key string) string {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[key].(string)
	return text
}

// annotate writes an annotation, or takes it out if it is empty.
func annotate(object map[string]any, key, text string) {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[key] = text
	if text == "" {
		delete(annotations, key)
	}
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

// takeTexts takes out of an object what addTexts has put there, and returns it.
func takeTexts(object map[string]any, kind schema.GroupVersionKind) []roundtrip.Difference {
	note := annotation(object, noteOn(kind))
	rest, texts := roundtrip.TakeTexts(note)
	if rest != note {
		annotate(object, noteOn(kind), rest)
	}
	return texts
}

// addTexts notes on an object how what becomes of it differs from the original.
func addTexts(object map[string]any, kind schema.GroupVersionKind, becomes, original map[string]any) {
	note := annotation(object, noteOn(kind))
	text, err := roundtrip.AddTexts(note, becomes, original)
	if err == nil && text != note {
		annotate(object, noteOn(kind), text)
	}
}

// restoreTexts puts into an object what the other version has noted.
func (c *converter) restoreTexts(object map[string]any, texts []roundtrip.Difference, kind schema.GroupVersionKind) {
	made, err := c.scheme.New(kind)
	if err != nil {
		return
	}
	roundtrip.RestoreTexts(object, slices.DeleteFunc(texts, func(d roundtrip.Difference) bool {
		return !allowed(reflect.TypeOf(made), d)
	}))
}

// allowed says whether a difference may be put into an object of a type. Of the metadata only annotations are
// converted: the API server refuses a whole list if one object's metadata becomes something else.
func allowed(t reflect.Type, d roundtrip.Difference) bool {
	if len(d.At) == 0 || !slices.Contains([]string{"metadata", "spec", "status"}, d.At[0]) {
		return false
	}
	if d.At[0] == "metadata" && (len(d.At) < 2 || d.At[1] != "annotations" || d.Null || holdsNull(d.Is)) {
		return false
	}
	for _, key := range d.At {
		if isAny(t) {
			return true
		}
		if t = child(t, key); t == nil {
			return false
		}
	}
	if d.Item && !isAny(t) {
		t = item(t)
	}
	return t != nil && fits(t, d.Is)
}

// holdsNull says whether an object has a field that is null.
func holdsNull(value any) bool {
	object, _ := value.(map[string]any)
	for _, inner := range object {
		if inner == nil {
			return true
		}
	}
	return false
}
