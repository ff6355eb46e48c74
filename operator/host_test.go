package operator

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/ingest/apiserver"
	"github.com/tenon-sh/tenon/internal/lease"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/tolerant"
)

// onlyClient is a manager that has a client and nothing else.
type onlyClient struct {
	manager.Manager
	c client.Client
}

func (o onlyClient) GetClient() client.Client { return o.c }

// TestWhatAHostHands: a provider may call everything that it is handed, and each thing leads where it should.
func TestWhatAHostHands(t *testing.T) {
	o, err := parse(t, "--feature-gates=NodeRepair=true", "--disable-cluster-state-observability")
	if err != nil {
		t.Fatal(err)
	}
	on := &deps{
		mgr: onlyClient{c: fake.NewClientBuilder().Build()}, clock: apiserver.NewServerClock(), o: o,
		catalogChanged: newWakeup(),
		refusals:       &refusals{}, failures: &failures{}, term: lease.NewTerm(),
	}
	host := on.host()
	if !host.Leading() {
		t.Error("a replica without an election does not lead")
	}
	on.leads = o.leads(on.term)
	if on.host().Leading() {
		t.Error("a replica leads before it is elected")
	}
	if !host.Enabled("NodeRepair") || host.Enabled("StaticCapacity") || host.ClusterState {
		t.Errorf("the gates are %v, the cluster's state is shown: %v", o.gates.on, host.ClusterState)
	}
	if host.CatalogChanged(); len(on.catalogChanged) != 1 {
		t.Error("nobody hears that the catalog has changed")
	}
	sold := cloudprovider.OfferingRef{Type: "small"}
	if refused := host.Refused(); refused(sold) {
		t.Error("before the core is there something is held against offerings")
	}
	ask := func() func(cloudprovider.OfferingRef) bool {
		return func(o cloudprovider.OfferingRef) bool { return o == sold }
	}
	on.refusals.ask.Store(&ask)
	if refused := host.Refused(); !refused(sold) || refused(cloudprovider.OfferingRef{Type: "large"}) {
		t.Error("it does not say what the core holds against offerings")
	}
	var told plan.PlannerFailure
	tell := func(b plan.PlannerFailure) { told = b }
	on.failures.tell.Store(&tell)
	if host.Failed("broken", "the stack"); told.Panic != "broken" || told.Stack != "the stack" ||
		told.Step != plan.StepCloud {
		t.Errorf("people are told %+v", told)
	}
	if _, ok := host.Client.(tolerant.Client); !ok || host.Metrics == nil || host.Now == nil {
		t.Errorf("it hands %T, %v", host.Client, host.Metrics)
	}
}
