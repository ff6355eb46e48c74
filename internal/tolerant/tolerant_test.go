package tolerant

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// store is an API server with one object, which it knows only as it is stored. Typed reads panic.
type store struct {
	client.Client
	object map[string]any
	patch  string
}

func (s *store) answer(obj client.Object, version string) {
	u := &unstructured.Unstructured{Object: s.object}
	u.DeepCopyInto(obj.(*unstructured.Unstructured))
	obj.SetResourceVersion(version)
}

func (s *store) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	s.answer(obj, "5")
	return nil
}

// List has the object and, besides, one that can be read.
func (s *store) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	into := list.(*unstructured.UnstructuredList)
	good := map[string]any{"kind": s.object["kind"], "metadata": map[string]any{"name": "good"}}
	into.Items = []unstructured.Unstructured{{Object: s.object}, {Object: good}}
	into.SetResourceVersion("7")
	into.SetContinue("more")
	return nil
}

func (s *store) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(obj)
	s.patch = string(data)
	s.answer(obj, "6")
	return err
}

func (s *store) Status() client.SubResourceWriter { return storeStatus{store: s} }

type storeStatus struct {
	client.SubResourceWriter
	store *store
}

func (s storeStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch,
	_ ...client.SubResourcePatchOption) error {
	return s.store.Patch(ctx, obj, patch)
}

func taintedSpec() map[string]any {
	return map[string]any{"taints": []any{map[string]any{"key": "k", "effect": "NoSchedule",
		"timeAdded": "2024-01-01t00:00:00z"}}}
}

func object(kind string, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": "karpenter.sh/v1", "kind": kind, "metadata": map[string]any{"name": "x"},
		"spec": spec}
}

func TestStatusOfAnUnreadablePoolCanBeWritten(t *testing.T) {
	s := &store{object: object("NodePool", map[string]any{"template": map[string]any{"spec": taintedSpec()}})}
	c := Client{s}
	pool := &v1.NodePool{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "x"}, pool); err != nil || pool.Name != "x" {
		t.Fatalf("reading gave %q, %v", pool.Name, err)
	}
	base := pool.DeepCopy()
	pool.Status.Nodes = 3
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(t.Context(), pool, patch); err != nil {
		t.Fatal(err)
	}
	if want := `{"metadata":{"resourceVersion":"5"},"status":{"nodes":3}}`; s.patch != want {
		t.Errorf("the patch is %s, want %s: what can't be read must stay as it is", s.patch, want)
	}
	if pool.ResourceVersion != "6" {
		t.Errorf("after the patch the version is %q, want that of the answer", pool.ResourceVersion)
	}
}

func TestUnreadableClaimIsNotLaunchedButCanBeEnded(t *testing.T) {
	s := &store{object: object("NodeClaim", taintedSpec())}
	c := Client{s}
	claim := &v1.NodeClaim{}
	err := c.Get(t.Context(), client.ObjectKey{Name: "x"}, claim)
	if err == nil || !strings.Contains(err.Error(), "spec.taints[0].timeAdded") {
		t.Errorf("a claim that is not launched gave %v, want an error that names the field", err)
	}
	s.object["status"] = map[string]any{"providerID": "kwok://x"}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "x"}, claim); err != nil {
		t.Fatalf("a claim that runs can't be read: %v", err)
	}
	base := claim.DeepCopy()
	claim.Finalizers = []string{"f"}
	if err := c.Patch(t.Context(), claim, client.MergeFrom(base)); err != nil ||
		s.patch != `{"metadata":{"finalizers":["f"]}}` {
		t.Errorf("the patch is %s, %v", s.patch, err)
	}
	delete(s.object, "status")
	s.object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	if err := c.Get(t.Context(), client.ObjectKey{Name: "x"}, claim); err != nil {
		t.Errorf("a claim that is being deleted can't be read: %v", err)
	}
}

// TestUnreadableObjectsHideNoOtherInAList: a typed list is refused as a whole because of one of them.
func TestUnreadableObjectsHideNoOtherInAList(t *testing.T) {
	s := &store{object: object("NodePool", map[string]any{"template": map[string]any{"spec": taintedSpec()}})}
	pools := &v1.NodePoolList{Items: make([]v1.NodePool, 9)}
	if err := (Client{s}).List(t.Context(), pools); err != nil || len(pools.Items) != 2 ||
		pools.Items[0].Name != "x" || pools.Items[1].Name != "good" {
		t.Errorf("there are %+v, %v, want x and good", pools.Items, err)
	}
	if pools.ResourceVersion != "7" || pools.Continue != "more" {
		t.Errorf("the list is of version %q and goes on at %q", pools.ResourceVersion, pools.Continue)
	}
	s.object = object("NodeClaim", taintedSpec())
	claims := &v1.NodeClaimList{}
	if err := (Client{s}).List(t.Context(), claims); err != nil || len(claims.Items) != 1 ||
		claims.Items[0].Name != "good" {
		t.Errorf("there are %+v, %v: what Get refuses is not listed", claims.Items, err)
	}
	s.object["status"] = map[string]any{"providerID": "kwok://x"}
	if err := (Client{s}).List(t.Context(), claims); err != nil || len(claims.Items) != 2 {
		t.Errorf("there are %+v, %v, want x and good", claims.Items, err)
	}
}
