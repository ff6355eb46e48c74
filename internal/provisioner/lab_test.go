package provisioner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/api/aws/v1alpha1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	crds "github.com/tenon-sh/tenon/charts/karpenter-crd"
	"github.com/tenon-sh/tenon/internal/lab/labtest"
	"github.com/tenon-sh/tenon/internal/translate"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func newClient(t *testing.T) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, awsv1.AddToScheme, kwokv1alpha1.AddToScheme,
		v1alpha5.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	l := labtest.New(t)
	l.InstallCRDs(crds.FS())
	return client.WithFieldValidation(l.Client(s), "Strict")
}

// events remembers events.
type events struct{ reasons, texts []string }

func (e *events) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	e.reasons, e.texts = append(e.reasons, reason), append(e.texts, fmt.Sprintf(note, args...))
}

// drawProvisioner draws a Provisioner that the API server takes.
func drawProvisioner(t *rapid.T, name string) *v1alpha5.Provisioner {
	p := &v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: name}}
	word := rapid.StringMatching(`[a-z][a-z0-9]{0,8}`)
	some := func(what string) bool { return rapid.Bool().Draw(t, what) }
	if some("labels") {
		p.Spec.Labels = map[string]string{"example.com/" + word.Draw(t, "label"): word.Draw(t, "value")}
	}
	if some("annotations") {
		p.Spec.Annotations = map[string]string{word.Draw(t, "annotation"): "any text: <>&"}
	}
	for range rapid.IntRange(0, 2).Draw(t, "taints") {
		taint := corev1.Taint{Key: word.Draw(t, "taint"), Effect: corev1.TaintEffectNoExecute}
		p.Spec.Taints = append(p.Spec.Taints, taint)
		p.Spec.StartupTaints = append(p.Spec.StartupTaints,
			corev1.Taint{Key: "s" + taint.Key, Value: "a", Effect: corev1.TaintEffectPreferNoSchedule})
	}
	keys := []string{corev1.LabelArchStable, corev1.LabelOSStable, v1.CapacityTypeLabelKey,
		awsv1.InstanceFamilyLabelKey, corev1.LabelTopologyZone, awsv1.InstanceCPULabelKey}
	for range rapid.IntRange(0, 4).Draw(t, "requirements") {
		r := corev1.NodeSelectorRequirement{Key: rapid.SampledFrom(keys).Draw(t, "key"),
			Operator: corev1.NodeSelectorOpIn, Values: []string{word.Draw(t, "value")}}
		if some("greater") {
			r.Operator, r.Values = corev1.NodeSelectorOpGt, []string{"4"}
		}
		p.Spec.Requirements = append(p.Spec.Requirements, r)
	}
	long := rapid.Int64Range(0, 3153600000)
	if some("expiry") {
		n := long.Draw(t, "seconds")
		p.Spec.TTLSecondsUntilExpired = &n
	}
	if n := long.Draw(t, "idle"); some("emptiness") {
		p.Spec.TTLSecondsAfterEmpty = &n
	} else {
		on := some("consolidation")
		p.Spec.Consolidation = &v1alpha5.Consolidation{Enabled: &on}
	}
	if some("limits") {
		p.Spec.Limits = &v1alpha5.Limits{Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(
			rapid.SampledFrom([]string{"1000",
				"1k", "2500m", "1e3"}).Draw(t, "cpu"))}}
	}
	if some("weight") {
		n := rapid.Int32Range(1, 100).Draw(t, "weight")
		p.Spec.Weight = &n
	}
	if some("kubelet") {
		n := rapid.Int32Range(0, 300).Draw(t, "pods")
		p.Spec.KubeletConfiguration = &v1alpha5.KubeletConfiguration{MaxPods: &n,
			EvictionHard: map[string]string{"memory.available": "5%"}, ClusterDNS: []string{"10.0.0.10"},
			KubeReserved: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1024Mi")}}
	}
	settings := drawSettings(t)
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	p.Spec.Provider = &apiextensionsv1.JSON{Raw: text}
	return p
}

// drawSettings draws settings that can be said in v1.
func drawSettings(t *rapid.T) v1alpha1.AWS {
	var out v1alpha1.AWS
	some := func(what string) bool { return rapid.Bool().Draw(t, what) }
	selectors := []map[string]string{nil, {"aws-ids": "ID-1a,ID-2b"}, {"aws::ids": "ID-3c"},
		{"karpenter.sh/discovery": "lab"}, {"Name": "*a*,b", "os": "*"}}
	selector := func(prefix string) map[string]string {
		made := map[string]string{}
		for key, value := range rapid.SampledFrom(selectors).Draw(t, "selector") {
			made[key] = strings.ReplaceAll(value, "ID", prefix)
		}
		return made
	}
	out.SubnetSelector, out.SecurityGroupSelector = selector("subnet"), selector("sg")
	if some("family") {
		family := rapid.SampledFrom([]string{"AL2", "AL2023", "Bottlerocket", "Windows2019", "Windows2022"}).Draw(t,
			"family")
		out.AMIFamily = &family
	}
	if some("profile") {
		out.InstanceProfile = new("nodes")
	}
	if some("tags") {
		out.Tags = map[string]string{"team": "blue <&>"}
	}
	if some("metadata") {
		hops := rapid.Int64Range(1, 64).Draw(t, "hops")
		out.MetadataOptions = &v1alpha1.MetadataOptions{HTTPPutResponseHopLimit: &hops}
	}
	if some("disks") {
		size := resource.MustParse(rapid.SampledFrom([]string{"20Gi", "1Ti", "1024Gi", "100G"}).Draw(t, "size"))
		out.BlockDeviceMappings = []*awsv1.BlockDeviceMapping{{DeviceName: new("/dev/xvda"),
			EBS: &awsv1.BlockDevice{VolumeSize: &size, VolumeType: new("gp3")}}}
	}
	return out
}

// TestWhatIsMadeStays: the API server takes what a Provisioner is translated to, and gives it back the same. Otherwise
// it would be put back for ever.
func TestWhatIsMadeStays(t *testing.T) {
	c := newClient(t)
	ctx := t.Context()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		p := drawProvisioner(rt, fmt.Sprintf("drawn-%d", n))
		if err := c.Create(ctx, p); err != nil {
			rt.Fatalf("the API server refuses the Provisioner: %v", err)
		}
		told := &events{}
		target := translate.Target{Cloud: rapid.SampledFrom([]string{translate.AWS, translate.KWOK}).Draw(rt,
			"cloud"), Cluster: "lab"}
		r := &Reconciler{Options{Client: c, Events: told, Target: target}}
		for range 2 {
			if _, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}); err != nil {
				rt.Fatal(err)
			}
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			rt.Fatal(err)
		}
		if made := meta.FindStatusCondition(p.Status.Conditions,
			v1alpha5.ConditionTypeTranslated); made == nil || made.Status != metav1.ConditionTrue {
			rt.Fatalf("%+v of %+v", made, p.Spec)
		}
		pool := &v1.NodePool{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(p), pool); err != nil {
			rt.Fatal(err)
		}
		if pool.Generation != 1 || slices.Contains(told.reasons, EventPutBack) {
			rt.Fatalf("the second look found something to put back (generation %d, events %v): %+v", pool.Generation,
				told.reasons, pool.Spec)
		}
		if class := blankClass(target.Cloud); c.Get(ctx, client.ObjectKey{Name: translate.ClassName(p.Name)},
			class) != nil || class.GetGeneration() != 1 {
			rt.Fatalf("the class has generation %d", class.GetGeneration())
		}
		for _, object := range []client.Object{p, pool} {
			if err := c.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
				rt.Fatal(err)
			}
		}
	})
}

// TestNameIsTaken: objects that others made are left alone, whoever the others are.
func TestNameIsTaken(t *testing.T) {
	c := newClient(t)
	ctx := t.Context()
	target := translate.Target{Cloud: translate.AWS, Cluster: "lab"}
	template := &v1alpha1.AWSNodeTemplate{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	class, _, problems := translate.AWSNodeTemplate(template, target)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, object := range []client.Object{class, template} {
		if err := c.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	told := &events{}
	r := &TemplateReconciler{Options{Client: c, Events: told, Target: target, Templates: true}}
	look := func() *metav1.Condition {
		t.Helper()
		if _, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(template)}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(template), template); err != nil {
			t.Fatal(err)
		}
		return meta.FindStatusCondition(template.Status.Conditions, v1alpha1.ConditionTypeTranslated)
	}
	if got := look(); got.Reason != ReasonNameTaken || !strings.Contains(got.Message,
		"EC2NodeClass one exists already") || !slices.Equal(told.reasons, []string{ReasonNameTaken}) {
		t.Errorf("the condition is %+v, events %v", got, told.reasons)
	}
	look()
	if len(told.reasons) != 1 {
		t.Errorf("the same is told again: %v", told.reasons)
	}
	user := userOf(template.Name)
	if err := c.Create(ctx, user); err != nil {
		t.Fatal(err)
	}
	users := &Reconciler{Options{Client: c, Events: told, Target: target, Templates: true}}
	lookAtUser := func() *metav1.Condition {
		t.Helper()
		if _, err := users.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(user)}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(user), user); err != nil {
			t.Fatal(err)
		}
		return meta.FindStatusCondition(user.Status.Conditions, v1alpha5.ConditionTypeTranslated)
	}
	if got := lookAtUser(); got.Reason != ReasonNameTaken || !strings.Contains(got.Message,
		"spec.providerRef.name: EC2NodeClass one exists already and was not made from this AWSNodeTemplate") {
		t.Errorf("the Provisioner's condition is %+v", got)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(user), &v1.NodePool{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is a NodePool with the class of somebody else (%v)", err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(class),
		class); err != nil || len(class.OwnerReferences) > 0 || len(class.Labels) > 0 {
		t.Errorf("the class was touched: %+v (%v)", class.ObjectMeta, err)
	}
	if err := c.Delete(ctx, class); err != nil {
		t.Fatal(err)
	}
	if got := look(); got.Status != metav1.ConditionTrue {
		t.Errorf("the condition is %+v", got)
	}
	if got := lookAtUser(); got.Status != metav1.ConditionTrue {
		t.Errorf("the Provisioner's condition is %+v", got)
	}
}

// userOf is a Provisioner that refers to an AWSNodeTemplate.
func userOf(template string) *v1alpha5.Provisioner {
	return &v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "user"},
		Spec: v1alpha5.ProvisionerSpec{ProviderRef: &v1alpha5.ProviderRef{Name: template}}}
}

// nothing is a manager of a cluster that serves none of the kinds.
type nothing struct{ ctrl.Manager }

func (nothing) GetRESTMapper() meta.RESTMapper { return meta.NewDefaultRESTMapper(nil) }

// broken is a manager of a cluster that does not answer.
type broken struct{ ctrl.Manager }

func (broken) GetRESTMapper() meta.RESTMapper { return silent{} }

type silent struct{ meta.RESTMapper }

func (silent) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, context.DeadlineExceeded
}

func TestClusterWithoutOlderKinds(t *testing.T) {
	for cloud, want := range map[string][]string{translate.AWS: {"Provisioner", "AWSNodeTemplate"},
		translate.KWOK: {"Provisioner"}} {
		unknown, err := Setup(nothing{}, Options{Target: translate.Target{Cloud: cloud}})
		if err != nil || !slices.Equal(unknown, want) {
			t.Errorf("on %s unknown are %v (%v), want %v", cloud, unknown, err, want)
		}
	}
	if _, err := Setup(broken{}, Options{}); err == nil || !strings.Contains(err.Error(),
		"whether the cluster serves Provisioners") {
		t.Errorf("a cluster that does not answer gives %v", err)
	}
}
