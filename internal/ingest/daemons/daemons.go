package daemons

import (
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
)

// daemonPod is what is known of a DaemonSet's newest pod. It stays known when the pod is gone: the next one will ask
// for the same.
type daemonPod struct {
	uid        string
	created    time.Time
	generation string
	requests   []podspec.Request
}

// Daemons is what DaemonSets will put on every node that they match.
type Daemons struct {
	all  map[string]*cluster.Daemon   // by UID
	sets map[string]*appsv1.DaemonSet // by UID
	pods map[string]daemonPod         // the newest pod of each DaemonSet, by the DaemonSet's key
	// bytes is about how many bytes pods take.
	bytes    int
	defaults podDefaults
}

// New knows of none yet.
func New() Daemons {
	return Daemons{all: make(map[string]*cluster.Daemon), sets: make(map[string]*appsv1.DaemonSet),
		pods: make(map[string]daemonPod), defaults: newPodDefaults()}
}

// Set takes in a DaemonSet, and reports whether another template, or another DaemonSet, than before.
func (d *Daemons) Set(ds *appsv1.DaemonSet) (changed bool) {
	old := d.sets[string(ds.UID)]
	d.sets[string(ds.UID)] = ds
	return old == nil || old.Generation != ds.Generation
}

// Delete takes in that a DaemonSet is gone, and returns it; nil if it was not known.
func (d *Daemons) Delete(uid string) *appsv1.DaemonSet {
	ds := d.sets[uid]
	if ds != nil {
		delete(d.pods, cluster.OwnerKey(ds.Namespace, uid))
	}
	delete(d.all, uid)
	delete(d.sets, uid)
	return ds
}

// InOrder lists the daemons, the highest priority first.
func (d *Daemons) InOrder() []*cluster.Daemon {
	return slices.SortedFunc(maps.Values(d.all), cluster.CompareDaemons)
}

// Each yields the daemons, in no order.
func (d *Daemons) Each(yield func(*cluster.Daemon) bool) {
	for _, x := range d.all {
		if !yield(x) {
			return
		}
	}
}

// TooLong says what of a DaemonSet was too long to be kept; empty if nothing was.
func (d *Daemons) TooLong(uid string) string {
	if ds := d.sets[uid]; ds != nil {
		return decode.TooLongPart(&ds.ObjectMeta)
	}
	return ""
}

// Reclass gives daemons the classes that took the place of theirs.
func (d *Daemons) Reclass(changed map[*cluster.PodClass]*cluster.PodClass) {
	for uid, x := range d.all {
		if c := changed[x.Class]; c != nil {
			next := *x
			next.Class = c
			d.all[uid] = &next
		}
	}
}

// Sets lists the DaemonSets that are chosen, by UID.
func (d *Daemons) Sets(which func(*appsv1.DaemonSet) bool) []*appsv1.DaemonSet {
	var out []*appsv1.DaemonSet
	for _, uid := range slices.Sorted(maps.Keys(d.sets)) {
		if which(d.sets[uid]) {
			out = append(out, d.sets[uid])
		}
	}
	return out
}

// Template is what the DaemonSet's next pod will be like: what the API server will make of the template.
func (d *Daemons) Template(ds *appsv1.DaemonSet) (*metav1.ObjectMeta, *corev1.PodSpec) {
	return &metav1.ObjectMeta{Namespace: ds.Namespace, Labels: ds.Spec.Template.Labels},
		d.defaults.apply(ds.Namespace, &ds.Spec.Template.Spec)
}

// Requests is what the newest pod of the same template asks for, if there was one: webhooks and autoscalers may have
// changed what the template says.
func (d *Daemons) Requests(ds *appsv1.DaemonSet) (list []podspec.Request, known bool) {
	seen, ok := d.pods[cluster.OwnerKey(ds.Namespace, string(ds.UID))]
	return seen.requests, ok && seen.of(ds)
}

// Put takes in the class of a DaemonSet's next pod, and reports whether that is news.
func (d *Daemons) Put(ds *appsv1.DaemonSet, class *cluster.PodClass) (news bool) {
	uid := string(ds.UID)
	next := &cluster.Daemon{UID: uid, Namespace: ds.Namespace, Name: ds.Name, Class: class,
		Labels: cluster.LabelsOf(ds.Spec.Template.Labels)}
	if old := d.all[uid]; old != nil && old.Class == next.Class && old.Name == next.Name &&
		slices.Equal(old.Labels, next.Labels) {
		return false
	}
	d.all[uid] = next
	return true
}

// of reports whether the pod was made from the DaemonSet's present template, as far as that is known.
func (p *daemonPod) of(ds *appsv1.DaemonSet) bool {
	now := ds.Annotations[appsv1.DeprecatedTemplateGeneration]
	return now == "" || p.generation == "" || p.generation == now
}

// Learn takes in what a pod of a DaemonSet asks for, if there is no newer pod, and returns the DaemonSet if it is
// known. The watch of pods may be ahead of that of DaemonSets, so the set need not be known; what no set turns out to
// have made is swept.
func (d *Daemons) Learn(p *cluster.Pod, generation string, requests func() []podspec.Request) *appsv1.DaemonSet {
	have, known := d.pods[p.Owner]
	if known && have.uid != p.UID && !newer(p, &have) {
		return nil
	}
	seen := daemonPod{uid: p.UID, created: p.Created, generation: generation, requests: requests()}
	d.pods[p.Owner] = seen
	d.bytes += daemonPodCost(p.Owner, &seen) - daemonPodCost(p.Owner, &have)
	if ds := d.sets[strings.TrimPrefix(p.Owner, p.Namespace+"/")]; ds != nil && ds.Namespace == p.Namespace {
		return ds
	}
	return nil
}

// What a pod costs beside its text: about as much as its values take in memory.
const (
	entryCost = 300
	valueCost = 64
)

// daemonPodCost is nothing for a pod that is not known.
func daemonPodCost(key string, p *daemonPod) int {
	if p.uid == "" {
		return 0
	}
	return entryCost + len(key) + len(p.uid) + len(p.generation) + valueCost*len(p.requests)
}

// Remembered is how many pods are remembered, and about how many bytes they take.
func (d *Daemons) Remembered() (entries, bytes int) { return len(d.pods), d.bytes }

// DropPods forgets pods of DaemonSets that are not there.
func (d *Daemons) DropPods() {
	made := make(map[string]bool, len(d.sets))
	for uid, ds := range d.sets {
		made[cluster.OwnerKey(ds.Namespace, uid)] = true
	}
	maps.DeleteFunc(d.pods, func(owner string, _ daemonPod) bool { return !made[owner] })
	d.bytes = 0
	for key, p := range d.pods {
		d.bytes += daemonPodCost(key, &p)
	}
}

// newer reports whether the pod was made after the other one. Timestamps have seconds, so the UID breaks ties.
func newer(p *cluster.Pod, than *daemonPod) bool {
	if c := p.Created.Compare(than.created); c != 0 {
		return c > 0
	}
	return p.UID > than.uid
}

// SetLimitRange takes in a LimitRange, whose defaults the pods of its namespace get.
func (d *Daemons) SetLimitRange(l *corev1.LimitRange) {
	if d.defaults.limitRanges[l.Namespace] == nil {
		d.defaults.limitRanges[l.Namespace] = make(map[string]*corev1.LimitRange)
	}
	d.defaults.limitRanges[l.Namespace][l.Name] = l
}

// DeleteLimitRange takes in that a LimitRange is gone.
func (d *Daemons) DeleteLimitRange(namespace, name string) {
	if delete(d.defaults.limitRanges[namespace], name); len(d.defaults.limitRanges[namespace]) == 0 {
		delete(d.defaults.limitRanges, namespace)
	}
}

// SetRuntimeClass takes in a RuntimeClass: what its pods take besides, and where they may run.
func (d *Daemons) SetRuntimeClass(c *nodev1.RuntimeClass) { d.defaults.runtimeClasses[c.Name] = c }

// DeleteRuntimeClass takes in that a RuntimeClass is gone.
func (d *Daemons) DeleteRuntimeClass(name string) { delete(d.defaults.runtimeClasses, name) }

// SetPriorityClass takes in a PriorityClass. kube-scheduler lets pods of higher priority in first, and preempts others
// for them.
func (d *Daemons) SetPriorityClass(c *schedulingv1.PriorityClass) {
	d.defaults.priorities[c.Name] = priorityClass{c.Value, c.GlobalDefault}
}

// DeletePriorityClass takes in that a PriorityClass is gone.
func (d *Daemons) DeletePriorityClass(name string) { delete(d.defaults.priorities, name) }
