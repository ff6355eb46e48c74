package kwok_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/kwok"
)

// karpentersNode is a registered Node as Karpenter's own kwok provider makes it for the claim.
func karpentersNode(name string, claim *v1.NodeClaim) *corev1.Node {
	room := corev1.ResourceList{"cpu": resource.MustParse("2")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1.TerminationFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim",
				Name: claim.Name, UID: claim.UID}},
			Labels: map[string]string{"kwok-partition": "a", "eks-node-viewer/instance-price": "0.100000",
				corev1.LabelHostname:           claim.Name,
				corev1.LabelInstanceTypeStable: "s-2x-amd64-linux"}},
		Spec:   corev1.NodeSpec{ProviderID: "kwok://" + name},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
}

func TestInstancesThatKarpenterLaunched(t *testing.T) {
	owner := claim("general-1")
	n := karpentersNode("kwok-general-1-merry-42", owner)
	twin := karpentersNode("renamed", owner) // the provider ID is another's
	twin.Spec.ProviderID = n.Spec.ProviderID
	plain := karpentersNode("plain", owner)
	delete(plain.Labels, "kwok-partition")
	a := newAPI(nodeClass(0, nil), n, twin, plain)
	p := provider(t, a)
	create(t, p, claim("ours"))
	all, err := p.List(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("List = %v, %v; want one instance of Karpenter's and one of ours", all, err)
	}
	got, err := p.Get(t.Context(), n.Spec.ProviderID)
	if err != nil || got.ClaimName != "general-1" || got.ClaimUID != string(owner.UID) ||
		got.Type != "s-2x-amd64-linux" || got.Price != 0.1 ||
		got.Capacity.Cpu().Value() != 2 || got.Terminating {
		t.Errorf("Get = %+v, %v", got, err)
	}
	if err := p.Delete(t.Context(), n.Spec.ProviderID, cloudprovider.Owner{ClaimName: "general-1",
		ClaimUID: "another"}); !cloudprovider.IsNotOwned(err) {
		t.Errorf("Delete for another claim: %v", err)
	}
	for range 2 { // a Node that somebody has deleted is still an instance
		if _, err := p.Get(t.Context(), n.Spec.ProviderID); err != nil {
			t.Errorf("Get: %v", err)
		}
		if err := a.Delete(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Delete(t.Context(), n.Spec.ProviderID, got.Owner()); err != nil {
		t.Fatal(err)
	}
	if left := getNode(t, a, n.Name); left == nil || left.DeletionTimestamp.IsZero() {
		t.Error("the Node must be on its way out, and stay as long as its finalizer holds it")
	}
	if err := p.Delete(t.Context(), n.Spec.ProviderID, got.Owner()); !cloudprovider.IsNotFound(err) {
		t.Errorf("the second Delete: %v, want NotFound", err)
	}
	if all, err := p.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("List = %v, %v; want only ours", all, err)
	}
}

// Somebody has taken labels off a Node: the other instances are listed all the same, and this one can be ended.
func TestInstancesWhoseLabelsAreGone(t *testing.T) {
	owner := claim("general-1")
	n := karpentersNode("kwok-general-1-merry-42", owner)
	n.Labels[kwokv1alpha1.InstancePriceLabelKey] = "cheap"
	nameless := karpentersNode("kwok-general-2-merry-43", claim("general-2"))
	nameless.OwnerReferences = nil
	delete(nameless.Labels, corev1.LabelHostname)
	p := provider(t, newAPI(nodeClass(0, nil), n, nameless))
	create(t, p, claim("ours"))
	all, err := p.List(t.Context())
	if err != nil || len(all) != 3 {
		t.Fatalf("List = %v, %v; want all three", all, err)
	}
	got, err := p.Get(t.Context(), n.Spec.ProviderID)
	if err != nil || got.Price != 0 || got.ClaimName != "general-1" {
		t.Errorf("Get = %+v, %v", got, err)
	}
	if err := p.Delete(t.Context(), n.Spec.ProviderID, got.Owner()); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if got, err := p.Get(t.Context(), nameless.Spec.ProviderID); err != nil || got.ClaimName != "" ||
		got.ClaimUID != "" {
		t.Errorf("Get = %+v, %v; want an instance of nobody", got, err)
	}
}

// An end that failed half way is repeated.
func TestTheEndOfKarpentersInstanceIsRepeated(t *testing.T) {
	owner := claim("general-1")
	n := karpentersNode("kwok-general-1-merry-42", owner)
	a := newAPI(n)
	p := provider(t, a)
	failed := errors.New("the API server is away")
	a.interfere(func(verb string, _ runtime.Object) (error, error) {
		if verb == "patch" {
			return failed, nil
		}
		return nil, nil
	})
	whose := cloudprovider.Owner{ClaimName: owner.Name, ClaimUID: string(owner.UID)}
	if err := p.Delete(t.Context(), n.Spec.ProviderID, whose); !errors.Is(err, failed) {
		t.Errorf("Delete: %v", err)
	}
	a.interfere(nil)
	if err := p.Delete(t.Context(), n.Spec.ProviderID, whose); err != nil {
		t.Errorf("Delete again: %v", err)
	}
	if _, err := p.Get(t.Context(), n.Spec.ProviderID); !cloudprovider.IsNotFound(err) {
		t.Errorf("Get: %v, want NotFound", err)
	}
}

// A Node that has joined and is not registered has no owner yet. Its claim is the one of its hostname, if that says so.
func TestWhoseAnUnregisteredNodeIs(t *testing.T) {
	for _, test := range []struct{ there, providerID, want string }{
		{"general-1", "kwok://kwok-general-1-merry-42", "uid-of-general-1"},
		{"general-1", "kwok://another", ""},
		{"another", "", ""},
	} {
		n := karpentersNode("kwok-general-1-merry-42", claim("general-1"))
		n.OwnerReferences = nil
		there := claim(test.there)
		there.Status.ProviderID = test.providerID
		got, err := provider(t, newAPI(n, there)).Get(t.Context(), n.Spec.ProviderID)
		if err != nil || got.ClaimName != "general-1" || got.ClaimUID != test.want {
			t.Errorf("%+v: %+v, %v", test, got, err)
		}
	}
}

// A fault that has come since then drifts what Karpenter launched, too.
func TestDriftOfKarpentersInstance(t *testing.T) {
	owner := claim("general-1")
	n := karpentersNode("kwok-general-1-merry-42", owner)
	owner.Status.ProviderID = n.Spec.ProviderID
	p := provider(t, newAPI(nodeClass(0, map[string]string{kwok.FaultDrift: "ImageDrift"}), n))
	if got, err := p.Drifted(t.Context(), owner); err != nil || got != "ImageDrift" {
		t.Errorf("Drifted = %q, %v", got, err)
	}
	gone := claim("gone")
	gone.UID, gone.Status.ProviderID = types.UID("gone"), "kwok://gone"
	if _, err := p.Drifted(t.Context(), gone); !cloudprovider.IsNotFound(err) {
		t.Errorf("of an instance that is gone: %v", err)
	}
}
