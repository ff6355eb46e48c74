package defaultspread

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
	"github.com/tenon-sh/tenon/internal/require"
)

// Spread is what pods get that have no topology spread constraints of their own, and what their selectors are
// deduced from. kube-scheduler takes the labels by which the Services of the namespace select the pod, and the selector
// of the ReplicaSet, StatefulSet or ReplicationController that controls it; a pod for which nothing is found gets none.
type Spread struct {
	// Constraints are those that pods get.
	Constraints []corev1.TopologySpreadConstraint
	services    map[string]map[string]map[string]string // selectors, by namespace and name
	controllers map[controller]controllerSelector
	pods        map[string]*podWithDefaults // by UID
	inNamespace map[string]map[string]bool
	podsOf      map[controller]map[string]bool
}

// New gives constraints to pods that have none of their own.
func New(constraints []corev1.TopologySpreadConstraint) *Spread {
	return &Spread{
		Constraints: constraints, services: make(map[string]map[string]map[string]string),
		controllers: make(map[controller]controllerSelector), pods: make(map[string]*podWithDefaults),
		inNamespace: make(map[string]map[string]bool), podsOf: make(map[controller]map[string]bool),
	}
}

// podWithDefaults is a pod without constraints of its own: what its class is made from, to make it anew when Services
// or its controller change.
type podWithDefaults struct {
	base       *podspec.Spec // without the defaults, and without volumes
	namespace  string
	controller controller
}

// controller names who controls a pod. kube-scheduler looks it up by its name, not by its UID.
type controller struct{ kind, namespace, name string }

// controllerSelector is what a controller adds. The labels of a ReplicationController replace those of Services; the
// selector of the other kinds is asked for besides.
type controllerSelector struct {
	replace map[string]string
	extra   require.Set
}

// SetService notes a Service's selector, and returns the pods that are to be read again. One without labels selects
// nothing, or adds nothing, which is the same here. labelsOf finds the labels of a pod.
func (d *Spread) SetService(namespace, name string, selector map[string]string,
	labelsOf func(uid string) cluster.Labels) (uids []string) {
	old := d.services[namespace][name]
	if maps.Equal(old, selector) {
		return nil
	}
	delete(d.services[namespace], name)
	switch {
	case len(selector) > 0 && d.services[namespace] == nil:
		d.services[namespace] = map[string]map[string]string{name: selector}
	case len(selector) > 0:
		d.services[namespace][name] = selector
	case len(d.services[namespace]) == 0:
		delete(d.services, namespace)
	}
	for uid := range d.inNamespace[namespace] {
		if labels := labelsOf(uid); serviceSelects(old, labels) || serviceSelects(selector, labels) {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}

// selectorOf reads a workload's selector.
func selectorOf(obj client.Object) controllerSelector {
	switch w := obj.(type) {
	case *appsv1.ReplicaSet:
		return controllerSelector{extra: selectorLabels(w.Spec.Selector)}
	case *appsv1.StatefulSet:
		return controllerSelector{extra: selectorLabels(w.Spec.Selector)}
	case *corev1.ReplicationController:
		return controllerSelector{replace: w.Spec.Selector}
	}
	return controllerSelector{}
}

// KindOf is the kind of a workload that pods are spread with; empty for those that kube-scheduler does not ask.
func KindOf(obj client.Object) string {
	switch obj.(type) {
	case *appsv1.ReplicaSet:
		return "ReplicaSet"
	case *appsv1.StatefulSet:
		return "StatefulSet"
	case *corev1.ReplicationController:
		return "ReplicationController"
	}
	return ""
}

// SetController takes in a workload of such a kind, and returns the pods that are to be read again.
func (d *Spread) SetController(obj client.Object) []string {
	return d.put(controller{KindOf(obj), obj.GetNamespace(), obj.GetName()}, selectorOf(obj))
}

// DeleteController takes in that a workload of such a kind is gone, and returns the pods that are to be read again.
func (d *Spread) DeleteController(obj client.Object) []string {
	return d.put(controller{KindOf(obj), obj.GetNamespace(), obj.GetName()}, controllerSelector{})
}

// put notes a controller's selector.
func (d *Spread) put(c controller, s controllerSelector) []string {
	old := d.controllers[c]
	if maps.Equal(old.replace, s.replace) && old.extra.String() == s.extra.String() {
		return nil
	}
	if len(s.replace) == 0 && len(s.extra) == 0 {
		delete(d.controllers, c)
	} else {
		d.controllers[c] = s
	}
	return slices.Sorted(maps.Keys(d.podsOf[c]))
}

// selectorLabels reads the selector of a controller; one that selects nothing or can't be read says nothing.
func selectorLabels(in *metav1.LabelSelector) require.Set {
	s, problems := podspec.ReadSelector(in)
	if s.MatchesNone || len(problems) > 0 {
		return nil
	}
	return s.Labels
}

// Read takes in a pod; base is its spec without the defaults, and without volumes. A pod with constraints of its own
// gets none.
func (d *Spread) Read(pod *corev1.Pod, base *podspec.Spec) {
	uid := string(pod.UID)
	d.Forget(uid)
	if len(pod.Spec.TopologySpreadConstraints) > 0 {
		return
	}
	e := &podWithDefaults{base: base, namespace: pod.Namespace, controller: controllerOf(pod)}
	d.pods[uid] = e
	addToIndex(d.inNamespace, e.namespace, uid)
	if e.controller.kind != "" {
		addToIndex(d.podsOf, e.controller, uid)
	}
}

// Of is the spec that a pod was read with, and which pods it is to be spread with; the text names them, and is empty if
// the pod gets no constraints. There is no base for a pod that was not read, or that has constraints of its own.
func (d *Spread) Of(p *cluster.Pod) (base *podspec.Spec, with cluster.Selector, text string) {
	e := d.pods[p.UID]
	if e == nil {
		return nil, with, ""
	}
	labels := d.deduce(p, e.controller)
	if len(labels) == 0 {
		return e.base, with, ""
	}
	with = cluster.Selector{Labels: labels, Namespaces: []string{p.Namespace}}
	name := new(strings.Builder)
	name.WriteString("spread by default ")
	podspec.SelectorText(name, &with)
	return e.base, with, name.String()
}

// Forget drops what is kept of a pod; there may be no defaults at all.
func (d *Spread) Forget(uid string) {
	if d == nil || d.pods[uid] == nil {
		return
	}
	e := d.pods[uid]
	delete(d.pods, uid)
	removeFromIndex(d.inNamespace, e.namespace, uid)
	removeFromIndex(d.podsOf, e.controller, uid)
}

// Bases yields the specs that pods were read with; there may be no defaults at all.
func (d *Spread) Bases(yield func(*podspec.Spec) bool) {
	if d == nil {
		return
	}
	for _, e := range d.pods {
		if !yield(e.base) {
			return
		}
	}
}

// Entries is how many entries about pods and Services are kept.
func (d *Spread) Entries() int {
	return len(d.pods) + len(d.inNamespace) + len(d.podsOf) + len(d.services)
}

func addToIndex[K comparable](index map[K]map[string]bool, key K, uid string) {
	if index[key] == nil {
		index[key] = make(map[string]bool)
	}
	index[key][uid] = true
}

func removeFromIndex[K comparable](index map[K]map[string]bool, key K, uid string) {
	delete(index[key], uid)
	if len(index[key]) == 0 {
		delete(index, key)
	}
}

// controllerOf names the pod's controller, if it is of a kind that is asked for its selector.
func controllerOf(pod *corev1.Pod) controller {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return controller{}
	}
	switch owner.APIVersion + " " + owner.Kind {
	case "apps/v1 ReplicaSet", "apps/v1 StatefulSet", "v1 ReplicationController":
		return controller{owner.Kind, pod.Namespace, owner.Name}
	}
	return controller{}
}

// deduce finds out by which labels the pods are counted that a pod is to be spread with; none if there is nothing, or
// if Services and its controller together name more labels and values than are read of a pod's own constraints.
func (d *Spread) deduce(p *cluster.Pod, c controller) require.Set {
	merged := make(map[string]string)
	for _, selector := range d.services[p.Namespace] {
		if serviceSelects(selector, p.Labels) {
			maps.Copy(merged, selector) // they all match the pod, so they agree
		}
	}
	told := d.controllers[c]
	maps.Copy(merged, told.replace)
	if len(merged)+len(told.extra) > decode.MostSelectorParts {
		return nil
	}
	entries := make([]require.Entry, 0, len(merged))
	for key, value := range merged {
		entries = append(entries, require.Entry{Key: key, Values: require.Only(value)})
	}
	return told.extra.And(require.Of(entries))
}

// serviceSelects reports whether a Service with this selector selects pods with these labels.
func serviceSelects(selector map[string]string, labels cluster.Labels) bool {
	for key, want := range selector {
		if value, has := labels.Get(key); !has || value != want {
			return false
		}
	}
	return len(selector) > 0
}
