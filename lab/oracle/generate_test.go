package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

const (
	capacityTypeLabel = "karpenter.sh/capacity-type"
	poolLabel         = "karpenter.sh/nodepool"
	rackLabel         = "example.com/rack" // on some nodes, and left open by some pools
	coresLabel        = "example.com/cores"
	gpu               = "example.com/gpu"
	hugepages         = "hugepages-2Mi"
	teamLabel         = "team"
	appLabel          = "app"
	revisionLabel     = "rev"
	reservationLabel  = "example.com/reservation"
)

// generator draws one cluster.
type generator struct {
	dice
	w     *world
	zones []string
	s     *scheduler // places what runs already
	next  int
	// themes are the constraints of this cluster: few, so that they meet.
	themes []theme
}

// generate draws the cluster of a seed. What runs in it was placed by kube-scheduler's plugins.
func generate(profile *config.KubeSchedulerProfile, seed int) (*world, error) {
	g := &generator{dice: newDice(seed), w: &world{}, zones: []string{"z1", "z2", "z3"}}
	g.zones = g.zones[:g.between(2, 3)]
	g.namespaces()
	g.types()
	for i := range g.between(1, 3) {
		g.pool(i + 1)
	}
	for i := range g.between(0, 5) {
		g.node(fmt.Sprintf("n%d", i+1))
	}
	g.storageClasses()
	var err error
	if g.s, err = newScheduler(profile, g.w); err != nil {
		return nil, err
	}
	defer g.s.end()
	for i := range g.between(0, 2) {
		g.daemonSet(i + 1)
	}
	g.themes = some(g.dice, 7, themes()...)
	for i := range g.between(1, 5) {
		g.deployment(i + 1)
	}
	for _, i := range g.Perm(len(g.s.w.Nodes)) {
		if g.chance(6) {
			g.leave(i)
		}
	}
	return g.s.w, nil
}

// uid is new each time.
func (g *generator) uid() types.UID {
	g.next++
	return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", g.next))
}

func (g *generator) namespaces() {
	for _, n := range [][2]string{{"blue", "one"}, {"green", "two"}, {"red", "two"}} {
		g.w.Namespaces = append(g.w.Namespaces, &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: n[0], Labels: map[string]string{corev1.LabelMetadataName: n[0],
				teamLabel: n[1]}}})
	}
}

// types draws what the cloud sells.
func (g *generator) types() {
	for _, size := range some(g.dice, 4, 2, 4, 8, 16) {
		t := &instanceType{
			Name: fmt.Sprintf("m%d", size),
			Labels: map[string][]string{
				corev1.LabelInstanceTypeStable: {fmt.Sprintf("m%d", size)}, corev1.LabelOSStable: {"linux"},
				corev1.LabelArchStable: {pick(g.dice, "amd64", "amd64", "arm64")}, coresLabel: {strconv.Itoa(size)},
			},
			Capacity: corev1.ResourceList{
				corev1.ResourceCPU:              amount(strconv.Itoa(size)),
				corev1.ResourceMemory:           amount(fmt.Sprintf("%dGi", 2*size)),
				corev1.ResourcePods:             amount(pick(g.dice, "4", "8", "16")),
				corev1.ResourceEphemeralStorage: amount("20Gi"),
			},
			Overhead: corev1.ResourceList{corev1.ResourceCPU: amount("100m"), corev1.ResourceMemory: amount("256Mi")},
		}
		if g.chance(40) {
			t.Capacity[gpu] = amount(pick(g.dice, "1", "2", "4"))
		}
		if g.chance(40) {
			t.Capacity[hugepages] = amount(pick(g.dice, "256Mi", "1Gi"))
		}
		if g.chance(50) {
			t.VolumeLimits = map[string]int32{driver: int32(g.between(1, 3))}
		}
		for _, zone := range g.zones {
			for _, terms := range []string{"on-demand", "spot"} {
				if g.chance(20) {
					continue
				}
				price := float64(size) * 0.05 * (0.9 + 0.2*g.Float64())
				if terms == "spot" {
					price *= 0.4
				}
				t.Offerings = append(t.Offerings, typeOffering{
					Labels: map[string]string{corev1.LabelTopologyZone: zone, capacityTypeLabel: terms}, Price: price,
					Available: g.chance(90)})
			}
		}
		if g.chance(15) {
			t.Offerings = append(t.Offerings, typeOffering{
				Labels: map[string]string{corev1.LabelTopologyZone: pick(g.dice, g.zones...),
					capacityTypeLabel: "reserved", reservationLabel: t.Name},
				Price: 0.000001, Available: true, ReservationID: t.Name, ReservationCapacity: g.between(1, 2)})
		}
		g.w.Types = append(g.w.Types, t)
	}
}

func (g *generator) pool(number int) {
	p := &nodePool{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pool-%d", number), UID: g.uid(), Generation: 1}}
	spec := &p.Spec.Template.Spec
	spec.NodeClassRef = classRef{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	spec.Requirements = []requirement{}
	ask := func(percent int, r requirement) {
		if g.chance(percent) {
			spec.Requirements = append(spec.Requirements, r)
		}
	}
	ask(30, requirement{Key: corev1.LabelTopologyZone, Operator: "In", Values: some(g.dice, 2, g.zones...)})
	ask(30, requirement{Key: capacityTypeLabel, Operator: "In", Values: some(g.dice, 2, "spot", "on-demand",
		"reserved")})
	ask(20, requirement{Key: coresLabel, Operator: pick(g.dice, "Gt", "Gte"), Values: []string{pick(g.dice, "2", "4")}})
	ask(20, requirement{Key: coresLabel, Operator: pick(g.dice, "Lt", "Lte"),
		Values: []string{pick(g.dice, "8", "16")}})
	ask(10, requirement{Key: corev1.LabelArchStable, Operator: "NotIn", Values: []string{"arm64"}})
	two := 2
	ask(10, requirement{Key: corev1.LabelInstanceTypeStable, Operator: "Exists", MinValues: &two})
	if g.chance(30) {
		spec.Requirements = append(spec.Requirements, requirement{Key: rackLabel, Operator: "In",
			Values: some(g.dice, 3, "r1", "r2", "r3")})
	} else if g.chance(30) {
		p.Spec.Template.Metadata.Labels = map[string]string{rackLabel: pick(g.dice, "r1", "r2")}
	}
	if g.chance(25) {
		spec.Taints = []corev1.Taint{g.taint()}
	}
	if g.chance(15) {
		spec.StartupTaints = []corev1.Taint{{Key: "example.com/starting", Effect: corev1.TaintEffectNoSchedule}}
	}
	if g.chance(30) {
		p.Spec.Weight = pick(g.dice, new(int32(10)), new(int32(50)))
	}
	if g.chance(30) {
		p.Spec.Limits = corev1.ResourceList{corev1.ResourceCPU: amount(pick(g.dice, "4", "10", "24"))}
	}
	if g.chance(15) {
		p.Spec.Limits = corev1.ResourceList{"nodes": amount(pick(g.dice, "1", "2", "3"))}
	}
	g.w.Pools = append(g.w.Pools, p)
}

func (g *generator) taint() corev1.Taint {
	return corev1.Taint{Key: "dedicated", Value: pick(g.dice, "a", "b"),
		Effect: pick(g.dice, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute,
			corev1.TaintEffectPreferNoSchedule)}
}

// node draws a node that is there already or, if it is a pool's, on its way.
func (g *generator) node(name string) {
	if g.chance(25) && g.poolNode(name) {
		return
	}
	size := pick(g.dice, 1, 2, 4)
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: g.uid(), Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelTopologyZone: pick(g.dice, g.zones...),
			corev1.LabelOSStable: "linux",
			capacityTypeLabel:    pick(g.dice, "spot", "on-demand"), corev1.LabelArchStable: pick(g.dice, "amd64",
				"amd64", "arm64"),
			coresLabel: strconv.Itoa(size), corev1.LabelInstanceTypeStable: fmt.Sprintf("m%d", size),
		}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU:              amount(strconv.Itoa(size)),
				corev1.ResourceMemory:           amount(fmt.Sprintf("%dGi", 2*size)),
				corev1.ResourcePods:             amount(pick(g.dice, "3", "5", "10")),
				corev1.ResourceEphemeralStorage: amount("10Gi"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	if g.chance(70) {
		n.Labels[rackLabel] = pick(g.dice, "r1", "r2", "r3")
	}
	if g.chance(5) {
		delete(n.Labels, corev1.LabelTopologyZone)
	}
	if g.chance(30) {
		n.Status.Allocatable[gpu] = amount(pick(g.dice, "1", "2"))
	}
	if g.chance(30) {
		n.Status.Allocatable[hugepages] = amount("256Mi")
	}
	n.Status.Capacity = n.Status.Allocatable.DeepCopy()
	if g.chance(25) {
		n.Spec.Taints = append(n.Spec.Taints, g.taint())
	}
	if g.chance(8) {
		n.Spec.Unschedulable = true
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable,
			Effect: corev1.TaintEffectNoSchedule})
	}
	g.w.Nodes = append(g.w.Nodes, n)
	if g.chance(70) {
		g.w.CSINodes = append(g.w.CSINodes, g.csiNode(name))
	}
}

func (g *generator) csiNode(name string) *storagev1.CSINode {
	out := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name, UID: g.uid()}}
	d := storagev1.CSINodeDriver{Name: driver, NodeID: name, TopologyKeys: []string{corev1.LabelTopologyZone}}
	if g.chance(80) {
		d.Allocatable = &storagev1.VolumeNodeResources{Count: new(int32(g.between(1, 3)))}
	}
	out.Spec.Drivers = []storagev1.CSINodeDriver{d}
	return out
}

// poolNode draws a node that one of the pools has launched; false if the pool has nothing to launch.
func (g *generator) poolNode(name string) bool {
	p, t := pick(g.dice, g.w.Pools...), pick(g.dice, g.w.Types...)
	if len(t.Offerings) == 0 {
		return false
	}
	o := pick(g.dice, t.Offerings...)
	ways := poolLabels(p, t, o)
	if len(ways) == 0 || o.ReservationID != "" {
		return false
	}
	coming := g.chance(30)
	if coming {
		name = "coming-" + name // nobody can ask for a node by name that is not there yet
	}
	n := newNode(name, pick(g.dice, ways...), p, t)
	n.UID = g.uid()
	if coming {
		g.w.Coming = append(g.w.Coming, n)
		c := claimOf(n, p, "Launched")
		delete(c.Labels, corev1.LabelHostname) // the node has it from its kubelet
		g.w.NodeClaims = append(g.w.NodeClaims, c)
		return true
	}
	c := claimOf(n, p, "Launched", "Registered", "Initialized")
	c.Status.NodeName = name
	g.w.Nodes, g.w.NodeClaims = append(g.w.Nodes, n), append(g.w.NodeClaims, c)
	if csi := csiNodeOf(name, t.VolumeLimits); csi != nil {
		g.w.CSINodes = append(g.w.CSINodes, csi)
	}
	return true
}

// leave lets the i-th node go: it is being drained.
func (g *generator) leave(i int) {
	n := g.s.w.Nodes[i].DeepCopy()
	for _, p := range g.s.w.Pods {
		stays := slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "" })
		resized := len(p.Status.ContainerStatuses) > 0
		if p.Spec.NodeName == n.Name && (len(p.OwnerReferences) == 0 || resized || stays && !isDaemon(p)) {
			return // it does not come back, comes back in its first size, or stays through the drain
		}
	}
	n.DeletionTimestamp, n.Finalizers = &metav1.Time{Time: time.Date(2026, 1, 1, 11, 59, 0, 0, time.UTC)},
		[]string{"karpenter.sh/termination"}
	n.Spec.Unschedulable = true
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "karpenter.sh/disrupted",
		Effect: corev1.TaintEffectNoSchedule})
	g.s.w.Nodes[i] = n
	for j, c := range g.s.w.NodeClaims {
		if c.Name == n.Name {
			leaving := *c
			leaving.DeletionTimestamp = n.DeletionTimestamp
			g.s.w.NodeClaims[j] = &leaving
		}
	}
}

// Names of the storage classes.
const (
	waits      = "waits"       // for the first consumer
	waitsZonal = "waits-zonal" // and can be provisioned in some zones only
	immediate  = "immediate"
	local      = "local" // volumes that are there wait for the first consumer; no more are made
)

func (g *generator) storageClasses() {
	wait, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	class := func(name string, mode *storagev1.VolumeBindingMode) *storagev1.StorageClass {
		out := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: g.uid()}, Provisioner: driver,
			VolumeBindingMode: mode}
		g.w.StorageClasses = append(g.w.StorageClasses, out)
		return out
	}
	class(waits, &wait)
	class(immediate, &now)
	class(local, &wait).Provisioner = "kubernetes.io/no-provisioner"
	for i := range g.between(0, 3) {
		v := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("local-%d", i+1), UID: g.uid()},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: local,
				Capacity:               corev1.ResourceList{corev1.ResourceStorage: amount(fmt.Sprintf("%dGi", i+1))},
				PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
				NodeAffinity:           reachable(corev1.LabelTopologyZone, pick(g.dice, g.zones...)),
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
		}
		if len(g.w.Nodes) > 0 && g.chance(50) {
			v.Spec.NodeAffinity = reachable(corev1.LabelHostname, pick(g.dice, g.w.Nodes...).Name)
		}
		g.w.Volumes = append(g.w.Volumes, v)
	}
	class(waitsZonal, &wait).AllowedTopologies =
		[]corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
			{Key: corev1.LabelTopologyZone, Values: some(g.dice, 2, g.zones...)}}}}
}
