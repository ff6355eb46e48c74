package webhook

import "reflect"

// preserve returns what was made, with the texts of the original. written is the original as it came, read is the same after it was
// read and written by our types, and made is what became of it: where made is read, it may as well be written.
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
		if was && is {
			made[key] = preserve(written[key], read[key], value)
		}
	}
	for key, value := range written {
		_, is := read[key]
		_, becomes := made[key]
		if !is && !becomes && isEmpty(value) {
			// Our types don't tell an empty list from none, but the defaults of the API server do. If the other version has no
			// such field, the API server drops it.
			made[key] = value
		}
	}
	return made
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
