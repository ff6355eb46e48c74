package roundtrip

import "maps"

// Annotations in which a version keeps what it can't say itself.
const (
	// V1OnlyAnnotationKey on an object of an older version holds what only v1 can say of it.
	V1OnlyAnnotationKey = "tenon.sh/v1-only"
	// V1Beta1OnlyAnnotationKey on a v1 object holds what only v1beta1 can say of it.
	V1Beta1OnlyAnnotationKey = "tenon.sh/v1beta1-only"
)

// Annotate returns annotations with the value under the key; an empty value takes the key out. The annotations given
// are not changed, and none at all are nil.
func Annotate(annotations map[string]string, key, value string) map[string]string {
	out := maps.Clone(annotations)
	if value == "" {
		delete(out, key)
	} else {
		if out == nil {
			out = map[string]string{}
		}
		out[key] = value
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
