package aws_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	simec2 "github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
)

// coreHands is how many launches the core has under way at a time.
const coreHands = 400

// launchAll creates instances for the claims, so many at a time.
func launchAll(t *testing.T, p *aws.Provider, claims []*v1.NodeClaim, hands int) ([]*cloudprovider.Instance, []error) {
	t.Helper()
	out, errs := make([]*cloudprovider.Instance, len(claims)), make([]error, len(claims))
	slots := make(chan struct{}, hands)
	var group sync.WaitGroup
	for i, c := range claims {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			out[i], errs[i] = p.Create(t.Context(), c)
		})
	}
	group.Wait()
	return out, errs
}

func claims(n int, requirements ...v1.NodeSelectorRequirementWithMinValues) []*v1.NodeClaim {
	var out []*v1.NodeClaim
	for range n {
		out = append(out, claim(requirements...))
	}
	return out
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("still not so after 30 s: %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// distinct fails the test unless every claim has an instance of its own, which is for it.
func distinct(t *testing.T, claims []*v1.NodeClaim, got []*cloudprovider.Instance, errs []error) {
	t.Helper()
	seen := map[string]bool{}
	for i, c := range claims {
		if errs[i] != nil {
			t.Fatalf("claim %d of %d: %v", i, len(claims), errs[i])
		}
		if got[i].ClaimUID != string(c.UID) || got[i].ClaimName != c.Name {
			t.Fatalf("claim %s got an instance of %s", c.Name, got[i].ClaimName)
		}
		if seen[got[i].ProviderID] {
			t.Fatalf("%s was given away twice", got[i].ProviderID)
		}
		seen[got[i].ProviderID] = true
	}
}

// TestAThousandNodes holds the promise under the limits that AWS documents, with as many launches at a time as the loop
// makes.
func TestAThousandNodes(t *testing.T) {
	w, p := start(t, setup{limits: simec2.AWSLimits()})
	list := claims(1000, in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand))
	began := time.Now()
	got, errs := launchAll(t, p, list, coreHands)
	distinct(t, list, got, errs)
	if n := len(w.alive()); n != 1000 {
		t.Errorf("EC2 runs %d instances", n)
	}
	calls := w.sim.Calls()
	t.Logf("1000 instances in %s: %v", time.Since(began).Round(time.Millisecond), calls)
	if n := calls["ec2:CreateFleet"]; n > 40 {
		t.Errorf("%d CreateFleet calls, want at most 40", n)
	}
	if n := calls["ec2:DescribeInstances"]; n > 100 {
		t.Errorf("%d DescribeInstances calls", n)
	}
	if n := throttled(w); n > 0 {
		t.Errorf("%d CreateFleet calls were throttled", n)
	}
}

// TestEachClaimKnowsItsInstance looks whether instances that were launched together get the names of their claims.
func TestEachClaimKnowsItsInstance(t *testing.T) {
	w, p := start(t, setup{})
	list := claims(12)
	got, errs := launchAll(t, p, list, len(list))
	distinct(t, list, got, errs)
	if n := w.sim.Calls()["ec2:CreateFleet"]; n != 1 {
		t.Errorf("12 equal launches made %d calls", n)
	}
	names := func() map[string]string {
		out := map[string]string{}
		for _, i := range w.alive() {
			if name := i.Tags[awsv1.NodeClaimTagKey]; name != "" {
				out["aws:///"+i.Zone+"/"+i.ID] = name
			}
		}
		return out
	}
	eventually(t, "every instance has its claim's name", func() bool { return len(names()) == len(list) })
	for i, c := range list {
		if have := names()[got[i].ProviderID]; have != c.Name {
			t.Errorf("%s of %s is named %q", got[i].ProviderID, c.Name, have)
		}
	}
}

// TestPartialFleet has capacity for four of ten: the others learn at once what is sold out, and nothing is left over.
func TestPartialFleet(t *testing.T) {
	w, p := start(t, setup{})
	w.sim.World.SetCapacity(cloud.CapacityRule{Type: "m5.large", Total: 2})
	list := claims(10, in(corev1.LabelInstanceTypeStable, "m5.large"), in(v1.CapacityTypeLabelKey,
		v1.CapacityTypeOnDemand),
		in(corev1.LabelTopologyZone, "us-west-2a", "us-west-2b"))
	got, errs := launchAll(t, p, list, len(list))
	launched := 0
	for i := range list {
		if errs[i] == nil {
			launched++
			continue
		}
		none, ok := errors.AsType[*cloudprovider.NoCapacityError](errs[i])
		if !ok {
			t.Fatalf("a claim without capacity got %v", errs[i])
		}
		for _, zone := range []string{"us-west-2a", "us-west-2b"} {
			if ref := (cloudprovider.OfferingRef{Type: "m5.large", Zone: zone,
				CapacityType: v1.CapacityTypeOnDemand}); !slices.Contains(none.Exhausted, ref) {
				t.Errorf("%v is not named as sold out: %v", ref, none)
			}
		}
		if got[i] != nil {
			t.Errorf("an error came with the instance %s", got[i].ProviderID)
		}
	}
	if n := len(w.alive()); launched != 4 || n != 4 {
		t.Errorf("%d claims got an instance, EC2 runs %d; want 4", launched, n)
	}
	if n := w.sim.Calls()["ec2:CreateFleet"]; n != 1 {
		t.Errorf("it took %d calls", n)
	}
}

// TestTwoThirdsSoldOut takes away two of three offerings. All claims get a node from the same call all the same.
func TestTwoThirdsSoldOut(t *testing.T) {
	w, p := start(t, setup{})
	n := 0
	for _, info := range w.sim.World.InstanceTypes() {
		for _, zone := range w.sim.World.Zones() {
			for _, market := range []cloud.Market{cloud.OnDemand, cloud.Spot} {
				if n++; n%3 != 0 {
					w.sim.World.SetCapacity(cloud.CapacityRule{Type: string(info.InstanceType), Zone: zone.Name,
						Market: market})
				}
			}
		}
	}
	list := claims(60)
	got, errs := launchAll(t, p, list, len(list))
	distinct(t, list, got, errs)
	if n := w.sim.Calls()["ec2:CreateFleet"]; n != 1 {
		t.Errorf("it took %d calls", n)
	}
}

// TestLostAnswer loses the answer to a launch of five, and to every try of the SDK to get it.
func TestLostAnswer(t *testing.T) {
	w, p := start(t, setup{})
	w.faults.Add(faults.Fault{Service: "ec2", Action: "CreateFleet", Lose: true, Times: 3})
	list := claims(5)
	_, errs := launchAll(t, p, list, len(list))
	for _, err := range errs {
		if err == nil || cloudprovider.IsNoCapacity(err) {
			t.Fatalf("a lost answer became %v", err)
		}
	}
	if n := len(w.alive()); n != 5 {
		t.Fatalf("EC2 runs %d instances; the test wants it to have done its work", n)
	}
	got, errs := launchAll(t, p, list, len(list))
	distinct(t, list, got, errs)
	if n := len(w.alive()); n != 5 {
		t.Errorf("after asking again EC2 runs %d instances, want 5", n)
	}
}

// TestLostAnswerThenNothing gives the claims up whose answer was lost: what was launched for them is listed as
// nobody's, so that the core ends it.
func TestLostAnswerThenNothing(t *testing.T) {
	w, p := start(t, setup{})
	w.faults.Add(faults.Fault{Service: "ec2", Action: "CreateFleet", Lose: true, Times: 3})
	launchAll(t, p, claims(3), 3)
	list, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 3 {
		t.Fatalf("%d instances are listed, want 3", len(list))
	}
	for _, i := range list {
		if i.ClaimUID != "" {
			t.Errorf("%s is listed as that of %s, which does not exist", i.ProviderID, i.ClaimUID)
		}
	}
}

// TestSlowToShow hides new instances for as long as the test runs.
func TestSlowToShow(t *testing.T) {
	_, p := start(t, setup{timing: cloud.Timing{Visibility: time.Hour}})
	got, err := p.Create(t.Context(), claim())
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Get(t.Context(), got.ProviderID)
	if err != nil || again.ClaimUID != got.ClaimUID {
		t.Errorf("an instance that EC2 does not show yet: %v, %v", again, err)
	}
	list, err := p.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Errorf("the list has %d instances: %v", len(list), err)
	}
}

// TestTemplateDeletedByHand deletes the launch templates between two launches.
func TestTemplateDeletedByHand(t *testing.T) {
	w, p := start(t, setup{})
	if _, err := p.Create(t.Context(), claim()); err != nil {
		t.Fatal(err)
	}
	for _, one := range w.sim.World.Templates() {
		if _, err := w.sim.World.RemoveTemplate(one.ID, ""); err != nil {
			t.Fatal(err.Message)
		}
	}
	if _, err := p.Create(t.Context(), claim()); err != nil {
		t.Errorf("after its launch templates were deleted: %v", err)
	}
}

// TestSweep deletes launch templates that have not been used for long, and no others.
func TestSweep(t *testing.T) {
	var mu sync.Mutex
	ahead := time.Duration(0)
	w, p := start(t, setup{}, func(o *aws.Options) {
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(ahead)
		}
	})
	spot, steady := in(v1.CapacityTypeLabelKey, v1.CapacityTypeSpot), in(v1.CapacityTypeLabelKey,
		v1.CapacityTypeOnDemand)
	for _, terms := range []v1.NodeSelectorRequirementWithMinValues{spot, steady} {
		if _, err := p.Create(t.Context(), claim(terms)); err != nil {
			t.Fatal(err)
		}
	}
	all := len(w.sim.World.Templates())
	mu.Lock()
	ahead = 2 * time.Hour
	mu.Unlock()
	if _, err := p.Create(t.Context(), claim(spot)); err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteUnusedTemplates(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := len(w.sim.World.Templates()); left == 0 || left >= all {
		t.Errorf("of %d launch templates %d are left, want those that were used", all, left)
	}
	if _, err := p.Create(t.Context(), claim(steady)); err != nil {
		t.Errorf("after the sweep: %v", err)
	}
}

// TestOldNews has EC2 tell of an instance for a while what it was before. What we have done ourselves we know better.
func TestOldNews(t *testing.T) {
	w, p := start(t, setup{timing: cloud.Timing{StateLag: 500 * time.Millisecond}})
	made, err := p.Create(t.Context(), claim())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the instance is shown", func() bool {
		_, err := p.Get(t.Context(), made.ProviderID)
		return err == nil
	})
	if err := p.Delete(t.Context(), made.ProviderID, made.Owner()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.alive()); n != 0 {
		t.Fatalf("EC2 runs %d instances after Delete", n)
	}
	if got, err := p.Get(t.Context(), made.ProviderID); err == nil && !got.Terminating {
		t.Error("an instance that was ended a moment ago is not Terminating")
	}
	list, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if !i.Terminating {
			t.Errorf("%s is listed as if it went on", i.ProviderID)
		}
	}
	eventually(t, "Delete says that it is gone", func() bool {
		return cloudprovider.IsNotFound(p.Delete(t.Context(), made.ProviderID, made.Owner()))
	})
}
