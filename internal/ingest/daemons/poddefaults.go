package daemons

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// podDefaults is what the API server adds to a pod when it is created, as far as placement depends on it. A template in
// a DaemonSet has none of that yet.
type podDefaults struct {
	limitRanges    map[string]map[string]*corev1.LimitRange // by namespace and name
	runtimeClasses map[string]*nodev1.RuntimeClass
	priorities     map[string]priorityClass
}

// priorityClass is the priority that a PriorityClass stands for; byDefault says that pods without a class get it.
type priorityClass struct {
	value     int32
	byDefault bool
}

func newPodDefaults() podDefaults {
	return podDefaults{
		limitRanges:    make(map[string]map[string]*corev1.LimitRange),
		runtimeClasses: make(map[string]*nodev1.RuntimeClass),
		priorities:     make(map[string]priorityClass),
	}
}

// apply is the spec of a pod that is made from the template, by the API server's own order: its defaults first, then
// what the RuntimeClass and the namespace's LimitRanges add. The template stays as it is.
func (a *podDefaults) apply(namespace string, template *corev1.PodSpec) *corev1.PodSpec {
	spec := template.DeepCopy()
	for _, c := range containersOf(spec) {
		c.Resources.Requests = withMissing(c.Resources.Requests, c.Resources.Limits)
		if spec.HostNetwork {
			defaultHostPorts(c.Ports)
		}
	}
	defaultPodRequests(spec)
	a.addPriority(spec)
	a.addRuntimeClass(spec)
	ranges := a.limitRanges[namespace]
	for _, name := range slices.Sorted(maps.Keys(ranges)) {
		for i := range ranges[name].Spec.Limits {
			addDefaults(spec, &ranges[name].Spec.Limits[i])
		}
	}
	return spec
}

func containersOf(spec *corev1.PodSpec) []*corev1.Container {
	var out []*corev1.Container
	for i := range spec.Containers {
		out = append(out, &spec.Containers[i])
	}
	for i := range spec.InitContainers {
		out = append(out, &spec.InitContainers[i])
	}
	return out
}

// withMissing is the list with the entries of the other one that it lacks.
func withMissing(list, other corev1.ResourceList) corev1.ResourceList {
	if len(other) == 0 {
		return list
	}
	out := maps.Clone(other)
	maps.Copy(out, list)
	return out
}

// defaultHostPorts gives ports the number that they have on the host when the pod uses the host's network.
func defaultHostPorts(ports []corev1.ContainerPort) {
	for i := range ports {
		if ports[i].HostPort == 0 {
			ports[i].HostPort = ports[i].ContainerPort
		}
	}
}

// defaultPodRequests fills in what a pod with limits of its own, beside its containers', asks for.
func defaultPodRequests(spec *corev1.PodSpec) {
	own := spec.Resources
	if own == nil || len(own.Limits) == 0 {
		return
	}
	requests := maps.Clone(own.Requests)
	if requests == nil {
		requests = make(corev1.ResourceList)
	}
	add := func(name corev1.ResourceName, from corev1.ResourceList) {
		if _, set := requests[name]; !set && resourcehelper.IsSupportedPodLevelResource(name) {
			requests[name] = from[name]
		}
	}
	containers := resourcehelper.AggregateContainerRequests(&corev1.Pod{Spec: *spec},
		resourcehelper.PodResourcesOptions{})
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if _, asked := containers[name]; asked {
			add(name, containers)
		}
	}
	for name := range own.Limits {
		add(name, own.Limits)
	}
	own.Requests = requests
}

// addPriority adds the number that the PriorityClass stands for. The API server refuses pods of a class that does not
// exist.
func (a *podDefaults) addPriority(spec *corev1.PodSpec) {
	if spec.Priority != nil {
		return
	}
	value, found := a.priorities[spec.PriorityClassName].value, false
	for _, c := range a.priorities {
		// Of several defaults the least counts.
		if spec.PriorityClassName == "" && c.byDefault && (!found || c.value < value) {
			value, found = c.value, true
		}
	}
	spec.Priority = &value
}

// addRuntimeClass adds what the spec's RuntimeClass takes for itself and asks of nodes.
func (a *podDefaults) addRuntimeClass(spec *corev1.PodSpec) {
	if spec.RuntimeClassName == nil {
		return
	}
	class := a.runtimeClasses[*spec.RuntimeClassName]
	if class == nil {
		return
	}
	if class.Overhead != nil {
		spec.Overhead = class.Overhead.PodFixed
	}
	if class.Scheduling == nil {
		return
	}
	selector := maps.Clone(class.Scheduling.NodeSelector)
	if selector == nil {
		selector = make(map[string]string)
	}
	maps.Copy(selector, spec.NodeSelector)
	spec.NodeSelector = selector
	spec.Tolerations = append(spec.Tolerations, class.Scheduling.Tolerations...)
}

// addDefaults gives each container what the LimitRange says about containers that don't say it themselves.
func addDefaults(spec *corev1.PodSpec, limits *corev1.LimitRangeItem) {
	if limits.Type != corev1.LimitTypeContainer {
		return
	}
	for _, c := range containersOf(spec) {
		c.Resources.Requests = withMissing(c.Resources.Requests, limits.DefaultRequest)
	}
}
