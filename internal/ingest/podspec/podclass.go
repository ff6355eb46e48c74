package podspec

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

// Spec is what a class is made from: everything that matters to placement, before resources are numbered. Pods of
// one pod key share a spec; specs with the same content share a class.
type Spec struct {
	Requests    []Request // by rising name: as a map they take four times as much, and each class has its own
	Terms       []require.Set
	OwnTerms    []require.Set // terms without what volumes add, if that differs
	tolerations []cluster.Toleration
	priority    int32
	rules       []*cluster.Rule
	preferences []cluster.Preference
	ports       []cluster.Port
	Unsupported []string
	tooMany     []string // those of unsupported that say what there is too much of

	nodeKey string // set with the key
	class   *cluster.PodClass
	// the resources that the class does not count by: nobody offered them, or there were too many kinds
	uncounted []string
}

// Specs makes classes of pods, and remembers what they are made of: pods that ask for the same share it.
type Specs struct {
	// Dims are the dimensions that classes count by.
	Dims      Dimensions
	keyWriter podKeyWriter
	byKey     map[string]*Spec // by the bytes of the pod key
	classes   map[string]*Spec // by the key of the class
	rules     map[string]*cluster.Rule
	labelSets map[string]cluster.Labels            // labels of pods, by their bytes
	limits    map[resource.Vector]*resource.Vector // limits of pods
	derived   map[derivedKey]*Spec                 // of pods with volumes, or with default constraints
	keptBytes int                                  // about how many bytes all that takes
}

// New knows no pod yet.
func New() Specs {
	return Specs{
		Dims:  Dimensions{Names: &resource.Names{}, supply: newResourceSupply(), limited: make(map[string]bool)},
		byKey: make(map[string]*Spec), classes: make(map[string]*Spec),
		rules: make(map[string]*cluster.Rule), labelSets: make(map[string]cluster.Labels),
		limits: make(map[resource.Vector]*resource.Vector), derived: make(map[derivedKey]*Spec),
	}
}

// Of finds or makes the spec of a pod, its volumes left aside.
func (s *Specs) Of(meta *metav1.ObjectMeta, spec *corev1.PodSpec, status *corev1.PodStatus) *Spec {
	over := podExcessOf(spec)
	if over.isAny() {
		spec = over.strip(spec)
	}
	shape := s.keyWriter.podKey(meta, spec, status)
	if over.isAny() {
		s.keyWriter.texts(over.messages)
		shape = s.keyWriter.bytes
	}
	if r := s.byKey[string(shape)]; r != nil {
		return r
	}
	key := string(shape)
	r := s.readSpec(meta, spec, status)
	r.tooMany = over.messages
	r.Unsupported = append(r.Unsupported, over.messages...)
	s.byKey[key] = r
	s.keptBytes += len(key) + specCost(r)
	return r
}

// readSpec makes the spec of a pod.
func (s *Specs) readSpec(meta *metav1.ObjectMeta, spec *corev1.PodSpec, status *corev1.PodStatus) *Spec {
	r := &Spec{Requests: podRequests(spec, status), tolerations: tolerationsOf(spec.Tolerations),
		ports: portsOf(spec)}
	if n := len(r.Requests); n > MostResources {
		r.Requests = s.Dims.numberedRequests(r.Requests)
		r.Unsupported = []string{fmt.Sprintf("kinds of resource in the requests of all containers: %d found, at most "+
			"%d are read; ask for fewer", n, MostResources)}
	}
	terms, problem := termsOf(spec)
	ties := s.readRules(meta, spec)
	r.Terms, r.rules, r.preferences = terms, ties.rules, ties.preferences
	r.Unsupported = append(append(r.Unsupported, FirstFew(problem)...), FirstFew(ties.problems)...)
	if len(spec.ResourceClaims) > 0 {
		r.Unsupported = append(r.Unsupported, "dynamic resource claims")
	}
	if spec.Priority != nil {
		r.priority = *spec.Priority
	}
	return r
}

// Class finds or makes the class of a spec.
func (s *Specs) Class(r *Spec) *cluster.PodClass {
	if r.class != nil {
		return r.class
	}
	key := r.key()
	if known := s.classes[key]; known != nil {
		r.class = known.class
		return r.class
	}
	r.class = s.makeClass(key, r)
	s.classes[key] = r
	s.keptBytes += entryCost
	return r.class
}

// KnownClass finds a class by its key, nil if it is forgotten.
func (s *Specs) KnownClass(key string) *cluster.PodClass {
	if r := s.classes[key]; r != nil {
		return r.class
	}
	return nil
}

// Obstacles says what of a class is too long, and which resources it asks for that nobody offers.
func (s *Specs) Obstacles(key string) (tooMany, notOffered []string) {
	r := s.classes[key]
	if r == nil {
		return nil, nil
	}
	return r.tooMany, slices.DeleteFunc(slices.Clone(r.uncounted), s.Dims.IsOffered)
}

func (s *Specs) makeClass(key string, r *Spec) *cluster.PodClass {
	c := &cluster.PodClass{
		Key: key, NodeKey: r.nodeKey, Priority: r.priority,
		Terms: r.Terms, OwnTerms: r.OwnTerms, Tolerations: r.tolerations,
		Rules: r.rules, Preferences: r.preferences, Ports: r.ports,
	}
	c.Requests, c.Unsupported = s.Dims.requestVector(r, slices.Clone(r.Unsupported))
	return c
}

// derivedKey names a spec that was made from another by adding volumes or default spread constraints.
type derivedKey struct {
	base *Spec
	text string
}

// Remake makes classes anew whose resources are numbered differently now; it says which took the place of which.
func (s *Specs) Remake(which func(*Spec) bool) map[*cluster.PodClass]*cluster.PodClass {
	changed := make(map[*cluster.PodClass]*cluster.PodClass)
	for key, r := range s.classes {
		if which(r) {
			changed[r.class] = s.makeClass(key, r)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	swap := func(r *Spec) {
		if c := changed[r.class]; c != nil {
			r.class = c
		}
	}
	for _, r := range s.classes {
		swap(r)
	}
	for _, r := range s.byKey {
		swap(r)
	}
	for _, r := range s.derived {
		swap(r)
	}
	return changed
}

// Derive finds or makes the spec that comes of another by a change, which the text names.
func (s *Specs) Derive(base *Spec, text string, change func(*Spec)) *Spec {
	key := derivedKey{base: base, text: text}
	if r := s.derived[key]; r != nil {
		return r
	}
	r := *base
	r.class = nil
	change(&r)
	s.derived[key] = &r
	s.keptBytes += len(text) + specCost(&r)
	return &r
}

// WithRequests is the spec with other requests.
func (r *Spec) WithRequests(list []Request) *Spec {
	other := *r
	other.Requests, other.class = list, nil
	return &other
}

// key is a hash over text, not over numbers that depend on what else is in the cluster, so it survives a restart. It
// also works out the one over what is asked of nodes: to compare that in each plan would take seconds where many pods
// have long lists.
func (r *Spec) key() string {
	text := new(strings.Builder)
	for _, r := range r.Requests {
		fmt.Fprintf(text, "%s=%s\n", r.Name, r.Amount.String())
	}
	node := sha256.New()
	from := text.Len()
	for _, term := range r.Terms {
		text.WriteString("term ")
		term.Write(text)
		text.WriteByte('\n')
	}
	node.Write([]byte(text.String()[from:]))
	fmt.Fprintf(node, "%+v", r.tolerations)
	for _, term := range r.OwnTerms {
		text.WriteString("own term ")
		term.Write(text)
		text.WriteByte('\n')
	}
	fmt.Fprintf(text, "%+v\n%d\n%q\n", r.tolerations, r.priority, r.Unsupported)
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
func podRequests(spec *corev1.PodSpec, status *corev1.PodStatus) []Request {
	// Finding each container's status takes time in proportion to their number, so only those with something to say are
	// asked.
	resized := *status
	resized.ContainerStatuses, resized.InitContainerStatuses = resizedStatuses(status.ContainerStatuses),
		resizedStatuses(status.InitContainerStatuses)
	requests := resourcehelper.PodRequests(&corev1.Pod{Spec: *spec, Status: resized},
		resourcehelper.PodResourcesOptions{
			UseStatusResources: len(spec.Containers)+len(spec.InitContainers) <= MostContainers,
			InPlacePodLevelResourcesVerticalScalingEnabled: true,
		})
	maps.DeleteFunc(requests, func(_ corev1.ResourceName, q apiresource.Quantity) bool { return q.IsZero() })
	requests[corev1.ResourcePods] = *oneSlot()
	return requestsOf(requests)
}

// requestsOf lists resources by rising name.
func requestsOf(list corev1.ResourceList) []Request {
	out := make([]Request, 0, len(list))
	for name, q := range list {
		out = append(out, Request{string(name), q})
	}
	slices.SortFunc(out, func(a, b Request) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// numberedRequests are those that somebody has a number for already.
func (d *Dimensions) numberedRequests(list []Request) []Request {
	return slices.DeleteFunc(slices.Clone(list), func(r Request) bool {
		_, known := d.Names.Lookup(r.Name)
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
func (d *Dimensions) requestVector(r *Spec, unsupported []string) (resource.Vector, []string) {
	r.uncounted = nil
	for _, q := range r.Requests {
		if d.isCounted(corev1.ResourceName(q.Name)) && !d.IsOffered(q.Name) {
			r.uncounted = append(r.uncounted, q.Name)
		}
	}
	if len(r.uncounted) > 0 {
		unsupported = append(unsupported, NotOfferedMessage(r.uncounted))
	}
	v, crowded := d.vector(r.Requests, func(name string) bool {
		return d.IsOffered(name) && !d.supply.yielded[name]
	})
	for _, q := range r.Requests {
		if d.supply.yielded[q.Name] && d.IsOffered(q.Name) {
			crowded, d.outOfDimensions = append(crowded, q.Name), true
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
func (d *Dimensions) vector(list []Request, which func(name string) bool) (v resource.Vector, crowded []string) {
	for _, r := range list {
		name := corev1.ResourceName(r.Name)
		if !d.isCounted(name) || !which(r.Name) {
			continue
		}
		if dim, ok := d.number(name); ok {
			v[dim] = max(0, amount(dim, r.Amount))
		} else {
			crowded = append(crowded, r.Name)
		}
	}
	return v, crowded
}

// Number turns requests into a vector, numbering resources that are new; those without a number are left out.
func (d *Dimensions) Number(list corev1.ResourceList) resource.Vector {
	v, _ := d.vector(requestsOf(list), func(string) bool { return true })
	return v
}

// Measure turns a capacity into a vector over the resources that somebody has asked for. The schema of a NodeClaim
// takes amounts below zero; nobody has less than nothing.
func (d *Dimensions) Measure(list corev1.ResourceList) resource.Vector {
	var v resource.Vector
	for name, q := range list {
		if dim, ok := d.Names.Lookup(string(name)); ok {
			v[dim] = max(0, amount(dim, q))
		}
	}
	return v
}
