package operator

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// broken panics in all that can be asked while the controller runs, or answers if it is whole.
type broken struct {
	cloudprovider.Provider
	whole bool
	err   error
}

func (b broken) answer() error {
	if !b.whole {
		panic("index out of range")
	}
	return b.err
}

func (broken) Name() string { return "mine" }

func (b broken) InstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return []*cloudprovider.InstanceType{{Name: "t"}}, b.answer()
}

func (b broken) Create(context.Context, *v1.NodeClaim) (*cloudprovider.Instance, error) {
	return &cloudprovider.Instance{Type: "t"}, b.answer()
}

func (b broken) Get(context.Context, string) (*cloudprovider.Instance, error) {
	return &cloudprovider.Instance{Type: "t"}, b.answer()
}

func (b broken) List(context.Context) ([]*cloudprovider.Instance, error) {
	return []*cloudprovider.Instance{{Type: "t"}}, b.answer()
}

func (b broken) Delete(context.Context, string, cloudprovider.Owner) error { return b.answer() }

func (b broken) Drifted(context.Context, *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	return "Drift", b.answer()
}

// calls are the methods of a provider that are called while the controller runs: each returns whether it answered.
func calls(ctx context.Context, p cloudprovider.Provider) map[string]func() (bool, error) {
	return map[string]func() (bool, error){
		"InstanceTypes": func() (bool, error) { types, err := p.InstanceTypes(ctx, nil); return len(types) == 1, err },
		"Create":        func() (bool, error) { made, err := p.Create(ctx, nil); return made != nil, err },
		"Get":           func() (bool, error) { there, err := p.Get(ctx, ""); return there != nil, err },
		"List":          func() (bool, error) { all, err := p.List(ctx); return len(all) == 1, err },
		"Delete":        func() (bool, error) { return true, p.Delete(ctx, "", cloudprovider.Owner{}) },
		"Drifted":       func() (bool, error) { reason, err := p.Drifted(ctx, nil); return reason == "Drift", err },
	}
}

// TestAPanicOfAProviderIsItsOwn: it ends nothing, and whoever reads of it knows whose mistake it is.
func TestAPanicOfAProviderIsItsOwn(t *testing.T) {
	var told, stacks []string
	failed := func(problem, stack string) { told, stacks = append(told, problem), append(stacks, stack) }
	for method, call := range calls(t.Context(), contained{broken{}, failed}) {
		told, stacks = nil, nil
		want := "provider mine panicked in " + method + ", which is a mistake in the provider: index out of range"
		if _, err := call(); err == nil || err.Error() != want {
			t.Errorf("%s returned %v, want %s", method, err, want)
		}
		if len(told) != 1 || told[0] != want || !strings.Contains(stacks[0], "broken.answer") {
			t.Errorf("%s told %q, %q", method, told, stacks)
		}
	}
	told = nil
	for _, want := range []error{nil, errors.New("no")} {
		for method, call := range calls(t.Context(), contained{broken{whole: true, err: want}, failed}) {
			if answered, err := call(); !answered || !errors.Is(err, want) || len(told) > 0 {
				t.Errorf("%s: answered %v, %v, told %q", method, answered, err, told)
			}
		}
	}
}
