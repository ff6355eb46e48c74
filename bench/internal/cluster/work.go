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
)

// HandOver creates a Deployment of pods that do nothing and ask for one CPU each.
func (c *Client) HandOver(ctx context.Context, pods int) error {
	if _, err := c.typed.AppsV1().Deployments(namespace).Create(ctx, deployment(int32(pods)), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the Deployment: %w", err)
	}
	return nil
}

// TakeBack deletes the Deployment and leaves its pods to the garbage collector.
func (c *Client) TakeBack(ctx context.Context) error {
	background := metav1.DeletePropagationBackground
	err := c.typed.AppsV1().Deployments(namespace).Delete(ctx, workName, metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil {
		return fmt.Errorf("delete the Deployment: %w", err)
	}
	return nil
}

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

// CreateNodes makes empty nodes of one shape, for the run that needs no autoscaler.
func (c *Client) CreateNodes(ctx context.Context, count, cpus int) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(cpus), resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods:   resource.MustParse("512"),
	}
	for i := range count {
		name := fmt.Sprintf("ready-made-%d", i)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: name,
				Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
					simulated: "fake"},
			},
			Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
		}
		if _, err := c.typed.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", name, err)
		}
	}
	return nil
}

func deployment(pods int32) *appsv1.Deployment {
	labels := map[string]string{"app": workName}
	none, yes, no, user := int64(0), true, false, int64(1000)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: workName},
		Spec: appsv1.DeploymentSpec{
			Replicas: &pods,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &none,
					SecurityContext:               &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user},
					Containers: []corev1.Container{{
						Name:            workName,
						Image:           "registry.k8s.io/pause:3.10",
						Resources:       corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
						SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no},
					}},
				},
			},
		},
	}
}
