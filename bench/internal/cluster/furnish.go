package cluster

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const (
	poolName         = "default"
	poolLabel        = "karpenter.sh/nodepool"
	poolHash         = "karpenter.sh/nodepool-hash"
	poolHashVersion  = "karpenter.sh/nodepool-hash-version"
	classLabel       = "karpenter.kwok.sh/kwoknodeclass"
	capacityLabel    = "karpenter.sh/capacity-type"
	deletionCost     = "controller.kubernetes.io/pod-deletion-cost"
	mergePatch       = types.MergePatchType
	readyMadeClaims  = "ready-made-"
	onlyZone         = "test-zone-a"
	onlyCapacityType = "on-demand"
)

// CreateClaims orders the nodes of a layout. The contestant launches them as if it had ordered them itself: the claims
// say the same as its own would, and carry the stamp that it has put on the pool.
func (c *Client) CreateClaims(ctx context.Context, l *Layout) error {
	pool, err := c.stampedPool(ctx)
	if err != nil {
		return err
	}
	kind, _ := resourceOf("NodeClaim")
	for i := range l.Hosts {
		claim := claimFor(l, i, pool)
		if _, err := c.dynamic.Resource(kind).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create NodeClaim %s: %w", claim.GetName(), err)
		}
	}
	return nil
}

// stampedPool waits until the contestant has written the hash of the pool's template, without which no node would
// drift.
func (c *Client) stampedPool(ctx context.Context) (*unstructured.Unstructured, error) {
	kind, _ := resourceOf("NodePool")
	var pool *unstructured.Unstructured
	err := poll(ctx, "the hash of the NodePool", func(ctx context.Context) (bool, error) {
		var err error
		pool, err = c.dynamic.Resource(kind).Get(ctx, poolName, metav1.GetOptions{})
		return err == nil && pool.GetAnnotations()[poolHash] != "", err
	})
	return pool, err
}

func claimFor(l *Layout, host int, pool *unstructured.Unstructured) *unstructured.Unstructured {
	cpu, memory := int64(0), int64(0)
	for _, p := range l.Hosts[host].Pods {
		cpu += l.Teams[p.Team].CPU
		memory += l.Teams[p.Team].Memory
	}
	in := func(key, value string) any {
		return map[string]any{"key": key, "operator": "In", "values": []any{value}}
	}
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
		"spec": map[string]any{
			"nodeClassRef": map[string]any{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
			"requirements": []any{
				in(corev1.LabelInstanceTypeStable, l.Hosts[host].Type.name), in(capacityLabel, onlyCapacityType),
				in(corev1.LabelTopologyZone, onlyZone), in(poolLabel, poolName),
			},
			"resources": map[string]any{"requests": map[string]any{
				"cpu": fmt.Sprintf("%dm", cpu), "memory": fmt.Sprintf("%dMi", memory),
				"pods": strconv.Itoa(len(l.Hosts[host].Pods))}},
			"expireAfter": "Never",
		},
	}}
	claim.SetName(readyMadeClaims + strconv.Itoa(host))
	claim.SetLabels(map[string]string{poolLabel: poolName, classLabel: "default"})
	claim.SetAnnotations(map[string]string{poolHash: pool.GetAnnotations()[poolHash],
		poolHashVersion: pool.GetAnnotations()[poolHashVersion]})
	yes := true
	claim.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: pool.GetAPIVersion(), Kind: pool.GetKind(), Name: pool.GetName(), UID: pool.GetUID(),
		BlockOwnerDeletion: &yes}})
	return claim
}

// CreateTenants puts the pods of a layout on their nodes.
func (c *Client) CreateTenants(ctx context.Context, l *Layout) error {
	kind, _ := resourceOf("NodeClaim")
	for i, h := range l.Hosts {
		claim, err := c.dynamic.Resource(kind).Get(ctx, readyMadeClaims+strconv.Itoa(i), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("look up NodeClaim %s%d: %w", readyMadeClaims, i, err)
		}
		node, _, _ := unstructured.NestedString(claim.Object, "status", "nodeName")
		for _, p := range h.Pods {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.Name}}
			template := l.Teams[p.Team].template()
			pod.Labels, pod.Spec = template.Labels, template.Spec
			pod.Spec.NodeName = node
			if p.Leaves {
				// Kubernetes lets the cheapest pods go first, so exactly these.
				pod.Annotations = map[string]string{deletionCost: "-1"}
			}
			if _, err := c.typed.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create pod %s: %w", pod.Name, err)
			}
		}
	}
	return nil
}

// CreateOwners gives the pods to ReplicaSets. They find pods that have no owner, and take them in.
func (c *Client) CreateOwners(ctx context.Context, l *Layout) error {
	for _, t := range l.Teams {
		if t.Pods == 0 {
			continue
		}
		replicas, template := int32(t.Pods), t.template()
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: t.Name}, Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template}}
		if _, err := c.typed.AppsV1().ReplicaSets(namespace).Create(ctx, set, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create ReplicaSet %s: %w", t.Name, err)
		}
	}
	return nil
}

// Adopted waits until every pod has an owner.
func (c *Client) Adopted(ctx context.Context) error {
	return poll(ctx, "the owners of the pods", func(ctx context.Context) (bool, error) {
		list, err := c.typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if metav1.GetControllerOf(&list.Items[i]) == nil {
				return false, nil
			}
		}
		return true, nil
	})
}

// ScaleDown lets the pods go that are to leave.
func (c *Client) ScaleDown(ctx context.Context, l *Layout) error {
	for _, t := range l.Teams {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, t.Left)
		if t.Pods == 0 {
			continue
		}
		if _, err := c.typed.AppsV1().ReplicaSets(namespace).Patch(ctx, t.Name, mergePatch, patch,
			metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("scale ReplicaSet %s down: %w", t.Name, err)
		}
	}
	return nil
}

// OpenBudget lets every node of the pool be disrupted.
func (c *Client) OpenBudget(ctx context.Context) error {
	return c.patchPool(ctx, `{"spec":{"disruption":{"budgets":[{"nodes":"100%"}]}}}`)
}

// ChangeTemplate gives the pool's nodes another label, so that all that are there have drifted.
func (c *Client) ChangeTemplate(ctx context.Context) error {
	return c.patchPool(ctx, `{"spec":{"template":{"metadata":{"labels":{"example.com/edition":"second"}}}}}`)
}

func (c *Client) patchPool(ctx context.Context, patch string) error {
	kind, _ := resourceOf("NodePool")
	if _, err := c.dynamic.Resource(kind).Patch(ctx, poolName, mergePatch, []byte(patch),
		metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("change the NodePool: %w", err)
	}
	return nil
}

// template is what the team's pods look like.
func (t Team) template() corev1.PodTemplateSpec {
	return podTemplate(t.Name, corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(t.CPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(t.Memory<<20, resource.BinarySI),
	})
}
