package aws_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
)

// drama is a controller, and what the core does with it (chance_test.go).
type drama struct {
	t *testing.T
	w *world
	p *aws.Provider
	// life ends when the controller dies; line is its way to EC2.
	life context.Context
	die  context.CancelFunc
	line *lifeline

	mu       sync.Mutex
	parts    []*part
	log      []string
	failures []string
	killed   map[string]bool
	// gone counts claims that went while nobody knew whether they had an instance; orphans are instances that were
	// nobody's.
	gone, orphans int
	// calm says that all trouble is over.
	calm bool
}

// part is a claim and what has become of it.
type part struct {
	claim *v1.NodeClaim
	// busy: it is being launched. over: it is no more. keep: the core's next write succeeds.
	busy, over, keep bool
	// id is what is written down, told what this controller has answered.
	id, told string
}

// lifeline is the way to EC2 of a process that can die.
type lifeline struct {
	to   direct
	dead atomic.Bool

	mu   sync.Mutex
	late []time.Duration
}

// Do implements the SDK's HTTP client.
func (l *lifeline) Do(r *http.Request) (*http.Response, error) {
	if l.dead.Load() {
		return nil, errors.New("this process is no more")
	}
	answer, err := l.to.Do(r)
	select {
	case <-time.After(l.lateness()):
		return answer, err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// hold has the next answers come that late. What they answer is done in time.
func (l *lifeline) hold(by time.Duration, answers int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = slices.Repeat([]time.Duration{by}, answers)
}

func (l *lifeline) lateness() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.late) == 0 {
		return 0
	}
	by := l.late[0]
	l.late = l.late[1:]
	return by
}

func newDrama(t *testing.T) *drama {
	d := &drama{t: t, killed: map[string]bool{}}
	var err error
	d.w, err = newWorld(t.Context(), setup{direct: true, families: []string{"m5"},
		timing: cloud.Timing{Visibility: 6 * time.Second, StateLag: time.Second,
			TemplateVisibility: 300 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	d.restart()
	return d
}

// restart ends the controller, whatever it is doing, and begins another.
func (d *drama) restart() {
	if d.line != nil {
		d.die()
		d.line.dead.Store(true)
		synctest.Wait()
	}
	d.line = &lifeline{to: direct{d.w.sim}}
	d.life, d.die = context.WithCancel(d.t.Context())
	o := d.w.ec2.Options()
	o.HTTPClient = d.line
	p, err := d.w.provider(func(to *aws.Options) { to.EC2 = ec2.New(o) })
	if err != nil {
		d.t.Fatal(err)
	}
	d.p = p
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.parts {
		p.told = ""
	}
}

// want has some claims written, of two shapes.
func (d *drama) want(n, shapes int) {
	for k := range n {
		c := claim(in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand), in(corev1.LabelTopologyZone, "us-west-2a"))
		if (k+shapes)%2 == 0 {
			c.Spec.Requirements = append(c.Spec.Requirements, in(corev1.LabelInstanceTypeStable, "m5.large",
				"m5.xlarge"))
		}
		d.w.store(d.t, c)
		d.parts = append(d.parts, &part{claim: c})
	}
}

// waiting are those who have nothing in writing and are not being launched.
func (d *drama) waiting() []*part {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []*part
	for _, p := range d.parts {
		if !p.busy && !p.over && p.id == "" {
			out = append(out, p)
		}
	}
	return out
}

// launch begins to have some launched at the same time. Who is not answered in time gives up. Of so many answers one is
// not written down.
func (d *drama) launch(n, from int, patience time.Duration, written int) {
	list := d.waiting()
	for k := range min(n, len(list)) {
		p, provider := list[(k+from)%len(list)], d.p
		d.mu.Lock()
		p.busy, p.keep = true, written > 0 && (k+1)%written > 0
		d.mu.Unlock()
		ctx, cancel := context.WithTimeout(d.life, patience)
		go func() {
			defer cancel()
			got, err := provider.Create(ctx, p.claim)
			d.answered(p, got, err)
		}()
	}
	time.Sleep(time.Millisecond)
}

// answered does what the core does with the answer: if the cloud says that there is none, the claim goes.
func (d *drama) answered(p *part, got *cloudprovider.Instance, err error) {
	d.mu.Lock()
	p.busy = false
	refused := cloudprovider.IsNoCapacity(err) || cloudprovider.IsNotReady(err)
	p.over = p.over || refused
	d.mu.Unlock()
	switch {
	case err != nil:
		d.note("%s: %s gets %v", time.Now().Format("04:05.000"), p.claim.Name, err)
		if refused {
			d.remove(p)
		}
		return
	}
	d.note("%s: %s gets %s", time.Now().Format("04:05.000"), p.claim.Name, got.ProviderID)
	d.mu.Lock()
	for _, other := range d.parts {
		if other != p && !other.over && (other.id == got.ProviderID || other.told == got.ProviderID) {
			d.failures = append(d.failures, got.ProviderID+" of "+other.claim.Name+" was given to "+p.claim.Name)
		}
	}
	if p.told != "" && p.told != got.ProviderID && !d.killed[p.told] {
		d.failures = append(d.failures, p.claim.Name+" was given "+p.told+", then "+got.ProviderID)
	}
	p.told = got.ProviderID
	keep := p.keep && !p.over
	if keep {
		p.id = got.ProviderID
	}
	d.mu.Unlock()
	if keep {
		if err := d.w.record(context.WithoutCancel(d.t.Context()), p.claim, got); err != nil {
			d.fail("writing down %s: %v", got.ProviderID, err)
		}
	}
}

func (d *drama) remove(p *part) {
	if err := d.w.kube.Delete(context.WithoutCancel(d.t.Context()), p.claim.DeepCopy()); err != nil {
		d.fail("removing %s: %v", p.claim.Name, err)
	}
}

// giveUp has somebody delete a claim of which nobody knows whether it has an instance.
func (d *drama) giveUp(n int) {
	list := d.waiting()
	if len(list) == 0 {
		return
	}
	p := list[n%len(list)]
	d.mu.Lock()
	p.over = true
	d.gone++
	d.mu.Unlock()
	d.remove(p)
}

// kill ends an instance behind everybody's back.
func (d *drama) kill(n int) {
	list := d.w.alive()
	if len(list) == 0 {
		return
	}
	i := list[n%len(list)]
	id := "aws:///" + i.Zone + "/" + i.ID
	d.mu.Lock()
	d.killed[id] = true
	d.mu.Unlock()
	if err := d.w.kill(d.t.Context(), id); err != nil {
		d.fail("ending %s: %v", id, err)
	}
}

// scarce leaves room for a few more.
func (d *drama) scarce(room int) {
	d.w.sim.World.ClearCapacity()
	if room < 6 {
		d.w.sim.World.SetCapacity(cloud.CapacityRule{Type: "m5.large", Total: room + len(d.w.alive())})
		d.w.sim.World.SetCapacity(cloud.CapacityRule{Type: "m5.xlarge", Total: room})
	}
}

// mishap has something go wrong with the next launches.
func (d *drama) mishap(a act) {
	f := faults.Fault{Service: "ec2", Action: "CreateFleet", Times: 1 + a.n}
	switch a.what {
	case "lose":
		f.Lose = true
	case "slow":
		f.Delay = a.by / 15
		d.line.hold(a.by, 1+a.n)
	case "break":
		f.Code, f.Status = "InternalError", http.StatusInternalServerError
	case "refuse":
		f.Code, f.Status = "InvalidParameterValue", http.StatusBadRequest
	case "throttle":
		f.Code, f.Status = "RequestLimitExceeded", http.StatusServiceUnavailable
	}
	d.w.faults.Add(f)
}

// live tells whether the claim is still there.
func (d *drama) live(uid string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.parts {
		if string(p.claim.UID) == uid {
			return !p.over
		}
	}
	return false
}

// census looks whether what is listed agrees with what is written down, and returns what goes on.
func (d *drama) census() []*cloudprovider.Instance {
	list, err := d.p.List(d.t.Context())
	if err != nil {
		d.upset("listing instances", err)
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	written := map[string]*part{}
	for _, p := range d.parts {
		if p.id != "" && !p.over {
			written[p.id] = p
		}
	}
	var out []*cloudprovider.Instance
	for _, i := range list {
		if p := written[i.ProviderID]; p != nil && i.ClaimUID != string(p.claim.UID) {
			d.failures = append(d.failures, i.ProviderID+" of "+p.claim.Name+" is listed as that of "+
				strings.TrimSpace(i.ClaimName+" "+i.ClaimUID))
		}
		if !i.Terminating {
			out = append(out, i)
		}
	}
	return out
}

// upset takes in that something could not be done, which is no wonder as long as there is trouble.
func (d *drama) upset(what string, err error) {
	d.note("%s: %v", what, err)
	if d.calm {
		d.fail("%s: %v", what, err)
	}
}

// collect ends what has been nobody's for a minute, as the core does.
func (d *drama) collect() {
	for _, i := range d.census() {
		if d.live(i.ClaimUID) || time.Since(i.CreatedAt) < time.Minute {
			continue
		}
		d.note("%s is nobody's (%s %s)", i.ProviderID, i.ClaimName, i.ClaimUID)
		if err := d.p.Delete(d.t.Context(), i.ProviderID, i.Owner()); err != nil {
			d.upset("ending "+i.ProviderID, err)
			continue
		}
		d.orphans++
	}
}
