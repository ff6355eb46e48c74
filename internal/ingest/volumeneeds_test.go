package ingest

import (
	"fmt"
	"math/rand"
	"slices"
	"sort"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
	"github.com/tenon-sh/tenon/internal/resource"
)

const ebs = resource.AttachPrefix + decode.EbsDriver

func storageClass(name, provisioner string, mode storagev1.VolumeBindingMode, zones ...string) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner,
		VolumeBindingMode: &mode}
	for _, zone := range zones {
		c.AllowedTopologies = append(c.AllowedTopologies, corev1.TopologySelectorTerm{
			MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone,
				Values: []string{zone}}}})
	}
	return c
}

func claimOf(name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: apiresource.MustParse("1Gi")},
			}}}
}

func boundTo(claim *corev1.PersistentVolumeClaim, pv string) *corev1.PersistentVolumeClaim {
	claim.Spec.VolumeName, claim.Annotations = pv, map[string]string{volume.AnnBindCompleted: "yes"}
	return claim
}

func volumeOf(name, class string, terms ...corev1.NodeSelectorTerm) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: class, Capacity: corev1.ResourceList{corev1.ResourceStorage: apiresource.MustParse("1Gi")},
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver:       decode.EbsDriver,
			VolumeHandle: "vol-" + name}},
	}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}
	if len(terms) > 0 {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	return pv
}

func in(key string, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key,
		Operator: corev1.NodeSelectorOpIn, Values: values}}}
}

func mounting(claims ...string) *corev1.Pod {
	return podWith(func(s *corev1.PodSpec) {
		for _, name := range claims {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
		}
	})
}

func bookOf(t *testing.T, objects ...any) *Book {
	t.Helper()
	b, _ := newBook()
	tell(t, b, objects...)
	return b
}

func tell(t *testing.T, b *Book, objects ...any) {
	t.Helper()
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Pod:
			b.SetPod(o)
		case *corev1.PersistentVolumeClaim:
			b.SetVolumeClaim(o)
		case *corev1.PersistentVolume:
			b.SetVolume(o)
		case *storagev1.StorageClass:
			b.SetStorageClass(o)
		case *storagev1.CSINode:
			b.SetCSINode(o)
		case *corev1.Node:
			b.SetNode(o)
		default:
			t.Fatalf("nobody takes a %T", o)
		}
	}
}

func onlyPod(b *Book) *cluster.Pod { return b.Snapshot().Pods[0] }

func termsText(c *cluster.PodClass) string {
	var out []string
	for _, term := range c.Terms {
		out = append(out, term.String())
	}
	return strings.Join(out, " OR ")
}

func TestVolumes(t *testing.T) {
	wait, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	zone := corev1.LabelTopologyZone
	yes := true
	labelled := volumeOf("pv", "sc")
	labelled.Labels = map[string]string{corev1.LabelFailureDomainBetaZone: "a__b"}
	selected := claimOf("data", "sc")
	selected.Annotations = map[string]string{volume.AnnSelectedNode: "n1"}
	lost := boundTo(claimOf("data", "sc"), "pv")
	lost.Status.Phase = corev1.ClaimLost
	leaving := claimOf("data", "sc")
	leaving.DeletionTimestamp = &metav1.Time{}
	prebound := claimOf("data", "sc")
	prebound.Spec.VolumeName = "pv"
	kept := volumeOf("p1", "local", in("host", "n1"))
	kept.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "other"}
	mine := volumeOf("p2", "local", in("host", "n2"))
	mine.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data"}
	small := volumeOf("p3", "local", in("host", "n3"))
	small.Spec.Capacity[corev1.ResourceStorage] = apiresource.MustParse("1Mi")
	ephemeral := podWith(func(s *corev1.PodSpec) {
		s.Volumes = []corev1.Volume{{Name: "scratch",
			VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimOf("", "sc").Spec}}}}}
	})
	owned := boundTo(claimOf("p-scratch", "sc"), "pv")
	owned.OwnerReferences = []metav1.OwnerReference{{UID: "u", Controller: &yes}}
	choosy := mounting("data")
	choosy.Spec.NodeSelector = map[string]string{zone: "c"}

	for name, c := range map[string]struct {
		objects []any
		terms   string
		bad     string
	}{
		"no claim": {[]any{mounting("data")}, "", "claim data does not exist"},
		"no storage class": {[]any{claimOf("data", "sc"), mounting("data")}, "",
			"storage class sc of persistent volume claim data does not exist"},
		"unbound without a class": {[]any{claimOf("data", ""), mounting("data")}, "",
			"names no storage class"},
		"unbound, bound at once": {[]any{storageClass("sc", "d", now), claimOf("data", "sc"),
			mounting("data")}, "", "does not wait"},
		"lost": {[]any{volumeOf("pv", "sc"), lost, mounting("data")}, "",
			"has lost its volume"},
		"being deleted": {[]any{storageClass("sc", "d", wait), leaving, mounting("data")}, "",
			"is being deleted"},
		"half bound": {[]any{volumeOf("pv", "sc"), prebound, mounting("data")}, "",
			"still being bound"},
		"bound to nothing": {[]any{boundTo(claimOf("data", "sc"), "pv"), mounting("data")}, "",
			"volume pv of persistent volume claim data does not exist"},
		"bound, usable everywhere": {[]any{volumeOf("pv", "sc"), boundTo(claimOf("data", "sc"), "pv"),
			mounting("data")}, "", ""},
		"bound in either of two places": {[]any{volumeOf("pv", "sc", in(zone, "a"), in("rack", "r")),
			boundTo(claimOf("data", "sc"), "pv"), mounting("data")}, zone + " In [a] OR rack In [r]", ""},
		"bound by the driver's own label": {[]any{volumeOf("pv", "sc", in("topology.ebs.csi.aws.com/zone", "a")),
			boundTo(claimOf("data", "sc"), "pv"), mounting("data")}, zone + " In [a]", ""},
		"bound with zone labels": {[]any{labelled, boundTo(claimOf("data", "sc"), "pv"), mounting("data")},
			zone + " In [a, b] OR topology.kubernetes.io/region DoesNotExist; " + zone + " DoesNotExist", ""},
		"bound where the pod may not run": {[]any{volumeOf("pv", "sc", in(zone, "a")), boundTo(claimOf("data", "sc"),
			"pv"), choosy}, zone + " In [c]", "can't be had together where the pod may run"},
		"made anywhere": {[]any{storageClass("sc", "d", wait), claimOf("data", "sc"),
			mounting("data")}, "", ""},
		"made in some zones": {[]any{storageClass("sc", "d", wait, "a", "b"), claimOf("data", "sc"),
			mounting("data")}, zone + " In [a, b]", ""},
		"being made for a node": {[]any{storageClass("sc", "d", wait, "a"), selected, mounting("data")},
			"metadata.name In [n1]; " + zone + " In [a]", ""},
		"local, none there": {[]any{storageClass("local", volume.NotSupportedProvisioner, wait),
			claimOf("data", "local"), mounting("data")}, "", "no volume of storage class local is free"},
		"local, two there": {[]any{storageClass("local", volume.NotSupportedProvisioner, wait),
			volumeOf("p1", "local", in("host", "n1")), volumeOf("p2", "local", in("host", "n2")), small,
			claimOf("data", "local"), mounting("data")}, "host In [n1, n2]", ""},
		"local, kept for others or for it": {[]any{storageClass("local", volume.NotSupportedProvisioner, wait), kept,
			mine, volumeOf("p4", "local", in("host", "n4")), claimOf("data", "local"), mounting("data")},
			"host In [n2]", ""},
		"local, two claims, one volume": {[]any{storageClass("local", volume.NotSupportedProvisioner, wait),
			volumeOf("p1", "local", in("host", "n1")), claimOf("data", "local"), claimOf("log", "local"),
			mounting("data", "log")}, "", "can't be had together"},
		"local, two claims, three volumes": {[]any{storageClass("local", volume.NotSupportedProvisioner, wait),
			volumeOf("p1", "local", in("host", "n1")), volumeOf("p2", "local", in("host", "n1")),
			volumeOf("p3", "local", in("host", "n3")), claimOf("data", "local"), claimOf("log", "local"),
			mounting("data", "log")}, "host In [n1]", ""},
		"ephemeral, not there yet": {[]any{storageClass("sc", "d", wait, "a"), ephemeral}, zone +
			" In [a]", ""},
		"ephemeral, there": {[]any{volumeOf("pv", "sc", in(zone, "b")), owned, ephemeral}, zone +
			" In [b]", ""},
		"ephemeral, somebody else's": {[]any{volumeOf("pv", "sc"), boundTo(claimOf("p-scratch", "sc"), "pv"),
			ephemeral}, "", "is not the one made for volume scratch"},
	} {
		// The order in which the watches deliver must not matter.
		for _, backwards := range []bool{false, true} {
			objects := slices.Clone(c.objects)
			if backwards {
				slices.Reverse(objects)
			}
			class := onlyPod(bookOf(t, objects...)).Class
			if got := termsText(class); got != c.terms {
				t.Errorf("%s (backwards %v): terms %q, want %q", name, backwards, got, c.terms)
			}
			if problem := strings.Join(class.Unsupported, "; "); (c.bad == "") != (problem == "") ||
				!strings.Contains(problem, c.bad) {
				t.Errorf("%s (backwards %v): kept back by %q, want %q", name, backwards, problem, c.bad)
			}
		}
	}
}

func TestOwnTermsAreKeptApart(t *testing.T) {
	pod := mounting("data")
	pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	c := onlyPod(bookOf(t, volumeOf("pv", "sc", in("rack", "r")), boundTo(claimOf("data", "sc"), "pv"), pod)).Class
	if termsText(c) != "disk In [ssd]; rack In [r]" || len(c.OwnTerms) != 1 ||
		c.OwnTerms[0].String() != "disk In [ssd]" {
		t.Errorf("terms %v, own %v", c.Terms, c.OwnTerms)
	}
	if c := onlyPod(bookOf(t, volumeOf("pv", "sc"), boundTo(claimOf("data", "sc"), "pv"), pod)).
		Class; c.OwnTerms != nil {
		t.Errorf("volumes that ask for nothing: own terms %v", c.OwnTerms)
	}
}

func csiNode(name string, limit int32) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: decode.EbsDriver, Allocatable: &storagev1.VolumeNodeResources{Count: &limit}}, {Name: "other"}}}}
}

func TestAttachLimits(t *testing.T) {
	legacy := volumeOf("old", "sc")
	legacy.Spec.PersistentVolumeSource =
		corev1.PersistentVolumeSource{
			AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-old"},
		}
	pod := mounting("data", "more", "data", "fresh", "legacy")
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		corev1.Volume{
			Name: "inline",
			VolumeSource: corev1.VolumeSource{
				AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-inline"},
			},
		},
		corev1.Volume{Name: "csi", VolumeSource: corev1.VolumeSource{
			CSI: &corev1.CSIVolumeSource{Driver: decode.EbsDriver}}})
	objects := []any{
		storageClass("sc", "kubernetes.io/aws-ebs", storagev1.VolumeBindingWaitForFirstConsumer), volumeOf("pv", "sc"),
		volumeOf("pv2", "sc"), legacy,
		boundTo(claimOf("data", "sc"), "pv"), boundTo(claimOf("more", "sc"), "pv2"), boundTo(claimOf("legacy", "sc"),
			"old"), claimOf("fresh", "sc"), pod,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}},
	}
	b := bookOf(t, objects...)
	before := onlyPod(b)
	if n := b.Snapshot().Names.Len(); n != 4 || len(before.Volumes) != 0 {
		t.Errorf("%d dimensions and volumes %v although nobody has a limit", n, before.Volumes)
	}
	b.SetCSINode(csiNode("n1", 7))
	s := b.Snapshot()
	dim, ok := s.Names.Lookup(ebs)
	if !ok || !s.Names.Attaches(dim) || s.Names.Attaches(resource.CPU) {
		t.Fatalf("the driver has no dimension: %v", s.Names)
	}
	p := s.Pods[0]
	var handles []string
	for _, v := range p.Volumes {
		if v.Dim != dim {
			t.Errorf("volume %+v, want dimension %d", v, dim)
		}
		handles = append(handles, v.Handle)
	}
	sort.Strings(handles)
	if p.Class.Requests[dim] != 5 || !slices.Equal(handles, []string{
		decode.EbsDriver + "/default/fresh", decode.EbsDriver + "/vol-inline", decode.EbsDriver + "/vol-old",
		decode.EbsDriver + "/vol-pv",
		decode.EbsDriver + "/vol-pv2"}) {
		t.Errorf("the pod attaches %d: %v", p.Class.Requests[dim], handles)
	}
	if p.Class.Key != before.Class.Key {
		t.Error("the class has another key once a limit is known: seats kept for it are lost")
	}
	if s.Node("n1").Allocatable[dim] != 7 || s.Node("n2").Allocatable[dim] != podspec.Unlimited ||
		s.Node("n1").Capacity[dim] != 0 {
		t.Errorf("n1 %v, n2 %v", s.Node("n1").Allocatable, s.Node("n2").Allocatable)
	}
	b.SetCSINode(csiNode("n1", 9))
	b.DeleteCSINode("n2")
	if got := b.Snapshot().Node("n1").Allocatable[dim]; got != 9 {
		t.Errorf("the new limit is %d, want 9", got)
	}
	b.DeleteCSINode("n1")
	if got := b.Snapshot().Node("n1").Allocatable[dim]; got != podspec.Unlimited {
		t.Errorf("without a CSINode the limit is %d", got)
	}
}

func TestTypesHaveAttachLimits(t *testing.T) {
	b, _ := bookWithPools("p")
	tell(t, b, volumeOf("pv", "sc"), boundTo(claimOf("data", "sc"), "pv"), mounting("data"))
	types := append(oneType("m"), oneType("n")...)
	types[0].VolumeLimits = map[string]int32{decode.EbsDriver: 26}
	b.setCatalog("p", 0, types, nil)
	joining := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "joining", Labels: map[string]string{
		"karpenter.kwok.sh/kwoknodeclass": "default", cluster.InstanceTypeLabel: "m"}}}
	b.SetNode(joining)
	claim := claimObject("c", "1")
	claim.Labels[cluster.InstanceTypeLabel], claim.Status.Allocatable = "m", quantity("4")
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceName(ebs): apiresource.MustParse("1")}
	b.SetClaim(claim)
	s := b.Snapshot()
	dim, _ := s.Names.Lookup(ebs)
	c := s.Pool("p").Catalog
	if c.Types[0].Allocatable[dim] != 26 || c.Types[1].Allocatable[dim] != podspec.Unlimited {
		t.Errorf("types %v", c.Types)
	}
	if s.Claim("c").Allocatable[dim] != 26 || s.Node("joining").Allocatable[dim] != 26 ||
		len(s.Claim("c").AwaitedResources) != 0 {
		t.Errorf("claim %v wants %v, node %v", s.Claim("c").Allocatable, s.Claim("c").AwaitedResources,
			s.Node("joining").Allocatable)
	}
	joined := joining.DeepCopy()
	joined.Labels[cluster.InitializedLabel] = "true"
	b.SetNode(joined)
	if got := b.Snapshot().Node("joining").Allocatable[dim]; got != podspec.Unlimited {
		t.Errorf("kube-scheduler knows no limit of the node, we say %d", got)
	}
}

func TestExclusiveVolumes(t *testing.T) {
	alone := boundTo(claimOf("data", "sc"), "pv")
	alone.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	p := onlyPod(bookOf(t, volumeOf("pv", "sc"), alone, mounting("data")))
	if !slices.Equal(p.ExclusiveVolumes, []string{"default/data"}) {
		t.Errorf("exclusive %v", p.ExclusiveVolumes)
	}
}

func TestClaimsThatAreNotBoundTiePods(t *testing.T) {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	p := onlyPod(bookOf(t, storageClass("sc", "d", wait), claimOf("data", "sc"), mounting("data")))
	if !slices.Equal(p.UnboundClaims, []string{"default/data"}) || len(p.ExclusiveVolumes) != 0 {
		t.Errorf("a volume that will be made: unbound %v, exclusive %v", p.UnboundClaims, p.ExclusiveVolumes)
	}
	b := bookOf(t, storageClass("local", volume.NotSupportedProvisioner, wait), volumeOf("pv", "local"),
		claimOf("data", "local"), mounting("data"))
	if p := onlyPod(b); len(p.UnboundClaims) != 0 || !slices.Equal(p.ExclusiveVolumes,
		[]string{"storage class local"}) {
		t.Errorf("a volume that is there: unbound %v, exclusive %v", p.UnboundClaims, p.ExclusiveVolumes)
	}
	b.SetVolumeClaim(boundTo(claimOf("data", "local"), "pv"))
	if p := onlyPod(b); len(p.UnboundClaims) != 0 || len(p.ExclusiveVolumes) != 0 {
		t.Errorf("a bound volume: unbound %v, exclusive %v", p.UnboundClaims, p.ExclusiveVolumes)
	}
}

func TestChangesOfVolumesReachPods(t *testing.T) {
	b := bookOf(t, mounting("data"))
	problem := func() string { return strings.Join(onlyPod(b).Class.Unsupported, "; ") }
	steps := []struct {
		what   string
		change func()
		want   string
		terms  string
	}{
		{"a claim comes", func() { b.SetVolumeClaim(claimOf("data", "sc")) }, "storage class sc", ""},
		{"its class comes", func() {
			b.SetStorageClass(storageClass("sc", "d", storagev1.VolumeBindingWaitForFirstConsumer, "a"))
		}, "", corev1.LabelTopologyZone + " In [a]"},
		{"its class allows more", func() {
			b.SetStorageClass(storageClass("sc", "d", storagev1.VolumeBindingWaitForFirstConsumer))
		}, "", ""},
		{"it is bound", func() { b.SetVolumeClaim(boundTo(claimOf("data", "sc"), "pv")) }, "volume pv of", ""},
		{"its volume comes", func() { b.SetVolume(volumeOf("pv", "sc", in("rack", "r"))) }, "", "rack In [r]"},
		{"its volume goes", func() { b.DeleteVolume("pv") }, "volume pv of", ""},
		{"the claim goes", func() { b.DeleteVolumeClaim("default", "data") }, "claim data does not exist", ""},
	}
	for _, s := range steps {
		demand := b.Snapshot().DemandRev
		s.change()
		if got := problem(); (s.want == "") != (got == "") || !strings.Contains(got, s.want) {
			t.Errorf("%s: kept back by %q, want %q", s.what, got, s.want)
		}
		if got := termsText(onlyPod(b).Class); got != s.terms {
			t.Errorf("%s: terms %q, want %q", s.what, got, s.terms)
		}
		if b.Snapshot().DemandRev == demand {
			t.Errorf("%s: no change of demand", s.what)
		}
	}
	b.DeletePod(mounting("data"))
	if b.mounts.Of("u") != nil || len(b.mounts.Unbound())+len(b.mounts.Users("default/data")) > 0 {
		t.Error("volumes of a pod that is gone are kept")
	}
}

// TestVolumesAgainstKubernetes draws claims, volumes, classes and nodes, and compares on which nodes the pod may run
// with what Kubernetes' own matching of volumes says.
func TestVolumesAgainstKubernetes(t *testing.T) {
	for seed := range int64(2000) {
		r := rand.New(rand.NewSource(seed))
		b, _ := newBook()
		var pvs []*corev1.PersistentVolume
		for i := range r.Intn(5) {
			pv := volumeOf(fmt.Sprint("pv", i), pick(r, []string{"sc", "other"}))
			if r.Intn(5) > 0 {
				pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{}}
				for range r.Intn(3) {
					term := randomTerm(r)
					term.MatchFields = nil
					pv.Spec.NodeAffinity.Required.NodeSelectorTerms =
						append(pv.Spec.NodeAffinity.Required.NodeSelectorTerms, term)
				}
			}
			pv.Labels = randomLabels(r)
			pv.Spec.Capacity[corev1.ResourceStorage] = apiresource.MustParse(pick(r, []string{"1Mi", "1Gi", "2Gi"}))
			if r.Intn(4) == 0 {
				pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: pick(r, []string{"c0", "c9"})}
			}
			pv.Status.Phase = pick(r, []corev1.PersistentVolumePhase{corev1.VolumeAvailable, corev1.VolumeAvailable,
				corev1.VolumePending})
			pvs = append(pvs, pv)
			b.SetVolume(pv)
		}
		class := storageClass("sc", pick(r, []string{"d", volume.NotSupportedProvisioner}),
			storagev1.VolumeBindingWaitForFirstConsumer)
		for range r.Intn(2) {
			class.AllowedTopologies = append(class.AllowedTopologies, corev1.TopologySelectorTerm{
				MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: pick(r, keys()),
					Values: []string{pick(r, values())}}}})
		}
		b.SetStorageClass(class)
		claim := claimOf("c0", "sc")
		if r.Intn(3) == 0 {
			claim.Spec.Selector = randomSelector(r)
		}
		if len(pvs) > 0 && r.Intn(2) == 0 {
			claim = boundTo(claim, pvs[0].Name)
		}
		b.SetVolumeClaim(claim)
		pod := mounting("c0")
		pod.UID = types.UID(fmt.Sprint(seed))
		b.SetPod(pod)
		c := onlyPod(b).Class
		for range 8 {
			node := randomNode(r)
			_, got := c.MatchesLabels(cluster.LabelsOf(node.Labels).Get)
			got = got && len(c.Unsupported) == 0
			if want := reachable(t, claim, class, pvs, node); got != want {
				t.Fatalf("seed %d, node %v: we say %v (%s; %v), Kubernetes %v", seed, node.Labels, got, termsText(c),
					c.Unsupported, want)
			}
		}
	}
}

func reachable(t *testing.T, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass,
	pvs []*corev1.PersistentVolume, node *corev1.Node) bool {
	t.Helper()
	if claim.Spec.VolumeName != "" {
		return volume.CheckNodeAffinity(pvs[0], node.Labels) == nil
	}
	var same []*corev1.PersistentVolume
	for _, pv := range pvs {
		if pv.Spec.StorageClassName == class.Name {
			same = append(same, pv)
		}
	}
	found, err := volume.FindMatchingVolume(claim, same, node, nil, true, true)
	if err != nil {
		t.Fatalf("Kubernetes can't match volumes: %v", err)
	}
	if found != nil {
		return true
	}
	if class.Provisioner == volume.NotSupportedProvisioner {
		return false
	}
	for _, term := range class.AllowedTopologies {
		e := term.MatchLabelExpressions[0]
		if value, has := node.Labels[e.Key]; has && slices.Contains(e.Values, value) {
			return true
		}
	}
	return len(class.AllowedTopologies) == 0
}

func pinnedClaim(name, key, id string) *v1.NodeClaim {
	c := claimObject(name, "1")
	c.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{{Key: key, Operator: "In", Values: []string{id}}}
	return c
}

func TestReservations(t *testing.T) {
	const key = "karpenter.k8s.aws/capacity-reservation-id"
	b, clock := bookWithPools("p")
	sell := func(left int) {
		b.setCatalog("p", 0, []*cloudprovider.InstanceType{{Name: "m", Capacity: quantity("4"),
			Offerings: []cloudprovider.Offering{
				{Labels: map[string]string{cluster.CapacityTypeLabel: "reserved", key: "cr-1"}, Available: true,
					ReservationID: "cr-1", ReservationCapacity: left},
				{Labels: map[string]string{cluster.CapacityTypeLabel: "spot"}, Price: 1, Available: true},
			}}}, nil)
	}
	sell(2)
	reserved := func() (left int, available bool) {
		for _, o := range b.Snapshot().Pool("p").Catalog.Offerings {
			if o.Reservation == "cr-1" {
				return o.ReservationLeft, o.Available
			}
		}
		t.Fatal("the reserved offering is gone")
		return 0, false
	}
	check := func(what string, left int, available bool) {
		t.Helper()
		if l, a := reserved(); l != left || a != available {
			t.Errorf("%s: %d left, available %v; want %d, %v", what, l, a, left, available)
		}
	}
	check("at first", 2, true)
	clock.tick(5e9)
	b.SetClaim(pinnedClaim("a", key, "cr-1"))
	b.SetClaim(pinnedClaim("b", key, "cr-2"))
	check("a claim is pinned to it", 1, true)
	launched := pinnedClaim("a", key, "cr-1")
	launched.Status.Conditions = []metav1.Condition{{Type: cluster.Launched, Status: metav1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(clock.at)}}
	b.SetClaim(launched)
	check("it is launched and the provider has not said so", 1, true)
	b.SetClaim(pinnedClaim("c", key, "cr-1"))
	check("two are pinned to it", 0, false)
	b.DeleteClaim("c")
	clock.tick(60e9)
	sell(1)
	check("the provider has counted again", 1, true)
}
