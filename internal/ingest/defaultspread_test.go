package ingest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

const spreadConfig = `podTopologySpread: {defaultConstraints: [
  {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule},
  {maxSkew: 2, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}]}`

func spreadingBook(t *testing.T) *Book {
	t.Helper()
	constraints, err := decode.ReadSchedulerConfig(spreadConfig)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := newBook()
	b.SetDefaultSpread(constraints)
	return b
}

func service(name string, selector map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.ServiceSpec{Selector: selector}}
}

func replicaSet(name string, selector *metav1.LabelSelector) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.ReplicaSetSpec{Selector: selector}}
}

func labelled(pairs ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: pairsOf(pairs...)}
}

func pairsOf(pairs ...string) map[string]string {
	out := make(map[string]string)
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// webPod looks for a place and wears app=web, tier=front and a hash.
func webPod(uid string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := judgedPod(uid)
	p.Labels = pairsOf("app", "web", "tier", "front", "hash", "1")
	for _, c := range change {
		c(p)
	}
	return p
}

func controlledBy(version, kind, name string) func(*corev1.Pod) {
	yes := true
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: types.UID(name),
			Controller: &yes}}
	}
}

// tiesText writes the rules and wishes of a pod.
func tiesText(b *Book, uid string) string {
	for _, p := range b.Snapshot().Pods {
		if p.UID != uid {
			continue
		}
		var out []string
		for _, r := range p.Class.Rules {
			out = append(out, r.Key)
		}
		for _, w := range p.Class.Preferences {
			out = append(out, "wish "+w.Rule.Key)
		}
		return strings.Join(out, "\n")
	}
	return "no such pod"
}

// spreadBy is what the defaults of spreadConfig come to for a selector.
func spreadBy(selector string) string {
	if selector == "" {
		return ""
	}
	return fmt.Sprintf("spread over topology.kubernetes.io/zone skew 1 | in default: (%s)\nwish spread over rack "+
		"skew 2 | in default: (%s)", selector, selector)
}

func TestDefaultSpreadDeducesSelectors(t *testing.T) {
	rs, odd := controlledBy("apps/v1", "ReplicaSet", "rs"), controlledBy("apps/v1", "ReplicaSet", "odd")
	for _, c := range []struct {
		what string
		pod  *corev1.Pod
		want string
	}{
		{"a Service and a ReplicaSet", webPod("a", rs), "app In [web]; hash In [1]; tier In [front]"},
		{"a ReplicaSet with expressions", webPod("a", odd), "app In [web]; hash Exists; tier In [front]"},
		{"a StatefulSet of that name", webPod("a", controlledBy("apps/v1", "StatefulSet", "rs")),
			"app In [web]; set In [x]; tier In [front]"},
		{"a ReplicationController's labels replace those of Services",
			webPod("a", controlledBy("v1", "ReplicationController", "rc")), "app In [web]; tier In [back]"},
		{"a Job says nothing", webPod("a", controlledBy("batch/v1", "Job", "rs")), "app In [web]; tier In [front]"},
		{"nor does an API group that kube-scheduler does not ask",
			webPod("a", controlledBy("example.com/v1", "ReplicaSet", "rs")), "app In [web]; tier In [front]"},
		{"nor one that is not known", webPod("a", controlledBy("apps/v1", "ReplicaSet", "lost")),
			"app In [web]; tier In [front]"},
		{"Services only", webPod("a"), "app In [web]; tier In [front]"},
		{"one of the Services", webPod("a", func(p *corev1.Pod) { p.Labels = pairsOf("app", "web") }), "app In [web]"},
		{"a ReplicaSet only", webPod("a", rs, func(p *corev1.Pod) { p.Labels = nil }), "app In [web]; hash In [1]"},
		{"neither", judgedPod("a"), ""},
		{"Services of another namespace", webPod("a", func(p *corev1.Pod) { p.Namespace = "other" }), ""},
	} {
		b := spreadingBook(t)
		for _, s := range []*corev1.Service{
			service("web", pairsOf("app", "web")), service("front", pairsOf("tier", "front", "app", "web")),
			service("db", pairsOf("app", "db")), service("none", nil), service("empty", pairsOf()),
		} {
			b.SetService(s)
		}
		b.SetController(replicaSet("rs", labelled("app", "web", "hash", "1")))
		b.SetController(replicaSet("odd",
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "hash",
				Operator: "Exists"}}}))
		b.SetController(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rs"},
			Spec: appsv1.StatefulSetSpec{Selector: labelled("set", "x")}})
		b.SetController(&corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rc"},
			Spec: corev1.ReplicationControllerSpec{Selector: pairsOf("tier", "back")}})
		b.SetPod(c.pod)
		if got := tiesText(b, "a"); got != spreadBy(c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.what, got, spreadBy(c.want))
		}
	}
}

func TestOwnSpreadWinsOverDefaults(t *testing.T) {
	b := spreadingBook(t)
	b.SetService(service("web", pairsOf("app", "web")))
	own := webPod("a", func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 5, TopologyKey: "rack",
			WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: labelled("app", "web")}}
	})
	b.SetPod(own)
	if got, want := tiesText(b, "a"), "wish spread over rack skew 5 | in default: (app In [web])"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := moved(b, func() { b.DeleteService("default", "web") }); got != "" {
		t.Errorf("a Service that matters to nobody moves %q", got)
	}
}

func TestDefaultsJoinWhatThePodAsksFor(t *testing.T) {
	together := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{
			PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: "host", LabelSelector: labelled("app", "web")}}},
		}
	}
	b := spreadingBook(t)
	b.SetService(service("web", pairsOf("app", "web")))
	b.SetPod(webPod("a", together))
	if got, want := tiesText(b, "a"), strings.Replace(spreadBy("app In [web]"), "\n", "\ntogether in host | in "+
		"default: (app In [web])\n", 1); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// Pods that write out the same constraints are of the same class.
	b.SetPod(webPod("b", together, func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: labelled("app", "web")},
			{MaxSkew: 2, TopologyKey: "rack", WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: labelled("app", "web")}}
	}))
	if s := b.Snapshot(); s.Pods[0].Class != s.Pods[1].Class {
		t.Error("the classes differ")
	}
}

func TestServicesAndControllersReachPods(t *testing.T) {
	b := spreadingBook(t)
	rs := controlledBy("apps/v1", "ReplicaSet", "rs")
	b.SetPod(webPod("a", rs))
	b.SetPod(webPod("b", rs, func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Conditions = "n", nil }))
	b.SetPod(judgedPod("c"))
	for _, c := range []struct {
		what   string
		change func()
		moves  string
		want   string
	}{
		{"a Service comes", func() {
			b.SetService(service("web", pairsOf("app", "web")))
		}, "demand supply help", "app In [web]"},
		{"it comes again", func() { b.SetService(service("web", pairsOf("app", "web"))) }, "", "app In [web]"},
		{"one for others", func() { b.SetService(service("db", pairsOf("app", "db"))) }, "", "app In [web]"},
		{"the owner comes", func() {
			b.SetController(replicaSet("rs", labelled("hash", "1")))
		}, "demand supply help", "app In [web]; hash In [1]"},
		{"its status changes", func() {
			b.SetController(with(replicaSet("rs", labelled("hash", "1")), func(rs *appsv1.ReplicaSet) {
				rs.Status.Replicas = 2
			}))
		}, "", "app In [web]; hash In [1]"},
		{"another owner comes", func() {
			b.SetController(replicaSet("other", labelled("hash", "1")))
		}, "", "app In [web]; hash In [1]"},
		{"the Service selects by more", func() {
			b.SetService(service("web", pairsOf("app", "web", "tier", "front")))
		}, "demand supply help", "app In [web]; hash In [1]; tier In [front]"},
		{"the Service selects others", func() {
			b.SetService(service("web", pairsOf("app", "x")))
		}, "demand supply help", "hash In [1]"},
		{"the owner goes", func() { b.DeleteController(replicaSet("rs", nil)) }, "demand supply help", ""},
	} {
		if got := moved(b, c.change); got != c.moves {
			t.Errorf("%s: %q moved, want %q", c.what, got, c.moves)
		}
		if got := tiesText(b, "a"); got != spreadBy(c.want) || tiesText(b, "b") != got || tiesText(b, "c") != "" {
			t.Errorf("%s:\n%s\nwant\n%s\nthe others: %q %q", c.what, got, spreadBy(c.want), tiesText(b, "b"),
				tiesText(b, "c"))
		}
	}
	b.SetService(service("web", pairsOf("app", "web")))
	if got := moved(b, func() {
		b.SetPod(webPod("a", func(p *corev1.Pod) { p.Labels = nil }))
	}); got != "demand" || tiesText(b, "a") != "" {
		t.Errorf("a pod loses its labels: %q moved, %q", got, tiesText(b, "a"))
	}
	for _, uid := range []string{"a", "b", "c"} {
		b.DeletePod(judgedPod(uid))
	}
	b.DeleteService("default", "web")
	b.DeleteService("default", "db")
	if d := b.spreads; d.Entries() != 0 {
		t.Errorf("of what is gone is kept: %+v", d)
	}
}

func TestDefaultsAndVolumes(t *testing.T) {
	b := spreadingBook(t)
	tell(t, b, storageClass("zonal", decode.EbsDriver, storagev1.VolumeBindingWaitForFirstConsumer, "a"),
		claimOf("data", "zonal"))
	pod := mounting("data")
	pod.Labels = pairsOf("app", "web")
	b.SetPod(pod)
	terms := termsText(onlyPod(b).Class)
	if terms == "" {
		t.Fatal("the volume asks for nothing")
	}
	check := func(what, ties, terms string) {
		t.Helper()
		if got := tiesText(b, "u"); got != ties || termsText(onlyPod(b).Class) != terms {
			t.Errorf("%s: %q, terms %q", what, got, termsText(onlyPod(b).Class))
		}
	}
	b.SetService(service("web", pairsOf("app", "web")))
	check("a Service comes", spreadBy("app In [web]"), terms)
	b.DeleteStorageClass("zonal")
	if class := onlyPod(b).Class; len(class.Unsupported) == 0 {
		t.Error("the storage class is gone, and nobody has noticed")
	}
	tell(t, b, storageClass("zonal", decode.EbsDriver, storagev1.VolumeBindingWaitForFirstConsumer, "a"))
	check("the volume changes", spreadBy("app In [web]"), terms)
	b.DeleteService("default", "web")
	check("the Service goes", "", terms)
}

func TestSweepKeepsWhatDefaultsAreMadeFrom(t *testing.T) {
	b := spreadingBook(t)
	b.SetService(service("web", pairsOf("app", "web")))
	b.SetPod(webPod("a"))
	before := onlyPod(b).Class
	b.mu.Lock()
	b.dropUnused()
	shapes := b.specs.Entries().PodKeys
	b.mu.Unlock()
	b.SetPod(webPod("b"))
	if s := b.Snapshot(); shapes != 1 || s.Pods[0].Class != before || s.Pods[1].Class != before {
		t.Errorf("%d shapes, %v", shapes, s.Pods)
	}
	b.DeleteService("default", "web")
	s := b.Snapshot()
	if s.Pods[0].Class != s.Pods[1].Class || s.Pods[0].Class != b.specs.KnownClass(s.Pods[0].Class.Key) ||
		len(s.Pods[0].Class.Rules) > 0 {
		t.Error("pods of one kind have different classes")
	}
}

// Services that select a pod by more labels than are read of its own constraints are no reason to spend seconds on it:
// it is not spread by default.
func TestDefaultSpreadIsBounded(t *testing.T) {
	b := spreadingBook(t)
	half := func(from int) map[string]string {
		out := make(map[string]string)
		for i := range decode.MostSelectorParts/2 + 1 {
			out[fmt.Sprint("k", from+i)] = "v"
		}
		return out
	}
	b.SetService(service("first", half(0)))
	b.SetPod(webPod("p", func(p *corev1.Pod) {
		for i := range 2 * decode.MostSelectorParts {
			p.Labels[fmt.Sprint("k", i)] = "v"
		}
	}))
	if tiesText(b, "p") == "" {
		t.Error("one Service is within the bound, and the pod is not spread")
	}
	b.SetService(service("second", half(decode.MostSelectorParts)))
	if text := tiesText(b, "p"); text != "" {
		t.Errorf("two Services are beyond the bound, and the pod is spread by %d characters", len(text))
	}
}

func TestWithoutDefaultsNothingIsKept(t *testing.T) {
	b, _ := newBook()
	b.SetDefaultSpread(nil)
	b.SetPod(webPod("a", controlledBy("apps/v1", "ReplicaSet", "rs")))
	got := moved(b, func() {
		b.SetService(service("web", pairsOf("app", "web")))
		b.SetController(replicaSet("rs", labelled("app", "web")))
		b.DeleteController(replicaSet("rs", labelled("app", "web")))
	})
	if got != "" || b.ExtraKinds() != nil || b.spreads != nil || tiesText(b, "a") != "" {
		t.Errorf("moved %q, watched %v, %q", got, b.ExtraKinds(), tiesText(b, "a"))
	}
}

func TestServicesAreWatchedForDefaults(t *testing.T) {
	meta := func(name string) map[string]any {
		return map[string]any{"name": name, "namespace": "default", "resourceVersion": "5", "uid": name}
	}
	pod := meta("a")
	pod["labels"] = map[string]any{"app": "web", "hash": "1"}
	pod["ownerReferences"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs",
		"uid": "rs", "controller": true}}
	release := make(chan struct{})
	close(release)
	informers := startCache(t, &apiServer{release: release, items: map[string][]any{
		"services": {map[string]any{"metadata": meta("web"),
			"spec": map[string]any{"selector": map[string]any{"app": "web"}}}},
		"replicasets": {map[string]any{"metadata": meta("rs"),
			"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"hash": "1"}}}}},
		"pods": {map[string]any{"metadata": pod}},
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	b := spreadingBook(t)
	classes := []schema.GroupVersionKind{classGVK()}
	if err := Prepare(ctx, informers, classes, b.ExtraKinds()...); err != nil {
		t.Fatal(err)
	}
	if err := b.Watch(ctx, informers, classes, informers.pods); err != nil {
		t.Fatal(err)
	}
	if got, want := tiesText(b, "a"), spreadBy("app In [web]; hash In [1]"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
