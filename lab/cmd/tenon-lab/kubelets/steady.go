package kubelets

import (
	"context"

	"github.com/tenon-sh/tenon/lab/internal/steadywatch"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// steadyClient is a client whose watches of nodes and pods resume where they
// were interrupted.
type steadyClient struct {
	kubernetes.Interface
	core steadyCore
}

func newSteadyClient(inner kubernetes.Interface) steadyClient {
	return steadyClient{Interface: inner, core: steadyCore{
		CoreV1Interface: inner.CoreV1(),
		nodes:           steadywatch.NewMemory(),
		pods:            steadywatch.NewMemory(),
	}}
}

func (c steadyClient) CoreV1() typedcorev1.CoreV1Interface { return c.core }

type steadyCore struct {
	typedcorev1.CoreV1Interface
	nodes, pods *steadywatch.Memory
}

func (c steadyCore) Nodes() typedcorev1.NodeInterface {
	return steadyNodes{NodeInterface: c.CoreV1Interface.Nodes(), memory: c.nodes}
}

func (c steadyCore) Pods(namespace string) typedcorev1.PodInterface {
	pods := c.CoreV1Interface.Pods(namespace)
	if namespace != metav1.NamespaceAll {
		return pods
	}
	return steadyPods{PodInterface: pods, memory: c.pods}
}

type steadyNodes struct {
	typedcorev1.NodeInterface
	memory *steadywatch.Memory
}

func (n steadyNodes) List(ctx context.Context, options metav1.ListOptions) (*corev1.NodeList, error) {
	list, err := n.NodeInterface.List(ctx, options)
	if err == nil {
		n.memory.Reached(selectorOf(options), list.ResourceVersion)
	}
	return list, err
}

func (n steadyNodes) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return resume(ctx, n.memory, options, n.NodeInterface.Watch)
}

type steadyPods struct {
	typedcorev1.PodInterface
	memory *steadywatch.Memory
}

func (p steadyPods) List(ctx context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
	list, err := p.PodInterface.List(ctx, options)
	if err == nil {
		p.memory.Reached(selectorOf(options), list.ResourceVersion)
	}
	return list, err
}

func (p steadyPods) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return resume(ctx, p.memory, options, p.PodInterface.Watch)
}

// selectorOf tells the one watch of all pods from the lists of single nodes'
// pods, which say nothing about how far the watch has come.
func selectorOf(options metav1.ListOptions) string {
	return options.LabelSelector + ";" + options.FieldSelector
}

func resume(ctx context.Context, memory *steadywatch.Memory, options metav1.ListOptions,
	start func(context.Context, metav1.ListOptions) (watch.Interface, error)) (watch.Interface, error) {
	selector := selectorOf(options)
	options.ResourceVersion = memory.Resume(selector, options.ResourceVersion)
	w, err := start(ctx, options)
	if err != nil {
		return nil, err
	}
	return memory.Follow(selector, w), nil
}
