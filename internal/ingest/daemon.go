package ingest

import (
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
)

// generationLabel tells from which generation of its DaemonSet's template a pod was made. The set itself has the number
// in an annotation (appsv1.DeprecatedTemplateGeneration).
const generationLabel = "pod-template-generation"

// daemonPod is what is known of a DaemonSet's newest pod. It stays known when the pod is gone: the next one will ask
// for the same.
type daemonPod struct {
	uid        string
	created    time.Time
	generation string
	requests   []podspec.Request
}

// SetDaemon takes in a DaemonSet: what it will put on every node that it matches.
func (b *Book) SetDaemon(ds *appsv1.DaemonSet) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.daemonSets[string(ds.UID)]; old == nil || old.Generation != ds.Generation {
		b.tries.AllowFor(ds.Name, b.now())
	}
	b.daemonSets[string(ds.UID)] = ds
	b.refreshDaemon(ds)
}

// daemonsNow lists the DaemonSets that count, the highest priority first: one whose pods can run nowhere, or that asks
// for more than is read, would only take room from others. What is left out is told. The lock is held.
func (b *Book) daemonsNow() []*cluster.Daemon {
	out := slices.SortedFunc(maps.Values(b.daemons), cluster.CompareDaemons)
	return slices.DeleteFunc(out, func(d *cluster.Daemon) bool {
		over := ""
		if ds := b.daemonSets[d.UID]; ds != nil {
			over = decode.TooLongPart(&ds.ObjectMeta)
		}
		note := cluster.Note{Kind: "DaemonSet", Namespace: d.Namespace, Name: d.Name, UID: d.UID, Warning: true}
		tooMany, missing := b.specs.Obstacles(d.Class.Key)
		switch {
		case over != "":
			note.Reason, note.Message = tooLong, over
		case len(tooMany) > 0:
			note.Reason, note.Message = tooLong, strings.Join(tooMany, "; ")
		case len(missing) > 0:
			note.Reason, note.Message = "NotOffered", "its pods ask for "+podspec.NotOfferedMessage(missing)
		default:
			b.forgetNote("DaemonSet", d.UID)
			return false
		}
		note.Message += "; no room is kept for the DaemonSet on new nodes"
		b.notes["DaemonSet"+d.UID] = note
		return true
	})
}

// DeleteDaemon takes in that a DaemonSet is gone.
func (b *Book) DeleteDaemon(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ds := b.daemonSets[string(uid)]; ds != nil {
		delete(b.daemonPods, cluster.OwnerKey(ds.Namespace, string(uid)))
		b.tries.AllowFor(ds.Name, b.now())
	}
	delete(b.daemons, string(uid))
	delete(b.daemonSets, string(uid))
	b.forgetNote("DaemonSet", string(uid))
	b.noteAndWake(changesRoom)
}

// refreshDaemon works out what the DaemonSet's next pod will be like. Where it may run is what the template says. What
// it asks for is what the newest pod of the same template asks for, because webhooks and autoscalers may have changed
// that; without such a pod it is what the API server will make of the template. The lock is held.
func (b *Book) refreshDaemon(ds *appsv1.DaemonSet) {
	uid := string(ds.UID)
	spec := b.podDefaults.apply(ds.Namespace, &ds.Spec.Template.Spec)
	meta := metav1.ObjectMeta{Namespace: ds.Namespace, Labels: ds.Spec.Template.Labels}
	shape := b.specs.Of(&meta, spec, &corev1.PodStatus{})
	if seen, ok := b.daemonPods[cluster.OwnerKey(ds.Namespace, uid)]; ok && seen.of(ds) {
		shape = shape.WithRequests(seen.requests)
	}
	d := &cluster.Daemon{UID: uid, Namespace: ds.Namespace, Name: ds.Name, Class: b.specs.Class(shape),
		Labels: cluster.LabelsOf(ds.Spec.Template.Labels)}
	if old := b.daemons[uid]; old != nil && old.Class == d.Class && old.Name == d.Name && slices.Equal(old.Labels,
		d.Labels) {
		return
	}
	b.daemons[uid] = d
	b.noteAndWake(changesRoom)
}

// of reports whether the pod was made from the DaemonSet's present template, as far as that is known.
func (p *daemonPod) of(ds *appsv1.DaemonSet) bool {
	now := ds.Annotations[appsv1.DeprecatedTemplateGeneration]
	return now == "" || p.generation == "" || p.generation == now
}

// learnDaemon takes in what a pod of a DaemonSet asks for, if there is no newer pod. The watch of pods may be ahead of
// that of DaemonSets, so the set need not be known; what no set turns out to have made is swept. The lock is held.
func (b *Book) learnDaemon(p *cluster.Pod, pod *corev1.Pod) {
	have, known := b.daemonPods[p.Owner]
	if known && have.uid != p.UID && !newer(p, &have) {
		return
	}
	requests := b.specs.Of(&pod.ObjectMeta, &pod.Spec, &pod.Status).Requests
	seen := daemonPod{uid: p.UID, created: p.Created, generation: pod.Labels[generationLabel], requests: requests}
	b.daemonPods[p.Owner] = seen
	b.daemonBytes += daemonPodCost(p.Owner, &seen) - daemonPodCost(p.Owner, &have)
	if ds := b.daemonSets[strings.TrimPrefix(p.Owner, p.Namespace+"/")]; ds != nil && ds.Namespace == p.Namespace {
		b.refreshDaemon(ds)
	}
}

// daemonPodCost is nothing for a pod that is not known.
func daemonPodCost(key string, p *daemonPod) int {
	if p.uid == "" {
		return 0
	}
	return podspec.EntryCost + len(key) + len(p.uid) + len(p.generation) + podspec.ValueCost*len(p.requests)
}

// dropDaemonPods forgets pods of DaemonSets that are not there. The lock is held.
func (b *Book) dropDaemonPods() {
	made := make(map[string]bool, len(b.daemonSets))
	for uid, ds := range b.daemonSets {
		made[cluster.OwnerKey(ds.Namespace, uid)] = true
	}
	maps.DeleteFunc(b.daemonPods, func(owner string, _ daemonPod) bool { return !made[owner] })
	b.daemonBytes = 0
	for key, p := range b.daemonPods {
		b.daemonBytes += daemonPodCost(key, &p)
	}
}

// newer reports whether the pod was made after the other one. Timestamps have seconds, so the UID breaks ties.
func newer(p *cluster.Pod, than *daemonPod) bool {
	if c := p.Created.Compare(than.created); c != 0 {
		return c > 0
	}
	return p.UID > than.uid
}
