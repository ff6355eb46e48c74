package ingest

import (
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/validate"
)

// Karpenter 1.15.0 has computed these for the templates of testdata/hash_pools.yaml. If ours differed, every node of a
// cluster that Tenon takes over would be replaced.
func TestHashIsTheContracts(t *testing.T) {
	want := []string{
		"17307646073972311821",
		"12745407319442031341",
		"7428780003907761376",
		"551879171037375906", // the same as the next: order and notation don't count, and requirements neither
		"551879171037375906",
		"18176529694604880627", // what is empty is not what is absent
		"9359374451861269853",
	}
	text, err := os.ReadFile("testdata/hash_pools.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var templates []map[string]any
	if err := yaml.Unmarshal(text, &templates); err != nil {
		t.Fatal(err)
	}
	if len(templates) != len(want) {
		t.Fatalf("%d templates, want %d", len(templates), len(want))
	}
	for i, template := range templates {
		b := New(time.Now, validate.Labels{}, []cluster.ClassRef{{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"},
			{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass"}})
		b.setStoredPool(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "default", "annotations": map[string]any{
				v1.NodePoolHashAnnotationKey: "1", v1.NodePoolHashVersionAnnotationKey: "v2",
			}},
			"spec": map[string]any{"template": template},
		}})
		p := b.Snapshot().Pool("default")
		if p.Hash != want[i] || p.HashVersion != "v3" || p.Template.Hash != (cluster.TemplateHash{Hash: want[i],
			Version: "v3"}) {
			t.Errorf("template %d: hash %s (%s), stamp %v, want %s (v3)", i, p.Hash, p.HashVersion,
				p.Template.Hash, want[i])
		}
		if p.WrittenHash != (cluster.TemplateHash{Hash: "1", Version: "v2"}) {
			t.Errorf("template %d: stamped %v", i, p.WrittenHash)
		}
	}
}

// What can't be read has no hash, so that nothing is replaced because of it.
func TestBrokenPoolHasNoHash(t *testing.T) {
	b, _ := newBook()
	b.setStoredPool(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "default"},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"taints": "none"}}},
	}})
	if p := b.Snapshot().Pool("default"); p.Hash != "" || len(p.Problems) == 0 {
		t.Errorf("hash %q, problems %v", p.Hash, p.Problems)
	}
}
