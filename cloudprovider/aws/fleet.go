package aws

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
)

const (
	// launchLimit bounds one launch, with all its tries. The core gives a claim a minute: what it gathers for and what it
	// waits for must fit in, so that most callers are still there when the answer comes.
	launchLimit = 35 * time.Second
	// mostTurns bounds how often a claim is asked for again with other types, other subnets or new launch templates.
	mostTurns = 5
	// EC2 may take a moment to show a launch template that is new: so long is waited before the second turn, twice as long
	// before the third, and so on.
	templateWait = 200 * time.Millisecond
)

type answer = batch.Answer[*cloudprovider.Instance]

// errElsewhere says that a claim has got an instance by other means while it waited, or is about to.
var errElsewhere = errors.New("the claim is aboard of another launch")

// errand is the way of some claims through EC2.
type errand struct {
	p       *Provider
	answers map[*buyer]answer
	refused refusals
	// tried are the lines that were asked for and not sold.
	tried map[offered]bool
	// calls counts those made so far. The first has been let through the turnstile already.
	calls int
	// pause is to be made before the next turn.
	pause time.Duration
}

// sellTogether launches instances for claims with the same order key, in one call if all goes well. Whoever gets none
// learns at once which offerings were refused.
func (p *Provider) sellTogether(ctx context.Context, key string, buyers []*buyer) []answer {
	began := time.Now()
	p.pace.began(key, len(buyers))
	defer func() {
		p.pace.ended(len(buyers))
		p.gathered("create_fleet", len(buyers), time.Since(began))
	}()
	e := &errand{p: p, answers: make(map[*buyer]answer, len(buyers)), tried: map[offered]bool{}}
	e.run(ctx, slices.SortedFunc(slices.Values(buyers), byMark))
	out := make([]answer, 0, len(buyers))
	for _, b := range buyers {
		out = append(out, e.answers[b])
	}
	return out
}

// run goes to EC2 until everybody has an answer.
func (e *errand) run(ctx context.Context, left []*buyer) {
	for turn := 1; len(left) > 0; turn++ {
		all, done := parties(left, e.tried)
		e.refuse(done, nil)
		left = nil
		for _, of := range all {
			left = append(left, e.serve(ctx, of, turn)...)
		}
		if len(left) > 0 && e.pause > 0 {
			e.p.pause(ctx, e.pause<<(turn-1))
			e.pause = 0
		}
	}
}

// refuse answers claims that get nothing.
func (e *errand) refuse(left []*buyer, err error) {
	for _, b := range left {
		if err == nil {
			err = e.refused.err()
		}
		e.answers[b] = answer{Err: err}
	}
}

// serve makes the calls for a party and returns who has to be asked for again.
func (e *errand) serve(ctx context.Context, of *party, turn int) (left []*buyer) {
	// A user with very many tags leaves little room for ours.
	for some := range slices.Chunk(of.buyers, max(1, of.order.room())) {
		rest, again, err := e.call(ctx, &party{order: of.order, buyers: some}, turn)
		switch {
		case turn == mostTurns || err != nil && !again:
			e.refuse(rest, err)
		case again:
			if err != nil {
				e.refused.other = err // should there be no time to ask again
			}
			left = append(left, rest...)
		case len(rest) > 0:
			// What all had in common is sold out; who could have more is asked for with that.
			for i := range of.order.Lines {
				e.tried[of.order.Lines[i].offer()] = true
			}
			left = append(left, rest...)
		}
	}
	return left
}

// call makes one call. It returns who has got nothing. again says that they may get something if they are asked for once
// more, because what stood in the way has been seen to.
func (e *errand) call(ctx context.Context, of *party, turn int) (rest []*buyer, again bool, err error) {
	p := e.p
	if e.calls++; e.calls > 1 {
		if err := p.turnstile.pass(ctx, func() int { return len(of.buyers) }); err != nil {
			return of.buyers, false, e.late(turn, err)
		}
	}
	s, elsewhere, err := p.newSale(ctx, of)
	for _, b := range elsewhere {
		e.answers[b] = answer{Err: errElsewhere}
	}
	if err != nil || s == nil {
		return slices.DeleteFunc(slices.Clone(of.buyers), func(b *buyer) bool { return e.answers[b].Err != nil }), false, err
	}
	out, lost, err := p.createFleet(ctx, s.input)
	if err != nil {
		p.subnets.done(s.order, s.picks, int64(len(of.buyers)), nil)
		p.stats.refused(s.order, nil, err)
		again, err = e.failed(ctx, s, lost, err)
		return s.buyers, again, err
	}
	went := p.handOut(s, out)
	p.subnets.done(s.order, s.picks, int64(len(of.buyers)), went)
	p.stats.refused(s.order, out.Errors, nil)
	again = e.learn(ctx, s, out.Errors)
	rest = e.deliver(s)
	return rest, again, nil
}

// late is what claims are told for which there was no time to ask EC2, or to ask it again. If it has refused something already, that is
// what they have to know, so that others are tried: it is not their turn that was missing.
func (e *errand) late(turn int, err error) error {
	if turn > 1 || e.refused.some() {
		return e.refused.err()
	}
	return &cloudprovider.ThrottledError{Queued: true, Cause: fmt.Errorf("launching instances: %w", err)}
}

// deliver answers those who have got something and returns the others.
func (e *errand) deliver(s *sale) (rest []*buyer) {
	passed := e.refused.refs()
	for _, b := range s.buyers {
		h := e.p.register.holder(b.claim.UID)
		switch {
		case h == nil:
			rest = append(rest, b)
		case h.answer == nil:
			e.answers[b] = answer{Err: errElsewhere}
		default:
			got := copyInstance(h.answer)
			got.Refused = passed
			e.answers[b] = answer{Value: got}
		}
	}
	return rest
}

// failed settles what the error of a whole call means for the claims and puts it into words. It reports whether to try
// again, because what stood in the way has been seen to.
func (e *errand) failed(ctx context.Context, s *sale, lost bool, err error) (again bool, told error) {
	p := e.p
	told = fault.Explain(fmt.Sprintf("launching instances for NodePool %s (%d at once)", s.order.Pool, len(s.buyers)), err)
	code, none := fault.Code(err), noCapacity(s, err)
	switch {
	case lost:
		p.register.lose(s, told, p.now(), p.now())
		return false, told
	case none == nil && untouched(err):
		p.register.ground(s)
		return false, told
	case code == "IdempotentParameterMismatch" && !p.looks.isSure():
		// A process before this one has asked for the same claims with other words. Its instances come to be seen in a moment.
		p.register.ground(s)
		return false, told
	}
	p.register.land(s, nil, nil, p.now())
	switch {
	case isTemplateGone(code):
		again = p.renewTemplates(ctx, s) == nil
		e.pause = templateWait
	case isSubnetGone(code):
		again = p.avoidNamed(s, err)
	case code == "IdempotentParameterMismatch":
		again = p.looked(ctx)
	}
	if none != nil {
		return again, none
	}
	return again, p.classFault(ctx, s.order.class, told)
}

// avoidNamed leaves out the subnet that the error names, and reports whether it names one.
func (p *Provider) avoidNamed(s *sale, err error) bool {
	for subnet := range s.zones {
		if strings.Contains(err.Error(), subnet) {
			p.subnets.avoid(subnet)
			return true
		}
	}
	return false
}

// handOut gives the instances of the answer to the claims, before anybody else can see the instances. went counts them by
// subnet.
func (p *Provider) handOut(s *sale, out *ec2.CreateFleetOutput) (went map[string]int64) {
	now, list := p.now(), s.launched(out)
	went = map[string]int64{}
	for _, l := range list {
		went[l.subnet]++
	}
	given := p.register.land(s, list, func(b *buyer, l launched) *holding {
		return &holding{
			owner: owner{claim: b.claim.Name, uid: b.claim.UID}, id: l.id, since: now, named: len(s.buyers) == 1, answer: p.bought(b, l, now),
		}
	}, now)
	for _, h := range given {
		if !h.named {
			p.names.add(h.id, h.claim)
		}
	}
	return went
}

// pause lets time pass unless the context ends first.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
