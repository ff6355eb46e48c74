// Package convert turns manifests of older generations into manifests of v1, for "tenon convert": Provisioner,
// AWSNodeTemplate, the v1beta1 NodePool, NodeClaim and EC2NodeClass, and pods that use the names of that time.
// Comments, order and quotation marks stay as far as what they belong to stays; whatever else is in the files comes out
// byte for byte as it went in.
//
// It stands on floor 4: it knows what internal/translate and the conversions of api say, and the text of manifests. It
// does no input or output. What means something else in v1 is a note, and what can't be said in v1 is an error that
// names the file, the document, the field and the fix.
package convert

import (
	"fmt"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/api/aws/v1alpha1"
	awsv1beta1 "github.com/tenon-sh/tenon/api/aws/v1beta1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha5"
	"github.com/tenon-sh/tenon/api/karpenter/v1beta1"
	"github.com/tenon-sh/tenon/internal/translate"
)

// Source is a file with manifests.
type Source struct {
	Name string
	Text []byte
}

// Options say for which cluster manifests are converted.
type Options struct {
	// Cluster is the name of the cluster, which selectors and roles follow from that a manifest does not give. If it is
	// empty, they hold a variable, which Tenon knows and Karpenter does not.
	Cluster string
	// InstanceProfile is the one of nodes whose manifest names none.
	InstanceProfile string
	// ProvisionerLabel keeps the label karpenter.sh/provisioner-name on the nodes. Then pools that Tenon has made from
	// Provisioners stay as they are, and their nodes do not drift. Karpenter refuses the label.
	ProvisionerLabel bool
}

// Result is what manifests become.
type Result struct {
	// Documents are the manifests in their order.
	Documents []Document
	// Notes tell what means something else now, one line each.
	Notes []string
	// Manifests is how many of the documents, or of the items of lists, have an apiVersion and a kind.
	Manifests int
}

// Convert converts all documents of the sources. If there is an error, there is no result worth using.
func Convert(sources []Source, o Options) (Result, []error) {
	c := &converter{o: o, templates: map[string]*v1alpha1.AWSNodeTemplate{}, classes: map[string]bool{},
		kubelets: map[string][]poolKubelet{}, origins: map[string]object{}}
	var all []Document
	for _, s := range sources {
		documents, err := read(s)
		if err != nil {
			c.errs = append(c.errs, err)
		}
		all = append(all, documents...)
	}
	for i := range all {
		c.survey(&all[i], root(all[i].tree))
	}
	for i := range all {
		c.document(&all[i])
	}
	return Result{Documents: c.out, Notes: c.notes, Manifests: c.manifests}, c.errs
}

// converter converts one set of documents.
type converter struct {
	o Options
	// templates are the AWSNodeTemplates of the documents, by name.
	templates map[string]*v1alpha1.AWSNodeTemplate
	// classes are the names of the v1beta1 EC2NodeClasses of the documents.
	classes map[string]bool
	// kubelets are the settings of the kubelet of v1beta1 NodePools, by the name of their class.
	kubelets map[string][]poolKubelet
	// origins are the manifests that NodePools and NodeClasses come from, by kind and name.
	origins   map[string]object
	manifests int

	out   []Document
	notes []string
	errs  []error
}

func (c *converter) target() translate.Target {
	return translate.Target{Cloud: translate.AWS, Cluster: c.o.Cluster, InstanceProfile: c.o.InstanceProfile}
}

// object is a manifest in a document: the document itself, or an item of a list.
type object struct {
	in   *Document
	tree *yaml.Node
	// kind and name are those of the manifest.
	apiVersion, kind, name string
}

func (o object) String() string {
	return fmt.Sprintf("%s: document %d (%s %s)", o.in.File, o.in.Number, o.kind, o.name)
}

func newObject(in *Document, tree *yaml.Node) object {
	return object{in: in, tree: tree, apiVersion: text(tree, "apiVersion"), kind: text(tree, "kind"),
		name: text(at(tree, "metadata"), "name")}
}

func (c *converter) note(o object, n translate.Note) {
	c.notes = append(c.notes, fmt.Sprintf("%s: %s", o, n))
}

func (c *converter) fail(o object, err error) {
	c.errs = append(c.errs, fmt.Errorf("%s: %w", o, err))
}

// survey looks for what other documents depend on.
func (c *converter) survey(in *Document, tree *yaml.Node) {
	o := newObject(in, tree)
	switch {
	case isList(o):
		for _, item := range items(tree) {
			c.survey(in, item)
		}
	case o.is(v1alpha1.GroupVersion().String(), v1alpha1.Kind):
		template := &v1alpha1.AWSNodeTemplate{}
		if decode(tree, template) == nil {
			c.templates[o.name] = template
		}
	case o.is(awsv1beta1.GroupVersion().String(), "EC2NodeClass"):
		c.classes[o.name] = true
	case o.is(v1beta1.GroupVersion().String(), "NodePool"):
		c.surveyKubelet(tree)
	}
}

func (o object) is(apiVersion, kind string) bool { return o.apiVersion == apiVersion && o.kind == kind }

// isList tells whether an object is a list of others.
func isList(o object) bool {
	return o.is("v1", "List") || at(o.tree, "items") != nil && at(o.tree,
		"items").Kind == yaml.SequenceNode && len(o.kind) > 4 && o.kind[len(o.kind)-4:] == "List"
}

// document converts one document.
func (c *converter) document(d *Document) {
	o := newObject(d, root(d.tree))
	if isList(o) {
		c.list(d, o)
		return
	}
	made, changed := c.object(o)
	if !changed {
		c.out = append(c.out, *d)
		return
	}
	for i, tree := range made {
		out := Document{File: d.File, Number: d.Number,
			tree: &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{tree}}, changed: true}
		if i == 0 {
			out.lead = d.lead
			out.tree.HeadComment, out.tree.FootComment = d.tree.HeadComment, d.tree.FootComment
		}
		if i == len(made)-1 {
			out.tail = d.tail
		}
		c.out = append(c.out, out)
	}
}

// list converts the items of a list.
func (c *converter) list(d *Document, o object) {
	var all []*yaml.Node
	changes := false
	for _, item := range items(o.tree) {
		made, changed := c.object(newObject(d, item))
		if !changed {
			made = []*yaml.Node{item}
		}
		changes = changes || changed
		all = append(all, made...)
	}
	out := *d
	if changes {
		at(o.tree, "items").Content = all
		if !o.is("v1", "List") {
			// The items have a version that the list does not.
			at(o.tree, "apiVersion").Value, at(o.tree, "kind").Value = "v1", "List"
		}
		out.changed = true
	}
	c.out = append(c.out, out)
}

// object converts one manifest; changed is false if it stays as it is.
func (c *converter) object(o object) (made []*yaml.Node, changed bool) {
	if o.apiVersion != "" && o.kind != "" {
		c.manifests++
	}
	made, changed = c.become(o)
	for _, tree := range made {
		c.apart(o, newObject(o.in, tree))
	}
	return made, changed
}

// apart refuses two manifests of different kinds that become the same object: whichever is applied last would win.
func (c *converter) apart(from, made object) {
	if group, _ := split(made.apiVersion); group != v1alpha5.Group && group != v1alpha1.Group || made.name == "" {
		return
	}
	key := made.kind + " " + made.name
	other, taken := c.origins[key]
	switch {
	case !taken:
		c.origins[key] = from
	case other.kind != from.kind:
		c.fail(from, fmt.Errorf("metadata.name %q: %s becomes %s, too; give one of them another name, or leave one out",
			from.name, other, key))
	}
}

// become is what a manifest becomes.
func (c *converter) become(o object) (made []*yaml.Node, changed bool) {
	switch {
	case o.is(v1alpha5.GroupVersion().String(), v1alpha5.Kind):
		return c.provisioner(o), true
	case o.is(v1alpha1.GroupVersion().String(), v1alpha1.Kind):
		return c.template(o), true
	case o.is(v1beta1.GroupVersion().String(), "NodePool"):
		return c.betaPool(o), true
	case o.is(v1beta1.GroupVersion().String(), "NodeClaim"):
		return c.betaClaim(o), true
	case o.is(awsv1beta1.GroupVersion().String(), "EC2NodeClass"):
		return c.betaClass(o), true
	case c.unknown(o):
		return nil, true
	default:
		return []*yaml.Node{o.tree}, c.workload(o)
	}
}

// unknown refuses versions of ours that nobody can convert.
func (c *converter) unknown(o object) bool {
	group, version := split(o.apiVersion)
	if group != v1alpha5.Group && group != v1alpha1.Group || version == "v1" || version == "v1alpha1" &&
		o.kind == "NodeOverlay" {
		return false
	}
	c.fail(o,
		fmt.Errorf("apiVersion %q with kind %q can't be converted; known are Provisioner, AWSNodeTemplate, and "+
			"NodePool, NodeClaim and EC2NodeClass of v1beta1",
			o.apiVersion, o.kind))
	return true
}

// problems reports what can't be said.
func (c *converter) problems(o object, list []translate.Problem) {
	for _, p := range list {
		c.fail(o, fmt.Errorf("%s", p))
	}
}

// provisioner converts a Provisioner.
func (c *converter) provisioner(o object) []*yaml.Node {
	p := &v1alpha5.Provisioner{}
	if err := decode(o.tree, p); err != nil {
		c.fail(o, err)
		return nil
	}
	pool, problems := translate.Provisioner(p, c.templates[translate.TemplateOf(p)], c.target())
	if len(problems) > 0 {
		c.problems(o, problems)
		return nil
	}
	if !c.o.ProvisionerLabel {
		labels := pool.NodePool.Spec.Template.Labels
		delete(labels, "karpenter.sh/provisioner-name")
		if len(labels) == 0 {
			pool.NodePool.Spec.Template.Labels = nil
		}
		pool.Notes = append(pool.Notes, translate.Note{Field: "metadata.name",
			Text: "nodes no longer carry karpenter.sh/provisioner-name; pods that select by it must select by " +
				"karpenter.sh/nodepool (--provisioner-label keeps it)"})
	}
	pool.NodePool.ObjectMeta = p.ObjectMeta
	clean(&pool.NodePool.ObjectMeta)
	out := []*yaml.Node{c.write(o, pool.NodePool, provisionerPaths(), pool.Notes)}
	if pool.Class != nil {
		out = append(out, c.write(o, pool.Class, providerPaths(), pool.Notes))
	}
	for _, n := range pool.Notes {
		c.note(o, n)
	}
	return out
}

// template converts an AWSNodeTemplate.
func (c *converter) template(o object) []*yaml.Node {
	t := &v1alpha1.AWSNodeTemplate{}
	if err := decode(o.tree, t); err != nil {
		c.fail(o, err)
		return nil
	}
	class, notes, problems := translate.AWSNodeTemplate(t, c.target())
	if len(problems) > 0 {
		c.problems(o, problems)
		return nil
	}
	for _, n := range notes {
		c.note(o, n)
	}
	class.ObjectMeta = t.ObjectMeta
	clean(&class.ObjectMeta)
	return []*yaml.Node{c.write(o, class, templatePaths(), notes)}
}

// write is an object as a tree, with the comments of what it came from. Notes stand where they belong.
func (c *converter) write(o object, object client.Object, paths []path, notes []translate.Note) *yaml.Node {
	tree, err := encode(object)
	if err != nil {
		c.fail(o, err)
		return nil
	}
	inOrder(tree)
	for _, p := range paths {
		p.graft(tree, o.tree)
	}
	for _, n := range notes {
		if n.At != "" {
			comment(tree, n.At, n.Text)
		}
	}
	return tree
}
