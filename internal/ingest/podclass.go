package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// classSpec is what a class is made from: everything that matters to placement, before resources are numbered. Pods of
// one pod key share a spec; specs with the same content share a class.
type classSpec struct {
	requests    []request // by rising name: as a map they take four times as much, and each class has its own
	terms       []require.Set
	ownTerms    []require.Set // terms without what volumes add, if that differs
	tolerations []cluster.Toleration
	priority    int32
	rules       []*cluster.Rule
	preferences []cluster.Preference
	ports       []cluster.Port
	unsupported []string
	tooMany     []string // those of unsupported that say what there is too much of

	nodeKey string // set with the key
	class   *cluster.PodClass
	// the resources that the class does not count by: nobody offered them, or there were too many kinds
	uncounted []string
}

// specByPodKey finds or makes the spec of a pod, its volumes left aside. The lock is held.
func (b *Book) specByPodKey(meta *metav1.ObjectMeta, spec *corev1.PodSpec, status *corev1.PodStatus) *classSpec {
	over := podExcessOf(spec)
	if over.isAny() {
		spec = over.strip(spec)
	}
	shape := b.keyWriter.podKey(meta, spec, status)
	if over.isAny() {
		b.keyWriter.texts(over.messages)
		shape = b.keyWriter.bytes
	}
	if r := b.specsByKey[string(shape)]; r != nil {
		return r
	}
	key := string(shape)
	r := b.readSpec(meta, spec, status)
	r.tooMany = over.messages
	r.unsupported = append(r.unsupported, over.messages...)
	b.specsByKey[key] = r
	b.keptBytes += len(key) + specCost(r)
	return r
}

// readSpec makes the spec of a pod. The lock is held.
func (b *Book) readSpec(meta *metav1.ObjectMeta, spec *corev1.PodSpec, status *corev1.PodStatus) *classSpec {
	r := &classSpec{requests: podRequests(spec, status), tolerations: tolerationsOf(spec.Tolerations),
		ports: portsOf(spec)}
	if n := len(r.requests); n > mostResources {
		r.requests = b.numberedRequests(r.requests)
		r.unsupported = []string{fmt.Sprintf("kinds of resource in the requests of all containers: %d found, at most "+
			"%d are read; ask for fewer", n, mostResources)}
	}
	terms, problem := termsOf(spec)
	ties := b.readRules(meta, spec)
	r.terms, r.rules, r.preferences = terms, ties.rules, ties.preferences
	r.unsupported = append(append(r.unsupported, firstFew(problem)...), firstFew(ties.problems)...)
	if len(spec.ResourceClaims) > 0 {
		r.unsupported = append(r.unsupported, "dynamic resource claims")
	}
	if spec.Priority != nil {
		r.priority = *spec.Priority
	}
	return r
}

// classOf finds or makes the class of a spec. The lock is held.
func (b *Book) classOf(r *classSpec) *cluster.PodClass {
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
	b.keptBytes += entryCost
	return r.class
}

func (b *Book) makeClass(key string, r *classSpec) *cluster.PodClass {
	c := &cluster.PodClass{
		Key: key, NodeKey: r.nodeKey, Priority: r.priority,
		Terms: r.terms, OwnTerms: r.ownTerms, Tolerations: r.tolerations,
		Rules: r.rules, Preferences: r.preferences, Ports: r.ports,
	}
	c.Requests, c.Unsupported = b.requestVector(r, slices.Clone(r.unsupported))
	return c
}

// key is a hash over text, not over numbers that depend on what else is in the cluster, so it survives a restart. It
// also works out the one over what is asked of nodes: to compare that in each plan would take seconds where many pods
// have long lists.
func (r *classSpec) key() string {
	text := new(strings.Builder)
	for _, r := range r.requests {
		fmt.Fprintf(text, "%s=%s\n", r.name, r.amount.String())
	}
	node := sha256.New()
	from := text.Len()
	for _, term := range r.terms {
		text.WriteString("term ")
		term.Write(text)
		text.WriteByte('\n')
	}
	node.Write([]byte(text.String()[from:]))
	fmt.Fprintf(node, "%+v", r.tolerations)
	for _, term := range r.ownTerms {
		text.WriteString("own term ")
		term.Write(text)
		text.WriteByte('\n')
	}
	fmt.Fprintf(text, "%+v\n%d\n%q\n", r.tolerations, r.priority, r.unsupported)
	for _, rule := range r.rules {
		fmt.Fprintf(text, "rule %s\n", rule.Key)
	}
	for _, wish := range r.preferences {
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
	r.nodeKey = hex.EncodeToString(node.Sum(nil))
	return hex.EncodeToString(sum[:8])
}

// podRequests sums up what a pod takes, by Kubernetes' own rules, its slot included.
func podRequests(spec *corev1.PodSpec, status *corev1.PodStatus) []request {
	// Finding each container's status takes time in proportion to their number, so only those with something to say are
	// asked.
	resized := *status
	resized.ContainerStatuses, resized.InitContainerStatuses = resizedStatuses(status.ContainerStatuses),
		resizedStatuses(status.InitContainerStatuses)
	requests := resourcehelper.PodRequests(&corev1.Pod{Spec: *spec, Status: resized},
		resourcehelper.PodResourcesOptions{
			UseStatusResources: len(spec.Containers)+len(spec.InitContainers) <= mostContainers,
			InPlacePodLevelResourcesVerticalScalingEnabled: true,
		})
	maps.DeleteFunc(requests, func(_ corev1.ResourceName, q apiresource.Quantity) bool { return q.IsZero() })
	requests[corev1.ResourcePods] = *oneSlot()
	return requestsOf(requests)
}

// requestsOf lists resources by rising name.
func requestsOf(list corev1.ResourceList) []request {
	out := make([]request, 0, len(list))
	for name, q := range list {
		out = append(out, request{string(name), q})
	}
	slices.SortFunc(out, func(a, b request) int { return strings.Compare(a.name, b.name) })
	return out
}

// numberedRequests are those that somebody has a number for already. The lock is held.
func (b *Book) numberedRequests(list []request) []request {
	return slices.DeleteFunc(slices.Clone(list), func(r request) bool {
		_, known := b.names.Lookup(r.name)
		return !known
	})
}

// resizedStatuses are the statuses that say what a container was given.
func resizedStatuses(list []corev1.ContainerStatus) []corev1.ContainerStatus {
	says := func(c *corev1.ContainerStatus) bool { return c.Resources != nil || c.AllocatedResources != nil }
	if !slices.ContainsFunc(list, func(c corev1.ContainerStatus) bool { return says(&c) }) {
		return nil
	}
	var out []corev1.ContainerStatus
	for i := range list {
		if says(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

// requestVector turns the requests of a pod into a vector. A pod that asks for what nobody offers, or for more kinds of
// resource than can be told apart, is not planned for.
func (b *Book) requestVector(r *classSpec, unsupported []string) (resource.Vector, []string) {
	r.uncounted = nil
	for _, q := range r.requests {
		if b.isCounted(corev1.ResourceName(q.name)) && !b.isOffered(q.name) {
			r.uncounted = append(r.uncounted, q.name)
		}
	}
	if len(r.uncounted) > 0 {
		unsupported = append(unsupported, notOfferedMessage(r.uncounted))
	}
	v, crowded := b.vector(r.requests, func(name string) bool {
		return b.isOffered(name) && !b.resourceSupply.yielded[name]
	})
	for _, q := range r.requests {
		if b.resourceSupply.yielded[q.name] && b.isOffered(q.name) {
			crowded, b.outOfDimensions = append(crowded, q.name), true
		}
	}
	slices.Sort(crowded)
	for _, name := range crowded {
		unsupported = append(unsupported, fmt.Sprintf("resource %s (more than %d kinds of resource are in use)", name,
			resource.Size))
	}
	r.uncounted = append(r.uncounted, crowded...)
	return v, unsupported
}

// vector turns some of the requests into a vector, numbering resources that are new. crowded are those for which there
// was no number left. What is below zero counts as nothing: otherwise one pod would make room for others. The API
// server refuses it in a pod's requests, but not in the status that a kubelet writes.
func (b *Book) vector(list []request, which func(name string) bool) (v resource.Vector, crowded []string) {
	for _, r := range list {
		name := corev1.ResourceName(r.name)
		if !b.isCounted(name) || !which(r.name) {
			continue
		}
		if dim, ok := b.numberResource(name); ok {
			v[dim] = max(0, amount(dim, r.amount))
		} else {
			crowded = append(crowded, r.name)
		}
	}
	return v, crowded
}

func anyName(string) bool { return true }

// measure turns a capacity into a vector over the resources that somebody has asked for. The schema of a NodeClaim
// takes amounts below zero; nobody has less than nothing.
func (b *Book) measure(list corev1.ResourceList) resource.Vector {
	var v resource.Vector
	for name, q := range list {
		if dim, ok := b.names.Lookup(string(name)); ok {
			v[dim] = max(0, amount(dim, q))
		}
	}
	return v
}
