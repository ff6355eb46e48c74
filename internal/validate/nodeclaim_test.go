package validate

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestNodeClaim(t *testing.T) {
	requires := func(key string, values ...string) func(*v1.NodeClaim) {
		return func(c *v1.NodeClaim) {
			c.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
				{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values},
			}
		}
	}
	cases := []struct {
		name   string
		change func(*v1.NodeClaim)
		want   string
	}{
		{"as it is", func(*v1.NodeClaim) {}, ""},
		{"of a pool", requires(v1.NodePoolLabelKey, "default"), ""},
		{"of one capacity type", requires(v1.CapacityTypeLabelKey, "spot"), ""},
		{"hostname", requires(corev1.LabelHostname, "x"), "spec.requirements[0].key"},
		{"no values", requires(corev1.LabelTopologyZone), "spec.requirements[0].values is empty"},
		{"same taint twice", func(c *v1.NodeClaim) {
			c.Spec.Taints = []v1.Taint{{Key: "a", Effect: "NoExecute"}}
			c.Spec.StartupTaints = c.Spec.Taints
		}, "spec.startupTaints[0]"},
		{"no NodeClass", func(c *v1.NodeClaim) { c.Spec.NodeClassRef = nil }, "spec.nodeClassRef is missing"},
		{"long NodeClass", func(c *v1.NodeClaim) {
			c.Spec.NodeClassRef.Name = strings.Repeat("a", 64)
		}, "spec.nodeClassRef.name"},
		{"negative age", func(c *v1.NodeClaim) { c.Spec.ExpireAfter = v1.DurationOf(-1) }, "spec.expireAfter"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			claim := &v1.NodeClaim{}
			claim.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass",
				Name: "default"}
			c.change(claim)
			got := lines(NodeClaim(claim, Labels{}))
			if c.want == "" && got != "" {
				t.Errorf("got %q, want nothing", got)
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %q, want it to contain %q", got, c.want)
			}
		})
	}
}

func TestNormalizeKey(t *testing.T) {
	for old, want := range map[string]string{
		"failure-domain.beta.kubernetes.io/zone":   "topology.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
		"beta.kubernetes.io/arch":                  "kubernetes.io/arch",
		"beta.kubernetes.io/os":                    "kubernetes.io/os",
		"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
		"topology.kubernetes.io/zone":              "topology.kubernetes.io/zone",
		"team":                                     "team",
	} {
		if got := NormalizeKey(old); got != want {
			t.Errorf("NormalizeKey(%q) = %q, want %q", old, got, want)
		}
	}
}

func TestKnownValues(t *testing.T) {
	known, unknown := KnownValues(v1.CapacityTypeLabelKey, []string{"dream", "reserved", "spot"})
	if !slices.Equal(known, []string{"reserved", "spot"}) || !slices.Equal(unknown, []string{"dream"}) {
		t.Errorf("capacity types: known %v, unknown %v", known, unknown)
	}
	known, unknown = KnownValues("team", []string{"dream"})
	if !slices.Equal(known, []string{"dream"}) || unknown != nil {
		t.Errorf("a label of any value: known %v, unknown %v", known, unknown)
	}
}

func TestProblemString(t *testing.T) {
	full := Problem{Field: "spec.x", Value: "a\nb", Why: "is wrong", Fix: "right it"}
	if got, want := full.String(), `spec.x "a\nb" is wrong; right it`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	bare := Problem{Field: "spec.x", Why: "is missing", Fix: "set it"}
	if got, want := bare.String(), "spec.x is missing; set it"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
