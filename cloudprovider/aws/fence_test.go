package aws_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/access"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// frozen is a provider whose process freezes after it was asked to do something, and wakes up when another replica
// leads: what had waited for its turn then comes to the wire.
func frozen(t *testing.T) (w *world, p *aws.Provider, leads *atomic.Bool) {
	t.Helper()
	leads = &atomic.Bool{}
	leads.Store(true)
	w, _ = start(t, setup{})
	fenced := ec2.New(w.ec2.Options(), func(o *ec2.Options) {
		o.APIOptions = append(o.APIOptions, access.Fence(leads.Load))
	})
	p, err := w.provider(func(o *aws.Options) { o.EC2 = fenced })
	if err != nil {
		t.Fatal(err)
	}
	return w, p, leads
}

// A launch that waited for its turn does not go out after the lease was lost. Nothing is in doubt then: when the
// replica leads again the claim gets its one instance.
func TestLaunchStopsAtTheWire(t *testing.T) {
	w, p, leads := frozen(t)
	list := claims(3)
	w.store(t, list...)
	if _, err := p.Create(t.Context(), list[0]); err != nil {
		// its launch template is there then, and the catalog is read
		t.Fatal(err)
	}
	leads.Store(false)
	before := w.sim.Calls()["ec2:CreateFleet"]
	for _, c := range list[1:] {
		if _, err := p.Create(t.Context(), c); !errors.Is(err, fault.ErrFenced) {
			t.Errorf("a replica that does not lead launches: %v", err)
		}
	}
	if n := w.sim.Calls()["ec2:CreateFleet"] - before; n != 0 || len(w.alive()) != 1 {
		t.Errorf("EC2 was asked %d times and runs %d instances, want none and 1", n, len(w.alive()))
	}
	leads.Store(true)
	for _, c := range list[1:] {
		if _, err := p.Create(t.Context(), c); err != nil {
			t.Errorf("when it leads again: %v", err)
		}
	}
	if n := len(w.alive()); n != 3 {
		t.Errorf("EC2 runs %d instances, want 3", n)
	}
}

// An end that waited for others to join it does not go out after the lease was lost.
func TestEndStopsAtTheWire(t *testing.T) {
	w, p, leads := frozen(t)
	_, made, _ := one(t, w, p)
	leads.Store(false)
	if err := p.Delete(t.Context(), made.ProviderID, made.Owner()); !errors.Is(err, fault.ErrFenced) {
		t.Errorf("a replica that does not lead ends an instance: %v", err)
	}
	if n := w.sim.Calls()["ec2:TerminateInstances"]; n != 0 || len(w.alive()) != 1 {
		t.Errorf("EC2 was asked %d times and runs %d instances", n, len(w.alive()))
	}
	leads.Store(true)
	if err := p.Delete(t.Context(), made.ProviderID, made.Owner()); err != nil || len(w.alive()) != 0 {
		t.Errorf("when it leads again: %v, EC2 runs %d", err, len(w.alive()))
	}
}
