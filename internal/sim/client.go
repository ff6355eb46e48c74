package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// errUnused says that the program has begun to use a call that the simulated API server does not know yet.
var errUnused = errors.New("the simulated API server does not know this call")

// errFenced is what a replica sees that may no longer write.
var errFenced = errors.New("the lease may have passed to another replica")

// errTimeout is what a client sees when no answer comes.
var errTimeout = errors.New("the answer did not come in time")

// slowly is how many of the patches go the long way, by text. TestShortcut sends all of them that way.
const slowly = 0.01

// api is a replica's connection to the API server: it reads from the replica's cache and writes over a network on which
// things get lost. With live it reads past the cache.
type api struct {
	r    *replica
	live bool
}

var _ client.Client = api{}

// call sends a request that does something, and waits for its answer. A crash cuts it short before the request arrives,
// or after.
func (a api) call(what string, do func() error) error {
	s, sent := a.r.sim, a.r.steady()
	cut := a.r.current.stopped
	if !a.r.pause(s.clock.between(time.Millisecond, 25*time.Millisecond)) {
		if !cut && s.clock.chance(0.5) { // of what a dead process had sent, some still arrives
			err := do()
			s.trace.note("%s: %s arrives after its sender is dead: %v", a.r, what, err)
		}
		return context.Canceled
	}
	switch {
	case s.strikes("timeoutBefore", s.rates.timeoutBefore):
		s.trace.note("%s: %s lost before it arrived", a.r, what)
		a.r.pause(s.clock.between(time.Second, 5*time.Second))
		return errTimeout
	case s.strikes("tooMany", s.rates.tooMany):
		return apierrors.NewTooManyRequests("slow down", 1)
	case s.strikes("internal", s.rates.internal):
		return apierrors.NewInternalError(errors.New("etcd has no leader"))
	}
	err := do()
	if s.strikes("timeoutAfter", s.rates.timeoutAfter) {
		s.trace.note("%s: the answer to %s is lost (%v)", a.r, what, err)
		a.r.pause(s.clock.between(time.Second, 5*time.Second))
		return errTimeout
	}
	a.r.hears(sent)
	if !a.r.pause(s.clock.between(time.Millisecond, 25*time.Millisecond)) {
		return context.Canceled
	}
	return err
}

// send sends a request that changes something. A replica whose lease may have passed to another sends none.
func (a api) send(what string, do func() error) error {
	if !a.r.leads() {
		a.r.sim.trace.note("%s: %s is not sent, the lease is over", a.r, what)
		return errFenced
	}
	return a.call(what, do)
}

// Get reads an object, from the cache or live.
func (a api) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	k := kindOf(obj)
	name := key.Name
	if key.Namespace != "" {
		name = key.Namespace + "/" + key.Name
	}
	if !a.live {
		return give(a.r.cache[k][name], k, key.Name, obj)
	}
	return a.call("a read of "+name, func() error { return give(a.r.sim.store.get(k, name), k, key.Name, obj) })
}

// List reads live all NodeClaims, as unstructured objects, or the pods on a node; nothing else is listed.
func (a api) List(_ context.Context, out client.ObjectList, opts ...client.ListOption) error {
	if found, ok := out.(*corev1.PodList); ok {
		return a.listPods(found, opts)
	}
	if found, ok := out.(*metav1.PartialObjectMetadataList); ok {
		return a.listNames(found)
	}
	all, ok := out.(*unstructured.UnstructuredList)
	if !ok || !a.live || all.GetKind() != "NodeClaimList" {
		return errUnused
	}
	return a.call("a list of the claims", func() error {
		all.Items = nil
		for _, claim := range list[*v1.NodeClaim](a.r.sim.store, claims) {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(claim)
			if err != nil {
				return err
			}
			all.Items = append(all.Items, unstructured.Unstructured{Object: fields})
		}
		return nil
	})
}

// listNames reads live which claims or nodes there are.
func (a api) listNames(out *metav1.PartialObjectMetadataList) error {
	k, ok := map[string]kind{"NodeClaimList": claims, "NodeList": nodes}[out.Kind]
	if !ok || !a.live {
		return errUnused
	}
	return a.call("a list of the names of "+k.String(), func() error {
		out.Items = nil
		for _, obj := range list[client.Object](a.r.sim.store, k) {
			out.Items = append(out.Items,
				metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: obj.GetName(), UID: obj.GetUID()}})
		}
		return nil
	})
}

// listPods reads the pods on a node live.
func (a api) listPods(out *corev1.PodList, opts []client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	if o.FieldSelector == nil || !a.live {
		return errUnused
	}
	node, exact := o.FieldSelector.RequiresExactMatch("spec.nodeName")
	if !exact {
		return errUnused
	}
	return a.call("a list of the pods on "+node, func() error {
		out.Items = nil
		for _, pod := range a.r.sim.podsOn(node) {
			out.Items = append(out.Items, *pod.DeepCopy())
		}
		return nil
	})
}

func give(from client.Object, k kind, name string, to client.Object) error {
	if from == nil {
		return apierrors.NewNotFound(resourceOf(k), name)
	}
	copyInto(from, to)
	return nil
}

// Create puts a new object into the store.
func (a api) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	k := kindOf(obj)
	return a.send("the creation of "+obj.GetName(), func() error {
		stored := obj.DeepCopyObject().(client.Object)
		dropStatus(stored)
		if !a.r.sim.store.create(stored) {
			return apierrors.NewAlreadyExists(resourceOf(k), obj.GetName())
		}
		a.r.sim.judge.created(a.r, stored)
		copyInto(stored, obj)
		return nil
	})
}

// Delete begins the end of an object.
func (a api) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	o := client.DeleteOptions{}
	o.ApplyOptions(opts)
	k := kindOf(obj)
	s := a.r.sim
	return a.send("the deletion of "+obj.GetName(), func() error {
		now := s.store.get(k, keyOf(obj))
		if now == nil {
			return apierrors.NewNotFound(resourceOf(k), obj.GetName())
		}
		if p := o.Preconditions; p != nil && p.UID != nil && *p.UID != now.GetUID() {
			return apierrors.NewConflict(resourceOf(k), obj.GetName(), fmt.Errorf("it has the UID %s", now.GetUID()))
		}
		s.judge.deleting(a.r, now)
		if pod, ok := now.(*corev1.Pod); ok {
			s.store.endPod(pod, o.GracePeriodSeconds)
			return nil
		}
		s.store.erase(now)
		return nil
	})
}

// Patch changes an object.
func (a api) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return a.patch(obj, patch, false)
}

func (a api) patch(obj client.Object, patch client.Patch, status bool) error {
	s := a.r.sim
	k := kindOf(obj)
	half := ""
	if status {
		half = "the status of "
	}
	return a.send(fmt.Sprintf("a change to %s%s %s", half, k, obj.GetName()), func() error {
		if s.strikes("conflict", s.rates.conflict) {
			return apierrors.NewConflict(resourceOf(k), obj.GetName(), errors.New("the object has been modified"))
		}
		err := s.store.patch(obj, patch, status, s.clock.chance(slowly) || s.slowPatches)
		if err == nil {
			s.judge.changed(a.r, k, keyOf(obj))
		}
		return err
	})
}

// Status writes to the status half of objects.
func (a api) Status() client.SubResourceWriter { return subresource{a, "status"} }

// SubResource is a part of an object that has its own rules.
func (a api) SubResource(name string) client.SubResourceClient { return subresource{a, name} }

// subresource is a part of objects: their status, or a request to evict or bind a pod.
type subresource struct {
	api  api
	name string
}

// Create evicts or binds a pod.
func (h subresource) Create(_ context.Context, obj, sub client.Object, _ ...client.SubResourceCreateOption) error {
	s := h.api.r.sim
	pod, ok := obj.(*corev1.Pod)
	switch wish := sub.(type) {
	case *policyv1.Eviction:
		if ok && h.name == "eviction" {
			return h.api.send("the eviction of "+pod.Name, func() error { return s.evict(h.api.r, pod, wish) })
		}
	case *corev1.Binding:
		if ok && h.name == "binding" {
			return h.api.send("the binding of "+pod.Name, func() error { return s.bindAsAsked(h.api.r, pod, wish) })
		}
	}
	return errUnused
}

// Patch changes the status of an object.
func (h subresource) Patch(_ context.Context, obj client.Object, patch client.Patch,
	_ ...client.SubResourcePatchOption) error {
	if h.name != "status" {
		return errUnused
	}
	return h.api.patch(obj, patch, true)
}

func (h subresource) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return errUnused
}
func (h subresource) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return errUnused
}
func (h subresource) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errUnused
}

func (api) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errUnused
}
func (api) Update(context.Context, client.Object, ...client.UpdateOption) error { return errUnused }
func (api) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errUnused
}
func (api) Scheme() *runtime.Scheme     { return nil }
func (api) RESTMapper() meta.RESTMapper { return nil }
func (api) GroupVersionKindFor(runtime.Object) (schema.GroupVersionKind, error) {
	return schema.GroupVersionKind{}, errUnused
}
func (api) IsObjectNamespaced(runtime.Object) (bool, error) { return false, errUnused }
