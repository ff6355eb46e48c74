package aws_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	simec2 "github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
)

func manyFamilies() []string {
	return []string{"t3", "m5", "c5", "r5", "m6i", "c6i", "r6i", "m7i", "c7i", "r7i"}
}

// shaped asks for so many thousandths of a core and so much memory.
func shaped(c *v1.NodeClaim, milli, mebi int64) *v1.NodeClaim {
	c.Spec.Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(mebi<<20, resource.BinarySI)}
	return c
}

// throttled counts the CreateFleet calls that EC2 has found too many.
func throttled(w *world) int { return w.sim.EC2.Throttled()["CreateFleet"] }

// TestNothingInCommon launches claims that can't be merged: it may take a while, but EC2 never has to slow us down, and each
// gets what is cheapest for it.
func TestNothingInCommon(t *testing.T) {
	w, p := start(t, setup{limits: simec2.AWSLimits(), families: manyFamilies()})
	rnd := rand.New(rand.NewPCG(1, 2))
	list := claims(200, in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand))
	for _, c := range list {
		shaped(c, 100*(1+rnd.Int64N(300)), (1+rnd.Int64N(100))<<10)
	}
	got, errs := launchAll(t, p, list, 160)
	distinct(t, list, got, errs)
	if n := throttled(w); n > 0 {
		t.Errorf("%d calls were throttled", n)
	}
	for i, c := range list {
		alone, err := p.Create(t.Context(), shaped(claim(in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand)), c.Spec.Resources.Requests.Cpu().MilliValue(), c.Spec.Resources.Requests.Memory().Value()>>20))
		if err != nil || alone.Price != got[i].Price {
			t.Errorf("in company it costs %g, alone %g (%v)", got[i].Price, alone.Price, err)
		}
		if i == 10 {
			break
		}
	}
}

// TestCompanyDoesNoHarm sells out what claims have in common: who could have more gets it, who could not learns so.
func TestCompanyDoesNoHarm(t *testing.T) {
	w, p := start(t, setup{})
	onDemand := in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand)
	for _, kind := range []string{"c5.large", "m5.large"} {
		w.sim.World.SetCapacity(cloud.CapacityRule{Type: kind, Total: 0})
	}
	list := append(claims(2, onDemand, in(corev1.LabelInstanceTypeStable, "c5.large", "m5.large")),
		claims(2, onDemand, in(corev1.LabelInstanceTypeStable, "c5.large", "m5.large", "c5.xlarge"))...)
	got, errs := launchAll(t, p, list, len(list))
	if errs[0] == nil || errs[1] == nil || errors.Join(errs[2:]...) != nil {
		t.Fatalf("got %v, %v", got, errs)
	}
	for _, i := range got[2:] {
		if i.Type != "c5.xlarge" {
			t.Errorf("got %s, want c5.xlarge", i.Type)
		}
	}
	if n := w.sim.Calls()["ec2:CreateFleet"]; n != 2 {
		t.Errorf("it took %d calls, want 2", n)
	}
}
