package outcome

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rule is a required rule between pods. In the workloads all pods that a rule selects carry it themselves.
type rule struct {
	kind     string
	topology string
	label    string // the one label that is selected
	skew     int
	// selector of nodes that the owners have: it decides which domains count.
	nodes string
}

const (
	spreadRule   = "spread"
	togetherRule = "affinity"
	apartRule    = "anti-affinity"
)

// rules checks each rule once, against where all pods end up.
func (c *audit) rules() {
	found := make(map[rule]*corev1.Pod)
	for _, p := range c.w.Pods {
		for _, r := range c.rulesOf(p) {
			if found[r] == nil {
				found[r] = p
			}
		}
	}
	order := slices.SortedFunc(maps.Keys(found), func(a, b rule) int {
		return strings.Compare(a.kind+a.topology+a.label+a.nodes, b.kind+b.topology+b.label+b.nodes)
	})
	for _, r := range order {
		if r.topology == corev1.LabelTopologyZone && c.leftOpen(r) {
			continue
		}
		switch r.kind {
		case spreadRule:
			c.checkSpread(r, found[r])
		case togetherRule:
			c.checkTogether(r)
		case apartRule:
			c.checkApart(r)
		}
	}
}

func (c *audit) rulesOf(p *corev1.Pod) []rule {
	var out []rule
	var nodes []string
	for key, value := range p.Spec.NodeSelector {
		nodes = append(nodes, key+"="+value)
	}
	slices.Sort(nodes)
	add := func(kind, topology string, selector *metav1.LabelSelector, skew int) {
		if selector == nil || len(selector.MatchLabels) != 1 || len(selector.MatchExpressions) > 0 {
			c.problem("%s selects pods in a way that this check can't read", p.Name)
			return
		}
		for key, value := range selector.MatchLabels {
			out = append(out, rule{kind, topology, key + "=" + value, skew, strings.Join(nodes, ",")})
		}
	}
	for _, s := range p.Spec.TopologySpreadConstraints {
		if s.WhenUnsatisfiable == corev1.DoNotSchedule {
			add(spreadRule, s.TopologyKey, s.LabelSelector, int(s.MaxSkew))
		}
	}
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		for _, t := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			add(togetherRule, t.TopologyKey, t.LabelSelector, 0)
		}
	}
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			add(apartRule, t.TopologyKey, t.LabelSelector, 0)
		}
	}
	return out
}

// leftOpen finds selected pods on nodes that may come up in one of several zones: nobody knows whether the rule will
// hold.
func (c *audit) leftOpen(r rule) bool {
	for _, g := range c.by[r.label] {
		if c.places[g.place].zoneOpen {
			c.problem("%s has a rule about zones and its node's zone is open", g.pod.Name)
			return true
		}
	}
	return false
}

// count counts the selected pods by domain: all of them, and those that were pending.
func (c *audit) count(r rule) (all, came map[string]int) {
	all, came = make(map[string]int), make(map[string]int)
	for _, g := range c.by[r.label] {
		domain := c.places[g.place].labels[r.topology]
		all[domain]++
		if g.pod.Spec.NodeName == "" {
			came[domain]++
		}
	}
	return all, came
}

// checkSpread checks that no domain to which pods have come is ahead of the emptiest by more than the rule allows.
func (c *audit) checkSpread(r rule, owner *corev1.Pod) {
	all, came := c.count(r)
	least := -1
	for i := range c.places {
		labels := c.places[i].labels
		domain, ok := labels[r.topology]
		if !ok || !selects(owner.Spec.NodeSelector, labels) {
			continue
		}
		if n := all[domain]; least < 0 || n < least {
			least = n
		}
	}
	for domain := range came {
		if all[domain]-least > r.skew {
			c.problem("spread of %s: %d in %s and %d in the emptiest", r.label, all[domain], domain, least)
			return
		}
	}
}

// checkTogether checks that pods have come only to where others of their kind were or, if there were none, to one
// domain.
func (c *audit) checkTogether(r rule) {
	all, came := c.count(r)
	before := false
	for domain, n := range all {
		before = before || n > came[domain]
	}
	if !before && len(came) > 1 {
		c.problem("affinity of %s: pods came to %d domains", r.label, len(came))
	}
	for domain, n := range came {
		if before && all[domain] == n {
			c.problem("affinity of %s: pods came to %s, where none of them was", r.label, domain)
			return
		}
	}
}

// checkApart checks that no pod has come to where another of its kind is.
func (c *audit) checkApart(r rule) {
	all, came := c.count(r)
	for domain := range came {
		if all[domain] > 1 {
			c.problem("anti-affinity of %s: %d in %s", r.label, all[domain], domain)
			return
		}
	}
}

func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}
