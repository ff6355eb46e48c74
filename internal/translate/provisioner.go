package translate

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/api/aws/v1alpha1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
)

// Provisioner says what a Provisioner means. template is the AWSNodeTemplate that its providerRef names; nil if there
// is none, or if nobody knows it.
func Provisioner(p *v1alpha5.Provisioner, template *v1alpha1.AWSNodeTemplate, to Target) (Pool, []Problem) {
	t := &translation{p: p, template: template, to: to}
	t.name()
	t.metadata()
	t.requirements()
	t.class()
	t.limits()
	t.disruption()
	t.expiry()
	return Pool{NodePool: &t.pool, Class: t.ownClass(), Notes: t.notes}, t.problems
}

// translation is a Provisioner on its way to v1.
type translation struct {
	p        *v1alpha5.Provisioner
	template *v1alpha1.AWSNodeTemplate
	to       Target

	pool     v1.NodePool
	aws      *awsv1.EC2NodeClass
	kwok     *kwokv1alpha1.KWOKNodeClass
	notes    []Note
	problems []Problem
}

func (t *translation) note(field, at, format string, args ...any) {
	t.notes = append(t.notes, Note{Field: field, At: at, Text: fmt.Sprintf(format, args...)})
}

func (t *translation) wrong(field, value, why, fix string) {
	t.problems = append(t.problems, Problem{Field: field, Value: value, Why: why, Fix: fix})
}

func (t *translation) name() {
	t.pool.TypeMeta = metav1.TypeMeta{APIVersion: v1.GroupVersion().String(), Kind: "NodePool"}
	t.pool.Name = t.p.Name
	switch {
	case t.p.Name == "":
		t.wrong("metadata.name", "", "is missing, and the NodePool has the same name", "give the Provisioner a name")
	case len(t.p.Name) > longestName:
		t.wrong("metadata.name", t.p.Name, "is the value of a label on each node and too long for one",
			fmt.Sprintf("use a name of at most %d characters", longestName))
	}
}

// metadata is what each node gets: labels, annotations, taints.
func (t *translation) metadata() {
	spec, out := &t.p.Spec, &t.pool.Spec.Template
	out.Labels = map[string]string{}
	maps.Copy(out.Labels, spec.Labels)
	for _, key := range []string{v1.ProvisionerNameLabelKey, v1.NodePoolLabelKey} {
		if value, set := spec.Labels[key]; set {
			t.wrong(fmt.Sprintf("spec.labels[%s]", key), value, "is set from the name of the Provisioner",
				"remove this label")
		}
	}
	out.Labels[v1.ProvisionerNameLabelKey] = t.p.Name
	out.Annotations = maps.Clone(spec.Annotations)
	out.Spec.Taints = t.taints("spec.taints", spec.Taints)
	out.Spec.StartupTaints = t.taints("spec.startupTaints", spec.StartupTaints)
}

func (t *translation) taints(field string, taints []corev1.Taint) []v1.Taint {
	var out []v1.Taint
	for i, taint := range taints {
		if !slices.Contains([]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
			corev1.TaintEffectNoExecute}, taint.Effect) {
			t.wrong(fmt.Sprintf("%s[%d].effect", field, i), string(taint.Effect), "is not an effect of a taint",
				"use NoSchedule, PreferNoSchedule or NoExecute")
		}
		out = append(out, v1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
	}
	return out
}

// requirements takes over what is required, and adds what was meant where nothing was said.
func (t *translation) requirements() {
	const field, at = "spec.requirements", "spec.template.spec.requirements"
	known := []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn,
		corev1.NodeSelectorOpExists,
		corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt}
	said := map[string]bool{}
	for key := range t.p.Spec.Labels {
		said[key] = true
	}
	out := make([]v1.NodeSelectorRequirementWithMinValues, 0, len(t.p.Spec.Requirements))
	for i, r := range t.p.Spec.Requirements {
		switch {
		case r.Key == v1.ProvisionerNameLabelKey || r.Key == v1.NodePoolLabelKey:
			t.wrong(fmt.Sprintf("%s[%d].key", field, i), r.Key, "is set from the name of the Provisioner",
				"remove this requirement")
		case !slices.Contains(known, r.Operator):
			t.wrong(fmt.Sprintf("%s[%d].operator", field, i), string(r.Operator), "is not an operator",
				"use In, NotIn, Exists, DoesNotExist, Gt or Lt")
		}
		said[r.Key] = true
		out = append(out,
			v1.NodeSelectorRequirementWithMinValues{Key: r.Key, Operator: r.Operator, Values: slices.Clone(r.Values)})
	}
	for _, d := range defaults(t.to.Cloud) {
		if slices.ContainsFunc(d.unless, func(key string) bool { return said[key] }) {
			continue
		}
		for _, r := range d.add {
			t.note(field, fmt.Sprintf("%s[%d]", at, len(out)),
				"%s %s %v was the default of a Provisioner, which v1 does not have", r.Key, r.Operator, r.Values)
			out = append(out, r)
		}
	}
	t.pool.Spec.Template.Spec.Requirements = out
}

// implied are requirements that a Provisioner has if it says nothing about certain labels.
type implied struct {
	unless []string
	add    []v1.NodeSelectorRequirementWithMinValues
}

func defaults(cloud string) []implied {
	in := func(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
		return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	one := func(r v1.NodeSelectorRequirementWithMinValues, olderName ...string) implied {
		return implied{unless: append(olderName, r.Key), add: []v1.NodeSelectorRequirementWithMinValues{r}}
	}
	out := []implied{
		one(in(corev1.LabelOSStable, string(corev1.Linux)), "beta.kubernetes.io/os"),
		one(in(corev1.LabelArchStable, v1.ArchitectureAmd64), "beta.kubernetes.io/arch"),
		one(in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand)),
	}
	if cloud != AWS {
		return out
	}
	return append(out, implied{
		unless: []string{corev1.LabelInstanceTypeStable, corev1.LabelInstanceType, awsv1.InstanceFamilyLabelKey,
			awsv1.InstanceCategoryLabelKey, awsv1.InstanceGenerationLabelKey},
		add: []v1.NodeSelectorRequirementWithMinValues{
			in(awsv1.InstanceCategoryLabelKey, "c", "m", "r"),
			{Key: awsv1.InstanceGenerationLabelKey, Operator: corev1.NodeSelectorOpGt, Values: []string{"2"}},
		},
	})
}

func (t *translation) limits() {
	if t.p.Spec.Limits != nil {
		t.pool.Spec.Limits = t.p.Spec.Limits.Resources.DeepCopy()
		for _, name := range slices.Sorted(maps.Keys(t.p.Spec.Limits.Resources)) {
			if limit := t.p.Spec.Limits.Resources[name]; limit.Sign() < 0 {
				t.wrong(fmt.Sprintf("spec.limits.resources.%s", name), limit.String(), "is negative",
					"use 0 or more, or remove the limit")
			}
		}
	}
	if t.p.Spec.Weight != nil {
		weight := *t.p.Spec.Weight
		t.pool.Spec.Weight = &weight
	}
}

// disruption: what removed nodes voluntarily. Empty nodes went all at once; budgets came with the next generation, and
// what they bound there by default they bound here, but for empty nodes.
func (t *translation) disruption() {
	spec, out := &t.p.Spec, &t.pool.Spec.Disruption
	consolidates := spec.Consolidation != nil && spec.Consolidation.Enabled != nil && *spec.Consolidation.Enabled
	t.notNegative("spec.ttlSecondsAfterEmpty", spec.TTLSecondsAfterEmpty)
	switch {
	case consolidates && spec.TTLSecondsAfterEmpty != nil:
		t.wrong("spec.ttlSecondsAfterEmpty", fmt.Sprint(*spec.TTLSecondsAfterEmpty),
			"excludes consolidation.enabled, which removes empty nodes, too", "remove one of them")
	case consolidates:
		out.ConsolidationPolicy, out.ConsolidateAfter = v1.ConsolidationPolicyWhenEmptyOrUnderutilized, lasting("0s")
	case spec.TTLSecondsAfterEmpty != nil:
		out.ConsolidationPolicy, out.ConsolidateAfter = v1.ConsolidationPolicyWhenEmpty,
			lasting(seconds(*spec.TTLSecondsAfterEmpty))
	default:
		out.ConsolidationPolicy, out.ConsolidateAfter = v1.ConsolidationPolicyWhenEmpty, v1.NeverDuration()
		t.note("spec.ttlSecondsAfterEmpty", "spec.disruption.consolidateAfter",
			"without it and without consolidation, empty nodes stay; the default of v1 is to consolidate at once")
	}
	out.Budgets = []v1.Budget{
		{Nodes: "100%", Reasons: []v1.DisruptionReason{v1.DisruptionReasonEmpty}},
		{Nodes: "10%", Reasons: []v1.DisruptionReason{v1.DisruptionReasonUnderutilized, v1.DisruptionReasonDrifted}},
	}
	t.note("spec", "spec.disruption.budgets",
		"a Provisioner had no budgets and replaced no nodes when it changed; in v1 such nodes drift and are "+
			"replaced, a tenth of them at a time, and empty nodes go without a bound as before")
}

func (t *translation) expiry() {
	out := &t.pool.Spec.Template.Spec
	ttl := t.p.Spec.TTLSecondsUntilExpired
	if ttl == nil {
		out.ExpireAfter = v1.NeverDuration()
		t.note("spec.ttlSecondsUntilExpired", "spec.template.spec.expireAfter",
			"without it nodes don't expire; the default of v1 is 720h")
		return
	}
	t.notNegative("spec.ttlSecondsUntilExpired", ttl)
	out.ExpireAfter = lasting(seconds(*ttl))
	t.note("spec.ttlSecondsUntilExpired", "spec.template.spec.expireAfter",
		"in v1 nodes that expire are drained at once, without regard to budgets; before, they went one after the "+
			"other once their replacement was ready (annotation tenon.sh/soft-expiry does that)")
}

// notNegative looks at a number of seconds. The API server does, too, but a manifest that is converted has not been
// there.
func (t *translation) notNegative(field string, seconds *int64) {
	if seconds != nil && *seconds < 0 {
		t.wrong(field, fmt.Sprint(*seconds), "is negative", "use 0 or more, or remove the field")
	}
}

// lasting is a duration as it is written.
func lasting(text string) v1.NillableDuration {
	d, err := v1.ParseNillableDuration(text)
	if err != nil {
		// Only what seconds writes comes here, and the schema keeps it below what a duration holds.
		return v1.NillableDuration{Raw: text}
	}
	return d
}

// reference is the object that a providerRef names.
func reference(ref *v1alpha5.ProviderRef) (group, kind string, err error) {
	gv := v1alpha1.GroupVersion()
	if ref.APIVersion != "" {
		if gv, err = schema.ParseGroupVersion(ref.APIVersion); err != nil {
			return "", "", err
		}
	}
	if kind = ref.Kind; kind == "" {
		kind = v1alpha1.Kind
	}
	return gv.Group, kind, nil
}

// TemplateOf is the name of the AWSNodeTemplate that a Provisioner refers to; empty if it refers to none.
func TemplateOf(p *v1alpha5.Provisioner) string {
	if p.Spec.ProviderRef == nil {
		return ""
	}
	group, kind, err := reference(p.Spec.ProviderRef)
	if err != nil || group != v1alpha1.Group || kind != v1alpha1.Kind {
		return ""
	}
	return p.Spec.ProviderRef.Name
}
