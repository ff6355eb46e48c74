package oracle

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"
)

// world is a cluster as the API server would show it, and what its cloud sells. Objects in it are never changed, only
// exchanged, so that worlds can share them.
type world struct {
	Namespaces     []*corev1.Namespace             `json:"namespaces,omitempty"`
	Nodes          []*corev1.Node                  `json:"nodes,omitempty"`
	CSINodes       []*storagev1.CSINode            `json:"csiNodes,omitempty"`
	Pods           []*corev1.Pod                   `json:"pods,omitempty"`
	Volumes        []*corev1.PersistentVolume      `json:"volumes,omitempty"`
	VolumeClaims   []*corev1.PersistentVolumeClaim `json:"volumeClaims,omitempty"`
	StorageClasses []*storagev1.StorageClass       `json:"storageClasses,omitempty"`
	DaemonSets     []*appsv1.DaemonSet             `json:"daemonSets,omitempty"`
	Pools          []*nodePool                     `json:"pools,omitempty"`
	NodeClaims     []*nodeClaim                    `json:"nodeClaims,omitempty"`
	Types          []*instanceType                 `json:"types,omitempty"`
	// Coming are the nodes that launched claims will become. Tenon is not shown them.
	Coming []*corev1.Node `json:"coming,omitempty"`
}

// instanceType is what a cloud provider sells, in the field names of package cloudprovider.
type instanceType struct {
	Name     string
	Labels   map[string][]string
	Capacity corev1.ResourceList
	Overhead corev1.ResourceList
	// VolumeLimits is how many volumes the drivers can attach to a node of the type.
	VolumeLimits map[string]int32
	Offerings    []typeOffering
}

type typeOffering struct {
	Labels    map[string]string
	Price     float64
	Available bool
	// ReservationID names capacity that was paid for; ReservationCapacity is how much of it is left.
	ReservationID       string
	ReservationCapacity int
}

// allocatable is what pods may use of a node of the type.
func (t *instanceType) allocatable() corev1.ResourceList {
	out := t.Capacity.DeepCopy()
	for name, kept := range t.Overhead {
		left := out[name]
		left.Sub(kept)
		out[name] = left
	}
	return out
}

func (w *world) typeNamed(name string) *instanceType {
	for _, t := range w.Types {
		if t.Name == name {
			return t
		}
	}
	return nil
}

func (w *world) pool(name string) *nodePool {
	for _, p := range w.Pools {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func (w *world) node(name string) *corev1.Node {
	for _, n := range w.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// pending lists the pods that wait for a place.
func (w *world) pending() []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range w.Pods {
		if p.Spec.NodeName == "" && len(p.Spec.SchedulingGates) == 0 {
			out = append(out, p)
		}
	}
	return out
}

// clone is a world that can be changed without changing w.
func (w *world) clone() *world {
	out := *w
	out.Namespaces, out.Nodes, out.CSINodes = slices.Clone(w.Namespaces), slices.Clone(w.Nodes),
		slices.Clone(w.CSINodes)
	out.Pods, out.Volumes, out.VolumeClaims = slices.Clone(w.Pods), slices.Clone(w.Volumes),
		slices.Clone(w.VolumeClaims)
	out.StorageClasses, out.DaemonSets = slices.Clone(w.StorageClasses), slices.Clone(w.DaemonSets)
	out.Pools, out.Types = slices.Clone(w.Pools), slices.Clone(w.Types)
	out.NodeClaims, out.Coming = slices.Clone(w.NodeClaims), slices.Clone(w.Coming)
	return &out
}

// text writes the world for people: what is empty is left out.
func (w *world) text() string {
	raw, err := json.Marshal(w)
	var plain any
	if err == nil {
		err = json.Unmarshal(raw, &plain)
	}
	out, failed := yaml.Marshal(filled(plain))
	if err := errors.Join(err, failed); err != nil {
		return fmt.Sprintf("the cluster can't be written: %v", err)
	}
	return string(out)
}

// filled is a value without its empty parts; nil if nothing is left.
func filled(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, part := range v {
			// A selector without content selects everything: there, nothing means something.
			if part = filled(part); part == nil && !strings.HasSuffix(strings.ToLower(key), "selector") {
				delete(v, key)
			} else if part != nil {
				v[key] = part
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			if part := filled(v[i]); part != nil {
				v[i] = part
			}
		}
		if len(v) == 0 {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	case float64:
		if v == 0 {
			return nil
		}
	}
	return value
}

func id(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
