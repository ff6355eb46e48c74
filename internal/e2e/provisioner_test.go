package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	awsv1alpha1 "github.com/tenon-sh/tenon/api/aws/v1alpha1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/internal/convert"
)

// founding is where the manifests of the founding documents are, for apply.
const founding = "../../convert/testdata/founding/"

func provisioner(name string, change ...func(*v1alpha5.Provisioner)) *v1alpha5.Provisioner {
	p := &v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Provider = &apiextensionsv1.JSON{Raw: []byte(`{}`)}
	for _, f := range change {
		f(p)
	}
	return p
}

// is waits for a condition of an older object: "Translated=False InvalidProvisioner", and for words in its message.
func (w *world) is(object client.Object, want string, words ...string) {
	w.Helper()
	w.eventually(func() string {
		if err := w.c.Get(w.ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err.Error()
		}
		var conditions []metav1.Condition
		switch o := object.(type) {
		case *v1alpha5.Provisioner:
			conditions = o.Status.Conditions
		case *awsv1alpha1.AWSNodeTemplate:
			conditions = o.Status.Conditions
		}
		name, _, _ := strings.Cut(want, "=")
		c := meta.FindStatusCondition(conditions, name)
		if c == nil || fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason) != want {
			return fmt.Sprintf("%s is %+v, want %s", object.GetName(), conditions, want)
		}
		for _, word := range words {
			if !strings.Contains(c.Message, word) {
				return fmt.Sprintf("the message of %s is %q and does not say %q", want, c.Message, word)
			}
		}
		return ""
	})
}

// pool reads a NodePool.
func (w *world) pool(name string) *v1.NodePool {
	w.Helper()
	out := &v1.NodePool{}
	w.must(w.c.Get(w.ctx, client.ObjectKey{Name: name}, out))
	return out
}

// TestProvisioner: a Provisioner on simulated nodes, from the first pod to the end of the last node, and everything
// that can be wrong.
func TestProvisioner(t *testing.T) {
	w := newWorld(t)
	w.run()
	older := provisioner("older", func(p *v1alpha5.Provisioner) {
		p.Spec.Labels = map[string]string{"team": "blue"}
		p.Annotations = map[string]string{"tenon.sh/evictions-per-hour": "7"}
	})
	w.create(older)
	w.is(older, "Translated=True Translated", "NodePool older", "KWOKNodeClass provisioner-older")
	w.is(older, "Ready=True Ready")
	if older.Status.NodePool != "older" || older.Status.NodeClass != "KWOKNodeClass/provisioner-older" {
		t.Errorf("the status is %+v", older.Status)
	}
	pool := w.pool("older")
	if !metav1.IsControlledBy(pool, older) || pool.Labels["tenon.sh/provisioner"] != "older" ||
		pool.Annotations["tenon.sh/evictions-per-hour"] != "7" {
		t.Errorf("the pool's metadata are %+v", pool.ObjectMeta)
	}

	// A pod may select by the label of that generation.
	w.create(w.pod("here", "1", func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{v1.ProvisionerNameLabelKey: "older", "team": "blue"}
	}))
	w.eventually(w.allRunning(1))
	for _, n := range w.nodes() {
		if n.Labels[v1.ProvisionerNameLabelKey] != "older" || n.Labels[v1.NodePoolLabelKey] != "older" ||
			n.Labels[v1.CapacityTypeLabelKey] != "on-demand" {
			t.Errorf("node %s has the labels %v", n.Name, n.Labels)
		}
	}
	w.eventually(func() string {
		w.must(w.c.Get(w.ctx, client.ObjectKeyFromObject(older), older))
		if older.Status.Resources.Cpu().IsZero() {
			return "the Provisioner's status does not say what its nodes have"
		}
		return ""
	})
	w.putBack(older)
	w.wrongProvisioners()

	// Whoever deletes the Provisioner drains its nodes.
	w.must(w.c.Delete(w.ctx, older))
	w.eventually(w.nothingLeft)
	w.eventually(func() string {
		if err := w.c.Get(w.ctx, client.ObjectKey{Name: "older"}, &v1.NodePool{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the NodePool is still there (%v)", err)
		}
		return ""
	})
}

// putBack changes what was made from a Provisioner by hand, and then the Provisioner.
func (w *world) putBack(older *v1alpha5.Provisioner) {
	w.Helper()
	pool := w.pool(older.Name)
	before := pool.DeepCopy()
	weight := int32(50)
	pool.Spec.Weight, pool.Spec.Template.Spec.ExpireAfter, pool.Labels = &weight, v1.NillableDuration{Raw: "1h"}, nil
	w.must(w.c.Patch(w.ctx, pool, client.MergeFrom(before)))
	w.eventually(func() string {
		if p := w.pool(older.Name); p.Spec.Weight != nil || p.Spec.Template.Spec.ExpireAfter.String() != "Never" ||
			p.Labels["tenon.sh/provisioner"] != "older" {
			return fmt.Sprintf("the pool is still %+v", p.Spec)
		}
		return ""
	})
	w.eventually(func() string {
		if len(w.messages("ChangePutBack", older.Name)) == 0 {
			return "no event says that the change was put back"
		}
		return ""
	})
	changed := older.DeepCopy()
	changed.Spec.Weight = &weight
	w.must(w.c.Patch(w.ctx, changed, client.MergeFrom(older)))
	w.eventually(func() string {
		if p := w.pool(older.Name); p.Spec.Weight == nil || *p.Spec.Weight != weight {
			return "the pool does not have the Provisioner's weight"
		}
		return ""
	})
	if got := w.messages("ChangePutBack", older.Name); len(got) != 1 {
		w.Errorf("a change of the Provisioner counts as one by hand: %v", got)
	}
}

// wrongProvisioners makes Provisioners that can't be used.
func (w *world) wrongProvisioners() {
	w.Helper()
	theirs := nodePool("taken")
	w.create(nodeClass("default"), theirs)
	taken := provisioner("taken")
	w.create(taken)
	w.is(taken, "Translated=False NameTaken", "NodePool taken exists already", "another name")
	if p := w.pool("taken"); len(p.OwnerReferences) > 0 || p.Labels["tenon.sh/provisioner"] != "" {
		w.Errorf("somebody else's pool was touched: %+v", p.ObjectMeta)
	}
	w.must(w.c.Delete(w.ctx, theirs))
	w.is(taken, "Ready=True Ready")

	invalid := provisioner("invalid", func(p *v1alpha5.Provisioner) {
		p.Spec.Requirements = []corev1.NodeSelectorRequirement{{Key: v1.ProvisionerNameLabelKey,
			Operator: corev1.NodeSelectorOpExists}}
	})
	w.create(invalid)
	w.is(invalid, "Translated=False InvalidProvisioner", "spec.requirements[0].key", "remove this requirement")
	w.is(invalid, "Ready=False InvalidProvisioner")
	w.eventually(func() string {
		if len(w.messages("InvalidProvisioner", "invalid")) != 1 {
			return "no event says what is wrong"
		}
		return ""
	})
	// What only the API server can tell is told, too.
	refused := provisioner("refused", func(p *v1alpha5.Provisioner) {
		p.Spec.Labels = map[string]string{"karpenter.sh/mine": "a"}
	})
	w.create(refused)
	w.is(refused, "Translated=False RefusedByAPIServer", "reserved domain karpenter.sh")
	for _, p := range []*v1alpha5.Provisioner{taken, invalid, refused} {
		w.must(w.c.Delete(w.ctx, p))
	}
}

// TestDoNotEvict: a pod that was told to stay in the words of that generation stays.
func TestDoNotEvict(t *testing.T) {
	w := newWorld(t)
	w.run("--evictions-per-hour=0")
	w.create(provisioner("older", func(p *v1alpha5.Provisioner) {
		on := true
		p.Spec.Consolidation = &v1alpha5.Consolidation{Enabled: &on}
	}))
	big := func(name string, change func(*corev1.Pod)) *corev1.Pod { return w.pod(name, "3", change) }
	w.create(big("stays", func(p *corev1.Pod) {
		p.Annotations = map[string]string{v1.DoNotEvictAnnotationKey: "true"}
	}))
	w.eventually(w.allRunning(1))
	held := w.nodes()[0]
	w.must(w.c.Delete(w.ctx, &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "older"}}))
	w.eventually(func() string {
		for _, m := range w.messages("FailedDraining", held.Name) {
			if strings.Contains(m, "stays") {
				return ""
			}
		}
		return "no event says that the pod keeps the node from being drained"
	})
	w.eventually(w.allRunning(1))
}

// TestDoNotConsolidate: a node that was told to stay in the words of that generation stays, beside another that goes
// for the same saving. Without the annotation it would go, too.
func TestDoNotConsolidate(t *testing.T) {
	w := newWorld(t)
	w.create(provisioner("older", func(p *v1alpha5.Provisioner) {
		on := true
		p.Spec.Consolidation = &v1alpha5.Consolidation{Enabled: &on}
		p.Spec.Requirements = []corev1.NodeSelectorRequirement{
			{Key: kwokv1alpha1.InstanceCPULabelKey, Operator: corev1.NodeSelectorOpLt, Values: []string{"17"}}}
	}))
	fillers := w.deployment("filler", 2, "13") // each leaves room for one of the others
	w.create(fillers, w.deployment("held", 1, "2"), w.deployment("free", 1, "2"))
	w.pending(4)
	w.run("--evictions-per-hour=0")
	w.eventually(w.allRunning(4))
	held, free := w.nodeOf("held"), w.nodeOf("free")
	if held == free || len(w.nodes()) != 2 {
		t.Fatalf("the pods are on %s and %s of %d nodes, want two", held, free, len(w.nodes()))
	}
	annotate := func(value string) {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, v1.DoNotConsolidateAnnotationKey, value)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: held}}
		w.must(w.c.Patch(w.ctx, node, client.RawPatch(types.MergePatchType, patch)))
	}
	annotate(`"true"`)
	w.must(w.c.Delete(w.ctx, fillers, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	w.eventually(w.isGone(free))
	w.eventually(w.allRunning(2))
	w.eventually(w.hears("DisruptionBlocked", held, "do-not-disrupt"))
	if missing := w.isGone(held)(); missing == "" {
		t.Fatalf("node %s is gone, which was not to be consolidated", held)
	}
	annotate("null")
	w.eventually(w.isGone(held))
	w.eventually(w.allRunning(2))
}

// isGone is for eventually: the node is no more.
func (w *world) isGone(node string) func() string {
	return func() string {
		if slices.ContainsFunc(w.nodes(), func(n corev1.Node) bool { return n.Name == node }) {
			return "node " + node + " is still there"
		}
		return ""
	}
}

// TestProvisionersOfTheDocuments: the Provisioners of the founding documents on EC2, with the controller's own rights
// only.
func TestProvisionersOfTheDocuments(t *testing.T) {
	w := newAWSWorld(t)
	asked := w.noteRequests()
	c := w.run("--kubeconfig", w.asServiceAccount(asked.config()))

	// The inflate deployment of the last document, and its Provisioner, which says nothing but an instance profile.
	w.apply(founding+"004-15-provisioner", founding+"004-16-deployment")
	last := provisioner("default")
	w.is(last, "Ready=True Ready")
	w.inflate(5)
	w.eventually(w.allRunning(5))
	for _, n := range w.nodes() {
		if n.Labels[v1.ProvisionerNameLabelKey] != "default" || n.Labels[corev1.LabelArchStable] != "amd64" ||
			n.Labels[v1.CapacityTypeLabelKey] != "on-demand" ||
			!strings.Contains("cmr", n.Labels[awsv1.InstanceCategoryLabelKey]) {
			t.Errorf("node %s has the labels %v", n.Name, n.Labels)
		}
	}
	for _, i := range w.alive() {
		if !strings.HasSuffix(i.Profile, "KarpenterNodeInstanceProfile-my-cluster") {
			t.Errorf("instance %s acts as %s", i.ID, i.Profile)
		}
	}
	w.step("the pods of the last document run")
	w.inflate(0)
	w.eventually(w.nothingLeft) // ttlSecondsAfterEmpty: 30
	w.step("its nodes are gone")
	w.must(w.c.Delete(w.ctx, last))
	w.eventually(func() string {
		if err := w.c.Get(w.ctx, client.ObjectKey{Name: "provisioner-default"},
			&awsv1.EC2NodeClass{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the EC2NodeClass is still there (%v)", err)
		}
		return ""
	})

	// The second document: a taint, a label, two types, two zones, both capacity types.
	w.apply(founding + "001-02-provisioner")
	w.create(w.pod("special", "1", func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{"billing-team": "my-team"}
		p.Spec.Tolerations = []corev1.Toleration{{Key: "example.com/special-taint",
			Operator: corev1.TolerationOpExists}}
	}))
	w.eventually(w.allRunning(1))
	n := w.nodes()[0]
	if zone := n.Labels[corev1.LabelTopologyZone]; n.Labels[corev1.LabelInstanceTypeStable] != "m5.large" ||
		zone != "us-west-2a" && zone != "us-west-2b" || n.Labels["billing-team"] != "my-team" {
		t.Errorf("the node of the second document has the labels %v", n.Labels)
	}
	w.step("the pod of the second document runs")
	w.templates()
	w.replace("default")
	w.step("the Provisioner has become a pool")
	// Its name is taken now, and deleting it leaves the pool alone.
	w.apply(founding + "001-02-provisioner")
	w.is(provisioner("default"), "Translated=False NameTaken")
	w.must(w.c.Delete(w.ctx, provisioner("default")))
	w.eventually(w.allRunning(1))
	w.must(w.c.Delete(w.ctx, w.pool("default")))
	w.eventually(w.nothingLeft)
	if log := c.log.String(); strings.Contains(log, "is forbidden") {
		t.Errorf("the roles of charts/karpenter/rbac are not enough:\n%s", tail(log, 40))
	}
	granted := w.granted(roleFiles()...)
	for _, what := range []string{"create nodepools.karpenter.sh", "patch provisioners/status.karpenter.sh",
		"watch provisioners.karpenter.sh", "create ec2nodeclasses.karpenter.k8s.aws",
		"delete ec2nodeclasses.karpenter.k8s.aws", "patch awsnodetemplates/status.karpenter.k8s.aws",
		"watch awsnodetemplates.karpenter.k8s.aws"} {
		asked.mu.Lock()
		if !granted[what] || !asked.seen[what] {
			t.Errorf("%s: granted %v, asked for %v", what, granted[what], asked.seen[what])
		}
		asked.mu.Unlock()
	}
}

// replace takes a Provisioner away and leaves what it became, as docs/tasks/migrate-manifests.md tells: no node is
// replaced.
func (w *awsWorld) replace(name string) {
	w.Helper()
	text, err := os.ReadFile(filepath.Join("..", "convert", "testdata", "founding", "001-02-provisioner.yaml"))
	w.must(err)
	result, errs := convert.Convert([]convert.Source{{Name: name, Text: text}}, convert.Options{Cluster: "my-cluster",
		ProvisionerLabel: true})
	w.must(errors.Join(errs...))
	claim, class, pool := w.claims()[0], &awsv1.EC2NodeClass{}, w.pool(name)
	w.must(w.c.Get(w.ctx, client.ObjectKey{Name: "provisioner-" + name}, class))
	w.must(w.c.Delete(w.ctx, provisioner(name), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	w.eventually(func() string {
		if p := w.pool(name); len(p.OwnerReferences) > 0 {
			return "the pool still belongs to the Provisioner"
		}
		return ""
	})
	for i := range result.Documents {
		text, err := result.Documents[i].YAML()
		w.must(err)
		object := &unstructured.Unstructured{}
		w.must(yaml.Unmarshal(text, &object.Object))
		applied, err := yaml.YAMLToJSON(text)
		w.must(err)
		w.must(w.c.Patch(w.ctx, object, client.RawPatch(types.ApplyPatchType, applied), client.FieldOwner("kubectl"),
			client.ForceOwnership))
	}
	if now := w.pool(name); now.Generation != pool.Generation {
		w.Errorf("the manifest makes another pool of it: %+v, not %+v", now.Spec, pool.Spec)
	}
	same := &awsv1.EC2NodeClass{}
	w.must(w.c.Get(w.ctx, client.ObjectKeyFromObject(class), same))
	if same.Generation != class.Generation {
		w.Errorf("the manifest makes another class of it: %+v, not %+v", same.Spec, class.Spec)
	}
	if now := w.claims(); len(now) != 1 || now[0].Name != claim.Name || now[0].DeletionTimestamp != nil {
		w.Errorf("the nodes are others: %+v", now)
	}
}

// inflate scales the deployment of the last document.
func (w *awsWorld) inflate(n int32) {
	w.Helper()
	d := w.deployment("inflate", n, "1")
	w.must(w.c.Patch(w.ctx, d, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n))))
}

// templates lets a Provisioner change from settings of its own to those of an AWSNodeTemplate, and back to a class of
// its own for its kubelet settings.
func (w *awsWorld) templates() {
	w.Helper()
	apart := provisioner("apart", func(p *v1alpha5.Provisioner) {
		p.Spec.Provider, p.Spec.ProviderRef = nil, &v1alpha5.ProviderRef{Name: "shared"}
	})
	w.create(apart)
	w.is(apart, "Translated=False AWSNodeTemplateNotFound", "shared", "create it")
	template := &awsv1alpha1.AWSNodeTemplate{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	template.Spec.SubnetSelector = map[string]string{"karpenter.sh/discovery": "my-cluster"}
	template.Spec.SecurityGroupSelector = map[string]string{"karpenter.sh/discovery": "my-cluster"}
	w.create(template)
	w.is(template, "Ready=True Ready")
	w.is(apart, "Ready=True Ready")
	if ref := w.pool("apart").Spec.Template.Spec.NodeClassRef; ref.Name != "shared" {
		w.Errorf("the pool uses %v", ref)
	}
	change := func(f func(*v1alpha5.Provisioner)) {
		w.Helper()
		w.must(w.c.Get(w.ctx, client.ObjectKeyFromObject(apart), apart))
		before := apart.DeepCopy()
		f(apart)
		w.must(w.c.Patch(w.ctx, apart, client.MergeFrom(before)))
	}
	most := int32(20)
	change(func(p *v1alpha5.Provisioner) {
		p.Spec.KubeletConfiguration = &v1alpha5.KubeletConfiguration{MaxPods: &most}
	})
	w.eventually(func() string {
		class := &awsv1.EC2NodeClass{}
		if err := w.c.Get(w.ctx, client.ObjectKey{Name: "provisioner-apart"}, class); err != nil ||
			string(class.Spec.Kubelet["maxPods"].Raw) != "20" {
			return fmt.Sprintf("the class of the kubelet settings is %+v (%v)", class.Spec, err)
		}
		if ref := w.pool("apart").Spec.Template.Spec.NodeClassRef; ref.Name != class.Name {
			return fmt.Sprintf("the pool uses %v", ref)
		}
		return ""
	})
	change(func(p *v1alpha5.Provisioner) { p.Spec.KubeletConfiguration = nil })
	w.eventually(func() string {
		if err := w.c.Get(w.ctx, client.ObjectKey{Name: "provisioner-apart"},
			&awsv1.EC2NodeClass{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the class that nobody needs is still there (%v)", err)
		}
		return ""
	})
	w.must(w.c.Delete(w.ctx, apart))
	w.must(w.c.Delete(w.ctx, template))
}
