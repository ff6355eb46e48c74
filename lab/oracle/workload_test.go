package oracle

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// deployment draws pods of one shape. Some run already, if kube-scheduler finds a place for them; the others wait.
func (g *generator) deployment(number int) {
	shape := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pick(g.dice, "blue", "blue", "red", "green"),
			Labels:    map[string]string{appLabel: pick(g.dice, "a", "b", "c"), revisionLabel: pick(g.dice, "1", "2")},
		},
		Spec: corev1.PodSpec{
			Containers:    []corev1.Container{{Name: "main", Image: "main"}},
			RestartPolicy: corev1.RestartPolicyAlways, SchedulerName: corev1.DefaultSchedulerName,
		},
	}
	g.requests(shape)
	for range g.between(0, 3) {
		pick(g.dice, g.themes...).put(g, shape)
	}
	running, waiting := g.between(0, 2), g.between(1, 4)
	owner := g.uid()
	for i := range running + waiting {
		pod := shape.DeepCopy()
		pod.Name, pod.UID = fmt.Sprintf("d%d-%d", number, i+1), g.uid()
		if waiting+running > 1 {
			pod.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprintf("d%d", number), UID: owner,
				Controller: new(true)}}
		}
		g.claims(pod)
		if i < running {
			g.run(pod)
			continue
		}
		pod.Status.Phase = corev1.PodPending
		if g.chance(3) {
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/not-yet"}}
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
			g.s.w.Pods = append(g.s.w.Pods, pod)
			continue
		}
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		g.s.w.Pods = append(g.s.w.Pods, pod)
	}
}

// run places the pod on a node that takes it; without one there is no such pod.
func (g *generator) run(pod *corev1.Pod) {
	for _, i := range g.Perm(len(g.s.w.Nodes)) {
		name := g.s.w.Nodes[i].Name
		if g.s.refuse(pod, name)[name] == "" {
			g.s.bind(pod, name)
			if g.chance(10) {
				g.resize(pod.UID)
			}
			return
		}
	}
}

// resize lets a running pod hold more than it asks for: it is being made smaller in place.
func (g *generator) resize(uid types.UID) {
	i := slices.IndexFunc(g.s.w.Pods, func(p *corev1.Pod) bool { return p.UID == uid })
	pod := g.s.w.Pods[i].DeepCopy()
	holds := corev1.ResourceList{corev1.ResourceCPU: amount("1"), corev1.ResourceMemory: amount("1Gi")}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", AllocatedResources: holds, Resources: &corev1.ResourceRequirements{Requests: holds}}}
	g.s.w.Pods[i], g.s.now = pod, nil
}

// requests draws what a pod's first container takes.
func (g *generator) requests(pod *corev1.Pod) {
	list := corev1.ResourceList{}
	if g.chance(90) {
		list[corev1.ResourceCPU] = amount(pick(g.dice, "100m", "250m", "500m", "900m", "1500m", "3"))
	}
	if g.chance(90) {
		list[corev1.ResourceMemory] = amount(pick(g.dice, "128Mi", "512Mi", "1Gi", "3Gi"))
	}
	pod.Spec.Containers[0].Resources.Requests = list
}

// daemonSet draws a daemonset whose pods run on every node that it selects.
func (g *generator) daemonSet(number int) {
	name := fmt.Sprintf("daemon-%d", number)
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "green", Name: name, UID: g.uid()}}
	labels := map[string]string{appLabel: name}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template.Labels = labels
	container := corev1.Container{Name: "main", Image: "main",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: amount(pick(g.dice, "50m", "200m")), corev1.ResourceMemory: amount("64Mi")}}}
	if g.chance(20) {
		container.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8079 + int32(number),
			Protocol: corev1.ProtocolTCP}}
	}
	set.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{container}, RestartPolicy: corev1.RestartPolicyAlways,
		SchedulerName: corev1.DefaultSchedulerName}
	if g.chance(40) {
		set.Spec.Template.Spec.NodeSelector = pick(g.dice,
			map[string]string{corev1.LabelTopologyZone: "z1"}, map[string]string{capacityTypeLabel: "spot"},
			map[string]string{corev1.LabelArchStable: "amd64"})
	}
	if g.chance(50) {
		set.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	g.s.w.DaemonSets = append(g.s.w.DaemonSets, set)
	for _, n := range g.s.w.Nodes {
		if pod := daemonPod(set, n); pod != nil && g.s.refuse(pod, n.Name)[n.Name] == "" {
			g.s.bind(pod, n.Name)
		}
	}
}

// daemonPod is the pod that the daemonset controller makes for a node; nil if it makes none.
func daemonPod(set *appsv1.DaemonSet, node *corev1.Node) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: set.Name + "-" + node.Name, UID: set.UID + "-" + node.UID,
			Labels: set.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "DaemonSet", Name: set.Name, UID: set.UID, Controller: new(true)}},
		},
		Spec: *set.Spec.Template.Spec.DeepCopy(),
	}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: key,
			Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	}
	for _, key := range []string{corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure,
		corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable} {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: key,
			Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !fits {
		return nil
	}
	_, kept := corev1helpers.FindMatchingUntoleratedTaint(klog.Logger{}, node.Spec.Taints, pod.Spec.Tolerations,
		func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }, false)
	if kept {
		return nil
	}
	return pod
}
