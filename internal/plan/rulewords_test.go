package plan_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// ties are what a line says about other pods and about volumes. It means something only once the whole line has been
// read: a rule that names no pods is about those of the line itself.
type ties struct {
	namespace string
	labels    cluster.Labels
	rules     []ruleWord
	prefer    []cluster.Preference
	volumes   []volumeWord
}

// ruleWord is one of
//
//	spread=KEY[,skew=1][,min=3][,any-node][,honor-taints][,soft]   at most skew more pods than in the emptiest domain
//	with=KEY[,weight=50]                                           in a domain where such a pod is
//	apart=KEY[,weight=50]                                          in a domain where no such pod is
//
// each with ,of=web (pods labelled app=web; of=key:In:a|b for others, of=* for all) and ,ns=a|b or
// ,ns-label=key:In:value (pods of other namespaces). A weight makes a wish of it.
type ruleWord struct {
	rule   cluster.Rule
	weight int32
}

// volumeWord is volume=NAME[,driver=ebs][,zones=a|b][,each][,once]: a volume that the pods share or, with each, one for
// each of them; once for ReadWriteOncePod.
type volumeWord struct {
	name       string
	dim        int
	each, once bool
}

// tieWord takes the words that tie pods to others.
func (n *storyRunner) tieWord(sh *shape, key, value string) bool {
	switch key {
	case "ns":
		sh.ties.namespace = value
	case "label":
		k, v, _ := strings.Cut(value, "=")
		sh.ties.labels = sh.ties.labels.With(k, v)
	case "spread":
		n.ruleWord(sh, cluster.Rule{Kind: cluster.Spread, MaxSkew: 1}, value)
	case "with":
		n.ruleWord(sh, cluster.Rule{Kind: cluster.Affinity}, value)
	case "apart":
		n.ruleWord(sh, cluster.Rule{Kind: cluster.AntiAffinity}, value)
	case "prefer":
		text, weight, weighted := strings.Cut(value, ",weight=")
		wish := cluster.Preference{Weight: 100, Term: require.Set{}.With(n.entry(text))}
		if weighted {
			wish.Weight = int32(n.integer(weight))
		}
		sh.ties.prefer = append(sh.ties.prefer, wish)
	case "port":
		sh.ports = append(sh.ports, n.port(value))
	case "volume":
		n.volumeWord(sh, value)
	default:
		return false
	}
	return true
}

func (n *storyRunner) entry(text string) (string, require.Values) {
	key, values, err := entry(text)
	if err != nil {
		n.fail("%v", err)
	}
	return key, values
}

func (n *storyRunner) ruleWord(sh *shape, rule cluster.Rule, text string) {
	words := strings.Split(text, ",")
	rule.TopologyKey = long(words[0])
	w, s := ruleWord{rule: rule}, cluster.Selector{}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "skew":
			w.rule.MaxSkew = n.integer(value)
		case "min":
			w.rule.MinDomains = n.integer(value)
		case "any-node":
			w.rule.AnyNode = true
		case "honor-taints":
			w.rule.HonorTaints = true
		case "soft":
			w.weight = 1
		case "weight":
			w.weight = int32(n.integer(value))
		case "of":
			switch {
			case value == "*":
				s.Labels = require.Set{}
			case strings.Contains(value, ":"):
				s.Labels = s.Labels.With(n.entry(value))
			default:
				s.Labels = s.Labels.With("app", require.Only(value))
			}
		case "ns":
			s.Namespaces = slices.Sorted(slices.Values(strings.Split(value, "|")))
		case "ns-label":
			s.NamespaceLabels, s.HasNamespaceLabels = s.NamespaceLabels.With(n.entry(value)), true
		default:
			n.fail("%s: unknown word %q", text, word)
		}
	}
	w.rule.Selectors = []cluster.Selector{s}
	sh.ties.rules = append(sh.ties.rules, w)
}

// port reads 80, 80/UDP, 80@10.0.0.1 or 80/UDP@10.0.0.1.
func (n *storyRunner) port(text string) cluster.Port {
	text, ip, bound := strings.Cut(text, "@")
	number, protocol, named := strings.Cut(text, "/")
	p := cluster.Port{IP: "0.0.0.0", Protocol: "TCP", Number: int32(n.integer(number))}
	if bound {
		p.IP = ip
	}
	if named {
		p.Protocol = protocol
	}
	return p
}

func (n *storyRunner) volumeWord(sh *shape, text string) {
	words := strings.Split(text, ",")
	v, driver := volumeWord{name: words[0]}, "ebs"
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "driver":
			driver = value
		case "zones":
			sh.reach = append(sh.reach, require.Set{}.With(cluster.ZoneLabel,
				require.Only(strings.Split(value, "|")...)))
		case "each":
			v.each = true
		case "once":
			v.once = true
		default:
			n.fail("%s: unknown word %q", text, word)
		}
	}
	v.dim = n.attachDim(driver)
	sh.requests[v.dim]++
	sh.ties.volumes = append(sh.ties.volumes, v)
}

func (n *storyRunner) attachDim(driver string) int {
	dim, ok := n.w.names.Index(resource.AttachPrefix + driver)
	if !ok {
		n.fail("no room for driver %s", driver)
	}
	return dim
}

// tie turns the words into rules and wishes. Pods carry the label app=NAME.
func (w *world) tie(sh *shape, name string) {
	t := &sh.ties
	if t.namespace == "" {
		t.namespace = "default"
	}
	if _, set := t.labels.Get("app"); !set {
		t.labels = t.labels.With("app", name)
	}
	t.labels = w.intern(t.labels)
	app, _ := t.labels.Get("app")
	var together []cluster.Selector
	for i := range t.rules {
		r := &t.rules[i]
		s := &r.rule.Selectors[0]
		if s.Labels == nil {
			s.Labels = require.Set{}.With("app", require.Only(app))
		}
		if s.Namespaces == nil && !s.HasNamespaceLabels {
			s.Namespaces = []string{t.namespace}
		}
		if r.rule.Kind == cluster.Affinity && r.weight == 0 {
			together = append(together, *s)
		}
	}
	for _, r := range t.rules {
		switch {
		case r.weight > 0:
			sh.wishes = append(sh.wishes, cluster.Preference{Weight: r.weight, Rule: w.rule(r.rule)})
			continue
		case r.rule.Kind == cluster.Affinity:
			r.rule.Selectors = together
		}
		sh.rules = append(sh.rules, w.rule(r.rule))
	}
	sh.wishes = append(sh.wishes, t.prefer...)
	slices.SortFunc(sh.rules, func(a, b *cluster.Rule) int { return strings.Compare(a.Key, b.Key) })
	sh.rules = slices.Compact(sh.rules)
}

// rule finds or makes the one value of a rule.
func (w *world) rule(r cluster.Rule) *cluster.Rule {
	r.Key = fmt.Sprintf("%d %s %v %d %d %v %v", r.Kind, r.TopologyKey, r.Selectors, r.MaxSkew, r.MinDomains, r.AnyNode,
		r.HonorTaints)
	if have := w.rules[r.Key]; have != nil {
		return have
	}
	w.rules[r.Key] = &r
	return &r
}

// intern makes equal labels one value, as ingest does.
func (w *world) intern(l cluster.Labels) cluster.Labels {
	key := fmt.Sprint(l)
	if have, ok := w.labels[key]; ok {
		return have
	}
	w.labels[key] = l
	return l
}

// mount gives the pod its volumes.
func (t *ties) mount(p *cluster.Pod) {
	for _, v := range t.volumes {
		handle := t.namespace + "/" + v.name
		if v.each {
			handle += "-" + p.Name
		}
		p.Volumes = append(p.Volumes, cluster.Volume{Dim: v.dim, Handle: handle})
		if v.once {
			p.ExclusiveVolumes = append(p.ExclusiveVolumes, handle)
		}
	}
}

// addNamespace: namespace NAME [label=key=value].
func (n *storyRunner) addNamespace(name string, words []string) {
	var labels cluster.Labels
	for _, word := range words {
		value, ok := strings.CutPrefix(word, "label=")
		if !ok {
			n.fail("namespace: unknown word %q", word)
		}
		k, v, _ := strings.Cut(value, "=")
		labels = labels.With(k, v)
	}
	n.w.namespaces[name] = labels
}

// setPolicy: policy [preferences=Respect|Ignore] [min-values=Strict|BestEffort].
func (n *storyRunner) setPolicy(words []string) {
	for _, word := range words {
		switch word {
		case "preferences=Respect", "preferences=Ignore":
			n.policy.Schedule.IgnorePreferences = strings.HasSuffix(word, "Ignore")
		case "min-values=Strict", "min-values=BestEffort":
			n.policy.Schedule.RelaxMinValues = strings.HasSuffix(word, "BestEffort")
		default:
			if !n.placePolicy(word) {
				n.fail("policy: unknown word %q", word)
			}
		}
	}
}
