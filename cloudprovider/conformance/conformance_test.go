package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/fake"
)

// broken is a good provider with one method replaced.
type broken struct {
	cloudprovider.Provider
	name   func() string
	types  func(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error)
	create func(context.Context, *v1.NodeClaim) (*cloudprovider.Instance, error)
	get    func(context.Context, string) (*cloudprovider.Instance, error)
	list   func(context.Context) ([]*cloudprovider.Instance, error)
	end    func(context.Context, string, cloudprovider.Owner) error
	drift  func() cloudprovider.DriftReason
}

func (b *broken) Name() string {
	if b.name != nil {
		return b.name()
	}
	return b.Provider.Name()
}

func (b *broken) InstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	if b.types != nil {
		return b.types(ctx, pool)
	}
	return b.Provider.InstanceTypes(ctx, pool)
}

func (b *broken) Create(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	if b.create != nil {
		return b.create(ctx, claim)
	}
	return b.Provider.Create(ctx, claim)
}

func (b *broken) Get(ctx context.Context, id string) (*cloudprovider.Instance, error) {
	if b.get != nil {
		return b.get(ctx, id)
	}
	return b.Provider.Get(ctx, id)
}

func (b *broken) List(ctx context.Context) ([]*cloudprovider.Instance, error) {
	if b.list != nil {
		return b.list(ctx)
	}
	return b.Provider.List(ctx)
}

func (b *broken) Delete(ctx context.Context, id string, owner cloudprovider.Owner) error {
	if b.end != nil {
		return b.end(ctx, id, owner)
	}
	return b.Provider.Delete(ctx, id, owner)
}

func (b *broken) Drifted(ctx context.Context, claim *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	if b.drift != nil {
		return b.drift(), nil
	}
	return b.Provider.Drifted(ctx, claim)
}

// env is a fake cloud whose provider was broken by the function; nil leaves it good.
func env(breakIt func(b *broken, cloud *Cloud)) Env {
	return Env{Patience: 50 * time.Millisecond, New: func(context.Context) (*Cloud, error) {
		far := fake.NewCloud()
		b := &broken{Provider: fake.New(far)}
		cloud := &Cloud{
			Provider:  b,
			Pool:      &v1.NodePool{},
			NodeClass: v1.NodeClassReference{Group: "fake.tenon.sh", Kind: "FakeNodeClass", Name: "default"},
			Restart:   func(context.Context) (cloudprovider.Provider, error) { return b, nil },
			Exhaust: func(_ context.Context, offerings ...cloudprovider.OfferingRef) error {
				far.Exhaust(offerings...)
				return nil
			},
			Kill:           func(_ context.Context, id string) error { far.Kill(id); return nil },
			BlockNodeClass: func(context.Context) error { far.BlockNodeClass("default", "blocked"); return nil },
		}
		if breakIt != nil {
			breakIt(b, cloud)
		}
		return cloud, nil
	}}
}

func TestGoodProviderPasses(t *testing.T) {
	for _, c := range checks() {
		if err := c.runOn(t.Context(), env(nil)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestSuiteCatches breaks a good provider in one way at a time. Each break must be caught by the check that was
// written for it, and each check must catch something.
func TestSuiteCatches(t *testing.T) {
	byName := map[string]check{}
	proven := map[string]bool{}
	for _, c := range checks() {
		byName[c.name] = c
	}
	for _, m := range mistakes() {
		for _, name := range strings.Fields(m.caughtBy) {
			c, ok := byName[name]
			if !ok {
				t.Fatalf("there is no check %q", name)
			}
			proven[name] = true
			err := c.runOn(t.Context(), env(m.make))
			if err == nil {
				t.Errorf("%s does not catch a provider that %s", name, m.what)
				continue
			}
			t.Logf("%s, a provider that %s: %v", name, m.what, err)
		}
	}
	for name := range byName {
		if !proven[name] {
			t.Errorf("no mistake shows that %s can fail", name)
		}
	}
}

func TestChecksWithoutTheirHookAreSkipped(t *testing.T) {
	bare := env(func(_ *broken, c *Cloud) { c.Restart, c.Exhaust, c.Kill, c.BlockNodeClass = nil, nil, nil, nil })
	var all tally
	for _, c := range checks() {
		if err := c.runOn(t.Context(), bare); all.add(c, err) == failed {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	hook := func(check, name string) string { return check + " (the environment has no hook " + name + ")" }
	want := []string{hook("CreateOnceAfterRestart", "Restart"), hook("NoCapacity", "Exhaust"),
		hook("NextCheapest", "Exhaust"),
		hook("ShortageAfterLaunch", "Exhaust"), hook("NotReady", "BlockNodeClass"), hook("Killed", "Kill")}
	if !slices.Equal(all.reasons, want) || all.counts != [3]int{len(checks()) - 6, 0, 6} || all.empty() {
		t.Errorf("%s; want the checks of %v skipped", all.summary(), want)
	}
}

// TestTinyCatalogSkips: a catalog with one offering can't show what is chosen when there is a choice.
func TestTinyCatalogSkips(t *testing.T) {
	tiny := env(func(b *broken, _ *Cloud) {
		b.types = func(ctx context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
			types, err := b.Provider.InstanceTypes(ctx, pool)
			if err != nil {
				return nil, err
			}
			var cheapest *cloudprovider.InstanceType
			for _, t := range types {
				for _, o := range t.Offerings {
					if o.Available && (cheapest == nil || o.Price < cheapest.Offerings[0].Price) {
						only := *t
						only.Offerings = []cloudprovider.Offering{o}
						cheapest = &only
					}
				}
			}
			return []*cloudprovider.InstanceType{cheapest}, nil
		}
	})
	for _, c := range checks() {
		err := c.runOn(t.Context(), tiny)
		_, left := errors.AsType[*notRun](err)
		if want := c.name == "NextCheapest" || c.name == "CreateHoldsRequests"; left != want || !left && err != nil {
			t.Errorf("%s: %v; skipped %v, want %v", c.name, err, left, want)
		}
	}
}

// TestSummary: what was skipped is not counted as passed, and a run of nothing is none.
func TestSummary(t *testing.T) {
	var all tally
	if all.add(check{name: "A"}, noHook("Kill")); !all.empty() {
		t.Error("a run of skipped checks counts as one")
	}
	all.add(check{name: "B"}, nil)
	all.add(check{name: "C"}, errors.New("wrong"))
	want := "conformance: 1 passed, 1 failed, 1 skipped: A (the environment has no hook Kill)"
	if all.summary() != want || all.empty() {
		t.Errorf("got %q, want %q", all.summary(), want)
	}
}

// anotherUID is the claim as if it were another one.
func anotherUID(claim *v1.NodeClaim) *v1.NodeClaim {
	other := claim.DeepCopy()
	other.UID = uuid.NewUUID()
	return other
}
