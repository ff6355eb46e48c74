package ingest

import (
	"maps"
	"math/rand"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/validate"
)

// checkRules draws a pod with all kinds of ties to others and asks of random other pods whether they are selected, once
// our rules and once the selectors of apimachinery.
func checkRules(t *testing.T, r *rand.Rand) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Namespace: pick(r, spaces()), Labels: randomLabels(r)}}
	affinity, apart := randomPodTerms(r, 1+r.Intn(3)), randomPodTerms(r, 1)
	spread := corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: "s", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: randomSelector(r),
		MatchLabelKeys: randomKeys(r)}
	pod.Spec.Affinity = &corev1.Affinity{
		PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: affinity},
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: apart},
	}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spread}
	b := New(time.Now, validate.Labels{}, nil)
	b.SetPod(pod)
	class := b.Snapshot().Pods[0].Class
	if len(class.Unsupported) > 0 || len(class.Rules) < 3 {
		t.Fatalf("rules %v, unsupported %v", class.Rules, class.Unsupported)
	}
	for range 5 {
		other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pick(r, spaces()), Labels: randomLabels(r)}}
		space := randomLabels(r)
		all := true
		for i := range affinity {
			all = all && selectedBy(t, &affinity[i], pod, other, space)
		}
		for _, rule := range class.Rules {
			want := all
			switch rule.Kind {
			case cluster.AntiAffinity:
				want = selectedBy(t, &apart[0], pod, other, space)
			case cluster.Spread:
				want = spreadCounts(t, &spread, pod, other)
			}
			if got := ruleSelects(rule, other, space); got != want {
				t.Fatalf("%s\npod %s/%v, other %s/%v in a namespace with %v: we say %v, Kubernetes %v",
					rule.Key, pod.Namespace, pod.Labels, other.Namespace, other.Labels, space, got, want)
			}
		}
	}
}

// ruleSelects reports whether all selectors of the rule select the pod.
func ruleSelects(rule *cluster.Rule, pod *corev1.Pod, space map[string]string) bool {
	for i := range rule.Selectors {
		if !rule.Selectors[i].Selects(pod.Namespace, cluster.LabelsOf(space), cluster.LabelsOf(pod.Labels)) {
			return false
		}
	}
	return true
}

// selectedBy judges an affinity term by its definition: matchLabelKeys and mismatchLabelKeys are expressions over the
// pod's own labels.
func selectedBy(t *testing.T, term *corev1.PodAffinityTerm, pod, other *corev1.Pod, space map[string]string) bool {
	t.Helper()
	selector := term.LabelSelector.DeepCopy()
	if selector != nil {
		own(selector, pod, term.MatchLabelKeys, metav1.LabelSelectorOpIn)
		own(selector, pod, term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
	named := slices.Contains(term.Namespaces, other.Namespace) ||
		asSelector(t, term.NamespaceSelector).Matches(labels.Set(space))
	if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
		named = other.Namespace == pod.Namespace
	}
	return named && asSelector(t, selector).Matches(labels.Set(other.Labels))
}

// spreadCounts judges by what kube-scheduler counts: nothing for an empty selector.
func spreadCounts(t *testing.T, c *corev1.TopologySpreadConstraint, pod, other *corev1.Pod) bool {
	t.Helper()
	selector := c.LabelSelector.DeepCopy()
	if selector != nil {
		own(selector, pod, c.MatchLabelKeys, metav1.LabelSelectorOpIn)
	}
	s := asSelector(t, selector)
	return !s.Empty() && pod.Namespace == other.Namespace && s.Matches(labels.Set(other.Labels))
}

func own(selector *metav1.LabelSelector, pod *corev1.Pod, keys []string, op metav1.LabelSelectorOperator) {
	for _, key := range keys {
		if value, has := pod.Labels[key]; has {
			selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key,
				Operator: op, Values: []string{value}})
		}
	}
}

func asSelector(t *testing.T, in *metav1.LabelSelector) labels.Selector {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(in)
	if err != nil {
		t.Fatalf("apimachinery can't read %+v: %v", in, err)
	}
	return s
}

func randomPodTerms(r *rand.Rand, n int) []corev1.PodAffinityTerm {
	var out []corev1.PodAffinityTerm
	for range n {
		term := corev1.PodAffinityTerm{TopologyKey: pick(r, keys()), LabelSelector: randomSelector(r),
			MatchLabelKeys: randomKeys(r), MismatchLabelKeys: randomKeys(r)}
		if r.Intn(2) == 0 {
			term.NamespaceSelector = randomSelector(r)
		}
		for range r.Intn(3) {
			term.Namespaces = append(term.Namespaces, pick(r, spaces()))
		}
		out = append(out, term)
	}
	return out
}

func randomSelector(r *rand.Rand) *metav1.LabelSelector {
	if r.Intn(8) == 0 {
		return nil
	}
	s := &metav1.LabelSelector{}
	if r.Intn(2) == 0 {
		s.MatchLabels = map[string]string{pick(r, keys()): pick(r, values())}
	}
	for range r.Intn(2) {
		e := metav1.LabelSelectorRequirement{Key: pick(r, keys()),
			Operator: pick(r, []metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist"})}
		if e.Operator == "In" || e.Operator == "NotIn" {
			e.Values = []string{pick(r, values()), pick(r, values())}
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}

func randomLabels(r *rand.Rand) map[string]string {
	out := map[string]string{}
	for _, key := range keys() {
		if r.Intn(2) == 0 {
			out[key] = pick(r, values())
		}
	}
	return out
}

func randomKeys(r *rand.Rand) []string {
	var out []string
	for _, key := range keys() {
		if r.Intn(6) == 0 {
			out = append(out, key)
		}
	}
	return out
}

func spaces() []string { return []string{"one", "two", "three"} }

// TestMergingTwiceIsHarmless: the API server writes matchLabelKeys into the selector itself.
func TestMergingTwiceIsHarmless(t *testing.T) {
	term := func(merged bool) *corev1.Pod {
		s := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
		if merged {
			s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "rev", Operator: "In", Values: []string{"7"}},
				{Key: "tenant", Operator: "NotIn", Values: []string{"t"}}}
		}
		pod := podWith(func(s *corev1.PodSpec) {})
		pod.Labels = map[string]string{"app": "a", "rev": "7", "tenant": "t"}
		pod.Spec.Affinity = &corev1.Affinity{
			PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
					{TopologyKey: "zone", LabelSelector: s, MatchLabelKeys: []string{"rev", "absent"},
						MismatchLabelKeys: []string{"tenant"}}},
			},
		}
		return pod
	}
	if x, y := classOfPod(term(false)), classOfPod(term(true)); x.Key != y.Key || x.Rules[0].Key != y.Rules[0].Key {
		t.Errorf("%s\n%s", x.Rules[0].Key, y.Rules[0].Key)
	}
}

func podWith(change func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Namespace: "default", Name: "p"}}
	change(&pod.Spec)
	return pod
}

func classOfPod(pod *corev1.Pod) *cluster.PodClass {
	b := New(time.Now, validate.Labels{}, nil)
	b.SetPod(pod)
	return b.Snapshot().Pods[0].Class
}

func TestSpreadsAndWishes(t *testing.T) {
	five, one, ignore, honor := int32(5), int32(1), corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor
	some := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	c := classOfPod(podWith(func(s *corev1.PodSpec) {
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{MaxSkew: 2, TopologyKey: corev1.LabelFailureDomainBetaZone, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: some, MinDomains: &five},
			{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: some,
				MinDomains: &one, NodeAffinityPolicy: &ignore, NodeTaintsPolicy: &honor},
			{MaxSkew: 3, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: some},
		}
		s.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
					{Weight: 7}, // it asks for nothing
					{
						Weight: 9,
						Preference: corev1.NodeSelectorTerm{
							MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: "In",
								Values: []string{"ssd"}}},
						},
					},
				},
			},
			PodAffinity: &corev1.PodAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
					{Weight: 20, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "rack", LabelSelector: some}}},
			},
			PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
					{Weight: 30, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname,
						LabelSelector: some}}},
			},
		}
	}))
	if len(c.Rules) != 2 || len(c.Unsupported) != 0 {
		t.Fatalf("rules %v, unsupported %v", c.Rules, c.Unsupported)
	}
	rack, zone := c.Rules[0], c.Rules[1]
	if zone.TopologyKey != cluster.ZoneLabel || zone.MaxSkew != 2 || zone.MinDomains != 5 || zone.AnyNode ||
		zone.HonorTaints {
		t.Errorf("zone %+v", zone)
	}
	if rack.TopologyKey != "rack" || rack.MinDomains != 0 || !rack.AnyNode || !rack.HonorTaints {
		t.Errorf("rack %+v", rack)
	}
	var weights []int32
	for _, w := range c.Preferences {
		weights = append(weights, w.Weight)
	}
	if !slices.Equal(weights, []int32{9, 20, 30, 1}) || c.Preferences[0].Term.String() != "disk In [ssd]" ||
		c.Preferences[1].Rule.Kind != cluster.Affinity || c.Preferences[2].Rule.Kind != cluster.AntiAffinity ||
		c.Preferences[3].Rule.MaxSkew != 3 {
		t.Errorf("wishes %+v", c.Preferences)
	}
}

func TestHostPorts(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	c := classOfPod(podWith(func(s *corev1.PodSpec) {
		s.InitContainers = []corev1.Container{
			{Name: "setup", Ports: []corev1.ContainerPort{{HostPort: 1}}},
			{Name: "sidecar", RestartPolicy: &always,
				Ports: []corev1.ContainerPort{{HostPort: 53, Protocol: corev1.ProtocolUDP, HostIP: "10.0.0.1"}}},
		}
		s.Containers = []corev1.Container{{Name: "main", Ports: []corev1.ContainerPort{{HostPort: 443},
			{ContainerPort: 80}, {HostPort: 443, Protocol: corev1.ProtocolTCP}}}}
	}))
	want := []cluster.Port{{IP: "10.0.0.1", Protocol: "UDP", Number: 53}, {IP: "0.0.0.0", Protocol: "TCP", Number: 443}}
	if !slices.Equal(c.Ports, want) || len(c.Unsupported) != 0 {
		t.Errorf("ports %v, want %v; unsupported %v", c.Ports, want, c.Unsupported)
	}
}

// TestEqualContentIsShared: pods of equal content have one class, one value of each rule and one value of labels; what
// only pods had that are gone is forgotten.
func TestEqualContentIsShared(t *testing.T) {
	b, _ := newBook()
	for _, p := range fleet(40, 4) {
		b.SetPod(p)
	}
	classes, rules, worn := map[*cluster.PodClass]bool{}, map[*cluster.Rule]bool{}, map[*cluster.Label]bool{}
	for _, p := range b.Snapshot().Pods {
		classes[p.Class], worn[&p.Labels[0]] = true, true
		for _, r := range p.Class.Rules {
			rules[r] = true
		}
	}
	if len(classes) != 4 || len(rules) != 5 || len(worn) != 4 {
		t.Errorf("%d classes, %d rules, %d label sets; want 4, 5, 4", len(classes), len(rules), len(worn))
	}
	// Another deployment in another namespace with the same spread is another rule; a pod that is written in another
	// way is the same class.
	one := fleet(1, 1)[0]
	again := one.DeepCopy()
	again.UID, again.Spec.Containers[0].Resources.Requests = "again",
		maps.Clone(one.Spec.Containers[0].Resources.Requests)
	again.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = apiresource.MustParse("1")
	delete(again.Spec.Containers[0].Resources.Requests, "nvidia.com/gpu")
	b.SetPod(again)
	moved := one.DeepCopy()
	moved.UID, moved.Namespace = "moved", "elsewhere"
	b.SetPod(moved)
	s := b.Snapshot()
	find := func(uid string) *cluster.Pod {
		return s.Pods[slices.IndexFunc(s.Pods, func(p *cluster.Pod) bool { return p.UID == uid })]
	}
	if a, m := find("again"), find("moved"); !classes[a.Class] || classes[m.Class] || rules[m.Class.Rules[0]] {
		t.Error("content and class do not go together")
	}
}

func TestUnusedContentIsForgotten(t *testing.T) {
	b, _ := newBook()
	for round := range 9 {
		for i, p := range fleet(600, 600) {
			p.Labels["round"] = string(rune('a' + round))
			p.Spec.NodeSelector = map[string]string{"round": p.Labels["round"]}
			p.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels["round"] = p.Labels["round"]
			b.SetPod(p)
			if i%200 == 0 {
				b.Snapshot()
			}
			b.DeletePod(p)
		}
	}
	b.Snapshot()
	if n := b.specs.Entries().Sum(); n > collectFrom {
		t.Errorf("%d things are remembered of pods that are gone", n)
	}
}
