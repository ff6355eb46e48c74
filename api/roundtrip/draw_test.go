package roundtrip_test

import (
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	awsv1beta1 "github.com/tenon-sh/tenon/api/aws/v1beta1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1beta1"
)

// draw makes any value of a type: every field of it may be set or not, to what an API server would let pass and to some
// that it would not.
func draw[T any]() *rapid.Generator[T] {
	return rapid.MakeCustom[T](rapid.MakeConfig{
		Types: map[reflect.Type]*rapid.Generator[any]{
			reflect.TypeFor[metav1.TypeMeta]():     rapid.Just(metav1.TypeMeta{}).AsAny(),
			reflect.TypeFor[metav1.ObjectMeta]():   metadata().AsAny(),
			reflect.TypeFor[metav1.Time]():         rapid.Custom(drawTime).AsAny(),
			reflect.TypeFor[metav1.Duration]():     rapid.Custom(drawDuration).AsAny(),
			reflect.TypeFor[v1.NillableDuration](): rapid.Custom(drawNillable).AsAny(),
			reflect.TypeFor[resource.Quantity]():   rapid.Custom(drawQuantity).AsAny(),
			reflect.TypeFor[corev1.ResourceList](): rapid.MapOfN(rapid.Custom(drawResource),
				rapid.Custom(drawQuantity), 0, 3).AsAny(),
			reflect.TypeFor[apiextensionsv1.JSON](): rapid.Custom(drawJSON).AsAny(),
			reflect.TypeFor[v1.ConsolidationPolicy](): oneOf[v1.ConsolidationPolicy]("WhenEmpty",
				"WhenEmptyOrUnderutilized", "Balanced", "").AsAny(),
			reflect.TypeFor[v1beta1.ConsolidationPolicy](): oneOf[v1beta1.ConsolidationPolicy]("WhenEmpty",
				"WhenUnderutilized", "WhenIdle", "").AsAny(),
			reflect.TypeFor[v1.NodeClassReference]():      rapid.Custom(drawHubReference).AsAny(),
			reflect.TypeFor[v1beta1.NodeClassReference](): rapid.Custom(drawReference).AsAny(),
			reflect.TypeFor[[]awsv1.AMISelectorTerm]():    rapid.Custom(drawTerms).AsAny(),
		},
		Kinds: map[reflect.Kind]*rapid.Generator[any]{reflect.String: text().AsAny()},
		Fields: map[reflect.Type]map[string]*rapid.Generator[any]{
			reflect.TypeFor[awsv1.EC2NodeClassSpec](): {
				"AMIFamily": rapid.Ptr(oneOf("AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019",
					"Windows2022", "Windows2025"), true).AsAny(),
				"InstanceProfile": rapid.Ptr(text(), true).AsAny(),
			},
			reflect.TypeFor[awsv1beta1.EC2NodeClassSpec](): {
				"AMIFamily": rapid.Ptr(oneOf("AL2", "AL2023", "Bottlerocket", "Ubuntu", "Custom", "Windows2019",
					"Windows2022"), false).AsAny(),
			},
		},
	})
}

func oneOf[T any](values ...T) *rapid.Generator[T] { return rapid.SampledFrom(values) }

func text() *rapid.Generator[string] {
	return rapid.OneOf(oneOf("", "default", "10%", "WhenEmpty", "Never", "0s", "karpenter.k8s.aws/v1beta1", "a/b",
		"${CLUSTER_NAME}", "~1.*"), rapid.StringN(0, 6, 24))
}

func metadata() *rapid.Generator[metav1.ObjectMeta] {
	return rapid.Custom(func(t *rapid.T) metav1.ObjectMeta {
		marks := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}\.sh/[a-z]{1,3}`), text(), 0, 2)
		return metav1.ObjectMeta{
			Name: rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "name"), UID: "0-1", Generation: rapid.Int64().Draw(t,
				"generation"),
			Labels: marks.Draw(t, "labels"), Annotations: marks.Draw(t, "annotations"),
		}
	})
}

func drawTime(t *rapid.T) metav1.Time {
	return metav1.NewTime(time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), 0))
}

func drawDuration(t *rapid.T) metav1.Duration {
	return metav1.Duration{Duration: time.Duration(rapid.Int64Range(0, 1e6).Draw(t, "seconds")) * time.Second}
}

func drawNillable(t *rapid.T) v1.NillableDuration {
	out, err := v1.ParseNillableDuration(rapid.SampledFrom([]string{"", "0s", "0m", "30s", "60m", "1h", "720h",
		"Never"}).Draw(t, "duration"))
	if err != nil {
		return v1.NillableDuration{} // the empty one: not set
	}
	return out
}

func drawResource(t *rapid.T) corev1.ResourceName {
	return rapid.SampledFrom([]corev1.ResourceName{"cpu", "memory", "nodes", "nvidia.com/gpu"}).Draw(t, "resource")
}

func drawQuantity(t *rapid.T) resource.Quantity {
	return resource.MustParse(rapid.SampledFrom([]string{"0", "1000", "1000Gi", "0.5", "1e3", "100m", "1Ti"}).Draw(t,
		"quantity"))
}

func drawJSON(t *rapid.T) apiextensionsv1.JSON {
	return apiextensionsv1.JSON{Raw: []byte(rapid.SampledFrom([]string{`110`, `"max_pods - 1"`, `{"cpu":"100m"}`,
		`true`, `[1,"a"]`}).Draw(t, "json"))}
}

func drawHubReference(t *rapid.T) v1.NodeClassReference {
	return v1.NodeClassReference{
		Group: rapid.SampledFrom([]string{"karpenter.k8s.aws", "karpenter.kwok.sh", "example.com"}).Draw(t, "group"),
		Kind:  rapid.SampledFrom([]string{"EC2NodeClass", "KWOKNodeClass", "Other"}).Draw(t, "kind"),
		Name:  rapid.SampledFrom([]string{"default", "gpu", ""}).Draw(t, "name"),
	}
}

func drawReference(t *rapid.T) v1beta1.NodeClassReference {
	return v1beta1.NodeClassReference{
		APIVersion: rapid.SampledFrom([]string{"karpenter.k8s.aws/v1beta1", "karpenter.k8s.aws/v1",
			"karpenter.kwok.sh/v1alpha1", "example.com/v1", "v1", ""}).Draw(t, "apiVersion"),
		Kind: rapid.SampledFrom([]string{"EC2NodeClass", "KWOKNodeClass", "Other"}).Draw(t, "kind"),
		Name: rapid.SampledFrom([]string{"default", "gpu"}).Draw(t, "name"),
	}
}

// drawTerms draws v1's terms, which may be an alias.
func drawTerms(t *rapid.T) []awsv1.AMISelectorTerm {
	if alias := rapid.SampledFrom([]string{"", "al2@latest", "al2023@v20240807", "windows2022@latest", "other@1"}).
		Draw(t, "alias"); alias != "" {
		return []awsv1.AMISelectorTerm{{Alias: alias}}
	}
	return rapid.SliceOfN(rapid.MakeCustom[awsv1.AMISelectorTerm](rapid.MakeConfig{
		Kinds: map[reflect.Kind]*rapid.Generator[any]{reflect.String: text().AsAny()},
	}), 0, 3).Draw(t, "terms")
}
