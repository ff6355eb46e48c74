package fuzz

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/validate"
)

const (
	classGroup = "karpenter.kwok.sh"
	classKind  = "KWOKNodeClass"
	className  = "default"
)

func start() time.Time { return time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) }

// world is a cluster as the API server would show it, and what its cloud sells.
type world struct {
	now     time.Time
	pools   []*v1.NodePool
	claims  []*v1.NodeClaim
	nodes   []*corev1.Node
	pods    []*corev1.Pod
	daemons []*appsv1.DaemonSet
	guards  []*policyv1.PodDisruptionBudget
	disks   []*corev1.PersistentVolumeClaim
	volumes []*corev1.PersistentVolume
	owners  []cluster.Owner
	types   []*cloudprovider.InstanceType
	running []*cloudprovider.Instance
}

// grow makes a cluster of bytes.
func grow(data []byte) *world {
	s := &source{data: data}
	w := &world{now: start()}
	for i := range 1 + s.upTo(3) {
		w.types = append(w.types, s.machineType(i))
	}
	for i := range 1 + s.upTo(2) {
		w.pools = append(w.pools, s.pool(i))
	}
	for i := range s.upTo(2) {
		w.daemons = append(w.daemons, s.daemon(i))
	}
	for i := range s.upTo(3) {
		w.volumes = append(w.volumes, s.volume(i))
		w.disks = append(w.disks, s.disk(i))
	}
	for i := range s.upTo(5) {
		w.addMachine(s, i)
	}
	for i := range s.upTo(3) {
		w.owners = append(w.owners, cluster.Owner{UID: fmt.Sprint("owner", i), Namespace: "default", Kind: "ReplicaSet",
			Known: !s.one(4), Desired: s.upTo(8)})
	}
	for i := range s.upTo(14) {
		w.pods = append(w.pods, s.pod(w, i))
	}
	for i := range s.upTo(2) {
		w.guards = append(w.guards, s.guard(i))
	}
	return w
}

// InstanceTypes sells every pool the same.
func (w *world) InstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return w.types, nil
}

// book takes the cluster in, in the order in which it is or the other way round.
func (w *world) book(backwards bool) *ingest.Book {
	kind := cluster.ClassRef{Group: classGroup, Kind: classKind}
	b := ingest.New(func() time.Time { return w.now }, validate.Labels{}, []cluster.ClassRef{kind})
	kind.Name = className
	b.SetNodeClass(kind, cluster.NodeClassState{Ready: true, Generation: 1})
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: "disks.example"}
	late := storagev1.VolumeBindingWaitForFirstConsumer
	class.VolumeBindingMode = &late
	var steps []func()
	for _, p := range w.pools {
		steps = append(steps, func() { b.SetPool(p) })
	}
	steps = append(steps, func() { b.SetStorageClass(class) },
		func() { b.SetNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}) },
		func() {
			b.SetNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other",
				Labels: map[string]string{"team": "blue"}}})
		})
	for _, v := range w.volumes {
		steps = append(steps, func() { b.SetVolume(v) })
	}
	for _, d := range w.disks {
		steps = append(steps, func() { b.SetVolumeClaim(d) })
	}
	for _, d := range w.daemons {
		steps = append(steps, func() { b.SetDaemon(d) })
	}
	for _, c := range w.claims {
		steps = append(steps, func() { b.SetClaim(c) })
	}
	for _, n := range w.nodes {
		steps = append(steps, func() { b.SetNode(n) })
	}
	for _, o := range w.owners {
		steps = append(steps, func() { b.SetOwner(o) })
	}
	for _, p := range w.pods {
		steps = append(steps, func() { b.SetPod(p) })
	}
	for _, g := range w.guards {
		steps = append(steps, func() { b.SetPDB(g) })
	}
	if backwards {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		step()
	}
	b.FetchCatalogs(context.Background(), w)
	b.SetInventory(w.now, w.running)
	return b
}

func (s *source) quantity() apiresource.Quantity {
	return choose(s, apiresource.MustParse("100m"), apiresource.MustParse("1"), apiresource.MustParse("3500m"),
		apiresource.MustParse("256Mi"), apiresource.MustParse("3Gi"),
		apiresource.MustParse("0"), apiresource.MustParse("1u"), apiresource.MustParse("9E"),
		*apiresource.NewQuantity(s.number(), apiresource.DecimalSI), apiresource.MustParse("-1"),
		apiresource.MustParse("-3Gi"))
}

func (s *source) resources() corev1.ResourceList {
	out := corev1.ResourceList{corev1.ResourceCPU: choose(s, apiresource.MustParse("100m"),
		apiresource.MustParse("700m"), apiresource.MustParse("2"), s.quantity()),
		corev1.ResourceMemory: choose(s, apiresource.MustParse("128Mi"), apiresource.MustParse("1Gi"),
			apiresource.MustParse("5Gi"), s.quantity())}
	for range s.upTo(2) {
		out[choose(s, corev1.ResourceEphemeralStorage, corev1.ResourcePods, "nvidia.com/gpu", "example.com/one",
			"example.com/two", "hugepages-2Mi")] = s.quantity()
	}
	return out
}

func (s *source) machineType(i int) *cloudprovider.InstanceType {
	name := fmt.Sprint("type", i)
	t := &cloudprovider.InstanceType{Name: name,
		Labels: map[string][]string{corev1.LabelInstanceTypeStable: {name}, corev1.LabelArchStable: {choose(s, "amd64",
			"arm64")}, corev1.LabelOSStable: {"linux"}, "generation": {fmt.Sprint(s.upTo(6))}},
		Capacity: corev1.ResourceList{corev1.ResourceCPU: choose(s, apiresource.MustParse("2"),
			apiresource.MustParse("4"), apiresource.MustParse("16")),
			corev1.ResourceMemory: choose(s, apiresource.MustParse("4Gi"), apiresource.MustParse("16Gi"),
				apiresource.MustParse("64Gi")),
			corev1.ResourcePods: choose(s, apiresource.MustParse("20"), apiresource.MustParse("3"),
				apiresource.MustParse("110"))},
		Overhead: corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("100m")}}
	if s.one(4) {
		t.Capacity["nvidia.com/gpu"] = apiresource.MustParse("4")
	}
	for _, zone := range []string{"a", "b"} {
		for _, terms := range []string{v1.CapacityTypeOnDemand, v1.CapacityTypeSpot} {
			if s.one(4) {
				continue
			}
			t.Offerings = append(t.Offerings,
				cloudprovider.Offering{Labels: map[string]string{corev1.LabelTopologyZone: zone,
					v1.CapacityTypeLabelKey: terms},
					Price: float64(1+s.byte()) / 100, Available: !s.one(8)})
		}
	}
	return t
}

// when draws a time around now.
func (s *source) when() metav1.Time {
	return metav1.NewTime(start().Add(time.Duration(choose(s, -30, -600, -3600, -1, 0, 5, 3600)) * time.Second))
}

func (s *source) meta(kind, name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, UID: types.UID(kind + "-" + name), ResourceVersion: "1", Generation: 1,
		CreationTimestamp: metav1.NewTime(start().Add(-time.Hour))}
	if s.one(10) {
		at := s.when()
		m.DeletionTimestamp = &at
	}
	for range s.upTo(1) {
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[choose(s, ourAnnotations()...)] = s.text()
	}
	return m
}

func ourAnnotations() []string {
	return []string{v1.DoNotDisruptAnnotationKey, cluster.SeatsAnnotation, cluster.MoveAnnotation,
		cluster.ReplacesAnnotation, cluster.RestAnnotation, cluster.SavingRestAnnotation, cluster.KeptForAnnotation,
		cloudprovider.InterruptionAnnotation, v1.NodeClaimTerminationTimestampAnnotationKey,
		v1.DoNotRepairAnnotationKey, "tenon.sh/dry-run", "tenon.sh/drift-strategy", "tenon.sh/soft-expiry",
		"controller.kubernetes.io/pod-deletion-cost", v1.NodePoolHashAnnotationKey}
}

// text draws what people write into annotations: something that is meant, or not.
func (s *source) text() string {
	return choose(s, "true", "false", "", "10m", "-10m", "9999999h", "2026-03-28T12:01:00Z", "SpotInterruption "+
		"2026-03-28T12:02:00Z", "RebalanceRecommendation", "canary",
		`{"a":1}`, "a=1,b=2", "Underutilized/1", string([]byte{s.byte(), s.byte(), s.byte()}), "99999999999999999999",
		"move-a", "move-b")
}

func (s *source) guard(i int) *policyv1.PodDisruptionBudget {
	g := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("guard", i),
		Generation: 1}}
	g.Spec.Selector = s.selector()
	n := choose(s, intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromString("50%"))
	g.Spec.MaxUnavailable = &n
	g.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: int64(s.upTo(1)),
		DisruptionsAllowed: int32(s.upTo(3)), ExpectedPods: int32(s.upTo(3)), CurrentHealthy: int32(s.upTo(3)),
		DesiredHealthy: int32(s.upTo(3))}
	return g
}

func (s *source) volume(i int) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pv", i)}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disks.example", VolumeHandle: fmt.Sprint("disk", i)}
	pv.Spec.Capacity, pv.Spec.StorageClassName = corev1.ResourceList{corev1.ResourceStorage: apiresource.MustParse(
		"1Gi")}, "late"
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	if s.one(2) {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{
			Required: &corev1.NodeSelector{NodeSelectorTerms: s.nodeTerms()},
		}
	}
	return pv
}

func (s *source) disk(i int) *corev1.PersistentVolumeClaim {
	class := choose(s, "late", "nowhere", "")
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("disk", i),
		UID: types.UID(fmt.Sprint("disk-uid", i))}}
	c.Spec.StorageClassName = &class
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{choose(s, corev1.ReadWriteOnce, corev1.ReadWriteMany,
		corev1.ReadWriteOncePod)}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: apiresource.MustParse("1Gi")}
	if s.one(2) {
		c.Spec.VolumeName, c.Status.Phase = fmt.Sprint("pv", s.upTo(3)), corev1.ClaimBound
	}
	return c
}
