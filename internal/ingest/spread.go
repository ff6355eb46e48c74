package ingest

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/defaultspread"
	"github.com/tenon-sh/tenon/internal/ingest/feed"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
)

// SetDefaultSpread gives topology spread constraints to pods that have none of their own. It comes before anything is
// taken in; without constraints it does nothing.
func (b *Book) SetDefaultSpread(constraints []corev1.TopologySpreadConstraint) {
	if len(constraints) > 0 {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.spreads = defaultspread.New(constraints)
	}
}

// ExtraKinds are the kinds that only this book's settings make it watch; they are for Prepare.
func (b *Book) ExtraKinds() []client.Object {
	if b.spreads == nil {
		return nil
	}
	return []client.Object{&corev1.Service{}}
}

// watchDefaults watches what the selectors of default constraints are deduced from, if there are any. Controllers are
// watched for how many pods they want already.
func (b *Book) watchDefaults(w *feed.Watcher) {
	for _, obj := range b.ExtraKinds() {
		w.Watch(obj, func(obj any) { b.SetService(obj.(*corev1.Service)) },
			func(obj client.Object) { b.DeleteService(obj.GetNamespace(), obj.GetName()) })
	}
}

// notSpread is what is made of a selector that is too long.
const notSpread = "it does not count for default spread constraints; select pods by a label that they share"

// SetService takes in a Service: which pods it selects.
func (b *Book) SetService(s *corev1.Service) {
	if b.spreads == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setService(s.Namespace, s.Name, s.Spec.Selector)
	b.tellTooLong("Service", s, notSpread)
}

// DeleteService takes in that a Service is gone.
func (b *Book) DeleteService(namespace, name string) {
	if b.spreads == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setService(namespace, name, nil)
	b.notes.forget("Service", namespace+"/"+name)
}

func (b *Book) setService(namespace, name string, selector map[string]string) {
	b.refreshPods(b.spreads.SetService(namespace, name, selector, func(uid string) cluster.Labels {
		if p, found := b.pods.Get(uid); found {
			return p.Labels
		}
		return nil
	}), b.refreshDefaultSpread)
}

// SetController takes in a workload: which pods it selects.
func (b *Book) SetController(obj client.Object) {
	kind := defaultspread.KindOf(obj)
	if b.spreads == nil || kind == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refreshPods(b.spreads.SetController(obj), b.refreshDefaultSpread)
	b.tellTooLong(kind, obj, notSpread)
}

// DeleteController takes in that a workload is gone.
func (b *Book) DeleteController(obj client.Object) {
	kind := defaultspread.KindOf(obj)
	if b.spreads == nil || kind == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refreshPods(b.spreads.DeleteController(obj), b.refreshDefaultSpread)
	b.notes.forget(kind, obj.GetNamespace()+"/"+obj.GetName())
}

// specWithDefaults finds or makes the spec of a pod with the default constraints, its volumes left aside. The lock is
// held.
func (b *Book) specWithDefaults(p *cluster.Pod, pod *corev1.Pod) *podspec.Spec {
	base := b.specs.Of(&pod.ObjectMeta, &pod.Spec, &pod.Status)
	if b.spreads == nil {
		return base
	}
	b.spreads.Read(pod, base)
	if spread := b.specSpreadByDefault(p); spread != nil {
		return spread
	}
	return base
}

// refreshDefaultSpread gives a pod its class by what is known now of Services and its controller. The lock is held.
func (b *Book) refreshDefaultSpread(p *cluster.Pod) {
	base := b.specSpreadByDefault(p)
	if v := b.mounts.Of(p.UID); v != nil {
		v.Base = base
		b.applyVolumes(p, v)
		return
	}
	p.Class = b.specs.Class(base)
}

// specSpreadByDefault finds or makes the spec of a pod with the default constraints; nil if it has constraints of its
// own. The lock is held.
func (b *Book) specSpreadByDefault(p *cluster.Pod) *podspec.Spec {
	base, with, text := b.spreads.Of(p)
	if text == "" {
		return base
	}
	return b.specs.Derive(base, text, func(r *podspec.Spec) { b.specs.AddSpreads(r, b.spreads.Constraints, with) })
}
