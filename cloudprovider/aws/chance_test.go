package aws_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
)

// TestByChance does what can happen to a controller in random order: answers get lost, EC2 is busy or broken or sold out,
// shows instances late, looks come between, what was answered is not written down, the controller dies and another takes
// over. Whatever happens, no instance is given to two claims, no claim gets two, and nothing is left over.
func TestByChance(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			newDrama(t, seed).play(40)
		})
	}
}

// drama is a run of the test.
type drama struct {
	t     *testing.T
	rnd   *rand.Rand
	clock *ahead
	w     *world
	p     *aws.Provider
	// waiting are claims without an instance as far as anybody has written down; owned are the instances of the others.
	waiting []*v1.NodeClaim
	owned   map[string]*v1.NodeClaim
	// told is what Create has said since the last restart.
	told map[string]string
	log  []string
}

func newDrama(t *testing.T, seed uint64) *drama {
	d := &drama{t: t, rnd: rand.New(rand.NewPCG(seed, 6)), clock: &ahead{}, owned: map[string]*v1.NodeClaim{}}
	var err error
	d.w, err = newWorld(t.Context(), setup{clock: d.clock, families: []string{"m5"}, timing: cloud.Timing{Visibility: 3 * time.Second, StateLag: time.Second, TemplateVisibility: 300 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.w.close)
	d.restart()
	return d
}

func (d *drama) restart() {
	var err error
	d.p, err = d.w.provider(func(o *aws.Options) {
		o.Now, o.Wait = d.clock.now, func(_ context.Context, by time.Duration) { d.clock.put(by) }
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.told = map[string]string{}
}

func (d *drama) play(acts int) {
	for range acts {
		d.act()
		if d.t.Failed() {
			d.t.Logf("so far: %s", strings.Join(d.log, ", "))
			return
		}
	}
	d.lastAct()
	if d.t.Failed() {
		d.t.Logf("it was: %s", strings.Join(d.log, ", "))
	}
}

func (d *drama) note(format string, args ...any) { d.log = append(d.log, fmt.Sprintf(format, args...)) }

// act lets one thing happen.
func (d *drama) act() {
	switch d.rnd.IntN(10) {
	case 0, 1:
		d.want(1 + d.rnd.IntN(6))
	case 2:
		d.mishap()
	case 3:
		by := time.Duration(d.rnd.IntN(8000)) * time.Millisecond
		d.note("%s pass", by)
		d.clock.put(by)
	case 4:
		d.note("a look")
		d.census()
	case 5:
		d.note("another controller")
		d.restart()
	case 6:
		total := d.rnd.IntN(4)
		d.note("room for %d of a type in a zone", total)
		d.w.sim.World.ClearCapacity()
		d.w.sim.World.SetCapacity(cloud.CapacityRule{Type: "m5.large", Total: total + len(d.w.alive())})
	default:
		d.launch()
	}
}

// want has some claims written that want an instance, of two shapes.
func (d *drama) want(n int) {
	d.note("%d more claims", n)
	for range n {
		c := claim(in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand), in(corev1.LabelTopologyZone, "us-west-2a"))
		if d.rnd.IntN(2) == 0 {
			c.Spec.Requirements = append(c.Spec.Requirements, in(corev1.LabelInstanceTypeStable, "m5.large", "m5.xlarge"))
		}
		d.w.store(d.t, c)
		d.waiting = append(d.waiting, c)
	}
}

// mishap has something go wrong with the next launches.
func (d *drama) mishap() {
	times := 1 + d.rnd.IntN(5)
	f := faults.Fault{Service: "ec2", Action: "CreateFleet", Times: times}
	switch d.rnd.IntN(4) {
	case 0:
		f.Code, f.Status = "InternalError", 500
	case 1:
		f.Code, f.Status = "InvalidParameterValue", 400
	default:
		f.Lose = true
	}
	d.note("%d calls go wrong (%s)", times, f.Code)
	d.w.faults.Add(f)
}

// launch has some of the claims launched at the same time, and writes most of the answers down.
func (d *drama) launch() {
	d.rnd.Shuffle(len(d.waiting), func(i, j int) { d.waiting[i], d.waiting[j] = d.waiting[j], d.waiting[i] })
	some := d.waiting[:d.rnd.IntN(len(d.waiting)+1)]
	keep := make([]bool, len(some))
	for i := range keep {
		keep[i] = d.rnd.IntN(4) > 0
	}
	got, errs := make([]*cloudprovider.Instance, len(some)), make([]error, len(some))
	var group sync.WaitGroup
	for i, c := range some {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Second)
			defer cancel()
			got[i], errs[i] = d.p.Create(ctx, c)
		})
	}
	group.Wait()
	d.note("%d of %d launched: %v", len(some), len(d.waiting), errs)
	var left []*v1.NodeClaim
	for i, c := range some {
		if !d.answered(c, got[i], errs[i], keep[i]) {
			left = append(left, c)
		}
	}
	d.waiting = append(left, d.waiting[len(some):]...)
}

// answered takes in what Create has said and reports whether the claim is done with: it has its instance in writing, or the
// core has given it up, because the cloud has said that there is none.
func (d *drama) answered(c *v1.NodeClaim, got *cloudprovider.Instance, err error, keep bool) bool {
	if cloudprovider.IsNoCapacity(err) || cloudprovider.IsNotReady(err) {
		if err := d.w.kube.Delete(d.t.Context(), c.DeepCopy()); err != nil {
			d.t.Fatal(err)
		}
		return true
	}
	if err != nil {
		return false
	}
	if of := d.owned[got.ProviderID]; of != nil {
		d.t.Errorf("%s is that of %s and was given to %s", got.ProviderID, of.Name, c.Name)
	}
	for id, name := range d.told {
		if (id == got.ProviderID) != (name == c.Name) {
			d.t.Errorf("%s was given to %s, now %s to %s", id, name, got.ProviderID, c.Name)
		}
	}
	d.told[got.ProviderID] = c.Name
	if !keep {
		return false
	}
	if err := d.w.record(d.t.Context(), c, got); err != nil {
		d.t.Fatal(err)
	}
	d.owned[got.ProviderID] = c
	return true
}

// census looks whether what is listed agrees with what is written down.
func (d *drama) census() (orphans []string) {
	list, err := d.p.List(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	live := map[string]bool{}
	for _, c := range d.waiting {
		live[string(c.UID)] = true
	}
	for _, i := range list {
		of := d.owned[i.ProviderID]
		if of != nil && i.ClaimUID != string(of.UID) {
			d.t.Errorf("%s of %s is listed as that of %q", i.ProviderID, of.Name, i.ClaimName)
		}
		if of == nil && !live[i.ClaimUID] {
			orphans = append(orphans, i.ProviderID)
		}
	}
	return orphans
}

// lastAct ends all trouble, has everybody launched and counts.
func (d *drama) lastAct() {
	d.w.faults.Clear()
	d.w.sim.World.ClearCapacity()
	for round := 0; len(d.waiting) > 0; round++ {
		if round == 200 {
			d.t.Fatalf("%d claims never get an instance", len(d.waiting))
		}
		d.clock.put(time.Minute)
		d.launch()
	}
	d.clock.put(2 * time.Minute)
	if orphans := d.census(); len(orphans) > 0 {
		d.t.Errorf("%d instances are nobody's: %v", len(orphans), orphans)
	}
	if n := len(d.w.alive()); n != len(d.owned) {
		d.t.Errorf("%d claims have an instance, EC2 runs %d", len(d.owned), n)
	}
}
