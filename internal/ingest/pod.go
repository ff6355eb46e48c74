package ingest

import (
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/pods"
)

// mirrorAnnotation marks the API server's image of a pod that a kubelet runs by itself.
const mirrorAnnotation = "kubernetes.io/config.mirror"

// SetPod takes in a pod as the API server shows it.
func (b *Book) SetPod(pod *corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, _ := b.pods.Get(string(pod.UID))
	p := b.readPod(pod, old)
	same := old != nil && reflect.DeepEqual(old, p)
	if !same {
		b.pods.Set(p.UID, p)
		b.protections.Note(old, p, b.pods.Get)
		b.notePodEvent(old, p, decode.CameAt(pod))
		if old == nil {
			b.evictions.Assume(p, b.owners.Current[p.Owner].Created)
		}
		b.noteVolumesMoved(p.UID)
		if p.Daemon {
			b.learnDaemon(p, pod)
		}
		if b.isFull() {
			b.collectGarbage() // the next snapshot may be far: many large pods come, or one comes again and again
		}
	}
	b.noteActivityOf(old, p)
	b.commands.NominationSeen(p)
	b.trackPodEnd(p, pod)
	settled := b.settleWrites(command.KindPod, p.UID)
	awaited := !same && b.trackPod(old, p)
	switch {
	case same && !settled:
	case same, awaited, !pods.IsQuietChange(old, p), settled, b.isLeaving(p.Node):
		b.noteAndWake(pods.PodChange(old, p))
	default:
		b.noteChange(pods.PodChange(old, p))
	}
}

// isLeaving reports whether a node is on its way out: then it matters which of its pods are ready. The lock is held.
func (b *machineState) isLeaving(node string) bool {
	e := b.nodes[node]
	return e != nil && (!e.Node.Deleting.IsZero() || e.Node.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule))
}

// DeletePod takes in that a pod is gone.
func (b *Book) DeletePod(pod *corev1.Pod) { b.removePod(string(pod.UID)) }

func (b *Book) removePod(uid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, found := b.pods.Get(uid)
	if !found {
		return
	}
	b.pods.Remove(old.UID)
	b.noteVolumesMoved(old.UID)
	b.mounts.Drop(old.UID)
	b.nominees.Remove(old)
	b.tries.ForgetMessage(old.UID)
	b.notes.forget("Pod", old.UID)
	b.notes.forget("PodCost", old.UID)
	b.spreads.Forget(old.UID)
	b.notePodEvent(old, nil, time.Time{})
	b.settleWrites(command.KindPod, old.UID)
	b.noteAndWake(pods.PodChange(old, nil))
}

// notePodEvent remembers when a workload pod last came to a node, finished there or left it. came is when the pod was
// bound: a pod that is new to us may have been there for long, if it is we who are new. The lock is held.
func (b *Book) notePodEvent(old, now *cluster.Pod, came time.Time) {
	before, after := old != nil && old.IsWorkload(), now != nil && now.IsWorkload()
	if before == after {
		return
	}
	if after {
		if old != nil {
			came = b.now()
			b.lastBound = came
		}
		// The node may not be known yet: the order of the watches is not defined.
		if came.After(b.podEvents[now.Node]) {
			b.podEvents[now.Node] = came
		}
		return
	}
	if b.nodes[old.Node] == nil {
		delete(b.podEvents, old.Node) // the node is gone, and names come back
		return
	}
	b.podEvents[old.Node] = b.now()
}

func (b *Book) readPod(pod *corev1.Pod, old *cluster.Pod) *cluster.Pod {
	p := &cluster.Pod{
		UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Node: b.sharedNodeName(pod.Spec.NodeName),
		Created: pod.CreationTimestamp.Time, Labels: b.specs.Labels(pod.Labels),
		Finished: pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Critical: pod.Spec.PriorityClassName == "system-cluster-critical" ||
			pod.Spec.PriorityClassName == "system-node-critical",
	}
	b.readPodVolumes(p, pod)
	now := b.now()
	p.FirstSeen = now
	if old != nil {
		p.FirstSeen = old.FirstSeen
	}
	p.Started, p.Ready, p.Phase = decode.TimeOf(pod.Status.StartTime), decode.IsReady(pod), decode.PhaseOf(pod)
	p.Limits = b.specs.Limits(&pod.Spec)
	p.OtherScheduler = pod.Spec.SchedulerName != "" && pod.Spec.SchedulerName != corev1.DefaultSchedulerName
	b.notes.put("Pod", p.UID, pods.ReadDoNotDisrupt(p, pod, now))
	_, p.Mirror = pod.Annotations[mirrorAnnotation]
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		p.Owner = cluster.OwnerKey(pod.Namespace, string(owner.UID))
		if o, known := b.owners.Current[p.Owner]; known {
			p.Owner = o.UID
		}
		p.Daemon = owner.Kind == "DaemonSet"
		p.Mirror = p.Mirror || owner.Kind == "Node"
	}
	_, leaves := cluster.Untolerated(p.Class.Tolerations,
		[]cluster.Taint{{Key: cluster.DisruptedTaint, Effect: cluster.NoSchedule}})
	p.StaysThroughDrain = !leaves
	p.Grace = 30 * time.Second
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		p.Grace = cluster.Seconds(*s)
	}
	if pod.DeletionTimestamp != nil {
		if s := pod.DeletionGracePeriodSeconds; s != nil {
			p.Grace = cluster.Seconds(*s)
		}
		p.Deleting = pod.DeletionTimestamp.Add(-p.Grace)
		if old != nil && (old.Deleting.IsZero() || old.Grace == p.Grace) {
			p.Deleting = b.deletedAt(old.Deleting, p.Deleting)
		}
	}
	b.notes.put("PodCost", p.UID, pods.ReadEvictionCost(p, pod))
	b.readScheduling(p, pod, old, now)
	return p
}

// sharedNodeName is the node's own copy of its name, if the node is known: thousands of pods share it then, and whoever
// sorts pods by node finds it in the cache.
func (b *machineState) sharedNodeName(name string) string {
	if e := b.nodes[name]; e != nil {
		return e.Node.Name
	}
	return name
}

// endProtections lets go of the pods whose time is up. The lock is held.
func (b *Book) endProtections(now time.Time) {
	for _, uid := range b.protections.Ended(now, b.pods.Get) {
		old, _ := b.pods.Get(uid)
		if !old.DoNotDisrupt {
			continue // it was in twice
		}
		p := *old
		p.DoNotDisrupt = false
		b.pods.Set(p.UID, &p)
		b.noteChange(pods.PodChange(old, &p))
	}
}
