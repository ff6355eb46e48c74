package karpenter

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	peerv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tenon-sh/tenon/bench/internal/workload"
)

// store answers the peer's reads from a workload, as the cache of a running controller would. A scheduler only reads:
// the other methods of the interface are left nil.
type store struct {
	client.Client
	pools  []peerv1.NodePool
	nodes  map[string]*corev1.Node
	pods   []*corev1.Pod
	onNode map[string][]*corev1.Pod
}

func newStore(w *workload.Workload, pools []peerv1.NodePool) *store {
	s := &store{pools: pools, nodes: make(map[string]*corev1.Node), onNode: make(map[string][]*corev1.Pod)}
	for _, n := range w.Nodes {
		s.nodes[n.Name] = n
	}
	s.pods = append(append(s.pods, w.Running...), w.Pods...)
	for _, p := range s.pods {
		s.onNode[p.Spec.NodeName] = append(s.onNode[p.Spec.NodeName], p)
	}
	return s
}

// Get knows nodes and nothing else.
func (s *store) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if node, ok := object.(*corev1.Node); ok {
		if found := s.nodes[key.Name]; found != nil {
			*node = *found
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", object)}, key.Name)
}

// List knows pools and pods. There are no DaemonSets, and a namespace that nobody selects by label is not asked for.
func (s *store) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	switch l := list.(type) {
	case *peerv1.NodePoolList:
		l.Items = append([]peerv1.NodePool(nil), s.pools...)
		return nil
	case *appsv1.DaemonSetList:
		l.Items = nil
		return nil
	case *corev1.PodList:
		return s.listPods(l, &o)
	}
	return fmt.Errorf("the benchmark holds no %T", list)
}

func (s *store) listPods(list *corev1.PodList, o *client.ListOptions) error {
	pods := s.pods
	if o.FieldSelector != nil {
		node, ok := o.FieldSelector.RequiresExactMatch("spec.nodeName")
		if !ok {
			return fmt.Errorf("the benchmark can't select pods by %s", o.FieldSelector)
		}
		pods = s.onNode[node]
	}
	list.Items = nil
	for _, p := range pods {
		if o.Namespace != "" && o.Namespace != p.Namespace || o.LabelSelector != nil &&
			!o.LabelSelector.Matches(labels.Set(p.Labels)) {
			continue
		}
		list.Items = append(list.Items, *p)
	}
	return nil
}
