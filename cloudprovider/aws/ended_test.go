package aws_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/metrics"
)

// TestNoInstanceOfEC2 asks about and ends what can't be an instance of EC2: there is none.
func TestNoInstanceOfEC2(t *testing.T) {
	_, p := start(t, setup{})
	const id = "kwok://node-1"
	if _, err := p.Get(t.Context(), id); !cloudprovider.IsNotFound(err) {
		t.Errorf("asked about: %v", err)
	}
	if err := p.Delete(t.Context(), id, cloudprovider.Owner{}); !cloudprovider.IsNotFound(err) {
		t.Errorf("ended: %v", err)
	}
}

// TestRefusedEndIsCounted has EC2 refuse to end an instance: the contract's metric tells.
func TestRefusedEndIsCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	stats, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	w, p := start(t, setup{}, func(o *aws.Options) { o.Metrics = stats })
	_, made, id := one(t, w, p)
	if err := w.sim.World.Protect(id, true); err != nil {
		t.Fatal(err.Message)
	}
	if err := p.Delete(t.Context(), made.ProviderID, made.Owner()); err == nil {
		t.Fatal("a protected instance has ended")
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "karpenter_cloudprovider_instance_termination_failures_total" && strings.Contains(f.String(),
			"value:1") {
			return
		}
	}
	t.Error("the refusal is not counted")
}
