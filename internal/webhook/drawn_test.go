package webhook

import (
	"encoding/json"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// drawn makes an object of a kind, as JSON: any field of its type may be there or not, be null or empty, and say what
// the type can't read or would write in another way.
func drawn(kind schema.GroupVersionKind, t reflect.Type) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(r *rapid.T) map[string]any {
		out := map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind}
		out["metadata"] = drawMetadata(r)
		for _, key := range []string{"spec", "status"} {
			if rapid.IntRange(0, 9).Draw(r, key) > 0 {
				out[key] = drawValue(r, child(t, key), 0)
			}
		}
		return out
	})
}

func drawMetadata(r *rapid.T) map[string]any {
	out := map[string]any{"name": "one", "uid": "0-1"}
	if pool := rapid.SampledFrom([]string{"", "a", "b", "broken"}).Draw(r, "pool"); pool != "" {
		out["labels"] = map[string]any{v1.NodePoolLabelKey: pool}
	}
	if rapid.Bool().Draw(r, "annotated") {
		key := rapid.SampledFrom([]string{"compatibility.karpenter.sh/v1beta1-kubelet-conversion",
			"compatibility.karpenter.sh/v1beta1-nodeclass-reference", "compatibility.karpenter.k8s.aws/v1beta1-ubuntu",
			"compatibility.karpenter.k8s.aws/v1-alias-version", "example.com/a"}).Draw(r, "annotation")
		text := rapid.SampledFrom([]string{"", "x", "latest", "v1", `{"maxPods":20}`, `{"maxPods": 3000000000}`,
			`{"name":"default"}`, `{"apiVersion":"a/b"}`, "amiFamily,incompatible"}).Draw(r, "text")
		out["annotations"] = map[string]any{key: text}
	}
	return out
}

func drawValue(r *rapid.T, t reflect.Type, depth int) any {
	if rapid.IntRange(0, 40).Draw(r, "null") == 0 {
		return nil
	}
	if t = plain(t); isLeaf(t) {
		return drawLeaf(r, t)
	}
	if t.Kind() == reflect.Slice {
		out := []any{}
		for range rapid.IntRange(0, 2).Draw(r, "items") {
			out = append(out, drawValue(r, t.Elem(), depth+1))
		}
		return out
	}
	out := map[string]any{}
	for _, key := range keysOf(r, t) {
		if t.Kind() == reflect.Map || rapid.IntRange(0, 5).Draw(r, key) < 2 || depth < 2 && rapid.Bool().Draw(r, key) {
			out[key] = drawValue(r, child(t, key), depth+1)
		}
	}
	return out
}

// keysOf are the fields of a type; of a map some.
func keysOf(r *rapid.T, t reflect.Type) []string {
	if t.Kind() == reflect.Map {
		names := rapid.SampledFrom([]string{"cpu", "memory", "nodes", "a.b/c", "tenon.sh/ssm-parameter", "", "ü"})
		return rapid.SliceOfNDistinct(names, 0, 3, rapid.ID[string]).Draw(r, "keys")
	}
	var out []string
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			out = append(out, name)
		}
	}
	return out
}

// drawLeaf draws texts that the API server lets pass, and some that older definitions did or none did.
func drawLeaf(r *rapid.T, t reflect.Type) any {
	pick := func(values ...any) any { return rapid.SampledFrom(values).Draw(r, t.Name()) }
	number := func(text string) any { return json.Number(text) }
	switch reflect.New(t).Interface().(type) {
	case *metav1.Time:
		return pick("2024-01-01T00:00:00Z", "2024-01-01t00:00:00z", "2024-01-01T00:00:00.5Z",
			"2024-01-01T00:00:00,25+01:00", "2016-12-31T23:59:60Z", "0001-01-01T00:00:00Z",
			"0000-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00",
			"2024-01-01T00:00:00+99:99", "1601-01-01T00:00:01Z", "")
	case *metav1.Duration, *v1.NillableDuration:
		return pick("0s", "30s", "1h", "60m", "1h0m0s", "720h", "Never", "99999999999999h", "-5m", "1.5h", "1d",
			"", "720h0m0s")
	case *resource.Quantity:
		return pick("0", "1", "1000", number("1000"), "1k", "0.5", "1e3", "-1", "20Gi", "1e1.5",
			"100000000000000000000000000000", "1e99", number("1e30"), "", "much")
	case *apiextensionsv1.JSON:
		return pick(number("110"), number("1.50"), "max_pods - 1", map[string]any{"a": nil, "b": "100m"}, true,
			[]any{number("1"), nil})
	}
	switch t.Kind() {
	case reflect.Bool:
		return pick(true, false)
	case reflect.Int, reflect.Int32, reflect.Int64:
		return pick(number("0"), number("1"), number("-1"), number("50"), number("1601000003"), number("2147483648"),
			number("9223372036854775807"), number("9223372036854775808"), number("1e3"), number("1.5"), number("1e400"))
	}
	return pick("", "default", "0s", "10%", "WhenEmpty", "WhenIdle", "WhenUnderutilized", "WhenEmptyOrUnderutilized",
		"Balanced", "karpenter.k8s.aws", "karpenter.k8s.aws/v1beta1", "EC2NodeClass", "AL2", "Ubuntu", "Custom",
		"al2@latest", "al2023@v1", "/dev/sda1", "ami-placeholder", "${CLUSTER_NAME}",
		"\u00fc\u2028\"<\\&\U0001f600", "1601000001", strings.Repeat("x", 300))
}
