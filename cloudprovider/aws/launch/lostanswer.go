package launch

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"
)

const (
	// fleetTries is how often a call is made before it counts as failed, or lost.
	fleetTries = 3
	// fleetPause is waited before a call is made again whose answer was lost, twice as long the next time.
	fleetPause = 200 * time.Millisecond
)

// createFleet makes the call, and makes it again if EC2 is busy or its answer gets lost. It is not left to the SDK,
// which tells of the last try only: that one was refused says nothing about one before it whose answer was lost. lost
// says that it is not known whether EC2 has launched something.
func (p *Launcher) createFleet(ctx context.Context, in *ec2.CreateFleetInput) (out *ec2.CreateFleetOutput, lost bool,
	err error) {
	for try := 1; ; try++ {
		out, err = p.o.EC2.CreateFleet(ctx, in, func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} })
		busy := fault.IsThrottled(err)
		switch {
		case err == nil:
			p.limiter.NoteTaken()
			return out, false, nil
		case busy:
			p.limiter.Slower()
		case fault.Lost(err):
			lost = true
		default:
			return nil, lost, err
		}
		if try == fleetTries {
			return nil, lost, err
		}
		if !busy {
			p.o.Wait(ctx, fleetPause<<(try-1))
		}
		if p.limiter.Pass(ctx, 1) != nil {
			return nil, lost, err
		}
	}
}

// AwaitLaunch waits until the launch that the claim is part of has ended, and finds out what became of one whose answer
// was lost.
func (p *Launcher) AwaitLaunch(ctx context.Context, uid types.UID) error {
	for {
		l, landed := p.o.Register.LaunchOf(uid)
		if l == nil {
			return nil
		}
		if landed == nil {
			var err error
			if landed, err = p.repeatCall(ctx, l); err != nil {
				return err
			}
		}
		select {
		case <-landed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// repeatCall has the call of a launch repeated whose answer was lost, once for all of its claims. EC2 knows it by its
// token: it answers as it did the first time, or does now what it did not do then. landed is closed when that is known.
func (p *Launcher) repeatCall(ctx context.Context, l *ownership.Launch) (landed <-chan struct{}, failure error) {
	landed, mine, failure := p.o.Register.MayAskAgain(l, p.o.Now())
	if mine {
		// Whoever asks first may give up before the others do.
		go p.repeatGuarded(context.WithoutCancel(ctx), l)
	}
	return landed, failure
}

// repeatGuarded repeats the call; if that panics the answer stays lost, and is asked for again by whoever needs it
// next.
func (p *Launcher) repeatGuarded(ctx context.Context, l *ownership.Launch) {
	lostAt := p.o.Register.LostAt(l)
	if err := p.o.Guard.Run("asking again for a launch whose answer was lost", func() { l.Repeat(ctx) }); err != nil {
		p.o.Register.NoteLost(l, err, lostAt, p.o.Now())
	}
}

func (p *Launcher) repeatNow(ctx context.Context, r *fleetRequest) {
	ctx, cancel := context.WithTimeout(ctx, launchLimit)
	defer cancel()
	const doing = "asking again for a launch whose answer was lost"
	lostAt := p.o.Register.LostAt(r.Launch)
	if err := p.limiter.Pass(ctx, len(r.requests)); err != nil {
		p.o.Register.NoteLost(r.Launch, fault.Explain(doing, err), lostAt, p.o.Now())
		return
	}
	out, lost, err := p.createFleet(ctx, r.input)
	switch {
	case err == nil:
		p.subnets.done(r.spec, nil, 0, p.assignInstances(r, out))
		return
	case lost:
		p.o.Register.NoteLost(r.Launch, fault.Explain(doing, err), p.o.Now(), p.o.Now())
		return
	case fault.DidNothing(err) || p.o.Now().Sub(lostAt) < ownership.SettledAfter:
		// It says nothing about the first time, and what was launched then may not be shown yet.
		p.o.Register.NoteLost(r.Launch, fault.Explain(doing, err), lostAt, p.o.Now())
		return
	}
	// EC2 refuses it now. Should it have launched something then, the tags tell.
	p.o.Register.ReleaseLost(r.Launch)
	if _, err := p.o.Instances.Scan(ctx); err != nil {
		p.o.Register.NoteLost(r.Launch, err, lostAt, p.o.Now())
		return
	}
	p.o.Register.AssignLaunched(r.Launch, nil, nil, p.o.Now())
}
