package sim

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// stream is a replica's watch of one kind. Events of a kind come in order; those of different kinds overtake each
// other.
type stream struct {
	r    *replica
	kind kind
	// lag is how far the stream is behind now; last is when the latest event will be delivered.
	lag  time.Duration
	last time.Time
	// broken streams lose events, until a list makes up for it.
	broken bool
	// lists counts the lists: an event that was sent before one is old news after it.
	lists int
}

// send has the object delivered after the stream's lag.
func (w *stream) send(obj client.Object, gone bool) {
	if w.broken {
		return
	}
	c := w.r.sim.clock
	at := c.now.Add(w.lag + c.between(time.Millisecond, 20*time.Millisecond))
	if at.Before(w.last) {
		at = w.last
	}
	w.last = at
	lists := w.lists
	c.at(at, func() {
		if !w.r.dead && lists == w.lists {
			w.r.take(w.kind, obj, gone)
			w.r.poke()
		}
	})
}

// fail breaks the stream for a while. What happens meanwhile shows only in the list that follows.
func (w *stream) fail(d time.Duration) {
	if w.broken {
		return
	}
	w.broken = true
	w.r.sim.clock.after(d, func() {
		if !w.r.dead {
			w.broken = false
			w.relist()
			w.r.poke()
		}
	})
}

// relist brings the replica's view of the kind up to date at once.
func (w *stream) relist() {
	s, r := w.r.sim, w.r
	w.lists++
	w.last = s.clock.now
	var gone []client.Object
	for key, have := range r.cache[w.kind] {
		if now := s.store.get(w.kind, key); now == nil || now.GetUID() != have.GetUID() {
			gone = append(gone, have)
		}
	}
	sortByName(gone)
	for _, obj := range gone {
		r.take(w.kind, obj, true)
	}
	for _, obj := range list[client.Object](s.store, w.kind) {
		if have := r.cache[w.kind][keyOf(obj)]; have == nil || have.GetResourceVersion() != obj.GetResourceVersion() {
			r.take(w.kind, obj, false)
		}
	}
}

// take puts an event into the replica's cache and its book.
func (r *replica) take(k kind, obj client.Object, gone bool) {
	if gone {
		delete(r.cache[k], keyOf(obj))
	} else {
		r.cache[k][keyOf(obj)] = obj
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		if gone {
			r.book.DeletePod(o)
		} else {
			r.book.SetPod(o)
		}
	case *corev1.Node:
		if gone {
			r.book.DeleteNode(o.Name)
		} else {
			r.book.SetNode(o)
		}
	case *v1.NodeClaim:
		if gone {
			r.book.DeleteClaim(o.Name)
		} else {
			r.book.SetClaim(o)
		}
	case *v1.NodePool:
		if gone {
			r.book.DeletePool(o.Name)
		} else {
			r.book.SetPool(o)
		}
	case *appsv1.ReplicaSet:
		if gone {
			r.book.DeleteOwner(o.Namespace, o.UID)
		} else {
			r.book.SetOwner(cluster.Owner{UID: string(o.UID), Namespace: o.Namespace, Kind: "ReplicaSet", Known: true,
				Desired: int(*o.Spec.Replicas)})
		}
	case *policyv1.PodDisruptionBudget:
		if gone {
			r.book.DeletePDB(o.Namespace, o.Name)
		} else {
			r.book.SetPDB(o)
		}
	}
}

// announce tells everybody who watches of a write.
func (s *Sim) announce(k kind, obj client.Object, gone bool) {
	for _, r := range s.replicas {
		r.streams[k].send(obj, gone)
	}
	s.notice(k, obj, gone)
}
