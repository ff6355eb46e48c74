package plan_test

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// apps are the few labels by which drawn pods select each other.
var apps = []string{"a", "b", "c"}

// drawTies lets pods of a shape have rules, wishes, ports and volumes. Every second shape has none.
func (w *world) drawTies(t *rapid.T, sh *shape) {
	sh.ties.labels = cluster.Labels{}.With("app", rapid.SampledFrom(apps).Draw(t, "app"))
	sh.ties.namespace = rapid.SampledFrom([]string{"default", "default", "default", "other"}).Draw(t, "namespace")
	w.namespaces["other"] = cluster.Labels{}.With("team", "blue")
	if rapid.Bool().Draw(t, "no ties") {
		return
	}
	for range rapid.SampledFrom([]int{0, 1, 1, 2}).Draw(t, "rules") {
		sh.ties.rules = append(sh.ties.rules, drawRule(t))
	}
	if rapid.IntRange(0, 3).Draw(t, "prefers") == 0 {
		key, values := drawDemand(t)
		sh.ties.prefer = []cluster.Preference{{Weight: int32(rapid.IntRange(1, 100).Draw(t, "weight")),
			Term: require.Set{}.With(key, values)}}
	}
	if rapid.IntRange(0, 4).Draw(t, "ports") == 0 {
		sh.ports = []cluster.Port{drawPort(t)}
	}
	if rapid.IntRange(0, 4).Draw(t, "volumes") == 0 {
		v := volumeWord{name: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "volume"), dim: w.attachDim()}
		v.each = rapid.Bool().Draw(t, "each")
		v.once = v.each && rapid.Bool().Draw(t, "once")
		sh.requests[v.dim]++
		sh.ties.volumes = []volumeWord{v}
		if rapid.IntRange(0, 2).Draw(t, "bound") == 0 {
			sh.reach = []require.Set{require.Set{}.With(cluster.ZoneLabel,
				require.Only(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "volume zone")))}
		}
	}
}

// attachDim is the dimension of the one driver that drawn volumes have.
func (w *world) attachDim() int {
	dim, _ := w.names.Index(resource.AttachPrefix + "ebs")
	return dim
}

func drawPort(t *rapid.T) cluster.Port {
	return cluster.Port{IP: rapid.SampledFrom([]string{"0.0.0.0", "10.0.0.1", "10.0.0.2"}).Draw(t, "ip"),
		Protocol: "TCP",
		Number:   int32(rapid.IntRange(80, 81).Draw(t, "port"))}
}

func drawRule(t *rapid.T) ruleWord {
	r := cluster.Rule{
		Kind: rapid.SampledFrom([]cluster.RuleKind{cluster.Spread, cluster.Spread, cluster.Affinity,
			cluster.AntiAffinity}).Draw(t, "kind"),
		TopologyKey: rapid.SampledFrom([]string{cluster.ZoneLabel, cluster.ZoneLabel, cluster.HostnameLabel,
			cluster.HostnameLabel, cluster.CapacityTypeLabel, "team"}).Draw(t, "topology"),
	}
	if r.Kind == cluster.Spread {
		r.MaxSkew = rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "skew")
		r.MinDomains = rapid.SampledFrom([]int{0, 0, 2, 3}).Draw(t, "min domains")
		r.AnyNode = rapid.IntRange(0, 3).Draw(t, "any node") == 0
		r.HonorTaints = rapid.IntRange(0, 3).Draw(t, "honor taints") == 0
	}
	var s cluster.Selector
	switch rapid.IntRange(0, 5).Draw(t, "of") {
	case 0, 1, 2: // its own
	case 3, 4:
		s.Labels = require.Set{}.With("app", require.Only(rapid.SampledFrom(apps).Draw(t, "of app")))
	default:
		s.Labels = require.Set{}.With("app", require.Only(apps...))
	}
	if r.Kind != cluster.Spread && rapid.IntRange(0, 5).Draw(t, "blue") == 0 {
		s.NamespaceLabels, s.HasNamespaceLabels = require.Set{}.With("team", require.Only("blue")), true
	}
	r.Selectors = []cluster.Selector{s}
	w := ruleWord{rule: r}
	if rapid.IntRange(0, 3).Draw(t, "wish") == 0 {
		w.weight = int32(rapid.IntRange(1, 100).Draw(t, "wish weight"))
	}
	return w
}

// drawOld makes the classes of pods that run already: some plain, some that keep others away.
func (w *world) drawOld(t *rapid.T) []shape {
	out := make([]shape, rapid.IntRange(1, 3).Draw(t, "old classes"))
	for i := range out {
		out[i].requests = resource.Vector{resource.CPU: 200, resource.Memory: gi / 4}
		out[i].ties.labels = cluster.Labels{}.With("app", rapid.SampledFrom(apps).Draw(t, "old app"))
		if rapid.IntRange(0, 2).Draw(t, "shy") == 0 {
			rule := drawRule(t)
			rule.rule = cluster.Rule{Kind: cluster.AntiAffinity, TopologyKey: rule.rule.TopologyKey,
				Selectors: rule.rule.Selectors}
			out[i].ties.rules = []ruleWord{rule}
		}
		w.tie(&out[i], fmt.Sprint("old", i))
	}
	return out
}

// drawLeaving lets some of the nodes be on their way out: their pods need another place.
func (w *world) drawLeaving(t *rapid.T) {
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		if rapid.IntRange(0, 4).Draw(t, "leaving") == 0 {
			w.claims[name].Deleting = w.now
		}
	}
}

// together sums up what pods ask for on one node: a volume that they share counts once.
func together(pods []*cluster.Pod) resource.Vector {
	var sum resource.Vector
	attached := make(map[string]bool)
	for _, p := range pods {
		sum = sum.Add(p.Class.Requests)
		for _, v := range p.Volumes {
			if attached[v.Handle] {
				sum[v.Dim]--
			}
			attached[v.Handle] = true
		}
	}
	return sum
}
