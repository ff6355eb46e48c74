package oracle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// judges are the plugins that can rule a node out. The first two rule nothing out; a framework does not come without.
func judges() []string {
	return []string{
		names.PrioritySort, names.DefaultBinder,
		names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodePorts,
		names.NodeResourcesFit, names.VolumeRestrictions, names.NodeVolumeLimits, names.VolumeBinding, names.VolumeZone,
		names.PodTopologySpread, names.InterPodAffinity,
	}
}

// profile is kube-scheduler's default configuration, cut to the judges.
func profile() (*config.KubeSchedulerProfile, error) {
	metrics.Register()
	defaults, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("read kube-scheduler's defaults: %w", err)
	}
	out := defaults.Profiles[0].DeepCopy()
	keep := judges()
	out.Plugins.MultiPoint.Enabled = slices.DeleteFunc(out.Plugins.MultiPoint.Enabled, func(p config.Plugin) bool {
		return !slices.Contains(keep, p.Name)
	})
	if have := len(out.Plugins.MultiPoint.Enabled); have != len(keep) {
		return nil, fmt.Errorf("kube-scheduler has %d of the %d plugins by default", have, len(keep))
	}
	return out, nil
}

// scheduler is kube-scheduler's judgement over a world that changes as pods are placed.
type scheduler struct {
	w         *world
	framework framework.Framework
	informers informers.SharedInformerFactory
	ctx       context.Context
	end       context.CancelFunc
	now       *cache.Snapshot // nil after a change
}

// newScheduler looks at a copy of the world.
func newScheduler(profile *config.KubeSchedulerProfile, w *world) (*scheduler, error) {
	s := &scheduler{informers: informers.NewSharedInformerFactory(kubernetes.New(nil), 0)}
	s.ctx, s.end = context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	var err error
	s.framework, err = runtime.NewFramework(s.ctx, plugins.NewInTreeRegistry(), profile,
		runtime.WithInformerFactory(s.informers), runtime.WithSnapshotSharedLister(s), runtime.WithParallelism(1),
		runtime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(s.informers.Storage().V1().CSINodes().Lister())))
	if err != nil {
		s.end()
		return nil, fmt.Errorf("start kube-scheduler's plugins: %w", err)
	}
	s.reset(w)
	return s, nil
}

// reset makes the world what it was.
func (s *scheduler) reset(w *world) {
	s.w, s.now = w.clone(), nil
	core, storage := s.informers.Core().V1(), s.informers.Storage().V1()
	show(s, core.Namespaces().Informer().GetIndexer(), w.Namespaces)
	show(s, core.PersistentVolumes().Informer().GetIndexer(), w.Volumes)
	show(s, core.PersistentVolumeClaims().Informer().GetIndexer(), w.VolumeClaims)
	show(s, storage.StorageClasses().Informer().GetIndexer(), w.StorageClasses)
	show(s, storage.CSINodes().Informer().GetIndexer(), w.CSINodes)
}

// show makes the list all that an informer knows.
func show[T any](s *scheduler, index toolscache.Indexer, list []T) {
	objects := make([]any, len(list))
	for i := range list {
		objects[i] = list[i]
	}
	s.tell(index.Replace(objects, ""))
}

// tell stops at an object without a name, which only a mistake in the oracle could make.
func (s *scheduler) tell(err error) {
	if err != nil {
		panic(err)
	}
}

// The lister shows the plugins the world as it is now.

func (s *scheduler) current() *cache.Snapshot {
	if s.now == nil {
		bound := slices.DeleteFunc(slices.Clone(s.w.Pods), func(p *corev1.Pod) bool { return p.Spec.NodeName == "" })
		s.now = cache.NewSnapshot(bound, s.w.Nodes)
	}
	return s.now
}

func (s *scheduler) NodeInfos() fwk.NodeInfoLister           { return s.current().NodeInfos() }
func (s *scheduler) StorageInfos() fwk.StorageInfoLister     { return s.current().StorageInfos() }
func (s *scheduler) PodGroupStates() fwk.PodGroupStateLister { return s.current().PodGroupStates() }

// refuse says of each node why the pod can't run there; empty if it can. It is one scheduling cycle without its choice.
func (s *scheduler) refuse(pod *corev1.Pod, nodes ...string) map[string]string {
	out := make(map[string]string, len(nodes))
	state := framework.NewCycleState()
	result, status, _ := s.framework.RunPreFilterPlugins(s.ctx, state, pod)
	for _, name := range nodes {
		switch {
		case !status.IsSuccess():
			out[name] = words(status)
		case !result.AllNodes() && !result.NodeNames.Has(name):
			out[name] = "PreFilter: the node is not among those that are left"
		default:
			info, err := s.current().Get(name)
			if err != nil {
				out[name] = err.Error()
				continue
			}
			out[name] = words(s.framework.RunFilterPlugins(s.ctx, state, pod, info))
		}
	}
	return out
}

func words(s *fwk.Status) string {
	if s.IsSuccess() {
		return ""
	}
	return s.Plugin() + ": " + strings.Join(s.Reasons(), ", ")
}

// bind places the pod, and its volumes with it.
func (s *scheduler) bind(pod *corev1.Pod, node string) {
	bound := pod.DeepCopy()
	bound.Spec.NodeName = node
	bound.Status = corev1.PodStatus{Phase: corev1.PodRunning}
	s.w.Pods = slices.DeleteFunc(s.w.Pods, func(p *corev1.Pod) bool { return p.UID == pod.UID })
	s.w.Pods = append(s.w.Pods, bound)
	for i := range bound.Spec.Volumes {
		s.provision(bound.Namespace, claimName(bound, &bound.Spec.Volumes[i]), s.w.node(node))
	}
	s.now = nil
}

// addNode lets a node join, on which drivers can attach so many volumes.
func (s *scheduler) addNode(node *corev1.Node, limits map[string]int32) {
	s.w.Nodes = append(s.w.Nodes, node)
	if csi := csiNodeOf(node.Name, limits); csi != nil {
		s.w.CSINodes = append(s.w.CSINodes, csi)
		s.tell(s.informers.Storage().V1().CSINodes().Informer().GetIndexer().Update(csi))
	}
	s.now = nil
}

// removeNode lets a node and its pods go.
func (s *scheduler) removeNode(name string) {
	s.w.Nodes = slices.DeleteFunc(s.w.Nodes, func(n *corev1.Node) bool { return n.Name == name })
	s.w.Pods = slices.DeleteFunc(s.w.Pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == name })
	s.w.CSINodes = slices.DeleteFunc(s.w.CSINodes, func(n *storagev1.CSINode) bool { return n.Name == name })
	show(s, s.informers.Storage().V1().CSINodes().Informer().GetIndexer(), s.w.CSINodes)
	s.now = nil
}
