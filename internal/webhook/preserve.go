package webhook

import (
	"encoding/json"
	"reflect"
)

// preserve returns what was made, with the texts of the original. written is the original as it came, read is the same
// after it was read and written by our types, and made is what became of it: where made is read, it may as well be
// written.
func preserve(written, read, made any) any {
	if reflect.DeepEqual(read, made) {
		return written
	}
	switch out := made.(type) {
	case map[string]any:
		a, ok := written.(map[string]any)
		b, fine := read.(map[string]any)
		if !ok || !fine {
			return made
		}
		return preserveFields(a, b, out)
	case []any:
		a, ok := written.([]any)
		b, fine := read.([]any)
		if !ok || !fine || len(a) != len(out) || len(b) != len(out) {
			return made
		}
		for i := range out {
			out[i] = preserve(a[i], b[i], out[i])
		}
	}
	return made
}

func preserveFields(written, read, made map[string]any) map[string]any {
	for key, value := range made {
		_, was := written[key]
		_, is := read[key]
		switch object, _ := value.(map[string]any); {
		case was && is:
			made[key] = preserve(written[key], read[key], value)
		case !was && (value == nil || object != nil && isNothing(object)):
			delete(made, key) // our types write some fields in any case
		}
	}
	for key, value := range written {
		_, is := read[key]
		_, becomes := made[key]
		if !is && !becomes && isNothing(value) {
			// Our types don't tell an empty list from none, but the defaults of the API server do. If the other version
			// has no such field, it is dropped.
			made[key] = value
		}
	}
	return made
}

// isNothing says whether our types may leave a value out when they write it.
func isNothing(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if !isNothing(inner) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	case json.Number:
		number, err := v.Float64()
		return err == nil && number == 0
	}
	return value == nil || value == "" || value == false
}
