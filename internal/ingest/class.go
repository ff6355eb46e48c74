package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// recipe is what a class is made from: everything that matters to placement, before resources are numbered. Pods of one
// shape share a recipe; recipes with the same content share a class.
type recipe struct {
	requests    corev1.ResourceList
	terms       []require.Set
	own         []require.Set // terms without what volumes add, if that differs
	tolerations []cluster.Toleration
	priority    int32
	rules       []*cluster.Rule
	wishes      []cluster.Wish
	ports       []cluster.Port
	unsupported []string

	class *cluster.PodClass
}

// shapeOf finds or makes the recipe of a pod, its volumes left aside. The lock is held.
func (b *Book) shapeOf(meta *metav1.ObjectMeta, spec *corev1.PodSpec, status *corev1.PodStatus) *recipe {
	shape := b.scribe.shape(meta, spec, status)
	if r := b.shapes[string(shape)]; r != nil {
		return r
	}
	key := string(shape)
	r := b.read(meta, spec, status)
	b.shapes[key] = r
	return r
}

// read makes the recipe of a pod. The lock is held.
func (b *Book) read(meta *metav1.ObjectMeta, spec *corev1.PodSpec, status *corev1.PodStatus) *recipe {
	r := &recipe{requests: podRequests(spec, status), tolerations: tolerationsOf(spec.Tolerations), ports: portsOf(spec)}
	r.terms, r.unsupported = termsOf(spec)
	ties := b.readRules(meta, spec)
	r.rules, r.wishes = ties.rules, ties.wishes
	r.unsupported = append(r.unsupported, ties.bad...)
	if len(spec.ResourceClaims) > 0 {
		r.unsupported = append(r.unsupported, "dynamic resource claims")
	}
	if spec.Priority != nil {
		r.priority = *spec.Priority
	}
	return r
}

// classOf finds or makes the class of a recipe. The lock is held.
func (b *Book) classOf(r *recipe) *cluster.PodClass {
	if r.class != nil {
		return r.class
	}
	key := r.key()
	if known := b.classes[key]; known != nil {
		r.class = known.class
		return r.class
	}
	r.class = b.makeClass(key, r)
	b.classes[key] = r
	return r.class
}

func (b *Book) makeClass(key string, r *recipe) *cluster.PodClass {
	c := &cluster.PodClass{
		Key: key, Terms: r.terms, OwnTerms: r.own, Tolerations: r.tolerations, Priority: r.priority, Rules: r.rules, Wishes: r.wishes, Ports: r.ports,
	}
	c.Requests, c.Unsupported = b.demand(r.requests, slices.Clone(r.unsupported))
	return c
}

// key is a hash over text, not over numbers that depend on what else is in the cluster, so it survives a restart.
func (r *recipe) key() string {
	text := new(strings.Builder)
	for _, name := range slices.Sorted(maps.Keys(r.requests)) {
		q := r.requests[name]
		fmt.Fprintf(text, "%s=%s\n", name, q.String())
	}
	for _, term := range r.terms {
		fmt.Fprintf(text, "term %s\n", term)
	}
	for _, term := range r.own {
		fmt.Fprintf(text, "own term %s\n", term)
	}
	fmt.Fprintf(text, "%+v\n%d\n%q\n", r.tolerations, r.priority, r.unsupported)
	for _, rule := range r.rules {
		fmt.Fprintf(text, "rule %s\n", rule.Key)
	}
	for _, wish := range r.wishes {
		if wish.Rule != nil {
			fmt.Fprintf(text, "wish %d rule %s\n", wish.Weight, wish.Rule.Key)
			continue
		}
		fmt.Fprintf(text, "wish %d term %s\n", wish.Weight, wish.Term)
	}
	for _, port := range r.ports {
		fmt.Fprintf(text, "port %s %s %d\n", port.IP, port.Protocol, port.Number)
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:8])
}

// podRequests sums up what a pod takes, by Kubernetes' own rules, its slot included.
func podRequests(spec *corev1.PodSpec, status *corev1.PodStatus) corev1.ResourceList {
	requests := resourcehelper.PodRequests(&corev1.Pod{Spec: *spec, Status: *status}, resourcehelper.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
	out := make(corev1.ResourceList, len(requests)+1)
	for name, q := range requests {
		if !q.IsZero() {
			out[name] = q
		}
	}
	out[corev1.ResourcePods] = *oneSlot()
	return out
}

// demand turns requests into a vector, numbering resources that are new. A pod that asks for more kinds of resource
// than can be told apart is not planned for.
func (b *Book) demand(list corev1.ResourceList, unsupported []string) (resource.Vector, []string) {
	var v resource.Vector
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if !b.counts(name) {
			continue
		}
		dim, ok := b.number(name)
		if !ok {
			unsupported = append(unsupported, fmt.Sprintf("resource %s (more than %d kinds of resource are in use)", name, resource.Size))
			continue
		}
		v[dim] = amount(dim, list[name])
	}
	return v, unsupported
}

// measure turns a capacity into a vector over the resources that somebody has asked for.
func (b *Book) measure(list corev1.ResourceList) resource.Vector {
	var v resource.Vector
	for name, q := range list {
		if dim, ok := b.names.Lookup(string(name)); ok {
			v[dim] = amount(dim, q)
		}
	}
	return v
}
