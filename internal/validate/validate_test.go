package validate

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// providerLabels is what the tests' cloud adds to the contract.
func providerLabels() Labels {
	return Labels{
		WellKnown:         map[string]bool{"cloud.example.com/family": true},
		RestrictedDomains: []string{"cloud.example.com"},
	}
}

func goodPool() *v1.NodePool {
	pool := &v1.NodePool{}
	pool.Spec.Template.Labels = map[string]string{"team": "blue", "example.com/tier": "batch"}
	pool.Spec.Template.Spec = v1.NodeClaimTemplateSpec{
		Requirements: []v1.NodeSelectorRequirementWithMinValues{
			{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}},
		},
		NodeClassRef: &v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
		ExpireAfter:  v1.DurationOf(time.Hour),
	}
	pool.Spec.Disruption = v1.Disruption{
		ConsolidateAfter: v1.DurationOf(0),
		Budgets:          []v1.Budget{{Nodes: "10%"}},
	}
	return pool
}

type poolCase struct {
	name   string
	change func(*v1.NodePool)
	// want holds a part of each problem's line, in order; none means that the pool is good.
	want []string
}

func runPoolCases(t *testing.T, cases []poolCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			pool := goodPool()
			c.change(pool)
			got := NodePool(pool, providerLabels())
			if len(got) != len(c.want) {
				t.Fatalf("got %d problems, want %d: %s", len(got), len(c.want), lines(got))
			}
			for i, want := range c.want {
				if !strings.Contains(got[i].String(), want) {
					t.Errorf("problem %d is %q, want it to contain %q", i, got[i], want)
				}
				if got[i].Field == "" || got[i].Why == "" || got[i].Fix == "" {
					t.Errorf("problem %d lacks a field, a reason or a fix: %+v", i, got[i])
				}
			}
		})
	}
}

// lines puts problems into one text.
func lines(problems []Problem) string {
	var b strings.Builder
	for _, p := range problems {
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}

func label(key, value string) func(*v1.NodePool) {
	return func(p *v1.NodePool) { p.Spec.Template.Labels = map[string]string{key: value} }
}

func TestTemplateLabels(t *testing.T) {
	runPoolCases(t, []poolCase{
		{"as it is", func(*v1.NodePool) {}, nil},
		{"none", func(p *v1.NodePool) { p.Spec.Template.Labels = nil }, nil},
		{"well known, of the contract", label(v1.CapacityTypeLabelKey, "spot"), nil},
		{"well known, of Kubernetes", label(corev1.LabelTopologyZone, "zone-a"), nil},
		{"well known, of the provider", label("cloud.example.com/family", "m5"), nil},
		{"empty value", label("team", ""), nil},
		{"domain that only ends alike", label("notkarpenter.sh/team", "blue"), nil},
		{"the pool itself", label(v1.NodePoolLabelKey, "x"), []string{"labels[karpenter.sh/nodepool] \"x\" is set " +
			"from the name"}},
		{"hostname", label(corev1.LabelHostname, "x"), []string{"is set by each node itself"}},
		{"domain of the contract", label("karpenter.sh/custom", "x"), []string{"is in the domain karpenter.sh"}},
		{"subdomain of the contract", label("sub.karpenter.sh/custom", "x"), []string{"is in the domain karpenter.sh"}},
		{"domain of the provider", label("cloud.example.com/custom", "x"),
			[]string{"or one of cloud.example.com/family"}},
		{"bad key", label("not a name", "x"), []string{"is not the name of a label"}},
		{"bad value", label("team", "a/b"), []string{"is not the value of a label"}},
		{"long value", label("team", strings.Repeat("a", 64)), []string{"no more than 63"}},
		{"two problems, by key", func(p *v1.NodePool) {
			p.Spec.Template.Labels = map[string]string{"b": "//", "a": "//"}
		}, []string{"labels[a]", "labels[b]"}},
	})
}

func annotation(key, value string) func(*v1.NodePool) {
	return func(p *v1.NodePool) { p.Spec.Template.Annotations = map[string]string{key: value} }
}

func TestTemplateAnnotations(t *testing.T) {
	runPoolCases(t, []poolCase{
		{"simple", annotation("team", "any text: even this!"), nil},
		{"qualified", annotation("example.com/Owner", ""), nil},
		{"capital letters in the domain", annotation("Example.com/owner", "x"), nil},
		{"bad key", annotation("not a name", "x"),
			[]string{`spec.template.metadata.annotations[not a name] "not a name" is not the name of an annotation`}},
		{"two slashes", annotation("a/b/c", "x"), []string{"is not the name of an annotation"}},
		{"as large as can be", annotation("a", strings.Repeat("x", 256<<10-1)), nil},
		{"too large", annotation("a", strings.Repeat("x", 256<<10)), []string{"annotations holds 262145 bytes; keep " +
			"it to 262144"}},
	})
}

func TestNamesThatBecomeLabels(t *testing.T) {
	named := func(pool, class string) func(*v1.NodePool) {
		return func(p *v1.NodePool) { p.Name, p.Spec.Template.Spec.NodeClassRef.Name = pool, class }
	}
	long := strings.Repeat("a", 64)
	runPoolCases(t, []poolCase{
		{"subdomain", named("a.b-c", "d.e-f"), nil},
		{"longest", named(long[1:], long[1:]), nil},
		{"long pool", named(long, "default"), []string{"metadata.name \"" + long + "\" is the value of a label on " +
			"each node"}},
		{"long class", named("default", long), []string{"spec.template.spec.nodeClassRef.name \"" + long +
			"\" is the value of a label on each node"}},
	})
}

func requirement(key string, op corev1.NodeSelectorOperator, values ...string) func(*v1.NodePool) {
	return func(p *v1.NodePool) {
		p.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
			{Key: key, Operator: op, Values: values},
		}
	}
}

func withMin(change func(*v1.NodePool), least int) func(*v1.NodePool) {
	return func(p *v1.NodePool) {
		change(p)
		p.Spec.Template.Spec.Requirements[0].MinValues = &least
	}
}

func TestRequirements(t *testing.T) {
	const in, zone, capacity = corev1.NodeSelectorOpIn, corev1.LabelTopologyZone, v1.CapacityTypeLabelKey
	runPoolCases(t, []poolCase{
		{"In", requirement(zone, in, "a", "b"), nil},
		{"NotIn", requirement(zone, corev1.NodeSelectorOpNotIn, "a"), nil},
		{"Exists", requirement("team", corev1.NodeSelectorOpExists), nil},
		{"DoesNotExist", requirement("team", corev1.NodeSelectorOpDoesNotExist), nil},
		{"Gt", requirement("team", corev1.NodeSelectorOpGt, "4"), nil},
		{"Lt", requirement("team", corev1.NodeSelectorOpLt, "4"), nil},
		{"Gte 0", requirement("team", v1.NodeSelectorOpGte, "0"), nil},
		{"Lte", requirement("team", v1.NodeSelectorOpLte, "4"), nil},
		{"older name of a label", requirement("beta.kubernetes.io/arch", in, "arm64"), nil},
		{"label of the provider", requirement("cloud.example.com/family", in, "m5"), nil},
		{"In without values", requirement(zone, in), []string{"requirements[0].values is empty"}},
		{"Gt without value", requirement("team", corev1.NodeSelectorOpGt), []string{"exactly one whole number"}},
		{"Lt with two", requirement("team", corev1.NodeSelectorOpLt, "1", "2"), []string{"exactly one whole number"}},
		{"Gte with a word", requirement("team", v1.NodeSelectorOpGte, "many"), []string{"exactly one whole number"}},
		{"Lte below zero", requirement("team", v1.NodeSelectorOpLte, "-1"), []string{"exactly one whole",
			"is not the value of a label"}},
		{"Gt beyond 64 bits", requirement("team", corev1.NodeSelectorOpGt, "9223372036854775808"),
			[]string{"exactly one"}},
		{"no such operator", requirement("team", "Near"), []string{"operator \"Near\" is not an operator; use In,"}},
		{"the pool itself", requirement(v1.NodePoolLabelKey, in, "x"),
			[]string{"is set from the name of the NodePool"}},
		{"hostname", requirement(corev1.LabelHostname, in, "x"), []string{"is set by each node itself"}},
		{"domain of the contract", requirement("karpenter.sh/x", in, "x"), []string{"is in the domain karpenter.sh"}},
		{"domain of the provider", requirement("sub.cloud.example.com/x", in, "x"),
			[]string{"is in the domain cloud.example.com"}},
		{"bad key", requirement("a/b/c", in, "x"), []string{"is not the name of a label"}},
		{"bad value", requirement("team", in, "ok", "not ok"), []string{"values[1] \"not ok\""}},
		{"capacity types", requirement(capacity, in, "spot", "on-demand", "reserved"), nil},
		{"an unknown capacity type beside a known one", requirement(capacity, in, "spot", "dream"), nil},
		{"only unknown capacity types", requirement(capacity, in, "Spot", "dream"),
			[]string{"use spot, on-demand or reserved"}},
		{"NotIn an unknown capacity type", requirement(capacity, corev1.NodeSelectorOpNotIn, "dream"), nil},
		{"minValues", withMin(requirement(zone, in, "a", "b"), 2), nil},
		{"minValues with Exists", withMin(requirement(zone, corev1.NodeSelectorOpExists), 50), nil},
		{"minValues above the values", withMin(requirement(zone, in, "a", "b"), 3),
			[]string{"greater than the 2 usable values"}},
		{"minValues above the known values", withMin(requirement(capacity, in, "spot", "dream"), 2),
			[]string{"greater than the 1 usable"}},
		{"minValues 0", withMin(requirement(zone, in, "a"), 0), []string{"minValues \"0\" is out of range"}},
		{"minValues 51", withMin(requirement(zone, in, "a"), 51), []string{"out of range"}},
	})
}

func taintsOf(lasting, startup []v1.Taint) func(*v1.NodePool) {
	return func(p *v1.NodePool) {
		p.Spec.Template.Spec.Taints, p.Spec.Template.Spec.StartupTaints = lasting, startup
	}
}

func TestTaints(t *testing.T) {
	one := func(key, value string, effect corev1.TaintEffect) []v1.Taint {
		return []v1.Taint{{Key: key, Value: value, Effect: effect}}
	}
	runPoolCases(t, []poolCase{
		{"each effect", taintsOf([]v1.Taint{
			{Key: "a", Effect: "NoSchedule"}, {Key: "a", Effect: "PreferNoSchedule"},
			{Key: "a", Effect: "NoExecute"}, {Key: "a"},
		}, nil), nil},
		{"qualified", taintsOf(one("example.com/dedicated", "batch", "NoSchedule"), nil), nil},
		{"same key, other list, other effect", taintsOf(one("a", "", "NoSchedule"), one("a", "", "NoExecute")), nil},
		{"no key", taintsOf(one("", "", "NoSchedule"), nil), []string{"taints[0].key is not the key",
			"taints[0].key is not the key"}},
		{"bad key", taintsOf(nil, one("???", "", "NoSchedule")), []string{"startupTaints[0].key \"???\""}},
		{"bad value", taintsOf(one("a", "???", "NoSchedule"), nil), []string{"taints[0].value \"???\""}},
		{"bad effect", taintsOf(one("a", "", "NoSleep"), nil),
			[]string{"use NoSchedule, PreferNoSchedule or NoExecute"}},
		{"twice in a list", taintsOf(append(one("a", "x", "NoSchedule"), one("a", "y", "NoSchedule")...), nil),
			[]string{"taints[1] \"a:NoSchedule\" has the key and effect of spec.template.spec.taints[0]"}},
		{"once in each list", taintsOf(one("a", "", "NoExecute"), one("a", "", "NoExecute")),
			[]string{"startupTaints[0] \"a:NoExecute\" has the key and effect of spec.template.spec.taints[0]"}},
	})
}

func budgetOf(b v1.Budget) func(*v1.NodePool) {
	return func(p *v1.NodePool) { p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "5"}, b} }
}

func scheduled(text string) func(*v1.NodePool) {
	return budgetOf(v1.Budget{Nodes: "0", Schedule: &text, Duration: &metav1.Duration{Duration: time.Hour}})
}

func TestDisruption(t *testing.T) {
	daily := "@daily"
	runPoolCases(t, []poolCase{
		{"nothing", func(p *v1.NodePool) { p.Spec.Disruption = v1.Disruption{} }, nil},
		{"never", func(p *v1.NodePool) { p.Spec.Disruption.ConsolidateAfter = v1.NeverDuration() }, nil},
		{"Balanced", func(p *v1.NodePool) { p.Spec.Disruption.ConsolidationPolicy = "Balanced" }, nil},
		{"bad policy", func(p *v1.NodePool) {
			p.Spec.Disruption.ConsolidationPolicy = "Always"
		}, []string{"\"Always\" is not a policy"}},
		{"negative wait", func(p *v1.NodePool) {
			p.Spec.Disruption.ConsolidateAfter = v1.DurationOf(-1)
		}, []string{"consolidateAfter \"-1ns\" is negative"}},
		{"whole pool", budgetOf(v1.Budget{Nodes: "100%"}), nil},
		{"more than the pool", budgetOf(v1.Budget{Nodes: "101%"}), []string{"budgets[1].nodes \"101%\""}},
		{"not a number", budgetOf(v1.Budget{Nodes: "some"}), []string{"neither a number of nodes nor a percentage"}},
		{"negative number", budgetOf(v1.Budget{Nodes: "-1"}), []string{"neither a number"}},
		{"number beyond all nodes", budgetOf(v1.Budget{Nodes: "99999999999999999999"}), nil},
		{"percentage beyond all nodes", budgetOf(v1.Budget{Nodes: "99999999999999999999%"}),
			[]string{"neither a number"}},
		{"no number at all", budgetOf(v1.Budget{}), []string{"neither a number"}},
		{"every reason", budgetOf(v1.Budget{Nodes: "1", Reasons: []v1.DisruptionReason{"Underutilized", "Empty",
			"Drifted", "Unhealthy"}}), nil},
		{"bad reason", budgetOf(v1.Budget{Nodes: "1", Reasons: []v1.DisruptionReason{"Empty", "Bored"}}),
			[]string{"reasons[1] \"Bored\""}},
		{"schedule alone", budgetOf(v1.Budget{Nodes: "1", Schedule: &daily}),
			[]string{"only one of schedule and duration"}},
		{"duration alone", budgetOf(v1.Budget{Nodes: "1", Duration: &metav1.Duration{}}),
			[]string{"only one of schedule and duration"}},
		{"negative duration", budgetOf(v1.Budget{Nodes: "1", Schedule: &daily,
			Duration: &metav1.Duration{Duration: -1}}), []string{"duration \"-1ns\" is negative"}},
		{"descriptor", scheduled("@midnight"), nil},
		{"five fields", scheduled("0 9 * * mon-fri"), nil},
		{"steps and lists", scheduled("*/15 8-18 1,15 * *"), nil},
		{"leap day", scheduled("0 0 29 2 *"), nil},
		{"four fields", scheduled("0 9 * *"), []string{"is not a schedule"}},
		{"six fields", scheduled("0 0 9 * * 1"), []string{"is not a schedule"}},
		{"hour 25", scheduled("0 25 * * *"), []string{"is not a schedule"}},
		{"unknown descriptor", scheduled("@sometimes"), []string{"is not a schedule"}},
		{"interval", scheduled("@every 1h"), []string{"is an interval"}},
		{"time zone", scheduled("CRON_TZ=Asia/Tokyo 0 9 * * *"), nil},
		{"time zone in another form", scheduled("TZ=Asia/Tokyo 0 9 * * *"),
			[]string{"names a time zone in another way"}},
		{"time zone of nowhere", scheduled("CRON_TZ=Asia/Nowhere 0 9 * * *"), []string{`time zone "Asia/Nowhere"`}},
		{"time zone of this machine", scheduled("CRON_TZ=Local 0 9 * * *"), []string{"names no time zone"}},
		{"two time zones", scheduled("CRON_TZ=Asia/Tokyo CRON_TZ=UTC 9 * * *"), []string{"or two"}},
		{"time zone and too few fields", scheduled("CRON_TZ=Asia/Tokyo 9 * * *"), []string{"is not a schedule"}},
		{"30 February", scheduled("0 0 30 2 *"), []string{"never comes"}},
	})
}

func TestTemplateSpec(t *testing.T) {
	ref := func(group, kind, name string) func(*v1.NodePool) {
		return func(p *v1.NodePool) {
			p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: group, Kind: kind, Name: name}
		}
	}
	runPoolCases(t, []poolCase{
		{"no NodeClass", func(p *v1.NodePool) {
			p.Spec.Template.Spec.NodeClassRef = nil
		}, []string{"nodeClassRef is missing"}},
		{"empty reference", ref("", "", ""), []string{"group is empty", "kind is empty", "name is empty"}},
		{"group with version", ref("example.com/v1", "Class", "a"), []string{"holds a slash"}},
		{"a limit of nothing", func(p *v1.NodePool) {
			p.Spec.Limits = corev1.ResourceList{"cpu": apiresource.MustParse("0")}
		}, nil},
		{"a limit of less than nothing", func(p *v1.NodePool) {
			p.Spec.Limits = corev1.ResourceList{"cpu": apiresource.MustParse("-1"),
				"nodes": apiresource.MustParse("-2")}
		}, []string{"spec.limits.cpu \"-1\" is negative", "spec.limits.nodes \"-2\" is negative"}},
		{"never expires", func(p *v1.NodePool) { p.Spec.Template.Spec.ExpireAfter = v1.NeverDuration() }, nil},
		{"expired before it began", func(p *v1.NodePool) {
			p.Spec.Template.Spec.ExpireAfter = v1.DurationOf(-time.Hour)
		}, []string{"expireAfter \"-1h0m0s\" is negative"}},
		{"no grace", func(p *v1.NodePool) { p.Spec.Template.Spec.TerminationGracePeriod = &metav1.Duration{} }, nil},
		{"negative grace", func(p *v1.NodePool) {
			p.Spec.Template.Spec.TerminationGracePeriod = &metav1.Duration{Duration: -time.Second}
		}, []string{"terminationGracePeriod \"-1s\" is negative"}},
	})
}
