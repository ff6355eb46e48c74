package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"example.com/provider/machines"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/conformance"
)

// world is a fleet with a NodeClass.
type world struct {
	fleet *machines.Fleet
	api   client.Client
	class *FleetNodeClass
}

func newWorld(zones ...string) (*world, func(), error) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "fleet-")
	if err != nil {
		return nil, nil, err
	}
	fleet, err := machines.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	class := &FleetNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: FleetNodeClassSpec{Zones: zones}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(class).WithStatusSubresource(class).Build()
	return &world{fleet: fleet, api: api, class: class}, func() { _ = os.RemoveAll(dir) }, nil
}

func (w *world) provider() *Provider { return NewProvider(w.fleet, w.api, func() bool { return true }) }

// block makes the NodeClass not ready.
func (w *world) block(ctx context.Context) error {
	w.class.Status.Conditions = []metav1.Condition{{
		Type: v1.ConditionTypeReady, Status: metav1.ConditionFalse, Reason: "Test", Message: "blocked by the test",
		LastTransitionTime: metav1.Now(),
	}}
	return w.api.Status().Update(ctx, w.class)
}

// TestConformance: what Tenon relies on. Each check gets an empty fleet; the hooks let it do what happens to clouds.
func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Env{New: func(context.Context) (*conformance.Cloud, error) {
		w, remove, err := newWorld()
		if err != nil {
			return nil, err
		}
		ref := v1.NodeClassReference{Group: Group, Kind: Kind, Name: w.class.Name}
		pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		pool.Spec.Template.Spec.NodeClassRef = &ref
		return &conformance.Cloud{
			Provider:  w.provider(),
			Pool:      pool,
			NodeClass: ref,
			Restart:   func(context.Context) (cloudprovider.Provider, error) { return w.provider(), nil },
			Exhaust: func(_ context.Context, offerings ...cloudprovider.OfferingRef) error {
				for _, o := range offerings {
					w.fleet.SellOut(orderOf(o))
				}
				return nil
			},
			Kill:           func(_ context.Context, id string) error { return w.fleet.Stop(id[len(idPrefix):]) },
			BlockNodeClass: w.block,
			Close:          remove,
		}, nil
	}})
}

// TestZones: a class sells in its zones only, and machines elsewhere have drifted.
func TestZones(t *testing.T) {
	w, remove, err := newWorld("south")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "uid"}}
	claim.Spec.NodeClassRef = &v1.NodeClassReference{Group: Group, Kind: Kind, Name: "default"}
	made, err := w.provider().Create(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	claim.Status.ProviderID = made.ProviderID
	if got := fmt.Sprint(made.Type, " ", made.Labels[SizeLabel], " ",
		made.Labels["topology.kubernetes.io/zone"]); got != "fleet-small small south" {
		t.Errorf("started %s", got)
	}
	if reason, err := w.provider().Drifted(t.Context(), claim); reason != "" || err != nil {
		t.Errorf("a new machine has drifted: %q, %v", reason, err)
	}
	w.class.Spec.Zones = []string{"north"}
	if err := w.api.Update(t.Context(), w.class); err != nil {
		t.Fatal(err)
	}
	if reason, err := w.provider().Drifted(t.Context(), claim); reason != "ZoneDrift" || err != nil {
		t.Errorf("a machine in a zone that its class no longer allows: %q, %v", reason, err)
	}
}

// A machine of a kind that is no longer sold still makes a Node of itself, so that it is seen and can be ended.
func TestMachineThatIsNoLongerSold(t *testing.T) {
	node := nodeOf(&machines.Machine{Name: "old", Order: machines.Order{Shape: "gone"}})
	if node.Labels == nil || node.Spec.ProviderID == "" {
		t.Errorf("%v, want a Node with a provider id and labels that can be added to", node)
	}
}

// TestAReplicaThatNoLongerLeadsChangesNothing: another one acts by then.
func TestAReplicaThatNoLongerLeadsChangesNothing(t *testing.T) {
	w, remove, err := newWorld()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	leads := true
	p := NewProvider(w.fleet, w.api, func() bool { return leads })
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "uid"}}
	claim.Spec.NodeClassRef = &v1.NodeClassReference{Group: Group, Kind: Kind, Name: "default"}
	made, err := p.Create(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	leads = false
	if again, err := p.Create(t.Context(), claim); err != nil || again.ProviderID != made.ProviderID {
		t.Errorf("asking again for a machine that is there gave %+v, %v", again, err)
	}
	claim.UID = "uid-2"
	if _, err := p.Create(t.Context(), claim); !errors.Is(err, errNotLeading) {
		t.Errorf("it starts a machine: %v", err)
	}
	if err := p.Delete(t.Context(), made.ProviderID, made.Owner()); !errors.Is(err, errNotLeading) {
		t.Errorf("it stops a machine: %v", err)
	}
	if all, err := w.fleet.List(); len(all) != 1 || err != nil {
		t.Errorf("the fleet has %d machines, %v", len(all), err)
	}
}
