package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/api/aws/v1alpha1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/internal/require"
)

// class decides about the NodeClass of the pool: the one of an AWSNodeTemplate, or one that the Provisioner has for
// itself.
func (t *translation) class() {
	spec := &t.p.Spec
	switch {
	case spec.Provider != nil && spec.ProviderRef != nil:
		t.wrong("spec.provider", "", "excludes spec.providerRef", "remove one of them")
	case spec.Provider == nil && spec.ProviderRef == nil:
		t.wrong("spec.providerRef", "", "is missing",
			"name the AWSNodeTemplate of the nodes; or set spec.provider to {} for nodes with the defaults of the "+
				"cluster")
	case t.to.Cloud == KWOK:
		t.simulated()
	case spec.Provider != nil:
		t.inline()
	default:
		t.referred()
	}
}

// simulated: the simulated cloud has nothing to set, so any provider will do.
func (t *translation) simulated() {
	ref := t.p.Spec.ProviderRef
	if ref != nil {
		if group, kind, err := reference(ref); err == nil && group == kwokv1alpha1.Group && kind == kwokv1alpha1.Kind {
			t.use(group, kind, ref.Name)
			return
		}
		t.note("spec.providerRef", "spec.template.spec.nodeClassRef", "it has no effect on simulated nodes")
	} else if raw := strings.TrimSpace(string(t.p.Spec.Provider.Raw)); raw != "{}" {
		t.note("spec.provider", "spec.template.spec.nodeClassRef", "it has no effect on simulated nodes")
	}
	if t.p.Spec.KubeletConfiguration != nil {
		t.note("spec.kubeletConfiguration", "", "it has no effect on simulated nodes")
	}
	t.kwok = &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: ClassName(t.p.Name)}}
	t.kwok.TypeMeta = metav1.TypeMeta{APIVersion: kwokv1alpha1.GroupVersion().String(), Kind: kwokv1alpha1.Kind}
	t.use(kwokv1alpha1.Group, kwokv1alpha1.Kind, t.kwok.Name)
}

// inline: the settings stand in the Provisioner.
func (t *translation) inline() {
	spec, problems := readProvider(t.p.Spec.Provider)
	t.problems = append(t.problems, problems...)
	if len(problems) > 0 {
		return
	}
	t.own("spec.provider", &spec)
}

// own makes a class of the Provisioner's own.
func (t *translation) own(field string, spec *v1alpha1.AWSNodeTemplateSpec) {
	class, notes, problems := ec2Class(field, spec, t.to)
	class.Name = ClassName(t.p.Name)
	t.notes = append(t.notes, notes...)
	t.problems = append(t.problems, problems...)
	t.kubelet(class)
	t.aws = class
	t.use(awsv1.Group, awsv1.Kind, class.Name)
}

// referred: the settings stand in another object. Settings of the kubelet belong to the class in v1, so a Provisioner
// that has some needs a class of its own.
func (t *translation) referred() {
	ref := t.p.Spec.ProviderRef
	group, kind, err := reference(ref)
	switch {
	case err != nil:
		t.wrong("spec.providerRef.apiVersion", ref.APIVersion, "is not the version of an API",
			"use "+v1alpha1.GroupVersion().String())
	case group == awsv1.Group && kind == awsv1.Kind && t.p.Spec.KubeletConfiguration == nil:
		t.use(group, kind, ref.Name)
	case group == awsv1.Group && kind == awsv1.Kind:
		t.wrong("spec.kubeletConfiguration", "", "stands in the EC2NodeClass in v1",
			"move it to spec.kubelet of EC2NodeClass "+ref.Name)
	case group != v1alpha1.Group || kind != v1alpha1.Kind:
		t.wrong("spec.providerRef.kind", kind+"."+group, "is not a kind that nodes on EC2 know",
			"refer to an AWSNodeTemplate of "+v1alpha1.GroupVersion().String())
	case t.p.Spec.KubeletConfiguration == nil:
		t.use(awsv1.Group, awsv1.Kind, ref.Name)
	case t.template == nil:
		t.wrong("spec.providerRef.name", ref.Name,
			"names an AWSNodeTemplate that is not there, and spec.kubeletConfiguration needs a NodeClass made from it",
			"create the AWSNodeTemplate, or correct the name")
	default:
		t.note("spec.kubeletConfiguration", "spec.template.spec.nodeClassRef",
			"settings of the kubelet belong to the EC2NodeClass in v1, so the pool has one of its own, made from "+
				"AWSNodeTemplate %s; a change of one does not change the other", ref.Name)
		t.own("AWSNodeTemplate "+ref.Name+": spec", &t.template.Spec)
	}
}

func (t *translation) use(group, kind, name string) {
	t.pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: group, Kind: kind, Name: name}
	if len(name) > longestName {
		t.wrong("spec.providerRef.name", name, "is the value of a label on each node and too long for one",
			fmt.Sprintf("use a name of at most %d characters", longestName))
	}
}

// ownClass is the class as an object; nil, and not a nil of some type, if there is none.
func (t *translation) ownClass() client.Object {
	switch {
	case t.aws != nil:
		return t.aws
	case t.kwok != nil:
		return t.kwok
	default:
		return nil
	}
}

// kubelet moves the settings of the kubelet to the class.
func (t *translation) kubelet(class *awsv1.EC2NodeClass) {
	const field = "spec.kubeletConfiguration"
	if t.p.Spec.KubeletConfiguration == nil {
		return
	}
	settings := t.p.Spec.KubeletConfiguration.DeepCopy()
	if settings.ContainerRuntime != nil {
		t.note(field+".containerRuntime", "", "it is dropped: %s was asked for, and all nodes have containerd today",
			*settings.ContainerRuntime)
		settings.ContainerRuntime = nil
	}
	text, err := json.Marshal(settings)
	if err != nil {
		t.wrong(field, "", "can't be read: "+err.Error(), "correct it")
		return
	}
	out := awsv1.KubeletConfiguration{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.wrong(field, "", "can't be read: "+err.Error(), "correct it")
		return
	}
	if len(out) > 0 {
		class.Spec.Kubelet = out
	}
}

// readProvider reads the provider of a Provisioner. A field that it does not know is a problem: the API server can't
// tell.
func readProvider(raw *apiextensionsv1.JSON) (v1alpha1.AWSNodeTemplateSpec, []Problem) {
	const field = "spec.provider"
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw.Raw, &fields); err != nil {
		return v1alpha1.AWSNodeTemplateSpec{}, []Problem{{Field: field, Why: "is not an object: " + err.Error(),
			Fix: "use {} or the settings of an AWSNodeTemplate"}}
	}
	var problems []Problem
	known := append(fieldNames(reflect.TypeFor[v1alpha1.AWS]()), "apiVersion", "kind")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(known, name) {
			continue
		}
		fix := "remove it"
		if slices.Contains(fieldNames(reflect.TypeFor[v1alpha1.AWSNodeTemplateSpec]()), name) {
			problems = append(problems,
				Problem{Field: field + "." + name, Why: "can't stand in a Provisioner",
					Fix: "make an AWSNodeTemplate of spec.provider and refer to it with spec.providerRef"})
			continue
		}
		if meant := require.Nearest(name, known); meant != "" {
			fix = "write " + meant + ", if that is meant; else remove it"
		}
		problems = append(problems, Problem{Field: field + "." + name, Why: "is not known", Fix: fix})
	}
	if len(problems) > 0 {
		return v1alpha1.AWSNodeTemplateSpec{}, problems
	}
	var out struct {
		metav1.TypeMeta `json:",inline"`
		v1alpha1.AWS
	}
	decoder := json.NewDecoder(bytes.NewReader(raw.Raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&out); err != nil {
		return v1alpha1.AWSNodeTemplateSpec{},
			[]Problem{{Field: field, Why: "can't be read: " + strings.TrimPrefix(err.Error(), "json: "),
				Fix: "correct it; the fields are those of an AWSNodeTemplate's spec, but for amiSelector, " +
					"detailedMonitoring and userData"}}
	}
	return v1alpha1.AWSNodeTemplateSpec{AWS: out.AWS}, nil
}

// AWSNodeTemplate says what an AWSNodeTemplate means.
func AWSNodeTemplate(t *v1alpha1.AWSNodeTemplate, to Target) (*awsv1.EC2NodeClass, []Note, []Problem) {
	class, notes, problems := ec2Class("spec", &t.Spec, to)
	class.Name = t.Name
	switch {
	case t.Name == "":
		problems = append(problems, Problem{Field: "metadata.name", Why: "is missing, and the EC2NodeClass has the " +
			"same name",
			Fix: "give the AWSNodeTemplate a name"})
	case len(t.Name) > longestName:
		problems = append(problems,
			Problem{Field: "metadata.name", Value: t.Name,
				Why: "is the value of a label on each node and too long for one",
				Fix: fmt.Sprintf("use a name of at most %d characters", longestName)})
	}
	return class, notes, problems
}
