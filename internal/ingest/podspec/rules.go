package podspec

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/validate"
)

// ruleReader turns what one pod says about other pods into rules and wishes.
type ruleReader struct {
	specs       *Specs
	meta        *metav1.ObjectMeta
	rules       []*cluster.Rule
	preferences []cluster.Preference
	problems    []string
}

// readRules lists what ties a pod to others, what it would like, and what of it can't be read.
func (s *Specs) readRules(meta *metav1.ObjectMeta, spec *corev1.PodSpec) *ruleReader {
	r := &ruleReader{specs: s, meta: meta}
	if a := spec.Affinity; a != nil {
		r.nodePreferences(a.NodeAffinity)
		if a.PodAffinity != nil {
			r.affinity(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
			r.podPreferences(cluster.Affinity, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if a.PodAntiAffinity != nil {
			for i := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				term := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i]
				r.require(r.termRule(cluster.AntiAffinity, term, r.termSelector(term)))
			}
			r.podPreferences(cluster.AntiAffinity, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	}
	for i := range spec.TopologySpreadConstraints {
		r.spread(&spec.TopologySpreadConstraints[i])
	}
	r.sortRules()
	return r
}

// AddSpreads adds topology spread constraints that count the selected pods.
func (s *Specs) AddSpreads(to *Spec, constraints []corev1.TopologySpreadConstraint, selected cluster.Selector) {
	r := &ruleReader{specs: s, rules: slices.Clone(to.rules), preferences: slices.Clone(to.preferences)}
	for i := range constraints {
		r.spreadOver(&constraints[i], selected)
	}
	r.sortRules()
	to.rules, to.preferences = r.rules, r.preferences
}

// sortRules brings the rules into one order, each once.
func (r *ruleReader) sortRules() {
	slices.SortFunc(r.rules, func(x, y *cluster.Rule) int { return cmp.Compare(x.Key, y.Key) })
	r.rules = slices.Compact(r.rules)
}

func (r *ruleReader) nodePreferences(a *corev1.NodeAffinity) {
	if a == nil {
		return
	}
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		p := &a.PreferredDuringSchedulingIgnoredDuringExecution[i]
		if p.Weight == 0 || len(p.Preference.MatchExpressions) == 0 && len(p.Preference.MatchFields) == 0 {
			continue
		}
		// A preference that can't be read is met nowhere.
		if term, problem := nodeTerm(nil, &p.Preference); problem == "" {
			r.preferences = append(r.preferences, cluster.Preference{Weight: p.Weight, Term: term})
		}
	}
}

// affinity adds the required terms. Kubernetes counts for each term the pods that match all of them.
func (r *ruleReader) affinity(terms []corev1.PodAffinityTerm) {
	all := make([]cluster.Selector, len(terms)) // the rules share it
	for i := range terms {
		all[i] = r.termSelector(&terms[i])
	}
	text := selectorsText(all)
	for i := range terms {
		rule := cluster.Rule{Kind: cluster.Affinity, TopologyKey: validate.NormalizeKey(terms[i].TopologyKey),
			Selectors: all}
		r.require(r.specs.internKeyedRule(rule, text))
	}
}

func (r *ruleReader) podPreferences(kind cluster.RuleKind, terms []corev1.WeightedPodAffinityTerm) {
	for i := range terms {
		term := &terms[i].PodAffinityTerm
		rule := r.termRule(kind, term, r.termSelector(term))
		r.preferences = append(r.preferences, cluster.Preference{Weight: terms[i].Weight, Rule: rule})
	}
}

func (r *ruleReader) require(rule *cluster.Rule) { r.rules = append(r.rules, rule) }

func (r *ruleReader) termRule(kind cluster.RuleKind, term *corev1.PodAffinityTerm,
	selectors ...cluster.Selector) *cluster.Rule {
	return r.specs.internRule(cluster.Rule{Kind: kind, TopologyKey: validate.NormalizeKey(term.TopologyKey),
		Selectors: selectors})
}

// termSelector says which pods an affinity term is about.
func (r *ruleReader) termSelector(term *corev1.PodAffinityTerm) cluster.Selector {
	s := r.labelSelector(term.LabelSelector)
	r.addOwnLabels(&s, term.MatchLabelKeys, require.In)
	r.addOwnLabels(&s, term.MismatchLabelKeys, require.NotIn)
	if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
		s.Namespaces = []string{r.meta.Namespace}
		return s
	}
	s.Namespaces = slices.Compact(slices.Sorted(slices.Values(term.Namespaces)))
	if term.NamespaceSelector != nil {
		among := r.labelSelector(term.NamespaceSelector)
		s.NamespaceLabels, s.HasNamespaceLabels = among.Labels, true
	}
	return s
}

// addOwnLabels adds that the labels are the pod's own, or that they are not; a key that the pod lacks says nothing.
func (r *ruleReader) addOwnLabels(s *cluster.Selector, keys []string, op require.Operator) {
	if len(keys) == 0 || s.MatchesNone {
		return
	}
	entries := make([]require.Entry, 0, len(keys))
	for _, key := range keys {
		if value, has := r.meta.Labels[key]; has {
			values, _ := require.Make(op, []string{value})
			entries = append(entries, require.Entry{Key: key, Values: values})
		}
	}
	s.Labels = s.Labels.And(require.Of(entries))
}

// spread adds a topology spread constraint. It is about pods of the same namespace.
func (r *ruleReader) spread(c *corev1.TopologySpreadConstraint) {
	s := r.labelSelector(c.LabelSelector)
	r.addOwnLabels(&s, c.MatchLabelKeys, require.In)
	if len(s.Labels) == 0 {
		s.MatchesNone = true // kube-scheduler counts no pod for a selector that says nothing
	}
	if !s.MatchesNone {
		s.Namespaces = []string{r.meta.Namespace}
	}
	r.spreadOver(c, s)
}

// spreadOver adds a topology spread constraint that counts the selected pods.
func (r *ruleReader) spreadOver(c *corev1.TopologySpreadConstraint, s cluster.Selector) {
	rule := cluster.Rule{
		Kind: cluster.Spread, TopologyKey: validate.NormalizeKey(c.TopologyKey), Selectors: []cluster.Selector{s},
		MaxSkew:     int(c.MaxSkew),
		AnyNode:     c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore,
		HonorTaints: c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor,
	}
	if c.MinDomains != nil && *c.MinDomains > 1 {
		rule.MinDomains = int(*c.MinDomains)
	}
	if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
		r.preferences = append(r.preferences, cluster.Preference{Weight: 1, Rule: r.specs.internRule(rule)})
		return
	}
	r.require(r.specs.internRule(rule))
}

// labelSelector reads a selector of Kubernetes: none selects nothing, an empty one everything.
func (r *ruleReader) labelSelector(in *metav1.LabelSelector) cluster.Selector {
	if in == nil {
		return cluster.Selector{MatchesNone: true}
	}
	entries := make([]require.Entry, 0, len(in.MatchLabels)+len(in.MatchExpressions))
	for key, value := range in.MatchLabels {
		entries = append(entries, require.Entry{Key: key, Values: require.Only(value)})
	}
	for _, e := range in.MatchExpressions {
		values, ok := require.Make(require.Operator(e.Operator), e.Values)
		if !ok {
			r.problems = append(r.problems, fmt.Sprintf("label selector with %s %s %s", e.Key, e.Operator,
				someOf(e.Values)))
			return cluster.Selector{MatchesNone: true}
		}
		entries = append(entries, require.Entry{Key: e.Key, Values: values})
	}
	return cluster.Selector{Labels: require.Of(entries)}
}

// ReadSelector reads a selector of labels, and says what of it can't be read.
func ReadSelector(in *metav1.LabelSelector) (s cluster.Selector, problems []string) {
	var r ruleReader
	s = r.labelSelector(in)
	return s, r.problems
}

// internRule finds or makes the one value of a rule.
func (s *Specs) internRule(r cluster.Rule) *cluster.Rule {
	return s.internKeyedRule(r, selectorsText(r.Selectors))
}

// internKeyedRule is internRule for one whose selectors have been written down.
func (s *Specs) internKeyedRule(r cluster.Rule, selectors string) *cluster.Rule {
	r.Key = ruleText(&r) + selectors
	if have := s.rules[r.Key]; have != nil {
		return have
	}
	s.rules[r.Key] = &r
	s.keptBytes += ruleCost(&r)
	return &r
}

// ruleText and selectorsText together are a text that two rules share exactly if they ask the same.
func ruleText(r *cluster.Rule) string {
	text := new(strings.Builder)
	switch r.Kind {
	case cluster.Spread:
		fmt.Fprintf(text, "spread over %s skew %d", r.TopologyKey, r.MaxSkew)
		if r.MinDomains > 0 {
			fmt.Fprintf(text, " min %d", r.MinDomains)
		}
		if r.AnyNode {
			text.WriteString(" any node")
		}
		if r.HonorTaints {
			text.WriteString(" honor taints")
		}
	case cluster.Affinity:
		fmt.Fprintf(text, "together in %s", r.TopologyKey)
	case cluster.AntiAffinity:
		fmt.Fprintf(text, "apart in %s", r.TopologyKey)
	}
	return text.String()
}

// LongText is the length from which selectors are told apart by a hash of their text: each rule keeps its own key.
const LongText = 4096

func selectorsText(selectors []cluster.Selector) string {
	text := new(strings.Builder)
	for i := range selectors {
		text.WriteString(" | ")
		SelectorText(text, &selectors[i])
	}
	if text.Len() < LongText {
		return text.String()
	}
	return fmt.Sprintf(" | %d selectors %x", len(selectors), sha256.Sum256([]byte(text.String())))
}

// SelectorText writes a selector as a text that two of them share exactly if they select the same.
func SelectorText(text *strings.Builder, s *cluster.Selector) {
	if s.MatchesNone {
		text.WriteString("nothing")
		return
	}
	fmt.Fprintf(text, "in %s", strings.Join(s.Namespaces, ","))
	if s.HasNamespaceLabels {
		fmt.Fprintf(text, " and among (%s)", s.NamespaceLabels)
	}
	fmt.Fprintf(text, ": (%s)", s.Labels)
}

// portsOf lists the ports of the host that a pod occupies: those of its containers and of the init containers that go
// on running beside them.
func portsOf(spec *corev1.PodSpec) []cluster.Port {
	var out []cluster.Port
	add := func(list []corev1.ContainerPort) {
		for _, p := range list {
			if p.HostPort <= 0 {
				continue
			}
			port := cluster.Port{IP: p.HostIP, Protocol: string(p.Protocol), Number: p.HostPort}
			if port.IP == "" {
				port.IP = "0.0.0.0"
			}
			if port.Protocol == "" {
				port.Protocol = string(corev1.ProtocolTCP)
			}
			out = append(out, port)
		}
	}
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; c.RestartPolicy != nil &&
			*c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c.Ports)
		}
	}
	for i := range spec.Containers {
		add(spec.Containers[i].Ports)
	}
	slices.SortFunc(out, func(a, b cluster.Port) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.IP, b.IP))
	})
	return slices.Compact(out)
}
