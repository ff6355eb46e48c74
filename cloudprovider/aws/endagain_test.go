package aws_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
)

// One part of EC2 may know an instance that another does not: it is asked for again, five times in all and half a
// second apart. That it is gone is believed only if it is not described any more.
func TestEndThatEC2ForgetsAgainAndAgain(t *testing.T) {
	for _, x := range []struct {
		forgets int
		calls   int
		waits   time.Duration
		ends    bool
	}{{0, 1, 0, true}, {1, 2, 500 * time.Millisecond, true}, {4, 5, 2 * time.Second, true}, {5, 5, 2 * time.Second,
		false}, {9, 5, 2 * time.Second, false}} {
		inBubble(t, setup{}, func(t *testing.T, w *world, p *aws.Provider) {
			_, made, _ := one(t, w, p)
			if x.forgets > 0 {
				w.faults.Add(faults.Fault{Service: "ec2", Action: "TerminateInstances",
					Code: "InvalidInstanceID.NotFound", Status: 400, Times: x.forgets})
			}
			began := time.Now()
			err := p.Delete(t.Context(), made.ProviderID, made.Owner())
			waited := time.Since(began).Truncate(500 * time.Millisecond)
			if x.ends != (err == nil) || cloudprovider.IsNotFound(err) || (len(w.alive()) == 0) != x.ends {
				t.Errorf("forgotten %d times: %v, EC2 runs %d", x.forgets, err, len(w.alive()))
			}
			if n := w.sim.Calls()["ec2:TerminateInstances"]; n != x.calls || waited != x.waits {
				t.Errorf("forgotten %d times: %d calls in %s, want %d in %s", x.forgets, n, waited, x.calls, x.waits)
			}
		})
	}
}

// Whose an instance is may only show when all are looked at. If that look fails, the instance is not ended.
func TestEndWithoutALook(t *testing.T) {
	w, p := start(t, setup{})
	_, made, _ := one(t, w, p)
	next, err := w.provider() // one that has nothing in memory
	if err != nil {
		t.Fatal(err)
	}
	// The first call describes the instance, the second all of them.
	w.faults.Add(faults.Fault{Service: "ec2", Action: "DescribeInstances", Code: "UnauthorizedOperation",
		Status: 403, Every: 2})
	if got, err := next.Get(t.Context(), made.ProviderID); !cloudprovider.IsUnauthorized(err) || got != nil {
		t.Errorf("it is found as %+v (%v) although nobody knows whose it is", got, err)
	}
	err = next.Delete(t.Context(), made.ProviderID, made.Owner())
	if n := w.sim.Calls()["ec2:TerminateInstances"]; !cloudprovider.IsUnauthorized(err) || n != 0 ||
		len(w.alive()) != 1 {
		t.Errorf("%v after %d calls to end it, EC2 runs %d", err, n, len(w.alive()))
	}
}

// blind is an EC2 that does not show its instances yet, and does all else.
type blind struct {
	aws.EC2API
	on atomic.Bool
}

func (b *blind) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput,
	o ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	if b.on.Load() {
		return &ec2.DescribeInstancesOutput{}, nil
	}
	return b.EC2API.DescribeInstances(ctx, in, o...)
}

// EC2 does not show an instance yet. It can be ended, for its claim only; then it says so, and it is listed no more.
func TestEndIsRememberedBeforeEC2ShowsIt(t *testing.T) {
	api := &blind{}
	w, p := start(t, setup{}, func(o *aws.Options) { api.EC2API, o.EC2 = o.EC2, api })
	c, made, _ := one(t, w, p)
	api.on.Store(true)
	if err := p.Delete(t.Context(), made.ProviderID, cloudprovider.Owner{ClaimName: c.Name,
		ClaimUID: "another"}); !cloudprovider.IsNotOwned(err) || len(w.alive()) != 1 {
		t.Fatalf("for a namesake: %v, EC2 runs %d", err, len(w.alive()))
	}
	if err := p.Delete(t.Context(), made.ProviderID, made.Owner()); err != nil || len(w.alive()) != 0 {
		t.Fatalf("for its claim: %v, EC2 runs %d", err, len(w.alive()))
	}
	if got, err := p.Get(t.Context(), made.ProviderID); err != nil || !got.Terminating || got.Owner() != made.Owner() {
		t.Errorf("it is %+v (%v), want one that is ending", got, err)
	}
	if list, err := p.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%d are listed (%v), want none", len(list), err)
	}
}

// Asking again while an instance shuts down costs no call that ends.
func TestEndOfWhatIsShuttingDown(t *testing.T) {
	w, p := start(t, setup{timing: cloud.Timing{Shutdown: time.Hour}})
	_, made, _ := one(t, w, p)
	for range 3 {
		if err := p.Delete(t.Context(), made.ProviderID, made.Owner()); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.sim.Calls()["ec2:TerminateInstances"]; n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
	got, err := p.Get(t.Context(), made.ProviderID)
	if err != nil || !got.Terminating {
		t.Errorf("%+v, %v", got, err)
	}
}

// An instance that only carries a name, of a claim that is no more, is nobody's: it is ended as such, and for no claim
// of that name.
func TestInstanceThatOnlyCarriesAName(t *testing.T) {
	w, p := start(t, setup{timing: cloud.Timing{Shutdown: time.Hour}})
	made, err := p.Create(t.Context(), claim())
	if err != nil {
		t.Fatal(err)
	}
	id := made.ProviderID[strings.LastIndex(made.ProviderID, "/")+1:]
	if err := w.strip(id); err != nil {
		t.Fatal(err)
	}
	if err := w.sim.World.SetTags([]string{id}, map[string]string{awsv1.NodeClaimTagKey: "general-x"}); err != nil {
		t.Fatal(err.Message)
	}
	next, err := w.provider() // one that has nothing in memory
	if err != nil {
		t.Fatal(err)
	}
	nobody := cloudprovider.Owner{ClaimName: "general-x"}
	refused := func() {
		t.Helper()
		err := next.Delete(t.Context(), made.ProviderID, cloudprovider.Owner{ClaimName: "general-x",
			ClaimUID: made.ClaimUID})
		refusal, ok := errors.AsType[*cloudprovider.NotOwnedError](err)
		if !ok || refusal.Owner != nobody {
			t.Errorf("for a claim of the name: %v", err)
		}
	}
	refused()
	if n := len(w.alive()); n != 1 {
		t.Fatalf("EC2 runs %d instances, want it left alone", n)
	}
	for range 2 {
		if err := next.Delete(t.Context(), made.ProviderID, nobody); err != nil || len(w.alive()) != 0 {
			t.Errorf("for nobody: %v, EC2 runs %d", err, len(w.alive()))
		}
	}
	refused() // what is ending is still not the claim's
}

// Whoever was given no identity of the cluster goes by its name alone.
func TestEndWithoutAnIdentity(t *testing.T) {
	w, p := start(t, setup{})
	c, made, _ := one(t, w, p)
	if err := w.record(t.Context(), c, made); err != nil {
		t.Fatal(err)
	}
	next, err := w.provider(func(o *aws.Options) { o.Identity = "" })
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Delete(t.Context(), made.ProviderID, made.Owner()); err != nil || len(w.alive()) != 0 {
		t.Errorf("%v, EC2 runs %d", err, len(w.alive()))
	}
}
