package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// kind is a kind of object that the API server keeps.
type kind int

const (
	pods kind = iota
	nodes
	claims
	pools
	guards
	sets
	kinds // how many there are
)

func (k kind) String() string {
	return [...]string{"Pod", "Node", "NodeClaim", "NodePool", "PodDisruptionBudget", "ReplicaSet"}[k]
}

func kindOf(obj client.Object) kind {
	switch obj.(type) {
	case *corev1.Pod:
		return pods
	case *corev1.Node:
		return nodes
	case *v1.NodeClaim:
		return claims
	case *v1.NodePool:
		return pools
	case *policyv1.PodDisruptionBudget:
		return guards
	case *appsv1.ReplicaSet:
		return sets
	}
	panic(fmt.Sprintf("the API server does not know %T", obj))
}

// keyOf names an object among those of its kind.
func keyOf(obj client.Object) string {
	if obj.GetNamespace() == "" {
		return obj.GetName()
	}
	return obj.GetNamespace() + "/" + obj.GetName()
}

// store is what the API server keeps. What is in it is never changed in place: a write puts a new object there, and
// tells everybody who watches.
type store struct {
	clock   *clock
	version uint64
	uids    int
	kinds   [kinds]kindStore
	watch   func(k kind, obj client.Object, gone bool)
}

// kindStore holds the objects of a kind, in the order of their keys.
type kindStore struct {
	keys    []string
	objects map[string]client.Object
}

func newStore(c *clock) *store {
	s := &store{clock: c}
	for k := range s.kinds {
		s.kinds[k].objects = make(map[string]client.Object)
	}
	return s
}

// get finds an object, or nil.
func (s *store) get(k kind, key string) client.Object { return s.kinds[k].objects[key] }

// find finds an object of a Go type.
func find[T client.Object](s *store, k kind, key string) (T, bool) {
	obj, ok := s.kinds[k].objects[key].(T)
	return obj, ok
}

// list is all objects of a kind.
func list[T client.Object](s *store, k kind) []T {
	of := &s.kinds[k]
	out := make([]T, 0, len(of.keys))
	for _, key := range of.keys {
		out = append(out, of.objects[key].(T))
	}
	return out
}

// create puts a new object into the store; false if the name is taken. The object is the store's from then on.
func (s *store) create(obj client.Object) bool {
	k, key := kindOf(obj), keyOf(obj)
	of := &s.kinds[k]
	if of.objects[key] != nil {
		return false
	}
	s.uids++
	obj.SetUID(types.UID(fmt.Sprintf("%08x-%s", uint32(s.uids)*2654435761, k)))
	obj.SetCreationTimestamp(metav1.NewTime(s.clock.seconds()))
	obj.SetGeneration(1)
	s.stamp(obj)
	i, _ := slices.BinarySearch(of.keys, key)
	of.keys = slices.Insert(of.keys, i, key)
	of.objects[key] = obj
	s.watch(k, obj, false)
	return true
}

func (s *store) stamp(obj client.Object) {
	s.version++
	obj.SetResourceVersion(strconv.FormatUint(s.version, 10))
}

// write puts a changed copy in the place of the object. One that is being deleted, and that nothing holds any more,
// goes.
func (s *store) write(obj client.Object) {
	k, key := kindOf(obj), keyOf(obj)
	if s.kinds[k].objects[key] == nil {
		panic(fmt.Sprintf("writing %s %s, which is not there", k, key))
	}
	if k != pods && obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		s.drop(k, key, obj)
		return
	}
	s.stamp(obj)
	s.kinds[k].objects[key] = obj
	s.watch(k, obj, false)
}

// remove takes an object away at once.
func (s *store) remove(obj client.Object) {
	if now := s.get(kindOf(obj), keyOf(obj)); now != nil && now.GetUID() == obj.GetUID() {
		s.drop(kindOf(obj), keyOf(obj), now.DeepCopyObject().(client.Object))
	}
}

func (s *store) drop(k kind, key string, obj client.Object) {
	of := &s.kinds[k]
	delete(of.objects, key)
	i, _ := slices.BinarySearch(of.keys, key)
	of.keys = slices.Delete(of.keys, i, i+1)
	s.stamp(obj)
	s.watch(k, obj, true)
}

// edit changes an object, if it is still there.
func edit[T client.Object](s *store, k kind, key string, uid types.UID, change func(T)) bool {
	old, ok := find[T](s, k, key)
	if !ok || uid != "" && old.GetUID() != uid {
		return false
	}
	obj := old.DeepCopyObject().(T)
	change(obj)
	s.write(obj)
	return true
}

// erase begins the deletion of anything but a pod: at once if nothing holds it.
func (s *store) erase(obj client.Object) {
	now := s.get(kindOf(obj), keyOf(obj))
	switch {
	case now == nil || now.GetUID() != obj.GetUID() || now.GetDeletionTimestamp() != nil:
	case len(now.GetFinalizers()) == 0:
		s.remove(now)
	default:
		next := now.DeepCopyObject().(client.Object)
		at := metav1.NewTime(s.clock.seconds())
		next.SetDeletionTimestamp(&at)
		next.SetGeneration(next.GetGeneration() + 1)
		s.write(next)
	}
}

// endPod begins the end of a pod: its kubelet has the grace period to finish it. A pod without a node goes at once.
func (s *store) endPod(pod *corev1.Pod, grace *int64) {
	now, ok := find[*corev1.Pod](s, pods, keyOf(pod))
	if !ok || now.UID != pod.UID {
		return
	}
	seconds := int64(30)
	if now.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *now.Spec.TerminationGracePeriodSeconds
	}
	if grace != nil {
		seconds = *grace
	}
	if now.Spec.NodeName == "" || seconds == 0 || isDone(now) {
		s.remove(now)
		return
	}
	at := metav1.NewTime(s.clock.seconds().Add(time.Duration(seconds) * time.Second))
	if now.DeletionTimestamp != nil && !at.Before(now.DeletionTimestamp) {
		return // it must go earlier already
	}
	next := now.DeepCopy()
	next.DeletionTimestamp, next.DeletionGracePeriodSeconds = &at, &seconds
	s.write(next)
}

func isDone(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func isAlive(pod *corev1.Pod) bool { return !isDone(pod) }
