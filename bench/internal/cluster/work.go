package cluster

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	namespace = metav1.NamespaceDefault
	workName  = "inflate"
	// simulated is the label of nodes whose kubelet the lab plays.
	simulated = "kwok.x-k8s.io/node"
	// teams is how many Deployments the pods come from: one alone would be created in small steps, one after the other.
	teams = 10
	// podCPU and podMemory of every pod: PodsPerNode of them fill a node of the pool's only instance type.
	podCPU, podMemory = "790m", "2Gi"
	// PodsPerNode is how many pods fit a node.
	PodsPerNode = 20
	// nodeCPU, nodeMemory and nodePods are what that type leaves for pods; see manifests/pool.yaml.
	nodeCPU, nodeMemory, nodePods = "15900m", "65526Mi", "256"
)

// HandOver creates Deployments of pods that do nothing.
func (c *Client) HandOver(ctx context.Context, pods int) error {
	for i := range teams {
		d := deployment(teamName(i), int32((pods+teams-1-i)/teams))
		if _, err := c.typed.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create the Deployment %s: %w", d.Name, err)
		}
	}
	return nil
}

// TakeBack deletes the Deployments and leaves their pods to the garbage collector.
func (c *Client) TakeBack(ctx context.Context) error {
	background := metav1.DeletePropagationBackground
	for i := range teams {
		err := c.typed.AppsV1().Deployments(namespace).Delete(ctx, teamName(i),
			metav1.DeleteOptions{PropagationPolicy: &background})
		if err != nil {
			return fmt.Errorf("delete the Deployment %s: %w", teamName(i), err)
		}
	}
	return nil
}

func teamName(i int) string { return fmt.Sprintf("%s-%d", workName, i) }

// NodeLabels gives the labels of every node.
func (c *Client) NodeLabels(ctx context.Context) ([]map[string]string, error) {
	list, err := c.typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	var out []map[string]string
	for i := range list.Items {
		out = append(out, list.Items[i].Labels)
	}
	return out, nil
}

// CreateNodes makes empty nodes of the shape that the pool gives, for the run that needs no autoscaler.
func (c *Client) CreateNodes(ctx context.Context, count int) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(nodeCPU),
		corev1.ResourceMemory: resource.MustParse(nodeMemory),
		corev1.ResourcePods:   resource.MustParse(nodePods),
	}
	for i := range count {
		name := fmt.Sprintf("ready-made-%d", i)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: name,
				// The zone matters: kube-scheduler spreads the pods of a Deployment over zones unless told otherwise,
				// and looks at every pod in the zone of every node for it. Nodes without one would spare it half of its
				// work.
				Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux",
					corev1.LabelArchStable:   "amd64",
					corev1.LabelTopologyZone: "test-zone-a", simulated: "fake"},
			},
			Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
		}
		if _, err := c.typed.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", name, err)
		}
	}
	return nil
}

func deployment(name string, pods int32) *appsv1.Deployment {
	template := podTemplate(name, corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(podCPU), corev1.ResourceMemory: resource.MustParse(podMemory)})
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &pods,
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: template,
		},
	}
}

// podTemplate is a pod that asks for resources and does nothing.
func podTemplate(app string, requests corev1.ResourceList) corev1.PodTemplateSpec {
	none, yes, no, user := int64(0), true, false, int64(1000)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &none,
			SecurityContext:               &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user},
			Containers: []corev1.Container{{
				Name:            workName,
				Image:           "registry.k8s.io/pause:3.10",
				Resources:       corev1.ResourceRequirements{Requests: requests},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no},
			}},
		},
	}
}
