package render

import (
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

func TestNothingForNamesTheRequirement(t *testing.T) {
	var types []cluster.Type
	var offerings []cluster.Offering
	for i, arch := range []string{"amd64", "arm64"} {
		types = append(types, cluster.Type{Name: "type-" + arch})
		offerings = append(offerings, cluster.Offering{Type: i, Available: true,
			Labels: cluster.LabelsOf(map[string]string{"arch": arch, "zone": "a", "size": []string{"small",
				"big"}[i]})})
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
		{"a typo", require.Set{}.With("arch", require.Only("x86_64")).With("zone", require.Only("a")),
			"no instance type has arch In [x86_64]"},
		{"two that exclude each other", require.Set{}.With("arch", require.Only("amd64")).With("size",
			require.Only("big")).With("zone", require.Only("a")),
			"no instance type has both arch In [amd64] and size In [big]"},
		{"too few to choose from", require.Set{}.With("arch", require.Only("amd64")).WithMin("arch", 2),
			"minValues 2 of arch can't be met"},
	} {
		p := &cluster.Pool{Catalog: catalog, Template: cluster.Template{Requirements: c.set}}
		if got := Text(schedule.NoTypesReason(p)); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	label := &cluster.Pool{Catalog: catalog,
		Template: cluster.Template{Labels: cluster.LabelsOf(map[string]string{"zone": "z"})}}
	if got := Text(schedule.NoTypesReason(label)); !strings.Contains(got, "zone In [z]") {
		t.Errorf("a template label that no type has: %q", got)
	}
}

// smallAndBig sells a type with 2 CPUs and 8 GiB, and one with 4 CPUs and 4 GiB.
func smallAndBig() *cluster.Catalog {
	var types []cluster.Type
	var offerings []cluster.Offering
	for i, size := range []string{"small", "big"} {
		cpu := int64(2000 * (i + 1))
		types = append(types, cluster.Type{Name: size, Capacity: resource.Vector{
			resource.CPU: cpu, resource.Memory: (8 << 30) / int64(i+1), resource.Pods: 110,
		}})
		labels := cluster.LabelsOf(map[string]string{"size": size})
		offerings = append(offerings, cluster.Offering{Type: i, Available: true, Labels: labels})
	}
	return cluster.NewCatalog(types, offerings)
}

func TestLimitsForbidNamesTheLimit(t *testing.T) {
	limit := func(dim int, amount int64) func(*cluster.Pool) {
		return func(p *cluster.Pool) { p.Limits.Set[dim], p.Limits.Amount[dim] = true, amount }
	}
	const fix = "; raise the limit or remove it to let the pool make nodes"
	requires := func(size string) func(*cluster.Pool) {
		return func(p *cluster.Pool) { p.Template.Requirements = require.Set{}.With("size", require.Only(size)) }
	}
	type change = []func(*cluster.Pool)
	for _, c := range []struct {
		name string
		set  change
		want string
	}{
		{"no limit", nil, ""},
		{"room for one", change{limit(resource.CPU, 2000)}, ""},
		{"none of what no type has", change{limit(resource.Size-1, 0)}, ""},
		{"no CPU", change{limit(resource.CPU, 0)}, "spec.limits.cpu is 0, and every node has some" + fix},
		{"no memory", change{limit(resource.Memory, 0)}, "spec.limits.memory is 0, and every node has some" + fix},
		{"no pods", change{limit(resource.Pods, 0)}, "spec.limits.pods is 0, and every node has some" + fix},
		{"no nodes", change{func(p *cluster.Pool) { p.Limits.HasNodes = true }}, "spec.limits.nodes is 0" + fix},
		{"before the catalog is there", change{limit(resource.CPU, 0), func(p *cluster.Pool) { p.Catalog = nil }},
			"spec.limits.cpu is 0, and every node has some" + fix},
		{"less than the smallest", change{limit(resource.CPU, 1500)},
			"spec.limits.cpu is 1.5, and each instance type that the requirements leave has 2 or more" + fix},
		{"less than the smallest that the requirements leave", change{limit(resource.CPU, 2000), requires("big")},
			"spec.limits.cpu is 2, and each instance type that the requirements leave has 4 or more" + fix},
		{"each type exceeds another limit", change{limit(resource.CPU, 2000), limit(resource.Memory, 4<<30)},
			"spec.limits together leave no instance type: each has more of something than its limit; " +
				"raise or remove one of them"},
		{"requirements that leave nothing are told elsewhere", change{limit(resource.CPU, 2000), requires("huge")}, ""},
		{"a resource that has no number", change{func(p *cluster.Pool) { p.Limits.Broken = "example.com/x" }},
			"spec.limits.example.com/x can't be counted, because too many kinds of resources are in use; " +
				"remove it to let the pool make nodes"},
	} {
		p := &cluster.Pool{Catalog: smallAndBig()}
		for _, set := range c.set {
			set(p)
		}
		if got := Text(schedule.LimitsReason(p, &resource.Names{})); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
