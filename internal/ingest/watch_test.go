package ingest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

// apiServer answers lists with what it is given and holds watches open. Lists of NodePools wait for release.
type apiServer struct {
	items   map[string][]any // by plural
	release chan struct{}
	lists   sync.Map // by plural: how often it was listed, an *atomic.Int64
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	plural := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	q := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case q.Get("sendInitialEvents") != "":
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`,
			http.StatusUnprocessableEntity)
		return
	case q.Get("watch") != "":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	case plural == "nodepools":
		select {
		case <-s.release:
		case <-r.Context().Done():
			return
		}
	}
	n, _ := s.lists.LoadOrStore(plural, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	items := s.items[plural]
	if items == nil {
		items = []any{}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": apiVersionOf(r.URL.Path), "kind": kindNames()[plural] + "List",
		"metadata": map[string]any{"resourceVersion": "7"}, "items": items,
	})
}

func apiVersionOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "api" {
		return "v1"
	}
	return parts[1] + "/" + parts[2]
}

func kindNames() map[string]string {
	return map[string]string{
		"replicasets": "ReplicaSet", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet", "jobs": "Job",
		"replicationcontrollers": "ReplicationController", "nodes": "Node", "pods": "Pod", "services": "Service",
		"namespaces": "Namespace", "storageclasses": "StorageClass", "csinodes": "CSINode",
		"persistentvolumes": "PersistentVolume", "persistentvolumeclaims": "PersistentVolumeClaim",
		"poddisruptionbudgets": "PodDisruptionBudget", "volumeattachments": "VolumeAttachment",
		"limitranges": "LimitRange", "runtimeclasses": "RuntimeClass", "priorityclasses": "PriorityClass",
		"nodepools": "NodePool", "nodeclaims": "NodeClaim", "kwoknodeclasses": "KWOKNodeClass",
	}
}

func classGVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "karpenter.kwok.sh", Version: "v1alpha1", Kind: "KWOKNodeClass"}
}

// plane is a cache that runs, and what pods are watched by.
type plane struct {
	cache.Cache
	pods toolscache.ListerWatcher
}

// startCache runs a cache against the server until the test ends.
func startCache(t *testing.T, s *apiServer) plane {
	t.Helper()
	server := httptest.NewServer(s)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kwokv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ReplicaSet", "StatefulSet", "DaemonSet"} {
		mapper.Add(appsv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(batchv1.SchemeGroupVersion.WithKind("Job"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ReplicationController"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), meta.RESTScopeNamespace)
	for _, kind := range []string{"Node", "Namespace", "PersistentVolume"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("LimitRange"), meta.RESTScopeNamespace)
	mapper.Add(nodev1.SchemeGroupVersion.WithKind("RuntimeClass"), meta.RESTScopeRoot)
	mapper.Add(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), meta.RESTScopeRoot)
	mapper.Add(storagev1.SchemeGroupVersion.WithKind("StorageClass"), meta.RESTScopeRoot)
	mapper.Add(storagev1.SchemeGroupVersion.WithKind("CSINode"), meta.RESTScopeRoot)
	mapper.Add(storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"), meta.RESTScopeRoot)
	mapper.Add(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), meta.RESTScopeNamespace)
	mapper.Add(v1.GroupVersion().WithKind("NodePool"), meta.RESTScopeRoot)
	mapper.Add(v1.GroupVersion().WithKind("NodeClaim"), meta.RESTScopeRoot)
	mapper.AddSpecific(classGVK(), classGVK().GroupVersion().WithResource("kwoknodeclasses"),
		classGVK().GroupVersion().WithResource("kwoknodeclass"), meta.RESTScopeRoot)
	c, err := cache.New(&rest.Config{Host: server.URL}, cache.Options{
		Scheme: scheme, Mapper: mapper, DefaultTransform: decode.Strip, HTTPClient: server.Client(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		server.CloseClientConnections()
		server.Close()
	})
	if err := Prepare(ctx, c, []schema.GroupVersionKind{classGVK()}); err != nil {
		t.Fatal(err)
	}
	go func() { done <- c.Start(ctx) }()
	core, err := corev1client.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return plane{c, toolscache.NewListWatchFromClient(core.RESTClient(), "pods", "", fields.Everything())}
}

func storedPool(name string, change ...func(map[string]any)) map[string]any {
	spec := map[string]any{
		"nodeClassRef": map[string]any{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
		"requirements": []any{},
	}
	for _, f := range change {
		f(spec)
	}
	return map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
		"metadata": map[string]any{"name": name, "uid": name + "-uid", "generation": int64(3), "resourceVersion": "5"},
		"spec":     map[string]any{"template": map[string]any{"spec": spec}},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": v1.ConditionTypeReady, "status": "False", "reason": "Because", "message": "why",
			"lastTransitionTime": "2026-01-01T00:00:00Z",
		}}},
	}
}

func storedClaim(name string, taints ...any) map[string]any {
	return map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
		"metadata": map[string]any{"name": name, "resourceVersion": "6",
			"labels": map[string]any{v1.NodePoolLabelKey: "good"}},
		"spec": map[string]any{"taints": taints, "requirements": []any{}},
	}
}

func lowerCaseTaint() map[string]any {
	return map[string]any{"key": "k", "effect": "NoSchedule", "timeAdded": "2024-01-01t00:00:00z"}
}

func TestOneUnreadableObjectDoesNotHideTheOthers(t *testing.T) {
	server := &apiServer{release: make(chan struct{}), items: map[string][]any{
		"nodepools": {storedPool("bad", func(s map[string]any) {
			s["taints"] = []any{lowerCaseTaint()}
		}), storedPool("good")},
		"nodeclaims": {storedClaim("odd", lowerCaseTaint()), storedClaim("fine")},
	}}
	informers := startCache(t, server)
	early, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if informers.WaitForCacheSync(early) {
		t.Error("the cache counts as filled although the NodePools have not been listed")
	}
	close(server.release)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if !informers.WaitForCacheSync(ctx) {
		t.Fatal("the cache was never filled")
	}
	b, _ := newBook()
	if err := b.Watch(ctx, informers, []schema.GroupVersionKind{classGVK()}, informers.pods); err != nil {
		t.Fatal(err)
	}
	s := b.Snapshot()
	good, problem := s.Pool("good"), s.Pool("bad")
	if good == nil || len(good.Problems) != 0 {
		t.Errorf("the good pool: %+v", good)
	}
	if problem == nil || len(problem.Problems) != 1 ||
		problem.Problems[0].Field != "spec.template.spec.taints[0].timeAdded" {
		t.Fatalf("the bad pool: %+v", problem)
	}
	if text := problem.Problems[0].Text; !strings.Contains(text, "2024-01-01t00:00:00z") || !strings.Contains(text,
		"correct or remove it") {
		t.Errorf("the problem says %q", text)
	}
	if s.Claim("fine") == nil || s.Claim("odd") == nil || s.Claim("odd").Pool != "good" {
		t.Errorf("claims %v: want both", s.Claims)
	}
}

// What the book knows of a NodeClass, the provider knows, too: both see it by one informer, which lists it once.
func TestNodeClassesAreSeenByTheInformerOfTheProvider(t *testing.T) {
	server := &apiServer{items: map[string][]any{"kwoknodeclasses": {map[string]any{
		"apiVersion": classGVK().GroupVersion().String(), "kind": "KWOKNodeClass",
		"metadata": map[string]any{"name": "default", "resourceVersion": "5", "generation": int64(2)},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": v1.ConditionTypeReady, "status": "True", "reason": "Ready", "message": "",
			"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": int64(2),
		}}},
	}}}, release: make(chan struct{})}
	close(server.release)
	informers := startCache(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	b, _ := newBook()
	if err := b.Watch(ctx, informers, []schema.GroupVersionKind{classGVK()}, informers.pods); err != nil {
		t.Fatal(err)
	}
	if state := b.nodeClassNow(cluster.ClassRef{Group: classGVK().Group, Kind: classGVK().Kind,
		Name: "default"}); !state.Ready || state.Generation != 2 {
		t.Errorf("the class is %+v", state)
	}
	var class kwokv1alpha1.KWOKNodeClass
	if err := informers.Get(ctx, client.ObjectKey{Name: "default"}, &class); err != nil || class.Generation != 2 {
		t.Errorf("the provider reads %+v: %v", class, err)
	}
	if n, _ := server.lists.Load("kwoknodeclasses"); n.(*atomic.Int64).Load() != 1 {
		t.Errorf("NodeClasses were listed %d times", n.(*atomic.Int64).Load())
	}
}

func TestBrokenPoolIsKnownButNeitherGrowsNorShrinks(t *testing.T) {
	b, _ := newBook()
	b.SetNodeClass(cluster.ClassRef{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
		cluster.NodeClassState{Ready: true})
	object := storedPool("bad", func(s map[string]any) { s["taints"] = []any{lowerCaseTaint()} })
	object["spec"].(map[string]any)["limits"] = map[string]any{"cpu": "lots", "memory": "1Gi"}
	b.setStoredPool(&unstructured.Unstructured{Object: object})
	b.setCatalog("bad", 3, nil, nil)
	p := b.Snapshot().Pool("bad")
	if p.UID != "bad-uid" || p.Generation != 3 || p.IsUsable() || p.AwaitsCatalog() {
		t.Errorf("the pool is %+v", p)
	}
	if len(p.Problems) != 2 || p.Problems[0].Field != "spec.limits.cpu" {
		t.Errorf("problems %+v: want the limit and the taint", p.Problems)
	}
	if !p.NodeClass.Ready || len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Message != "why" {
		t.Errorf("class %+v, status %+v: what can be read was lost", p.NodeClass, p.Status)
	}
	if !p.ConsolidateAfter.Never || len(p.Budgets) != 1 || !p.Budgets[0].Covers("Empty") ||
		p.Budgets[0].Allows(10) != 0 {
		t.Errorf("nodes may be taken from a pool whose rules can't be read: %+v", p)
	}
	b.setStoredPool(&unstructured.Unstructured{Object: storedPool("bad")})
	if p := b.Snapshot().Pool("bad"); len(p.Problems) != 0 {
		t.Errorf("a corrected pool still has problems %+v", p.Problems)
	}
}

func TestUnreadableShapesAreNamed(t *testing.T) {
	for want, change := range map[string]func(spec map[string]any){
		"spec.template.spec.taints":      func(s map[string]any) { s["taints"] = "none" },
		"spec.template.spec.expireAfter": func(s map[string]any) { s["expireAfter"] = "soon" },
		"spec.template.spec.requirements[1].values": func(s map[string]any) {
			s["requirements"] = []any{map[string]any{}, map[string]any{"values": "x"}}
		},
		"spec.template.spec.nodeClassRef.name": func(s map[string]any) {
			s["nodeClassRef"].(map[string]any)["name"] = map[string]any{}
		},
		`spec.template.spec.startupTaints[0].timeAdded`: func(s map[string]any) {
			s["startupTaints"] = []any{lowerCaseTaint()}
		},
		"spec.template.spec.terminationGracePeriod": func(s map[string]any) {
			s["terminationGracePeriod"] = "a while"
		},
	} {
		_, lost := decode.ReadPool(&unstructured.Unstructured{Object: storedPool("p", change)})
		if len(lost) != 1 || lost[0].Path != want || lost[0].Err == nil {
			t.Errorf("lost %+v, want %s", lost, want)
		}
	}
	object := storedPool("p")
	object["spec"].(map[string]any)["limits"] = map[string]any{"nvidia.com/gpu": "some"}
	if _, lost := decode.ReadPool(&unstructured.Unstructured{Object: object}); len(lost) != 1 ||
		lost[0].Path != `spec.limits["nvidia.com/gpu"]` {
		t.Errorf("lost %+v", lost)
	}
}

func TestStripWorksWithoutAGoType(t *testing.T) {
	u := &unstructured.Unstructured{Object: storedPool("p")}
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "someone"}})
	if _, err := decode.Strip(u); err != nil || u.GetManagedFields() != nil {
		t.Errorf("managed fields %v, %v", u.GetManagedFields(), err)
	}
}

func TestWhatPodsReferToIsWatched(t *testing.T) {
	meta := func(name string, more ...string) map[string]any {
		out := map[string]any{"name": name, "resourceVersion": "5", "uid": name}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	claim := meta("data", "namespace", "default")
	claim["annotations"] = map[string]any{"pv.kubernetes.io/bind-completed": "yes"}
	space := meta("default")
	space["labels"] = map[string]any{"team": "a"}
	release := make(chan struct{})
	close(release)
	informers := startCache(t, &apiServer{release: release, items: map[string][]any{
		"namespaces": {map[string]any{"metadata": space}},
		"storageclasses": {map[string]any{"metadata": meta("local"), "provisioner": "kubernetes.io/no-provisioner",
			"volumeBindingMode": "WaitForFirstConsumer"}},
		"csinodes": {map[string]any{"metadata": meta("n"), "spec": map[string]any{"drivers": []any{
			map[string]any{"name": decode.EbsDriver, "nodeID": "n", "allocatable": map[string]any{"count": 7}}}}}},
		"nodes": {map[string]any{"metadata": meta("n")}},
		"persistentvolumes": {map[string]any{"metadata": meta("pv"), "spec": map[string]any{
			"csi": map[string]any{"driver": decode.EbsDriver, "volumeHandle": "vol-1"},
			"nodeAffinity": map[string]any{
				"required": map[string]any{"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{
					map[string]any{"key": "rack", "operator": "In", "values": []any{"r"}}}}}},
			}}}},
		"persistentvolumeclaims": {map[string]any{"metadata": claim, "spec": map[string]any{"volumeName": "pv"}}},
		"pods": {
			map[string]any{"metadata": meta("bound", "namespace", "default"), "spec": map[string]any{"volumes": []any{
				map[string]any{"name": "v", "persistentVolumeClaim": map[string]any{"claimName": "data"}}}}},
			map[string]any{"metadata": meta("open", "namespace", "default"), "spec": map[string]any{"volumes": []any{
				map[string]any{"name": "v",
					"ephemeral": map[string]any{
						"volumeClaimTemplate": map[string]any{"spec": map[string]any{"storageClassName": "local"}},
					}}}}},
		},
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	b, _ := newBook()
	if err := b.Watch(ctx, informers, []schema.GroupVersionKind{classGVK()}, informers.pods); err != nil {
		t.Fatal(err)
	}
	s := b.Snapshot()
	dim, known := s.Names.Lookup(ebs)
	if team, _ := s.Namespaces["default"].Get("team"); team != "a" || !known || s.Node("n").Allocatable[dim] != 7 {
		t.Errorf("namespaces %v, resources %v, node %v", s.Namespaces, s.Names, s.Node("n"))
	}
	bound, open := s.Pods[0], s.Pods[1]
	if termsText(bound.Class) != "rack In [r]" || bound.Class.Requests[dim] != 1 || len(bound.Volumes) != 1 ||
		bound.Volumes[0].Handle != decode.EbsDriver+"/vol-1" {
		t.Errorf("the bound pod: %+v %+v", bound, bound.Class)
	}
	if text := strings.Join(open.Class.Unsupported, ""); !strings.Contains(text, "no volume of storage class local "+
		"is free") {
		t.Errorf("the open pod: %q", text)
	}
}
