package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	awsv1beta1 "github.com/tenon-sh/tenon/api/aws/v1beta1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1beta1"
	"github.com/tenon-sh/tenon/api/roundtrip"
	"github.com/tenon-sh/tenon/internal/translate"
)

// poolKubelet is what a v1beta1 NodePool says of the kubelet; v1 has it in the class.
type poolKubelet struct {
	pool string
	// settings are JSON; empty if there are none.
	settings string
	// tree is how they are written.
	tree *yaml.Node
}

// surveyKubelet notes the settings of the kubelet of a v1beta1 NodePool under the name of its class.
func (c *converter) surveyKubelet(tree *yaml.Node) {
	p := &v1beta1.NodePool{}
	hub := &v1.NodePool{}
	if decode(tree, p) != nil || p.ConvertTo(hub) != nil {
		return // it is told when its turn comes
	}
	k := poolKubelet{pool: p.Name}
	if p.Spec.Template.Spec.Kubelet != nil {
		text, err := json.Marshal(p.Spec.Template.Spec.Kubelet)
		if err != nil {
			return
		}
		k.settings = string(text)
		_, k.tree = find(tree, "spec.template.spec.kubelet")
	}
	name := hub.Spec.Template.Spec.NodeClassRef.Name
	c.kubelets[name] = append(c.kubelets[name], k)
}

// betaPaths are those from a v1beta1 object to v1.
func betaPaths() []path {
	return []path{
		{from: "apiVersion", to: "apiVersion"}, {from: "kind", to: "kind"}, {from: "metadata",
			to: "metadata"}, {from: "spec", to: "spec"},
		{from: "spec.nodeClassRef", to: "spec.template.spec.nodeClassRef"},
		{from: "spec.disruption.expireAfter", to: "spec.template.spec.expireAfter"},
		{from: "spec.amiFamily", to: "spec.amiSelectorTerms", comments: true, unless: "spec.amiFamily"},
	}
}

// bookkeeping are annotations for the way back to v1beta1, which a manifest does not need.
func bookkeeping() []string {
	return []string{roundtrip.V1Beta1OnlyAnnotationKey, roundtrip.V1OnlyAnnotationKey, v1beta1.KubeletAnnotationKey,
		v1beta1.NodeClassReferenceAnnotationKey,
		awsv1beta1.UbuntuAnnotationKey, awsv1beta1.AliasVersionAnnotationKey, corev1.LastAppliedConfigAnnotation}
}

// clean takes out of an object's metadata what only a cluster writes.
func clean(m *metav1.ObjectMeta) {
	annotations := maps.Clone(m.Annotations)
	for _, key := range bookkeeping() {
		delete(annotations, key)
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	*m = metav1.ObjectMeta{Name: m.Name, GenerateName: m.GenerateName, Labels: m.Labels, Annotations: annotations}
}

// betaPool converts a v1beta1 NodePool.
func (c *converter) betaPool(o object) []*yaml.Node {
	p, out := &v1beta1.NodePool{}, &v1.NodePool{}
	if err := decode(o.tree, p); err != nil {
		c.fail(o, err)
		return nil
	}
	if err := p.ConvertTo(out); err != nil {
		c.fail(o, err)
		return nil
	}
	out.TypeMeta = metav1.TypeMeta{APIVersion: v1.GroupVersion().String(), Kind: "NodePool"}
	clean(&out.ObjectMeta)
	notes := poolNotes(p, out)
	class := out.Spec.Template.Spec.NodeClassRef
	if p.Spec.Template.Spec.Kubelet != nil {
		if !c.classes[class.Name] {
			c.fail(o,
				fmt.Errorf("spec.template.spec.kubelet belongs to EC2NodeClass %s in v1, which is not among the "+
					"files; give it, too",
					class.Name))
			return nil
		}
		notes = append(notes,
			translate.Note{Field: "spec.template.spec.kubelet", At: "spec.template.spec.nodeClassRef",
				Text: "settings of the kubelet stand in the EC2NodeClass in v1, and are moved there"})
	}
	for _, n := range notes {
		c.note(o, n)
	}
	return []*yaml.Node{c.write(o, out, betaPaths(), notes)}
}

func poolNotes(p *v1beta1.NodePool, out *v1.NodePool) []translate.Note {
	const expiry, ref = "spec.template.spec.expireAfter", "spec.template.spec.nodeClassRef"
	var notes []translate.Note
	switch {
	case p.Spec.Template.Spec.NodeClassRef == nil && p.Spec.NodeClassRef == nil:
		notes = append(notes,
			translate.Note{Field: ref, At: ref, Text: "it was not given, which means the EC2NodeClass default"})
	case p.Spec.Template.Spec.NodeClassRef == nil:
		notes = append(notes,
			translate.Note{Field: "spec.nodeClassRef", At: ref, Text: "it stood under spec and belongs here"})
	}
	if !equality.Semantic.DeepEqual(p.Spec.Template.Spec.Resources, v1.ResourceRequirements{}) {
		notes = append(notes, translate.Note{Field: "spec.template.spec.resources", Text: "it is dropped: it had no " +
			"effect"})
	}
	if !out.Spec.Template.Spec.ExpireAfter.IsNever() {
		notes = append(notes, translate.Note{Field: "spec.disruption.expireAfter", At: expiry,
			Text: "in v1 nodes that expire are drained at once, without regard to budgets; before, budgets held and " +
				"replacements came first (annotation tenon.sh/soft-expiry does that)"})
	}
	switch p.Spec.Disruption.ConsolidationPolicy {
	case v1beta1.ConsolidationPolicyWhenIdle:
		notes = append(notes,
			translate.Note{Field: "spec.disruption.consolidationPolicy", At: "spec.disruption.consolidationPolicy",
				Text: "WhenIdle is WhenEmpty in v1: only nodes without workload go"})
	case v1beta1.ConsolidationPolicyWhenUnderutilized, "":
		if p.Spec.Disruption.ConsolidateAfter.IsZero() {
			notes = append(notes,
				translate.Note{Field: "spec.disruption.consolidateAfter", At: "spec.disruption.consolidateAfter",
					Text: "nodes used to be left alone for 15 s after pods came or went; in v1 that time is set here"})
		}
	}
	return notes
}

// betaClaim converts a v1beta1 NodeClaim.
func (c *converter) betaClaim(o object) []*yaml.Node {
	p, out := &v1beta1.NodeClaim{}, &v1.NodeClaim{}
	if err := decode(o.tree, p); err != nil {
		c.fail(o, err)
		return nil
	}
	if p.Spec.Kubelet != nil {
		c.fail(o,
			fmt.Errorf("spec.kubelet of a NodeClaim belongs to the NodeClass in v1; move it to spec.kubelet of the "+
				"EC2NodeClass and remove it here"))
		return nil
	}
	if err := p.ConvertTo(out); err != nil {
		c.fail(o, err)
		return nil
	}
	out.TypeMeta = metav1.TypeMeta{APIVersion: v1.GroupVersion().String(), Kind: "NodeClaim"}
	clean(&out.ObjectMeta)
	return []*yaml.Node{c.write(o, out, betaPaths(), nil)}
}

// betaClass converts a v1beta1 EC2NodeClass.
func (c *converter) betaClass(o object) []*yaml.Node {
	p, out := &awsv1beta1.EC2NodeClass{}, &awsv1.EC2NodeClass{}
	if err := decode(o.tree, p); err != nil {
		c.fail(o, err)
		return nil
	}
	if err := p.ConvertTo(out); err != nil {
		c.fail(o, err)
		return nil
	}
	if strings.Contains(out.Annotations[awsv1beta1.UbuntuAnnotationKey], "incompatible") {
		c.fail(o,
			fmt.Errorf("spec.amiFamily %q is not a family in v1, and no images are selected; select them with "+
				"amiSelectorTerms, for instance by name and owner",
				awsv1beta1.AMIFamilyUbuntu))
		return nil
	}
	if len(out.Spec.AMISelectorTerms) == 0 {
		c.fail(o,
			fmt.Errorf("spec.amiSelectorTerms is missing, and amiFamily has no images of its own; select images by "+
				"id, name or tags"))
		return nil
	}
	out.TypeMeta = metav1.TypeMeta{APIVersion: awsv1.GroupVersion().String(), Kind: awsv1.Kind}
	if p.Spec.Role == "" && p.Spec.InstanceProfile == nil && c.o.InstanceProfile != "" {
		out.Spec.Role, out.Spec.InstanceProfile = "", &c.o.InstanceProfile
	}
	notes := classNotes(p, out)
	if note, err := c.takeKubelet(out); err != nil {
		c.fail(o, err)
		return nil
	} else if note != nil {
		notes = append(notes, *note)
	}
	clean(&out.ObjectMeta)
	c.nameCluster(&out.Spec)
	for _, n := range notes {
		c.note(o, n)
	}
	tree := c.write(o, out, betaPaths(), notes)
	if tree != nil && len(out.Spec.Kubelet) > 0 {
		if _, kubelet := find(tree, "spec.kubelet"); kubelet != nil && kubelet.Kind == yaml.MappingNode {
			merge(kubelet, c.kubelets[out.Name][0].tree)
		}
	}
	return []*yaml.Node{tree}
}

// takeKubelet gives a class the settings of the kubelet that its pools have, if they agree.
func (c *converter) takeKubelet(class *awsv1.EC2NodeClass) (*translate.Note, error) {
	pools := c.kubelets[class.Name]
	if !slices.ContainsFunc(pools, func(k poolKubelet) bool { return k.settings != "" }) {
		return nil, nil
	}
	for _, k := range pools[1:] {
		if k.settings != pools[0].settings {
			return nil, fmt.Errorf("NodePools %s and %s share this class and differ in spec.template.spec.kubelet, "+
				"which stands in the class in v1; give each pool a class of its own",
				pools[0].pool, k.pool)
		}
	}
	settings := awsv1.KubeletConfiguration{}
	if err := json.Unmarshal([]byte(pools[0].settings), &settings); err != nil {
		return nil, fmt.Errorf("reading spec.template.spec.kubelet of NodePool %s: %w", pools[0].pool, err)
	}
	class.Spec.Kubelet = settings
	return &translate.Note{Field: "spec.kubelet", At: "spec.kubelet",
		Text: "it was spec.template.spec.kubelet of NodePool " + pools[0].pool + "; pools that are not among these " +
			"files and use this class get it, too"}, nil
}

// nameCluster puts the name of the cluster where a variable stands for it.
func (c *converter) nameCluster(spec *awsv1.EC2NodeClassSpec) {
	if c.o.Cluster == "" {
		return
	}
	name := func(text string) string { return strings.ReplaceAll(text, awsv1.ClusterNameVariable, c.o.Cluster) }
	spec.Role = name(spec.Role)
	for _, term := range spec.SubnetSelectorTerms {
		for key, value := range term.Tags {
			term.Tags[key] = name(value)
		}
	}
	for _, term := range spec.SecurityGroupSelectorTerms {
		for key, value := range term.Tags {
			term.Tags[key] = name(value)
		}
	}
}

func classNotes(p *awsv1beta1.EC2NodeClass, out *awsv1.EC2NodeClass) []translate.Note {
	var notes []translate.Note
	add := func(field, at, text string) {
		notes = append(notes, translate.Note{Field: field, At: at, Text: text})
	}
	const filled = "it was not given, so what carries the name of the cluster is meant"
	if len(p.Spec.SubnetSelectorTerms) == 0 {
		add("spec.subnetSelectorTerms", "spec.subnetSelectorTerms", filled)
	}
	if len(p.Spec.SecurityGroupSelectorTerms) == 0 {
		add("spec.securityGroupSelectorTerms", "spec.securityGroupSelectorTerms", filled)
	}
	switch {
	case p.Spec.Role != "" || p.Spec.InstanceProfile != nil:
	case out.Spec.InstanceProfile != nil:
		add("spec.instanceProfile", "spec.instanceProfile", "it was not given, so it is the default one")
	default:
		add("spec.role", "spec.role", "it was not given, so it is the role that has the name of the cluster")
	}
	if len(p.Spec.AMISelectorTerms) == 0 && p.Spec.AMIFamily != nil {
		add("spec.amiFamily", "spec.amiSelectorTerms",
			"the newest image of the family has to be asked for in v1; nodes drift when AWS publishes a newer one")
	}
	if p.Spec.AMIFamily != nil && *p.Spec.AMIFamily == awsv1beta1.AMIFamilyUbuntu {
		add("spec.amiFamily", "spec.amiFamily",
			"Ubuntu is not a family in v1; its images start as those of AL2 do, from the disk /dev/sda1")
	}
	if p.Spec.MetadataOptions == nil || p.Spec.MetadataOptions.HTTPPutResponseHopLimit == nil {
		add("spec.metadataOptions.httpPutResponseHopLimit", "spec.metadataOptions.httpPutResponseHopLimit",
			"it was not given, which meant 2; "+
				"the default of v1 is 1, with which pods do not reach the metadata service")
	}
	return notes
}
