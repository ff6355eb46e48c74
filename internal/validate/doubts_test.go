package validate

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestMistypedLabelsAreDoubted(t *testing.T) {
	labels := Labels{WellKnown: map[string]bool{"karpenter.k8s.aws/instance-family": true},
		RestrictedDomains: []string{"karpenter.k8s.aws"}}
	for key, want := range map[string]string{
		"topology.kubernetes.io/zoen":      "topology.kubernetes.io/zone",
		"kubernetes.io/archs":              "kubernetes.io/arch",
		"node.kubernetes.io/instancetype":  "node.kubernetes.io/instance-type",
		"karpanter.sh/capacity-type":       "karpenter.sh/capacity-type",
		"karpenter.k8s.aw/instance-family": "karpenter.k8s.aws/instance-family",
		"kubernetes.io/arch":               "",
		"beta.kubernetes.io/arch":          "",
		"example.com/zone":                 "",
		"team":                             "",
	} {
		pool := &v1.NodePool{}
		pool.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{{Key: key, Operator: "Exists"}}
		doubts := Doubts(pool, labels)
		switch {
		case want == "" && len(doubts) > 0:
			t.Errorf("%s: %v", key, doubts)
		case want != "" && (len(doubts) != 1 || doubts[0].Field != "spec.template.spec.requirements[0].key" ||
			!strings.Contains(doubts[0].Fix, "mean "+want+",")):
			t.Errorf("%s: %v, want %s", key, doubts, want)
		}
	}
}

// TestMistypedLabelOfARestrictedDomain: what is refused is refused with the name that was probably meant.
func TestMistypedLabelOfARestrictedDomain(t *testing.T) {
	labels := Labels{WellKnown: map[string]bool{"karpenter.k8s.aws/instance-family": true,
		"karpenter.k8s.aws/instance-size": true}, RestrictedDomains: []string{"karpenter.k8s.aws"}}
	problems := labelKey("key", "karpenter.k8s.aws/instance-famly", labels)
	if len(problems) != 1 || !strings.HasPrefix(problems[0].Fix, "write karpenter.k8s.aws/instance-family, if that "+
		"is meant; ") {
		t.Errorf("%v", problems)
	}
	if problems := labelKey("key", "karpenter.k8s.aws/color", labels); len(problems) != 1 ||
		!strings.HasPrefix(problems[0].Fix, "use a label of another domain") {
		t.Errorf("%v", problems)
	}
}

// A limit whose name is mistyped limits nothing, and is told with the name that was probably meant.
func TestDoubtfulLimits(t *testing.T) {
	one := apiresource.MustParse("1")
	pool := &v1.NodePool{}
	pool.Spec.Limits = corev1.ResourceList{
		"cpus": one, "cpu": one, "nodes": one, "nvidia.com/gpu": one, "hugepages-2Mi": one, "gpu": one,
	}
	var got []string
	for _, p := range Doubts(pool, Labels{}) {
		got = append(got, string(p.Value)+": "+p.Fix)
	}
	want := "[cpus: if you mean cpu, write that gpu: the names are cpu, memory, pods, ephemeral-storage, nodes, " +
		"and extended resources with their domain]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}
