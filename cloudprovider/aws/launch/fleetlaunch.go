package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"
)

const (
	// launchLimit bounds one launch, with all its tries. The core gives a claim a minute: what it gathers for and what
	// it waits for must fit in, so that most callers are still there when the answer comes.
	launchLimit = 35 * time.Second
	// maxCalls bounds how often a claim is asked for again with other types, other subnets or new launch templates.
	maxCalls = 5
	// EC2 may take a moment to show a launch template that is new: so long is waited before the second turn, twice as
	// long before the third, and so on.
	templateWait = 200 * time.Millisecond
)

type launchAnswer = batch.Answer[*cloudprovider.Instance]

// ErrLaunchedElsewhere says that a claim has got an instance by other means while it waited, or is about to.
var ErrLaunchedElsewhere = errors.New("the claim is part of another launch")

// fleetLaunch is the way of some claims through EC2.
type fleetLaunch struct {
	launcher *Launcher
	answers  map[*Request]launchAnswer
	refusals refusals
	// triedOptions are the options that were asked for and not sold.
	triedOptions map[optionKey]bool
	// calls counts those made so far. The first has been let through the limiter already.
	calls int
	// pauseNext is to be made before the next turn.
	pauseNext time.Duration
}

// launchTogether launches instances for claims with the same launch spec, in one call if all goes well. Whoever gets
// none learns at once which offerings were refused.
func (p *Launcher) launchTogether(ctx context.Context, key string, requests []*Request) []launchAnswer {
	began := time.Now()
	p.pace.began(key, len(requests))
	defer func() {
		p.pace.ended(len(requests))
		p.o.Metrics.Gathered("create_fleet", len(requests), time.Since(began))
	}()
	l := &fleetLaunch{launcher: p, answers: make(map[*Request]launchAnswer, len(requests)),
		triedOptions: map[optionKey]bool{}}
	l.launchAll(ctx, slices.SortedFunc(slices.Values(requests), byShortUID))
	out := make([]launchAnswer, 0, len(requests))
	for _, q := range requests {
		out = append(out, l.answers[q])
	}
	return out
}

// launchAll goes to EC2 until everybody has an answer.
func (l *fleetLaunch) launchAll(ctx context.Context, left []*Request) {
	for turn := 1; len(left) > 0; turn++ {
		all, done := groupLaunches(left, l.triedOptions)
		l.refuse(done, nil)
		left = nil
		for _, g := range all {
			left = append(left, l.callFor(ctx, g, turn)...)
		}
		if len(left) > 0 && l.pauseNext > 0 {
			l.launcher.o.Wait(ctx, l.pauseNext<<(turn-1))
			l.pauseNext = 0
		}
	}
}

// refuse answers claims that get nothing.
func (l *fleetLaunch) refuse(left []*Request, err error) {
	for _, q := range left {
		if err == nil {
			err = l.refusals.err()
		}
		l.answers[q] = launchAnswer{Err: err}
	}
}

// callFor makes the calls for a group and returns who has to be asked for again.
func (l *fleetLaunch) callFor(ctx context.Context, g *launchGroup, turn int) (left []*Request) {
	// A user with very many tags leaves little room for ours.
	for some := range slices.Chunk(g.requests, max(1, g.spec.claimRoom())) {
		rest, again, err := l.call(ctx, &launchGroup{spec: g.spec, requests: some}, turn)
		switch {
		case turn == maxCalls || err != nil && !again:
			l.refuse(rest, err)
		case again:
			if err != nil {
				l.refusals.other = err // should there be no time to ask again
			}
			left = append(left, rest...)
		case len(rest) > 0:
			// What all had in common is sold out; who could have more is asked for with that.
			for i := range g.spec.Lines {
				l.triedOptions[g.spec.Lines[i].key()] = true
			}
			left = append(left, rest...)
		}
	}
	return left
}

// call makes one call. It returns who has got nothing. again says that they may get something if they are asked for
// once more, because what stood in the way has been seen to.
func (l *fleetLaunch) call(ctx context.Context, g *launchGroup, turn int) (rest []*Request, again bool,
	err error) {
	p := l.launcher
	if l.calls++; l.calls > 1 {
		if err := p.limiter.Pass(ctx, len(g.requests)); err != nil {
			return g.requests, false, l.timeoutError(turn, err)
		}
	}
	r, elsewhere, err := p.newFleetRequest(ctx, g)
	for _, q := range elsewhere {
		l.answers[q] = launchAnswer{Err: ErrLaunchedElsewhere}
	}
	if err != nil || r == nil {
		return slices.DeleteFunc(slices.Clone(g.requests), func(q *Request) bool {
			return l.answers[q].Err != nil
		}), false, err
	}
	out, lost, err := p.createFleet(ctx, r.input)
	if err != nil {
		p.subnets.done(r.spec, r.subnets, int64(len(g.requests)), nil)
		p.noteRefused(r, nil, err)
		again, err = l.handleError(ctx, r, lost, err)
		return r.requests, again, err
	}
	used := p.assignInstances(r, out)
	p.subnets.done(r.spec, r.subnets, int64(len(g.requests)), used)
	p.noteRefused(r, out.Errors, nil)
	again = l.handleRefusals(ctx, r, out.Errors)
	rest = l.answerServed(r)
	return rest, again, nil
}

// timeoutError is what claims are told for which there was no time to ask EC2, or to ask it again. If it has refused
// something already, that is what they have to know, so that others are tried: it is not their turn that was missing.
func (l *fleetLaunch) timeoutError(turn int, err error) error {
	if turn > 1 || l.refusals.any() {
		return l.refusals.err()
	}
	return &cloudprovider.ThrottledError{Queued: true, Cause: fmt.Errorf("launching instances: %w", err)}
}

// answerServed answers those who have got something and returns the others.
func (l *fleetLaunch) answerServed(r *fleetRequest) (rest []*Request) {
	passed := l.refusals.refs()
	for _, q := range r.requests {
		a := l.launcher.o.Register.InstanceOf(q.claim.UID)
		switch {
		case a == nil:
			rest = append(rest, q)
		case a.CreateAnswer == nil:
			l.answers[q] = launchAnswer{Err: ErrLaunchedElsewhere}
		default:
			got := a.CreateAnswer.DeepCopy()
			got.Refused = passed
			l.answers[q] = launchAnswer{Value: got}
		}
	}
	return rest
}

// handleError settles what the error of a whole call means for the claims and puts it into words. It reports whether to
// try again, because what stood in the way has been seen to.
func (l *fleetLaunch) handleError(ctx context.Context, r *fleetRequest, lost bool, err error) (again bool, told error) {
	p := l.launcher
	told = fault.Explain(fmt.Sprintf("launching instances for NodePool %s (%d at once)", r.spec.Pool, len(r.requests)),
		err)
	code, none := fault.Code(err), noCapacity(r, err)
	switch {
	case lost:
		p.o.Register.NoteLost(r.Launch, told, p.o.Now(), p.o.Now())
		return false, told
	case none == nil && fault.DidNothing(err):
		p.o.Register.UndoLaunch(r.Launch)
		return false, told
	case code == "IdempotentParameterMismatch" && !p.o.Instances.IsComplete():
		// A process before this one has asked for the same claims with other words. Its instances come to be seen in a
		// moment.
		p.o.Register.UndoLaunch(r.Launch)
		return false, told
	}
	p.o.Register.AssignLaunched(r.Launch, nil, nil, p.o.Now())
	switch {
	case isTemplateGone(code):
		again = p.renewTemplates(ctx, r) == nil
		l.pauseNext = templateWait
	case isSubnetGone(code):
		again = p.avoidNamed(r, err)
	case code == "IdempotentParameterMismatch":
		again = p.o.Instances.ScanBeforeLaunch(ctx)
	}
	if none != nil {
		return again, none
	}
	return again, p.classFault(ctx, r.spec.class, told)
}

// avoidNamed leaves out the subnet that the error names, and reports whether it names one.
func (p *Launcher) avoidNamed(r *fleetRequest, err error) bool {
	for subnet := range r.zones {
		if strings.Contains(err.Error(), subnet) {
			p.subnets.avoid(subnet)
			return true
		}
	}
	return false
}

// assignInstances gives the instances of the answer to the claims, before anybody else can see the instances. went
// counts them by subnet.
func (p *Launcher) assignInstances(r *fleetRequest, out *ec2.CreateFleetOutput) (used map[string]int64) {
	now, list := p.o.Now(), r.fleetInstances(out)
	used = map[string]int64{}
	byID, ids := map[string]fleetInstance{}, []string{}
	for _, l := range list {
		used[l.subnet]++
		byID[l.id], ids = l, append(ids, l.id)
	}
	given := p.o.Register.AssignLaunched(r.Launch, ids, func(id string, to ownership.Claim) *cloudprovider.Instance {
		at := slices.IndexFunc(r.requests, func(q *Request) bool { return q.claim.UID == to.UID })
		return p.instanceFor(r.requests[at], byID[id], now)
	}, now)
	for _, a := range given {
		if !a.Named {
			p.o.Instances.Name(a)
		}
	}
	return used
}

// Sleep lets time pass unless the context ends first.
func Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
