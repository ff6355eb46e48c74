package labpods

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

const (
	// NodeLabelKey marks the nodes whose pods run.
	NodeLabelKey = "lab.tenon.sh/system"
	// taintKey keeps other workloads away; the chart tolerates it.
	taintKey = "CriticalAddonsOnly"
	// beatEvery is well within the grace period that the lab's controller manager is given, which is five minutes.
	beatEvery = 60 * time.Second
)

func (r *Runner) nodeNames() []string {
	var out []string
	for i := range r.o.Zones {
		out = append(out, fmt.Sprintf("system-%d", i+1))
	}
	return out
}

// makeNodes makes the nodes, or takes over those of an earlier run.
func (r *Runner) makeNodes(ctx context.Context) error {
	for i, name := range r.nodeNames() {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				NodeLabelKey: "true", corev1.LabelHostname: name, corev1.LabelTopologyZone: r.o.Zones[i],
				corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
			}},
			Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: taintKey, Value: "true",
				Effect: corev1.TaintEffectNoSchedule}}},
		}
		_, err := r.api.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making node %s: %w", name, err)
		}
		if err := r.report(ctx, name); err != nil {
			return fmt.Errorf("making node %s ready: %w", name, err)
		}
	}
	return nil
}

// report says that a node is well, what it has, and where its logs are. There is no hostname among the addresses: the
// API server would look for it.
func (r *Runner) report(ctx context.Context, name string) error {
	now := metav1.Now()
	has := nodeHas()
	status := corev1.NodeStatus{
		Capacity: has, Allocatable: has,
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: r.logs.port}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
			Reason: "ProcessesRun", Message: "pods of Tenon's image run as processes of this machine",
			LastHeartbeatTime: now, LastTransitionTime: now}},
		NodeInfo: corev1.NodeSystemInfo{OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
			OSImage: "processes", KernelVersion: "processes", ContainerRuntimeVersion: "processes://0",
			KubeletVersion: "v0.0.0"},
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = r.api.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	return err
}

// nodeHas is the capacity of a system node.
func nodeHas() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"),
		corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110")}
}

// beat keeps the nodes alive.
func (r *Runner) beat(ctx context.Context) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			for _, name := range r.nodeNames() {
				if err := r.report(ctx, name); err != nil && ctx.Err() == nil {
					r.o.Log("node %s: %v", name, err)
				}
			}
		}
	}
}

// watch follows the pods of a node.
func (r *Runner) watch(ctx context.Context, node string) {
	mine := informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
	})
	informer := informers.NewSharedInformerFactoryWithOptions(r.api, 0, mine).Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { r.sync(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { r.sync(object.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if p, ok := object.(*corev1.Pod); ok {
				r.gone(string(p.UID))
			}
		},
	})
	if err != nil {
		r.o.Log("node %s: %v", node, err)
		return
	}
	informer.RunWithContext(ctx)
}
