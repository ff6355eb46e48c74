package ingest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/defaultspread"
	"github.com/tenon-sh/tenon/internal/ingest/feed"
	"github.com/tenon-sh/tenon/internal/render"
)

// filler writes a text into every string of an object, however deep.
type filler struct{ next func() string }

// filling writes the same text everywhere.
func filling(text string) filler { return filler{func() string { return text }} }

func (f filler) fill(v reflect.Value, depth int) {
	if depth > 14 || !v.CanSet() {
		return
	}
	switch v.Interface().(type) {
	case apiresource.Quantity, metav1.Time, metav1.MicroTime, metav1.FieldsV1:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.next())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, depth+1)
		f.fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i), depth+1)
		}
	}
}

func bytesOf(t *testing.T, obj any) int {
	t.Helper()
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// atLeast1MiB is an object of the kind in which every text is so long that all together make a mebibyte; annotations
// come on top.
func atLeast1MiB(t *testing.T, kind client.Object) client.Object {
	t.Helper()
	whole := kind.DeepCopyObject().(client.Object)
	filling("~").fill(reflect.ValueOf(whole).Elem(), 0)
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	filling(strings.Repeat("~", 1+1<<20/strings.Count(string(text), "~"))).fill(reflect.ValueOf(whole).Elem(), 0)
	annotations := make(map[string]string)
	for i := range 400 {
		annotations[fmt.Sprint("note-", i)] = strings.Repeat("~", 1000)
	}
	whole.SetAnnotations(annotations)
	whole.SetName("name") // the API server allows no long ones
	whole.SetNamespace("namespace")
	whole.SetUID("uid")
	whole.SetResourceVersion("7")
	return whole
}

// An object of any kind that is watched leaves little in memory, however large it is. A new kind is in the list by
// itself.
func TestLittleIsKeptOfLargeObjects(t *testing.T) {
	byAdministrators := map[string]bool{"NodePool": true, "NodeClaim": true, "*v1.Node": true}
	b := Book{spreads: &defaultspread.Spread{}}
	for _, kind := range append(watched(), b.ExtraKinds()...) {
		if byAdministrators[feed.KindOf(kind)] {
			continue
		}
		whole := atLeast1MiB(t, kind)
		before := bytesOf(t, whole)
		kept, err := decode.Strip(whole)
		if err != nil {
			t.Fatal(err)
		}
		after := bytesOf(t, kept)
		t.Logf("%T: %d bytes, %d are kept", kind, before, after)
		if most := keptAtMost(kind); before < 1<<20 || after > most {
			t.Errorf("%T: of %d bytes %d are kept, expected at most %d of a mebibyte", kind, before, after, most)
		}
	}
}

// oneLong writes a short text into every string of an object but one, the nth, which is a quarter of a mebibyte long:
// twice what may be kept.
type oneLong struct{ n, at int }

func (o *oneLong) next() string {
	if o.at++; o.at-1 == o.n {
		return strings.Repeat("~", 4*decode.MostKeptBytes)
	}
	return "~"
}

// An object with one very long text, whichever it is, leaves no more than one with many. Texts of which the API server
// allows only short or certain ones are put right first.
func TestLittleIsKeptOfEachLongText(t *testing.T) {
	b := Book{spreads: &defaultspread.Spread{}}
	kinds := []client.Object{&corev1.Pod{}}
	for _, kind := range append(watched(), b.ExtraKinds()...) {
		if inNamespace(kind) {
			kinds = append(kinds, kind)
		}
	}
	for _, kind := range kinds {
		for n := 0; ; n++ {
			whole, texts := kind.DeepCopyObject().(client.Object), &oneLong{n: n}
			filler{next: texts.next}.fill(reflect.ValueOf(whole).Elem(), 0)
			if texts.at <= n {
				t.Logf("%T: %d texts", kind, n)
				break
			}
			controls := true
			refs := whole.GetOwnerReferences()
			refs[0].Controller = &controls
			whole.SetOwnerReferences(refs)
			whole.SetName("name")
			whole.SetNamespace("namespace")
			whole.SetUID("uid")
			whole.SetResourceVersion("7")
			asAllowed(whole)
			kept, err := decode.Strip(whole)
			if err != nil {
				t.Fatal(err)
			}
			if pod, is := kept.(*corev1.Pod); is { // of which the book keeps what it has read
				if held := keptOfPod(pod); held > 2*decode.MostKeptBytes {
					t.Errorf("of a pod whose text %d is very long %d bytes are kept", n, held)
				}
				continue
			}
			if after := bytesOf(t, kept); after > 2*decode.MostKeptBytes {
				t.Errorf("%T: of an object whose text %d is very long %d bytes are kept", kind, n, after)
			}
		}
	}
}

// asAllowed puts right what the API server checks.
func asAllowed(o client.Object) {
	switch w := o.(type) {
	case *corev1.Pod:
		w.Spec.NodeName, w.Status.NominatedNodeName = "node", "node"
	case *appsv1.StatefulSet:
		w.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	case *policyv1.PodDisruptionBudget:
		policy := policyv1.AlwaysAllow
		w.Spec.UnhealthyPodEvictionPolicy = &policy
	case *corev1.PersistentVolumeClaim:
		class, mode := "class", corev1.PersistentVolumeBlock
		w.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		w.Spec.StorageClassName, w.Spec.VolumeMode, w.Spec.VolumeAttributesClassName = &class, &mode, &class
		w.Status.Phase = corev1.ClaimPending
	}
}

// inNamespace reports whether objects of the kind are in a namespace, and so may be written by its users.
func inNamespace(kind client.Object) bool {
	switch kind.(type) {
	case *appsv1.ReplicaSet, *appsv1.StatefulSet, *appsv1.DaemonSet, *corev1.ReplicationController, *batchv1.Job,
		*corev1.Service,
		*corev1.PersistentVolumeClaim, *policyv1.PodDisruptionBudget, *corev1.LimitRange:
		return true
	}
	return false
}

// keptOfPod is about how long the texts are that the book keeps of a pod.
func keptOfPod(pod *corev1.Pod) int {
	b, _ := newBook()
	b.SetPod(pod)
	b.DeletePod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "another"}})
	p, _ := b.pods.Get(string(pod.UID))
	held := 0
	for _, text := range []string{p.UID, p.Namespace, p.Name, p.Owner, p.Node, p.Nominated, p.Phase} {
		held += len(text)
	}
	return held
}

// keptAtMost is how many bytes of JSON may be kept. Of kinds that are not in a namespace, which administrators and
// drivers write, it may be more.
func keptAtMost(kind client.Object) int {
	switch kind.(type) {
	case *corev1.PersistentVolume, *storagev1.StorageClass, *storagev1.CSINode, *nodev1.RuntimeClass, *corev1.Namespace:
		return 400 << 10
	}
	return 2 * decode.MostKeptBytes
}

// What is kept of a DaemonSet gives the same class as the whole, and twice the same.
func TestStrippedDaemonSetsCountTheSame(t *testing.T) {
	ds := daemonSet(func(s *corev1.PodSpec) {
		always := corev1.ContainerRestartPolicyAlways
		s.Containers = []corev1.Container{{
			Name: "agent", Image: "image", Env: []corev1.EnvVar{{Name: "A", Value: "a"}},
			Resources: corev1.ResourceRequirements{Limits: amounts("2", "1Gi")},
			Ports: []corev1.ContainerPort{{
				Name: "http", ContainerPort: 80, HostPort: 8080, HostIP: "10.0.0.1", Protocol: corev1.ProtocolTCP,
			}},
		}}
		s.InitContainers = []corev1.Container{{
			Name: "mesh", RestartPolicy: &always,
			Resources: corev1.ResourceRequirements{Requests: amounts("100m", "")},
		}}
		s.NodeSelector = map[string]string{"disk": "ssd"}
		s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		s.HostNetwork, s.PriorityClassName = true, "high"
		logs := &corev1.HostPathVolumeSource{Path: "/var/log"}
		s.Volumes = []corev1.Volume{{Name: "logs", VolumeSource: corev1.VolumeSource{HostPath: logs}}}
	})
	ds.Spec.Template.Labels = map[string]string{"app": "agent"}
	classes := make([]*cluster.Daemon, 3)
	for i := range classes {
		b, _ := newBook()
		b.SetPriorityClass(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 7})
		b.SetDaemon(ds.DeepCopy())
		classes[i] = daemonOf(t, b)
		if _, err := decode.Strip(ds); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range classes[1:] {
		if !reflect.DeepEqual(d, classes[0]) {
			t.Errorf("what is kept gives %+v, the whole %+v", d.Class, classes[0].Class)
		}
	}
	if ds.Annotations[appsv1.DeprecatedTemplateGeneration] != "1" {
		t.Error("the generation of the template is lost")
	}
}

// oversized has one object of each kind of which a part may be too large to be kept; that part is.
type oversized struct {
	daemons    *appsv1.DaemonSet
	budget     *policyv1.PodDisruptionBudget
	limits     *corev1.LimitRange
	set        *appsv1.ReplicaSet
	ordered    *appsv1.StatefulSet
	claim      *corev1.PersistentVolumeClaim
	service    *corev1.Service
	controller *corev1.ReplicationController
}

func newOversized() *oversized {
	named := metav1.ObjectMeta{Namespace: "infra", Name: "web", UID: "uid"}
	o := &oversized{
		daemons: daemonSet(func(s *corev1.PodSpec) {
			for i := range 500 {
				long := corev1.Toleration{Key: fmt.Sprint("key-", i), Value: strings.Repeat("v", 300)}
				s.Tolerations = append(s.Tolerations, long)
			}
		}),
		budget:     &policyv1.PodDisruptionBudget{ObjectMeta: named},
		limits:     &corev1.LimitRange{ObjectMeta: named},
		set:        &appsv1.ReplicaSet{ObjectMeta: named},
		ordered:    &appsv1.StatefulSet{ObjectMeta: named},
		claim:      &corev1.PersistentVolumeClaim{ObjectMeta: named},
		service:    &corev1.Service{ObjectMeta: named},
		controller: &corev1.ReplicationController{ObjectMeta: named},
	}
	apps := metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpIn}
	for i := range 4000 {
		apps.Values = append(apps.Values, fmt.Sprintf("%060d", i))
	}
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{apps}}
	o.budget.Spec.Selector, o.set.Spec.Selector = selector, selector.DeepCopy()
	o.ordered.Spec.Selector, o.claim.Spec.Selector = selector.DeepCopy(), selector.DeepCopy()
	requests := corev1.ResourceList{}
	for i := range 5000 {
		requests[corev1.ResourceName(fmt.Sprintf("example.com/%060d", i))] = apiresource.MustParse("1")
	}
	o.limits.Spec.Limits = []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: requests}}
	labels := map[string]string{"app": strings.Repeat("v", 2*decode.MostKeptBytes)}
	o.service.Spec.Selector, o.controller.Spec.Selector = labels, labels
	return o
}

func (o *oversized) all() []client.Object {
	return []client.Object{o.daemons, o.budget, o.limits, o.set, o.ordered, o.claim, o.service, o.controller}
}

func (o *oversized) feed(b *Book) {
	b.SetDaemon(o.daemons)
	b.SetPDB(o.budget)
	b.SetLimitRange(o.limits)
	b.SetVolumeClaim(o.claim)
	b.SetService(o.service)
	for _, obj := range []client.Object{o.set, o.ordered, o.controller} {
		b.SetController(obj)
	}
}

// mend deletes each object, or makes it an ordinary one.
func (o *oversized) mend(b *Book) {
	b.DeleteDaemon(o.daemons.UID)
	b.DeletePDB(o.budget.Namespace, o.budget.Name)
	b.DeleteLimitRange(o.limits.Namespace, o.limits.Name)
	bound := &corev1.PersistentVolumeClaim{ObjectMeta: o.claim.ObjectMeta}
	bound.Spec.VolumeName = "pv"
	b.SetVolumeClaim(bound) // its selector no longer matters
	b.SetService(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "web", UID: "uid"}})
	b.SetController(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "web", UID: "uid"}})
	b.DeleteController(o.ordered)
	b.DeleteController(o.controller)
}

// What is too large to be kept is told, and changes nothing for others.
func TestWhatIsTooLargeToBeKeptIsTold(t *testing.T) {
	b, _ := newBook()
	b.SetDefaultSpread([]corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
	}})
	large := newOversized()
	for range 2 { // a cache may do it twice
		for _, obj := range large.all() {
			if _, err := decode.Strip(obj); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, obj := range large.all() {
		if n := bytesOf(t, obj); n > 2048 {
			t.Errorf("%T: %d bytes are kept", obj, n)
		}
	}
	large.feed(b)
	s := b.Snapshot()
	everyPod := cluster.Selector{Namespaces: []string{"infra"}}
	if len(s.Daemons) != 0 || len(s.PDBs) != 1 || !reflect.DeepEqual(s.PDBs[0].Selector, everyPod) {
		t.Errorf("%d DaemonSets count, and the budget's selector is %+v; expected none, and all pods of the namespace",
			len(s.Daemons), s.PDBs[0].Selector)
	}
	for _, kind := range []string{
		"DaemonSet", "PodDisruptionBudget", "LimitRange", "PersistentVolumeClaim",
		"Service", "ReplicaSet", "StatefulSet", "ReplicationController",
	} {
		if !slices.ContainsFunc(s.Notes, func(n cluster.Note) bool {
			return n.Kind == kind && n.Reason == tooLong && strings.Contains(render.Text(n.Text), "bytes found")
		}) {
			t.Errorf("the %s is not told: %+v", kind, s.Notes)
		}
	}
	large.mend(b)
	if notes := b.Snapshot().Notes; len(notes) > 0 {
		t.Errorf("told of what is mended or gone: %+v", notes)
	}
}
