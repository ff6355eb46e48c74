package schedule

import (
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
)

func TestNothingForNamesTheRequirement(t *testing.T) {
	var types []cluster.Type
	var offerings []cluster.Offering
	for i, arch := range []string{"amd64", "arm64"} {
		types = append(types, cluster.Type{Name: "type-" + arch})
		offerings = append(offerings, cluster.Offering{Type: i, Available: true, Labels: cluster.LabelsOf(map[string]string{"arch": arch, "zone": "a", "size": []string{"small", "big"}[i]})})
	}
	catalog := cluster.NewCatalog(types, offerings)
	for _, c := range []struct {
		name string
		set  require.Set
		want string
	}{
		{"nothing asked", nil, ""},
		{"a custom label", require.Set{}.With("team", require.Only("blue")), ""},
		{"a value that exists", require.Set{}.With("arch", require.Only("arm64", "x86_64")), ""},
		{"a typo", require.Set{}.With("arch", require.Only("x86_64")).With("zone", require.Only("a")), "no instance type has arch In [x86_64]"},
		{"two that exclude each other", require.Set{}.With("arch", require.Only("amd64")).With("size", require.Only("big")).With("zone", require.Only("a")),
			"no instance type has both arch In [amd64] and size In [big]"},
		{"too few to choose from", require.Set{}.With("arch", require.Only("amd64")).WithMin("arch", 2), "minValues 2 of arch can't be met"},
	} {
		p := &cluster.Pool{Catalog: catalog, Template: cluster.Template{Requirements: c.set}}
		if got := NothingFor(p); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	label := &cluster.Pool{Catalog: catalog, Template: cluster.Template{Labels: cluster.LabelsOf(map[string]string{"zone": "z"})}}
	if got := NothingFor(label); !strings.Contains(got, "zone In [z]") {
		t.Errorf("a template label that no type has: %q", got)
	}
}
