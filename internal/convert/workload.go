package convert

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/translate"
)

// templates says where the pod of a workload stands.
func templates() map[string]string {
	return map[string]string{
		"Pod": "", "PodTemplate": "template", "ReplicationController": "spec.template", "Deployment": "spec.template",
		"ReplicaSet":  "spec.template",
		"StatefulSet": "spec.template", "DaemonSet": "spec.template", "Job": "spec.template",
		"CronJob": "spec.jobTemplate.spec.template",
	}
}

// renamedAnnotations are the names of the time of Provisioners, and what they are called in v1.
func renamedAnnotations() map[string]string {
	return map[string]string{v1.DoNotEvictAnnotationKey: v1.DoNotDisruptAnnotationKey}
}

// workload gives the pods of a workload the names of v1, in place. It tells whether anything had to change.
func (c *converter) workload(o object) bool {
	where, ok := templates()[o.kind]
	if !ok {
		return c.node(o)
	}
	pod := o.tree
	if where != "" {
		if _, pod = find(o.tree, where); pod == nil {
			return false
		}
		where += "."
	}
	w := &renaming{c: c, o: o}
	if annotations := at(at(pod, "metadata"), "annotations"); annotations != nil {
		for older, newer := range renamedAnnotations() {
			w.key(annotations, older, newer, where+"metadata.annotations")
		}
	}
	if spec := at(pod, "spec"); spec != nil {
		w.spec(spec, where+"spec")
	}
	return w.changed
}

// node renames the annotation of a Node.
func (c *converter) node(o object) bool {
	if o.kind != "Node" || o.apiVersion != "v1" {
		return false
	}
	w := &renaming{c: c, o: o}
	if annotations := at(at(o.tree, "metadata"), "annotations"); annotations != nil {
		w.key(annotations, v1.DoNotConsolidateAnnotationKey, v1.DoNotDisruptAnnotationKey, "metadata.annotations")
	}
	return w.changed
}

// renaming gives parts of a workload other names.
type renaming struct {
	c       *converter
	o       object
	changed bool
}

// key renames a key of a mapping, unless the new one is there already.
func (w *renaming) key(n *yaml.Node, older, newer, field string) {
	key, _ := pair(n, older)
	if key == nil {
		return
	}
	w.changed = true
	w.c.note(w.o, translate.Note{Field: fmt.Sprintf("%s[%s]", field, older), Text: "it is called " + newer + " now"})
	if taken, _ := pair(n, newer); taken != nil {
		remove(n, older)
		return
	}
	key.Value = newer
}

// value renames a text.
func (w *renaming) value(n *yaml.Node, field string) {
	if n == nil || n.Kind != yaml.ScalarNode || n.Value != v1.ProvisionerNameLabelKey {
		return
	}
	n.Value, w.changed = v1.NodePoolLabelKey, true
	w.c.note(w.o,
		translate.Note{Field: field,
			Text: v1.ProvisionerNameLabelKey + " is called " + v1.NodePoolLabelKey + " now; nodes carry the name of " +
				"their NodePool there"})
}

// spec renames the label of Provisioners wherever a pod names labels of nodes.
func (w *renaming) spec(spec *yaml.Node, field string) {
	if selector := at(spec, "nodeSelector"); selector != nil {
		w.key(selector, v1.ProvisionerNameLabelKey, v1.NodePoolLabelKey, field+".nodeSelector")
	}
	w.everyKey(at(at(spec, "affinity"), "nodeAffinity"), field+".affinity.nodeAffinity")
	for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
		w.everyKey(at(at(spec, "affinity"), kind), field+".affinity."+kind)
	}
	if spread := at(spec, "topologySpreadConstraints"); spread != nil {
		w.everyKey(spread, field+".topologySpreadConstraints")
	}
}

// everyKey renames the label wherever an expression or a topology key names it.
func (w *renaming) everyKey(n *yaml.Node, field string) {
	if n = resolve(n); n == nil {
		return
	}
	for i, child := range n.Content {
		switch {
		case n.Kind == yaml.MappingNode && i%2 == 0:
		case n.Kind == yaml.MappingNode && (n.Content[i-1].Value == "key" || n.Content[i-1].Value == "topologyKey"):
			w.value(child, field+"."+n.Content[i-1].Value)
		case n.Kind == yaml.MappingNode && n.Content[i-1].Value != "labelSelector" &&
			n.Content[i-1].Value != "namespaceSelector":
			w.everyKey(child, field+"."+n.Content[i-1].Value)
		case n.Kind == yaml.SequenceNode:
			w.everyKey(child, fmt.Sprintf("%s[%d]", field, i))
		}
	}
}
