package workload

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/cloudprovider"
)

const (
	existingNodes       = 2000
	podsPerNode         = 20
	existingDeployments = 500
)

// existing draws a cluster that runs: 2,000 nodes with 20 pods each, of 500 deployments, all of which now want a few
// more pods. About half of those find room. Of ten deployments six are plain, two are spread over the zones, one keeps
// its pods on hosts of their own and one keeps to zones where it is already.
//
// Four nodes in a row stand in the four zones and run the same twenty deployments, so every deployment is even over the
// zones and has at most one pod on a node: the rules hold before the pending pods come.
func existing(w *Workload, r *rand.Rand, n int) {
	hosts := hostTypes(w.Types)
	apps := make([]*template, existingDeployments)
	for i := range apps {
		apps[i] = existingApp(i, r)
	}
	seen := make([]int, existingDeployments)
	for i := range existingNodes {
		node := host(i, hosts[i/4%len(hosts)])
		w.Nodes = append(w.Nodes, node)
		free := node.Status.Allocatable.Cpu().MilliValue()
		for slot := range podsPerNode {
			app := (i/4*podsPerNode + slot) % existingDeployments
			t := *apps[app]
			// What is left of the node is shared by the pods to come, so that it ends up nearly full.
			t.milli = rounded(free/int64(podsPerNode-slot+1)*int64(80+r.IntN(40))/100, 10)
			t.memory = t.milli * 3
			free -= t.milli
			w.Running = append(w.Running, t.running(seen[app], node.Name))
			seen[app]++
		}
	}
	for i := range n {
		app := i % existingDeployments
		w.Pods = append(w.Pods, apps[app].pending(seen[app]))
		seen[app]++
	}
}

func existingApp(i int, r *rand.Rand) *template {
	t := web().draw(r)
	t.milli, t.app = min(t.milli, 4000), fmt.Sprintf("app-%04d", i)
	selector := selecting(appLabel, t.app)
	switch i % 10 {
	case 6, 7:
		t.spec = spread(corev1.LabelTopologyZone, selector, corev1.DoNotSchedule)
	case 8:
		t.spec = apart(corev1.LabelHostname, selector)
	case 9:
		t.spec = together(corev1.LabelTopologyZone, selector)
	}
	return t
}

// hostTypes are the types of the nodes that are there: the general ones with 8 cores and 32 GiB.
func hostTypes(types []*cloudprovider.InstanceType) []*cloudprovider.InstanceType {
	var out []*cloudprovider.InstanceType
	for _, t := range types {
		if isGeneral(t) && t.Capacity.Cpu().Value() == 8 && t.Capacity.Memory().Value() == 32<<30 {
			out = append(out, t)
		}
	}
	return out
}

// host makes a node of the type that nobody's pool owns.
func host(i int, t *cloudprovider.InstanceType) *corev1.Node {
	n := &corev1.Node{}
	n.Name = fmt.Sprintf("node-%04d", i)
	n.UID, n.CreationTimestamp = uid("node", n.Name), epoch()
	n.ResourceVersion = strconv.Itoa(i + 1)
	n.Labels = map[string]string{corev1.LabelHostname: n.Name}
	for key, values := range t.Labels {
		n.Labels[key] = values[0]
	}
	n.Labels[corev1.LabelTopologyZone] = zones()[i%len(zones())]
	n.Spec.ProviderID = "example://" + n.Name
	n.Status.Capacity, n.Status.Allocatable = t.Capacity.DeepCopy(), t.Allocatable()
	n.Status.Allocatable[corev1.ResourcePods] = *resource.NewQuantity(t.Capacity.Pods().Value(), resource.DecimalSI)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastTransitionTime: epoch()}}
	return n
}
