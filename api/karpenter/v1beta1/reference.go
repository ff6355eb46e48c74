package v1beta1

import (
	"encoding/json"
	"strings"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/roundtrip"
)

// Annotations of the contract in which a v1 object keeps what only v1beta1 can say.
const (
	// KubeletAnnotationKey holds the settings of the kubelet that a v1beta1 NodePool or NodeClaim has, as JSON.
	KubeletAnnotationKey = "compatibility.karpenter.sh/v1beta1-kubelet-conversion"
	// NodeClassReferenceAnnotationKey holds the nodeClassRef of v1beta1, as JSON, if it does not follow from v1's.
	NodeClassReferenceAnnotationKey = "compatibility.karpenter.sh/v1beta1-nodeclass-reference"
)

// DefaultNodeClassName is the NodeClass of a NodePool that names none.
const DefaultNodeClassName = "default"

// nodeClassKind is a kind of NodeClass that references may leave half unsaid.
type nodeClassKind struct{ group, version, kind string }

// nodeClassKinds are the known kinds. The first is meant by a reference that is only a name.
func nodeClassKinds() []nodeClassKind {
	return []nodeClassKind{
		{"karpenter.k8s.aws", "v1beta1", "EC2NodeClass"},
		{"karpenter.kwok.sh", "v1alpha1", "KWOKNodeClass"},
		{"karpenter.azure.com", "v1alpha2", "AKSNodeClass"},
	}
}

// toHub returns the reference as v1 has it: with everything said.
func (r *NodeClassReference) toHub() *v1.NodeClassReference {
	known := nodeClassKinds()[0]
	group, _, _ := strings.Cut(r.APIVersion, "/")
	for _, k := range nodeClassKinds() {
		if group != "" && k.group == group || group == "" && k.kind == r.Kind {
			known = k
		}
	}
	out := &v1.NodeClassReference{Group: group, Kind: r.Kind, Name: r.Name}
	if out.Group == "" {
		out.Group = known.group
	}
	if out.Kind == "" {
		out.Kind = known.kind
	}
	return out
}

// referenceFrom returns v1's reference as v1beta1 has it.
func referenceFrom(ref *v1.NodeClassReference) *NodeClassReference {
	version := Version
	for _, k := range nodeClassKinds() {
		if k.group == ref.Group {
			version = k.version
		}
	}
	return &NodeClassReference{APIVersion: ref.Group + "/" + version, Kind: ref.Kind, Name: ref.Name}
}

// keepReference notes on a v1 object how its reference was written, if that does not follow from v1's.
func keepReference(annotations map[string]string, ref *NodeClassReference) map[string]string {
	if ref != nil && *referenceFrom(ref.toHub()) == *ref {
		if noted := notedReference(annotations); noted != nil && *noted == *ref {
			return annotations // somebody else's note, which says the same
		}
		return roundtrip.Annotate(annotations, NodeClassReferenceAnnotationKey, "")
	}
	return keep(annotations, NodeClassReferenceAnnotationKey, ref)
}

// showReference returns the reference of a v1 object as v1beta1 has it, and the annotations without what it is taken
// from.
func showReference(annotations map[string]string, ref *v1.NodeClassReference) (*NodeClassReference, map[string]string) {
	if ref == nil {
		return nil, annotations
	}
	plain := referenceFrom(ref)
	noted := notedReference(annotations)
	if noted == nil {
		return plain, annotations
	}
	noted.Name = ref.Name
	if *noted.toHub() != *ref {
		return plain, roundtrip.Annotate(annotations, NodeClassReferenceAnnotationKey, "")
	}
	return noted, withoutWhatFollows(annotations, NodeClassReferenceAnnotationKey,
		keepReference(roundtrip.Annotate(annotations, NodeClassReferenceAnnotationKey, ""), noted))
}

func notedReference(annotations map[string]string) *NodeClassReference {
	var out NodeClassReference
	if !readAnnotation(annotations, NodeClassReferenceAnnotationKey, &out) {
		return nil
	}
	return &out
}

// keepKubelet notes the settings of the kubelet on a v1 object.
func keepKubelet(annotations map[string]string, kubelet *KubeletConfiguration) map[string]string {
	return keep(annotations, KubeletAnnotationKey, kubelet)
}

// showKubelet returns the settings that a v1 object keeps, and the annotations without them.
func showKubelet(annotations map[string]string) (*KubeletConfiguration, map[string]string) {
	kubelet := &KubeletConfiguration{}
	if !readAnnotation(annotations, KubeletAnnotationKey, kubelet) {
		return nil, annotations
	}
	return kubelet, withoutWhatFollows(annotations, KubeletAnnotationKey,
		keepKubelet(roundtrip.Annotate(annotations, KubeletAnnotationKey, ""), kubelet))
}

// keep writes a value as JSON into an annotation, unless the annotation says the same already in its own words. No
// value takes the annotation out.
func keep[T any](annotations map[string]string, key string, value *T) map[string]string {
	if value == nil {
		return roundtrip.Annotate(annotations, key, "")
	}
	text := toJSON(value)
	noted := new(T)
	if readAnnotation(annotations, key, noted) && toJSON(noted) == text {
		return annotations
	}
	return roundtrip.Annotate(annotations, key, text)
}

// withoutWhatFollows takes an annotation out of those of a v1 object if converting back would write the very same.
func withoutWhatFollows(annotations map[string]string, key string, again map[string]string) map[string]string {
	if again[key] != annotations[key] {
		return annotations
	}
	return roundtrip.Annotate(annotations, key, "")
}

// readAnnotation reads an annotation that holds a JSON object; false if there is none, or something else.
func readAnnotation(annotations map[string]string, key string, into any) bool {
	text := annotations[key]
	return strings.HasPrefix(strings.TrimSpace(text), "{") && json.Unmarshal([]byte(text), into) == nil
}

// toJSON writes a value of this package, which can always be written.
func toJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}
