// Package conformance states, as tests, what a cloud provider must do. A provider's own tests call Run with a way to
// make an empty cloud; each check is one sentence of the interface in package cloudprovider.
//
// It is public, knows providers only through that interface, and judges them with arithmetic of its own rather than
// with package choose, which they may share.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// Env says how to get at the clouds that the checks run on.
type Env struct {
	// New returns an empty cloud of the check's own, with a provider for it.
	New func(ctx context.Context) (*Cloud, error)
	// Patience is how long the cloud may take for what it does on its own, such as ending an instance. One minute
	// if it is not set.
	Patience time.Duration
}

// Cloud is an empty cloud and what can be done to it from outside. Checks that need a hook which is nil are skipped.
type Cloud struct {
	Provider cloudprovider.Provider
	// Pool is a pool of the NodeClass that NodeClass names, which claims refer to.
	Pool      *v1.NodePool
	NodeClass v1.NodeClassReference

	// Restart returns a new provider for the same cloud, as a controller that died and came back has one. The old
	// one is not used any more.
	Restart func(ctx context.Context) (cloudprovider.Provider, error)
	// Exhaust takes away all capacity of the offerings, without the catalog saying so.
	Exhaust func(ctx context.Context, offerings ...cloudprovider.OfferingRef) error
	// Kill ends an instance behind the provider's back.
	Kill func(ctx context.Context, providerID string) error
	// BlockNodeClass makes the NodeClass not ready.
	BlockNodeClass func(ctx context.Context) error
	// Close gives back what the cloud holds.
	Close func()
}

// Run runs every check that the environment allows, each on a cloud of its own. The others are skipped, each with the
// reason. A run in which no check was made fails: it says nothing of the provider.
func Run(t *testing.T, env Env) {
	t.Helper()
	var all tally
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			err := c.runOn(t.Context(), env)
			switch all.add(c, err) {
			case skipped:
				t.Skip(err)
			case failed:
				t.Errorf("%s\n%v", c.sentence, err)
			}
		})
	}
	t.Log(all.summary())
	if all.empty() {
		t.Error("no check was made of this provider; give the environment more hooks, or let -run choose some checks")
	}
}

// verdict is what came of a check.
type verdict int

const (
	passed verdict = iota
	failed
	skipped
)

// tally counts what came of the checks.
type tally struct {
	counts  [skipped + 1]int
	reasons []string // why checks were skipped
}

// add counts a check by the error that it returned.
func (t *tally) add(c check, err error) verdict {
	out := passed
	if _, ok := errors.AsType[*notRun](err); ok {
		out = skipped
		t.reasons = append(t.reasons, c.name+" ("+err.Error()+")")
	} else if err != nil {
		out = failed
	}
	t.counts[out]++
	return out
}

// empty tells whether no check was made.
func (t *tally) empty() bool { return t.counts[passed]+t.counts[failed] == 0 }

// summary says how many checks passed, failed and were skipped, and why.
func (t *tally) summary() string {
	text := fmt.Sprintf("conformance: %d passed, %d failed, %d skipped", t.counts[passed], t.counts[failed],
		t.counts[skipped])
	if len(t.reasons) > 0 {
		text += ": " + strings.Join(t.reasons, ", ")
	}
	return text
}

// check is one thing that must hold.
type check struct {
	name     string
	sentence string
	run      func(ctx context.Context, w *world) error
}

func checks() []check {
	all := [][]check{catalogChecks(), createChecks(), capacityChecks(), endChecks(), robustnessChecks()}
	var out []check
	for _, group := range all {
		out = append(out, group...)
	}
	return out
}

// runOn runs the check on a new cloud and then looks whether the instances that it made can be got rid of.
func (c check) runOn(ctx context.Context, env Env) error {
	cloud, err := env.New(ctx)
	if err != nil {
		return fmt.Errorf("making an empty cloud: %w", err)
	}
	if cloud.Close != nil {
		defer cloud.Close()
	}
	w := &world{Cloud: cloud, patience: env.Patience}
	if w.patience == 0 {
		w.patience = time.Minute
	}
	before, err := cloud.Provider.List(ctx)
	if err != nil {
		return fmt.Errorf("listing the empty cloud: %w", err)
	}
	if len(before) != 0 {
		return fmt.Errorf("the cloud that New made is not empty: it has %s", before[0].ProviderID)
	}
	if err := c.run(ctx, w); err != nil {
		return err
	}
	return w.clean(ctx)
}

// notRun is the error of a check that can't be made here.
type notRun struct{ why string }

func (e *notRun) Error() string { return e.why }

func noHook(name string) error { return &notRun{"the environment has no hook " + name} }
