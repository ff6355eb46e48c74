package ingest

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

// defaultSpread is what pods get that have no topology spread constraints of their own, and what their selectors are
// deduced from. kube-scheduler takes the labels by which the Services of the namespace select the pod, and the selector
// of the ReplicaSet, StatefulSet or ReplicationController that controls it; a pod for which nothing is found gets none.
type defaultSpread struct {
	constraints []corev1.TopologySpreadConstraint
	services    map[string]map[string]map[string]string // selectors, by namespace and name
	controllers map[controller]controllerSelector
	pods        map[string]*podWithDefaults // by UID
	inNamespace map[string]map[string]bool
	podsOf      map[controller]map[string]bool
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

// SetDefaultSpread gives topology spread constraints to pods that have none of their own. It comes before anything is
// taken in; without constraints it does nothing.
func (b *Book) SetDefaultSpread(constraints []corev1.TopologySpreadConstraint) {
	if len(constraints) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spreadDefaults = &defaultSpread{
		constraints: constraints, services: make(map[string]map[string]map[string]string),
		controllers: make(map[controller]controllerSelector), pods: make(map[string]*podWithDefaults),
		inNamespace: make(map[string]map[string]bool), podsOf: make(map[controller]map[string]bool),
	}
}

// ExtraKinds are the kinds that only this book's settings make it watch; they are for Prepare.
func (b *Book) ExtraKinds() []client.Object {
	if b.spreadDefaults == nil {
		return nil
	}
	return []client.Object{&corev1.Service{}}
}

// watchDefaults watches what the selectors of default constraints are deduced from, if there are any. Controllers are
// watched for how many pods they want already.
func (b *Book) watchDefaults(w *watcher) {
	for _, obj := range b.ExtraKinds() {
		w.watch(obj, func(obj any) { b.SetService(obj.(*corev1.Service)) },
			func(obj client.Object) { b.DeleteService(obj.GetNamespace(), obj.GetName()) })
	}
}

// notSpread is what is made of a selector that is too long.
const notSpread = "it does not count for default spread constraints; select pods by a label that they share"

// SetService takes in a Service: which pods it selects.
func (b *Book) SetService(s *corev1.Service) {
	if b.spreadDefaults == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setService(s.Namespace, s.Name, s.Spec.Selector)
	b.tellTooLong("Service", s, notSpread)
}

// DeleteService takes in that a Service is gone.
func (b *Book) DeleteService(namespace, name string) {
	if b.spreadDefaults == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setService(namespace, name, nil)
	b.forgetNote("Service", namespace+"/"+name)
}

// setService notes a Service's selector. One without labels selects nothing, or adds nothing, which is the same here.
// The lock is held.
func (b *Book) setService(namespace, name string, selector map[string]string) {
	d := b.spreadDefaults
	old := d.services[namespace][name]
	if maps.Equal(old, selector) {
		return
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
	var uids []string
	for uid := range d.inNamespace[namespace] {
		if p, found := b.pods.get(uid); found && (serviceSelects(old, p.Labels) || serviceSelects(selector, p.Labels)) {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	b.refreshPods(uids, b.refreshDefaultSpread)
}

// SetController takes in a workload: which pods it selects.
func (b *Book) SetController(obj client.Object) {
	if b.spreadDefaults == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if kind, s := b.controllerSelector(obj); kind != "" {
		b.putController(controller{kind, obj.GetNamespace(), obj.GetName()}, s)
		b.tellTooLong(kind, obj, notSpread)
	}
}

// DeleteController takes in that a workload is gone.
func (b *Book) DeleteController(obj client.Object) {
	if b.spreadDefaults == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if kind, _ := b.controllerSelector(obj); kind != "" {
		b.putController(controller{kind, obj.GetNamespace(), obj.GetName()}, controllerSelector{})
		b.forgetNote(kind, obj.GetNamespace()+"/"+obj.GetName())
	}
}

// controllerSelector reads a workload's kind and selector; no kind for those that kube-scheduler does not ask. The lock
// is held.
func (b *Book) controllerSelector(obj client.Object) (kind string, s controllerSelector) {
	switch w := obj.(type) {
	case *appsv1.ReplicaSet:
		return "ReplicaSet", controllerSelector{extra: b.selectorLabels(w.Spec.Selector)}
	case *appsv1.StatefulSet:
		return "StatefulSet", controllerSelector{extra: b.selectorLabels(w.Spec.Selector)}
	case *corev1.ReplicationController:
		return "ReplicationController", controllerSelector{replace: w.Spec.Selector}
	}
	return "", controllerSelector{}
}

// putController notes a controller's selector. The lock is held.
func (b *Book) putController(c controller, s controllerSelector) {
	d := b.spreadDefaults
	old := d.controllers[c]
	if maps.Equal(old.replace, s.replace) && old.extra.String() == s.extra.String() {
		return
	}
	if len(s.replace) == 0 && len(s.extra) == 0 {
		delete(d.controllers, c)
	} else {
		d.controllers[c] = s
	}
	b.refreshPods(slices.Sorted(maps.Keys(d.podsOf[c])), b.refreshDefaultSpread)
}

// selectorLabels reads the selector of a controller; one that selects nothing or can't be read says nothing. The lock
// is held.
func (b *Book) selectorLabels(in *metav1.LabelSelector) require.Set {
	s, problems := podspec.ReadSelector(in)
	if s.MatchesNone || len(problems) > 0 {
		return nil
	}
	return s.Labels
}

// specWithDefaults finds or makes the spec of a pod with the default constraints, its volumes left aside. The lock is
// held.
func (b *Book) specWithDefaults(p *cluster.Pod, pod *corev1.Pod) *podspec.Spec {
	base := b.specs.Of(&pod.ObjectMeta, &pod.Spec, &pod.Status)
	d := b.spreadDefaults
	if d == nil {
		return base
	}
	d.forget(p.UID)
	if len(pod.Spec.TopologySpreadConstraints) > 0 {
		return base
	}
	e := &podWithDefaults{base: base, namespace: p.Namespace, controller: controllerOf(pod)}
	d.pods[p.UID] = e
	addToIndex(d.inNamespace, e.namespace, p.UID)
	if e.controller.kind != "" {
		addToIndex(d.podsOf, e.controller, p.UID)
	}
	return b.specSpreadByDefault(p, e)
}

// forget drops what is kept of a pod; there may be no defaults at all.
func (d *defaultSpread) forget(uid string) {
	if d == nil || d.pods[uid] == nil {
		return
	}
	e := d.pods[uid]
	delete(d.pods, uid)
	removeFromIndex(d.inNamespace, e.namespace, uid)
	removeFromIndex(d.podsOf, e.controller, uid)
}

// markUsed marks the specs that pods will be made anew from; there may be no defaults at all.
func (d *defaultSpread) markUsed(specs map[*podspec.Spec]bool) {
	if d != nil {
		for _, e := range d.pods {
			specs[e.base] = true
		}
	}
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

// refreshDefaultSpread gives a pod its class by what is known now of Services and its controller. The lock is held.
func (b *Book) refreshDefaultSpread(p *cluster.Pod) {
	base := b.specSpreadByDefault(p, b.spreadDefaults.pods[p.UID])
	if v := b.mounts.Of(p.UID); v != nil {
		v.Base = base
		b.applyVolumes(p, v)
		return
	}
	p.Class = b.specs.Class(base)
}

// specSpreadByDefault finds or makes the spec of a pod with the default constraints. The lock is held.
func (b *Book) specSpreadByDefault(p *cluster.Pod, e *podWithDefaults) *podspec.Spec {
	labels := b.spreadDefaults.deduce(p, e.controller)
	if len(labels) == 0 {
		return e.base
	}
	s := cluster.Selector{Labels: labels, Namespaces: []string{p.Namespace}}
	text := new(strings.Builder)
	text.WriteString("spread by default ")
	podspec.SelectorText(text, &s)
	return b.specs.Derive(e.base, text.String(), func(r *podspec.Spec) {
		b.specs.AddSpreads(r, b.spreadDefaults.constraints, s)
	})
}

// deduce finds out by which labels the pods are counted that a pod is to be spread with; none if there is nothing, or
// if Services and its controller together name more labels and values than are read of a pod's own constraints.
func (d *defaultSpread) deduce(p *cluster.Pod, c controller) require.Set {
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
