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
	"github.com/tenon-sh/tenon/internal/require"
)

// defaultSpread is what pods get that have no topology spread constraints of their own, and what their selectors are
// deduced from. kube-scheduler takes the labels by which the Services of the namespace select the pod, and the selector
// of the ReplicaSet, StatefulSet or ReplicationController that controls it; a pod for which nothing is found gets none.
type defaultSpread struct {
	constraints []corev1.TopologySpreadConstraint
	services    map[string]map[string]map[string]string // selectors, by namespace and name
	controllers map[controller]controllerSelector
	pods        map[string]*defaulted // by UID
	inNamespace map[string]map[string]bool
	controlled  map[controller]map[string]bool
}

// defaulted is a pod without constraints of its own: what its class is made from, to make it anew when Services or its
// controller change.
type defaulted struct {
	base       *recipe // without the defaults, and without volumes
	namespace  string
	controller controller
}

// controller names who controls a pod. kube-scheduler looks it up by its name, not by its UID.
type controller struct{ kind, namespace, name string }

// controllerSelector is what a controller adds. The labels of a ReplicationController replace those of Services; the
// selector of the other kinds is asked for besides.
type controllerSelector struct {
	replace map[string]string
	besides require.Set
}

// SpreadByDefault gives topology spread constraints to pods that have none of their own. It comes before anything is
// taken in; without constraints it does nothing.
func (b *Book) SpreadByDefault(constraints []corev1.TopologySpreadConstraint) {
	if len(constraints) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.defaults = &defaultSpread{
		constraints: constraints, services: make(map[string]map[string]map[string]string),
		controllers: make(map[controller]controllerSelector), pods: make(map[string]*defaulted),
		inNamespace: make(map[string]map[string]bool), controlled: make(map[controller]map[string]bool),
	}
}

// AlsoWatched are the kinds that only this book's settings make it watch; they are for Prepare.
func (b *Book) AlsoWatched() []client.Object {
	if b.defaults == nil {
		return nil
	}
	return []client.Object{&corev1.Service{}}
}

// watchDefaults watches what the selectors of default constraints are deduced from, if there are any. Controllers are
// watched for how many pods they want already.
func (b *Book) watchDefaults(w *watcher) {
	for _, obj := range b.AlsoWatched() {
		w.watch(obj, func(obj any) { b.SetService(obj.(*corev1.Service)) },
			func(obj client.Object) { b.DeleteService(obj.GetNamespace(), obj.GetName()) })
	}
}

// notSpread is what is made of a selector that is too long.
const notSpread = "it does not count for default spread constraints; select pods by a label that they share"

// SetService takes in a Service: which pods it selects.
func (b *Book) SetService(s *corev1.Service) {
	if b.defaults == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setService(s.Namespace, s.Name, s.Spec.Selector)
	b.tellTooLong("Service", s, notSpread)
}

// DeleteService takes in that a Service is gone.
func (b *Book) DeleteService(namespace, name string) {
	if b.defaults == nil {
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
	d := b.defaults
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
		if p, found := b.pods.get(uid); found && (serves(old, p.Labels) || serves(selector, p.Labels)) {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	b.renew(uids, b.spreadAnew)
}

// SetController takes in a workload: which pods it selects.
func (b *Book) SetController(obj client.Object) {
	if b.defaults == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if kind, s := b.controllerSelector(obj); kind != "" {
		b.controllerIs(controller{kind, obj.GetNamespace(), obj.GetName()}, s)
		b.tellTooLong(kind, obj, notSpread)
	}
}

// DeleteController takes in that a workload is gone.
func (b *Book) DeleteController(obj client.Object) {
	if b.defaults == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if kind, _ := b.controllerSelector(obj); kind != "" {
		b.controllerIs(controller{kind, obj.GetNamespace(), obj.GetName()}, controllerSelector{})
		b.forgetNote(kind, obj.GetNamespace()+"/"+obj.GetName())
	}
}

// controllerSelector reads a workload's kind and selector; no kind for those that kube-scheduler does not ask. The lock
// is held.
func (b *Book) controllerSelector(obj client.Object) (kind string, s controllerSelector) {
	switch w := obj.(type) {
	case *appsv1.ReplicaSet:
		return "ReplicaSet", controllerSelector{besides: b.besides(w.Spec.Selector)}
	case *appsv1.StatefulSet:
		return "StatefulSet", controllerSelector{besides: b.besides(w.Spec.Selector)}
	case *corev1.ReplicationController:
		return "ReplicationController", controllerSelector{replace: w.Spec.Selector}
	}
	return "", controllerSelector{}
}

// controllerIs notes a controller's selector. The lock is held.
func (b *Book) controllerIs(c controller, s controllerSelector) {
	d := b.defaults
	old := d.controllers[c]
	if maps.Equal(old.replace, s.replace) && old.besides.String() == s.besides.String() {
		return
	}
	if len(s.replace) == 0 && len(s.besides) == 0 {
		delete(d.controllers, c)
	} else {
		d.controllers[c] = s
	}
	b.renew(sortedKeys(d.controlled[c]), b.spreadAnew)
}

// besides reads the selector of a controller; one that selects nothing or can't be read says nothing. The lock is held.
func (b *Book) besides(in *metav1.LabelSelector) require.Set {
	r := &ruleReader{book: b}
	s := r.labelSelector(in)
	if s.Nothing || len(r.bad) > 0 {
		return nil
	}
	return s.Labels
}

// baseOf finds or makes the recipe of a pod with the default constraints, its volumes left aside. The lock is held.
func (b *Book) baseOf(p *cluster.Pod, pod *corev1.Pod) *recipe {
	base := b.shapeOf(&pod.ObjectMeta, &pod.Spec, &pod.Status)
	d := b.defaults
	if d == nil {
		return base
	}
	d.forget(p.UID)
	if len(pod.Spec.TopologySpreadConstraints) > 0 {
		return base
	}
	e := &defaulted{base: base, namespace: p.Namespace, controller: controllerOf(pod)}
	d.pods[p.UID] = e
	enlist(d.inNamespace, e.namespace, p.UID)
	if e.controller.kind != "" {
		enlist(d.controlled, e.controller, p.UID)
	}
	return b.spreadByDefault(p, e)
}

// forget drops what is kept of a pod; there may be no defaults at all.
func (d *defaultSpread) forget(uid string) {
	if d == nil || d.pods[uid] == nil {
		return
	}
	e := d.pods[uid]
	delete(d.pods, uid)
	strike(d.inNamespace, e.namespace, uid)
	strike(d.controlled, e.controller, uid)
}

func enlist[K comparable](index map[K]map[string]bool, key K, uid string) {
	if index[key] == nil {
		index[key] = make(map[string]bool)
	}
	index[key][uid] = true
}

func strike[K comparable](index map[K]map[string]bool, key K, uid string) {
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

// spreadAnew gives a pod its class by what is known now of Services and its controller. The lock is held.
func (b *Book) spreadAnew(p *cluster.Pod) {
	base := b.spreadByDefault(p, b.defaults.pods[p.UID])
	if m := b.mounts[p.UID]; m != nil {
		m.base = base
		b.fill(p, m)
		return
	}
	p.Class = b.classOf(base)
}

// spreadByDefault finds or makes the recipe of a pod with the default constraints. The lock is held.
func (b *Book) spreadByDefault(p *cluster.Pod, e *defaulted) *recipe {
	labels := b.defaults.deduce(p, e.controller)
	if len(labels) == 0 {
		return e.base
	}
	s := cluster.Selector{Labels: labels, Namespaces: []string{p.Namespace}}
	text := new(strings.Builder)
	text.WriteString("spread by default ")
	selectorText(text, &s)
	key := mountKey{base: e.base, text: text.String()}
	if r := b.mountedRecipes[key]; r != nil {
		return r
	}
	reader := &ruleReader{book: b, rules: slices.Clone(e.base.rules), wishes: slices.Clone(e.base.wishes)}
	for i := range b.defaults.constraints {
		reader.spreadOver(&b.defaults.constraints[i], s)
	}
	reader.sortRules()
	r := *e.base
	r.class, r.rules, r.wishes = nil, reader.rules, reader.wishes
	b.mountedRecipes[key] = &r
	return &r
}

// deduce finds out by which labels the pods are counted that a pod is to be spread with; none if there is nothing, or
// if Services and its controller together name more labels and values than are read of a pod's own constraints.
func (d *defaultSpread) deduce(p *cluster.Pod, c controller) require.Set {
	merged := make(map[string]string)
	for _, selector := range d.services[p.Namespace] {
		if serves(selector, p.Labels) {
			maps.Copy(merged, selector) // they all match the pod, so they agree
		}
	}
	told := d.controllers[c]
	maps.Copy(merged, told.replace)
	if len(merged)+len(told.besides) > mostSelectorParts {
		return nil
	}
	entries := make([]require.Entry, 0, len(merged))
	for key, value := range merged {
		entries = append(entries, require.Entry{Key: key, Values: require.Only(value)})
	}
	return told.besides.And(require.Of(entries))
}

// serves reports whether a Service with this selector selects pods with these labels.
func serves(selector map[string]string, labels cluster.Labels) bool {
	for key, want := range selector {
		if value, has := labels.Get(key); !has || value != want {
			return false
		}
	}
	return len(selector) > 0
}
