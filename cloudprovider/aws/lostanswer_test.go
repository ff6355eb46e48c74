package aws_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
)

// ahead is a clock that a test can put forward.
type ahead struct {
	mu sync.Mutex
	by time.Duration
}

func (a *ahead) now() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Add(a.by)
}

func (a *ahead) put(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.by += d
}

// Now makes it a clock of the simulator.
func (a *ahead) Now() time.Time { return a.now() }

// settled is a provider that has been leading for a while: it knows all that there is.
func settled(t *testing.T, s setup) (*world, *aws.Provider) {
	t.Helper()
	clock := &ahead{}
	w, p := start(t, s, func(o *aws.Options) { o.Now = clock.now })
	clock.put(15 * time.Second)
	if _, err := p.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w, p
}

// lead is settled in a bubble.
func lead(t *testing.T, p *aws.Provider) {
	t.Helper()
	time.Sleep(15 * time.Second)
	if _, err := p.List(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// store writes the claims down, as the core does before it has them launched.
func (w *world) store(t *testing.T, list ...*v1.NodeClaim) {
	t.Helper()
	for _, c := range list {
		if err := w.kube.Create(t.Context(), c.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
}

// lose loses the answers to as many CreateFleet calls.
func (w *world) lose(times int) {
	w.faults.Add(faults.Fault{Service: "ec2", Action: "CreateFleet", Lose: true, Times: times})
}

// TestCensusBetweenLossAndQuestion loses the answer to a launch of two that found capacity for one. A look at EC2 gives
// the instance to a claim before the other asks what became of the launch: it must not be given away again. The UIDs
// are such that their order and that of their marks differ.
func TestCensusBetweenLossAndQuestion(t *testing.T) {
	w, p := settled(t, setup{})
	w.faults.Deny("ec2:CreateTags")
	w.sim.World.SetCapacity(cloud.CapacityRule{Type: "m5.large", Total: 1})
	list := claims(2, in(corev1.LabelInstanceTypeStable, "m5.large"), in(v1.CapacityTypeLabelKey,
		v1.CapacityTypeOnDemand), in(corev1.LabelTopologyZone, "us-west-2a"))
	for i, uid := range []string{"00000000-0000-4000-8000-000000000001", "f8000000-0000-4000-8000-000000000002"} {
		list[i].UID, list[i].Name = types.UID(uid), "general-"+uid[:8]
	}
	w.store(t, list...)
	w.lose(3)
	launchAll(t, p, list, 2)
	if _, err := p.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []*cloudprovider.Instance
	for _, c := range []*v1.NodeClaim{list[1], list[0]} {
		if i, err := p.Create(t.Context(), c); err == nil {
			got = append(got, i)
		} else if !cloudprovider.IsNoCapacity(err) {
			t.Error(err)
		}
	}
	if len(got) != 1 || len(w.alive()) != 1 {
		t.Errorf("%d claims got an instance and EC2 runs %d; want 1 and 1: %v", len(got), len(w.alive()), got)
	}
}

// TestLostThenRefused loses the first answer and refuses the tries that follow in various ways. None of that says what
// became of the first try, so nobody may conclude that there is no instance.
func TestLostThenRefused(t *testing.T) {
	for _, code := range []string{"RequestLimitExceeded", "UnauthorizedOperation", "InvalidParameterValue",
		"InsufficientInstanceCapacity"} {
		t.Run(code, func(t *testing.T) {
			inBubble(t, setup{}, func(t *testing.T, w *world, p *aws.Provider) {
				lead(t, p)
				c := claim()
				w.lose(1)
				w.faults.Add(faults.Fault{Service: "ec2", Action: "CreateFleet", Code: code, Status: 400, Times: 2})
				_, err := p.Create(t.Context(), c)
				if err == nil || cloudprovider.IsNoCapacity(err) || cloudprovider.IsNotReady(err) {
					t.Fatalf("with an instance that may run the claim is told %T: %v", err, err)
				}
				w.faults.Clear()
				if _, err = p.Create(t.Context(), c); err != nil {
					t.Error(err)
				}
				if n := len(w.alive()); n != 1 {
					t.Errorf("one claim has %d instances", n)
				}
			})
		})
	}
}

// TestAskedAgainWhileUnderWay gives a launch up and asks again while the call that it went out with goes on.
func TestAskedAgainWhileUnderWay(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world, p *aws.Provider) {
		lead(t, p)
		list := claims(2)
		w.faults.Add(faults.Fault{Service: "ec2", Action: "CreateFleet", Delay: 2 * time.Second, Times: 1})
		short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		var group sync.WaitGroup
		got, errs := make([]*cloudprovider.Instance, 2), make([]error, 2)
		group.Go(func() { _, _ = p.Create(short, list[0]) })
		group.Go(func() { got[1], errs[1] = p.Create(t.Context(), list[1]) })
		<-short.Done()
		got[0], errs[0] = p.Create(t.Context(), list[0])
		group.Wait()
		distinct(t, list, got, errs)
		if n := len(w.alive()); n != 2 {
			t.Errorf("two claims have %d instances", n)
		}
	})
}

// TestTakeOverInOtherCompany launches four together, hides them for a while as EC2 does, and has the next controller
// come for two of them, one at a time.
func TestTakeOverInOtherCompany(t *testing.T) {
	w, p := start(t, setup{timing: cloud.Timing{Visibility: 1500 * time.Millisecond}})
	list := claims(4)
	w.store(t, list...)
	first, errs := launchAll(t, p, list, len(list))
	distinct(t, list, first, errs)
	next, err := w.provider()
	if err != nil {
		t.Fatal(err)
	}
	var again []*cloudprovider.Instance
	for _, c := range list[:2] {
		i, err := next.Create(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		again = append(again, i)
	}
	distinct(t, list[:2], again, make([]error, 2))
	if n := len(w.alive()); n != 4 {
		t.Errorf("four claims have %d instances", n)
	}
	// A claim that came after the change of leaders can't be another's: it need not wait.
	began := time.Now()
	if _, err := next.Create(t.Context(), claim()); err != nil || time.Since(began) > time.Second {
		t.Errorf("a new claim was launched after %s (%v)", time.Since(began), err)
	}
}

// TestTakeOverOfAYoungInstance has the next controller end an instance that a NodeClaim names and EC2 does not show
// yet. That it is not shown must not be taken for its end: the claim would go, and the instance stay.
func TestTakeOverOfAYoungInstance(t *testing.T) {
	clock := &ahead{}
	w, p := start(t, setup{clock: clock, timing: cloud.Timing{Visibility: 3 * time.Second}})
	c := claim()
	c.CreationTimestamp = metav1.Now()
	w.store(t, c)
	made, err := p.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.record(t.Context(), c, made); err != nil {
		t.Fatal(err)
	}
	next, err := w.provider(func(o *aws.Options) { o.Now = clock.now })
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Delete(t.Context(), made.ProviderID, made.Owner()); err == nil || cloudprovider.IsNotFound(err) {
		t.Errorf("an instance that is not shown yet: %v", err)
	}
	if _, err := next.Get(t.Context(), "aws:///us-west-2a/i-0123456789abcdef0"); !cloudprovider.IsNotFound(err) {
		t.Errorf("an instance that nobody knows: %v", err)
	}
	clock.put(4 * time.Second)
	if err := next.Delete(t.Context(), made.ProviderID, made.Owner()); err != nil || len(w.alive()) != 0 {
		t.Errorf("once it is shown: %v, EC2 runs %d", err, len(w.alive()))
	}
	clock.put(10 * time.Second)
	if err := next.Delete(t.Context(), made.ProviderID, made.Owner()); !cloudprovider.IsNotFound(err) {
		t.Errorf("once it is gone: %v", err)
	}
}

// TestLostAnswersAreNoStorm has EC2 answer with errors for a while. Fifty claims that were launched together ask
// together.
func TestLostAnswersAreNoStorm(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world, p *aws.Provider) {
		lead(t, p)
		list := claims(50)
		w.faults.Add(faults.Fault{Service: "ec2", Action: "CreateFleet", Code: "InternalError", Status: 500})
		launchAll(t, p, list, len(list))
		one := w.sim.Calls()["ec2:CreateFleet"]
		for range 3 {
			launchAll(t, p, list, len(list))
		}
		if n := w.sim.Calls()["ec2:CreateFleet"] - one; n > one {
			t.Errorf("the first round of 50 claims made %d calls, the three that followed at once %d", one, n)
		}
		w.faults.Clear()
		eventually(t, "all have an instance", func() bool {
			_, errs := launchAll(t, p, list, len(list))
			for _, err := range errs {
				if err != nil {
					return false
				}
			}
			return true
		})
		if n := len(w.alive()); n != 50 {
			t.Errorf("EC2 runs %d instances, want 50", n)
		}
	})
}

// TestWaitingHeedsTheContext has somebody else find out slowly what became of a lost launch.
func TestWaitingHeedsTheContext(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world, p *aws.Provider) {
		lead(t, p)
		list := claims(2)
		w.faults.Add(faults.Fault{Service: "ec2", Action: "CreateFleet", Code: "InternalError", Status: 500, Times: 3})
		launchAll(t, p, list, 2)
		w.faults.Add(faults.Fault{Service: "ec2", Action: "CreateFleet", Delay: 3 * time.Second, Times: 1})
		var group sync.WaitGroup
		group.Go(func() { _, _ = p.Create(t.Context(), list[0]) })
		eventually(t, "the question is under way", func() bool { return faultsLeft(w) == 0 })
		short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		began := time.Now()
		if _, err := p.Create(short, list[1]); err == nil || time.Since(began) > 1500*time.Millisecond {
			t.Errorf("with 300 ms to live Create came back after %s (%v)", time.Since(began), err)
		}
		group.Wait()
	})
}

// TestEndingInstanceIsNone ends an instance behind the claim's back: Create must not hand out what shuts down.
func TestEndingInstanceIsNone(t *testing.T) {
	w, p := settled(t, setup{timing: cloud.Timing{Shutdown: time.Hour}})
	c := claim()
	first, err := p.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.kill(t.Context(), first.ProviderID); err != nil {
		t.Fatal(err)
	}
	second, err := p.Create(t.Context(), c)
	if err != nil || second.ProviderID == first.ProviderID || second.Terminating {
		t.Errorf("got %+v (%v), want another instance than %s", second, err, first.ProviderID)
	}
}

// faultsLeft counts the faults that have not struck as often as they are to.
func faultsLeft(w *world) int {
	left, _, _ := w.faults.Active()
	return len(left)
}

// panickingFleet fails at a launch when it is told to.
type panickingFleet struct {
	aws.EC2API
	fails atomic.Bool
}

func (p *panickingFleet) CreateFleet(ctx context.Context, in *ec2.CreateFleetInput,
	o ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	if p.fails.Load() {
		panic("boom")
	}
	return p.EC2API.CreateFleet(ctx, in, o...)
}

// A panic of the one who asks what became of a lost launch leaves the answer lost: it is asked for again, and there is
// one instance.
func TestPanicWhileAskingAgain(t *testing.T) {
	clock, fleet := &ahead{}, &panickingFleet{}
	var told atomic.Int32
	w, p := start(t, setup{}, func(o *aws.Options) {
		fleet.EC2API = o.EC2
		o.EC2, o.Now, o.Guard = fleet, clock.now, &recovery.Guard{Tell: func(recovery.Failure) { told.Add(1) }}
	})
	clock.put(15 * time.Second)
	if _, err := p.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := claim()
	w.lose(3)
	if _, err := p.Create(t.Context(), c); err == nil {
		t.Fatal("the answers are lost, and the launch is known")
	}
	w.faults.Clear()
	fleet.fails.Store(true)
	clock.put(time.Minute)
	if _, err := p.Create(t.Context(), c); err == nil || told.Load() != 1 {
		t.Fatalf("%v, told %d times", err, told.Load())
	}
	fleet.fails.Store(false)
	clock.put(time.Minute)
	if _, err := p.Create(t.Context(), c); err != nil {
		t.Error(err)
	}
	if n := len(w.alive()); n != 1 {
		t.Errorf("one claim has %d instances", n)
	}
}
