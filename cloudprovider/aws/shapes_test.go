package aws_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	simec2 "github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

func manyFamilies() []string {
	return []string{"t3", "m5", "c5", "r5", "m6i", "c6i", "r6i", "m7i", "c7i", "r7i"}
}

// shaped asks for so many thousandths of a core and so much memory.
func shaped(c *v1.NodeClaim, milli, mebi int64) *v1.NodeClaim {
	c.Spec.Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(milli, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(mebi<<20, resource.BinarySI)}
	return c
}

// throttled counts the CreateFleet calls that EC2 has found too many.
func throttled(w *world) int { return w.sim.EC2.Throttled()["CreateFleet"] }

// TestLittleInCommon launches claims of all sizes: EC2 never has to slow us down, and each gets what is cheapest for
// it.
func TestLittleInCommon(t *testing.T) {
	s := setup{limits: simec2.AWSLimits(), families: manyFamilies(), gates: []wire.Gate{busyEC2(2)}}
	inBubble(t, s, func(t *testing.T, w *world, p *aws.Provider) {
		rnd := rand.New(rand.NewPCG(1, 2))
		onDemand := in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand)
		list := claims(300, onDemand)
		for _, c := range list {
			shaped(c, 100*(1+rnd.Int64N(300)), (1+rnd.Int64N(100))<<10)
		}
		w.launchEach(t, p, list)
		got, errs := launchAll(t, p, list, coreHands) // they have it already
		distinct(t, list, got, errs)
		for i, c := range list[:10] {
			alone, err := p.Create(t.Context(), shaped(claim(onDemand), c.Spec.Resources.Requests.Cpu().MilliValue(),
				c.Spec.Resources.Requests.Memory().Value()>>20))
			if err != nil || alone.Price != got[i].Price {
				t.Errorf("in company it costs %g, alone %g (%v)", got[i].Price, alone.Price, err)
			}
		}
	})
}

// TestNothingInCommon launches claims none of which can be merged: it takes a while, but EC2 never has to slow us down,
// and nobody is sent away.
func TestNothingInCommon(t *testing.T) {
	s := setup{limits: simec2.AWSLimits(), families: manyFamilies(), gates: []wire.Gate{busyEC2(3)}}
	inBubble(t, s, func(t *testing.T, w *world, p *aws.Provider) {
		var list []*v1.NodeClaim
		for n, info := range w.sim.World.InstanceTypes() {
			zones := w.sim.World.Zones()
			for _, zone := range []cloud.Zone{zones[n%len(zones)], zones[(n+1)%len(zones)]} {
				c := claim(in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand), in(corev1.LabelInstanceTypeStable,
					string(info.InstanceType)), in(corev1.LabelTopologyZone, zone.Name))
				list = append(list, shaped(c, 100, 100))
			}
		}
		list = list[:160]
		w.launchEach(t, p, list)
		if n := w.sim.Calls()["ec2:CreateFleet"]; n != len(list) {
			t.Errorf("it took %d calls, want one for each: the test wants claims that can't be merged", n)
		}
	})
}

// launchEach launches the claims and fails the test if somebody gets nothing or EC2 finds the calls too many.
func (w *world) launchEach(t *testing.T, p *aws.Provider, list []*v1.NodeClaim) {
	t.Helper()
	began := time.Now()
	got, errs := launchAll(t, p, list, coreHands)
	distinct(t, list, got, errs)
	t.Logf("%d nodes: %d CreateFleet calls, %d throttled, %s", len(list), w.sim.Calls()["ec2:CreateFleet"],
		throttled(w), time.Since(began).Round(100*time.Millisecond))
	if n := throttled(w); n > 0 {
		t.Errorf("%d calls were throttled", n)
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
