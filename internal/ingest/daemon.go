package ingest

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
	"github.com/tenon-sh/tenon/internal/reason"
)

// generationLabel tells from which generation of its DaemonSet's template a pod was made. The set itself has the number
// in an annotation (appsv1.DeprecatedTemplateGeneration).
const generationLabel = "pod-template-generation"

// SetDaemon takes in a DaemonSet: what it will put on every node that it matches.
func (b *Book) SetDaemon(ds *appsv1.DaemonSet) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.daemons.Set(ds) {
		b.tries.AllowFor(ds.Name, b.now())
	}
	b.refreshDaemon(ds)
}

// daemonsNow lists the DaemonSets that count, the highest priority first: one whose pods can run nowhere, or that asks
// for more than is read, would only take room from others. What is left out is told. The lock is held.
func (b *Book) daemonsNow() []*cluster.Daemon {
	return slices.DeleteFunc(b.daemons.InOrder(), func(d *cluster.Daemon) bool {
		note := cluster.Note{Kind: "DaemonSet", Namespace: d.Namespace, Name: d.Name, UID: d.UID, Warning: true}
		tooMany, missing := b.specs.Obstacles(d.Class.Key)
		why := ""
		switch over := b.daemons.TooLong(d.UID); {
		case over != "":
			note.Reason, why = tooLong, over
		case len(tooMany) > 0:
			note.Reason, why = tooLong, strings.Join(tooMany, "; ")
		case len(missing) > 0:
			note.Reason, why = "NotOffered", "its pods ask for "+podspec.NotOfferedMessage(missing)
		default:
			b.notes.forget("DaemonSet", d.UID)
			return false
		}
		note.Text = reason.Said(why + "; no room is kept for the DaemonSet on new nodes")
		b.notes["DaemonSet"+d.UID] = note
		return true
	})
}

// DeleteDaemon takes in that a DaemonSet is gone.
func (b *Book) DeleteDaemon(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ds := b.daemons.Delete(string(uid)); ds != nil {
		b.tries.AllowFor(ds.Name, b.now())
	}
	b.notes.forget("DaemonSet", string(uid))
	b.noteAndWake(change.Room)
}

// refreshDaemon works out what the DaemonSet's next pod will be like. Where it may run is what the template says. What
// it asks for is what the newest pod of the same template asks for; without such a pod it is what the API server will
// make of the template. The lock is held.
func (b *Book) refreshDaemon(ds *appsv1.DaemonSet) {
	meta, spec := b.daemons.Template(ds)
	shape := b.specs.Of(meta, spec, &corev1.PodStatus{})
	if requests, known := b.daemons.Requests(ds); known {
		shape = shape.WithRequests(requests)
	}
	if b.daemons.Put(ds, b.specs.Class(shape)) {
		b.noteAndWake(change.Room)
	}
}

// refreshDaemons works out anew what the next pod of some DaemonSets will be like. The lock is held.
func (b *Book) refreshDaemons(which func(*appsv1.DaemonSet) bool) {
	for _, ds := range b.daemons.Sets(which) {
		b.refreshDaemon(ds)
	}
}

// learnDaemon takes in what a pod of a DaemonSet asks for. The lock is held.
func (b *Book) learnDaemon(p *cluster.Pod, pod *corev1.Pod) {
	if ds := b.daemons.Learn(p, pod.Labels[generationLabel], func() []podspec.Request {
		return b.specs.Of(&pod.ObjectMeta, &pod.Spec, &pod.Status).Requests
	}); ds != nil {
		b.refreshDaemon(ds)
	}
}

// SetLimitRange takes in a LimitRange, whose defaults the pods of its namespace get.
func (b *Book) SetLimitRange(l *corev1.LimitRange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.daemons.SetLimitRange(l)
	b.tellTooLong("LimitRange", l,
		"its defaults are not counted for the pods of DaemonSets; give defaults for fewer resources")
	b.refreshDaemons(func(ds *appsv1.DaemonSet) bool { return ds.Namespace == l.Namespace })
}

// DeleteLimitRange takes in that a LimitRange is gone.
func (b *Book) DeleteLimitRange(namespace, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.daemons.DeleteLimitRange(namespace, name)
	b.notes.forget("LimitRange", namespace+"/"+name)
	b.refreshDaemons(func(ds *appsv1.DaemonSet) bool { return ds.Namespace == namespace })
}

// SetRuntimeClass takes in a RuntimeClass: what its pods take besides, and where they may run.
func (b *Book) SetRuntimeClass(c *nodev1.RuntimeClass) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.daemons.SetRuntimeClass(c)
	b.refreshDaemons(runsAs(c.Name))
}

// DeleteRuntimeClass takes in that a RuntimeClass is gone.
func (b *Book) DeleteRuntimeClass(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.daemons.DeleteRuntimeClass(name)
	b.refreshDaemons(runsAs(name))
}

// SetPriorityClass takes in a PriorityClass.
func (b *Book) SetPriorityClass(c *schedulingv1.PriorityClass) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.daemons.SetPriorityClass(c)
	b.refreshDaemons(usesPriorityClass)
}

// DeletePriorityClass takes in that a PriorityClass is gone.
func (b *Book) DeletePriorityClass(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.daemons.DeletePriorityClass(name)
	b.refreshDaemons(usesPriorityClass)
}

// usesPriorityClass chooses the DaemonSets whose priority depends on PriorityClasses.
func usesPriorityClass(ds *appsv1.DaemonSet) bool { return ds.Spec.Template.Spec.Priority == nil }

// runsAs chooses the DaemonSets whose pods name the RuntimeClass.
func runsAs(class string) func(*appsv1.DaemonSet) bool {
	return func(ds *appsv1.DaemonSet) bool {
		name := ds.Spec.Template.Spec.RuntimeClassName
		return name != nil && *name == class
	}
}
