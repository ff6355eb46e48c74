package aws

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ratelimit"
)

// DescribeInstances shows what is to be shown.
func (s *scripted) DescribeInstances(context.Context, *ec2.DescribeInstancesInput,
	...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	if s.blind {
		return nil, refusalOf("UnauthorizedOperation")
	}
	return &ec2.DescribeInstancesOutput{Reservations: []ec2types.Reservation{{Instances: s.shown}}}, nil
}

// withLostLaunch is a provider that has lost the answer to a launch for a claim some time ago.
func withLostLaunch(api *scripted, ago time.Duration) (p *Provider, r *fleetRequest) {
	api.began = time.Now()
	now := time.Now()
	where := roomy{now: &now}
	p = &Provider{now: time.Now, clusterName: "lab", ec2: api, ownership: newOwnership(),
		fleetLimiter: ratelimit.NewFleet(time.Now),
		pause:        sleep,
		network:      where, subnets: newSubnetChooser(where, time.Now)}
	p.nameTagger = newNameTagger(api, nil, p.ownership.noteNamed)
	p.scanGatherer = p.newScanGatherer()
	q := wisher(uidA, "m5.large")
	q.claim.Name = "mine"
	q.spec.class, q.spec.Tags = &awsv1.EC2NodeClass{}, map[string]string{}
	r = &fleetRequest{spec: q.spec, zones: map[string]string{}, input: &ec2.CreateFleetInput{}}
	p.ownership.addToLaunch(r, "lab", []*launchRequest{q})
	p.ownership.noteLost(r, errors.New("no answer"), now.Add(-ago), now)
	return p, r
}

// What became of a launch whose answer was lost is asked of EC2 by the same token. What EC2 refuses now says nothing
// about the first time; only when all that was launched then must be shown, and is not, there was none.
func TestWhatBecameOfALostLaunch(t *testing.T) {
	const refused = "InvalidParameterValue"
	for _, c := range []struct {
		name    string
		answers []string
		ago     time.Duration
		change  func(*scripted, *Provider, *fleetRequest)
		has     bool   // the claim has the instance
		lost    bool   // it is still not known
		since   bool   // and EC2 was asked in vain just now
		text    string // of the failure
	}{
		{"it was launched", []string{"launched"}, time.Second, nil, true, false, false, ""},
		{"nothing was sold", []string{"ok"}, time.Second, nil, false, false, false, ""},
		{"no answer again", []string{"lost", "lost", "lost"}, time.Minute, nil, false, true, true, "connection reset"},
		{"EC2 is busy", []string{"RequestLimitExceeded", "RequestLimitExceeded", "RequestLimitExceeded"}, time.Minute,
			nil, false, true, false, "RequestLimitExceeded"},
		{"it may not be asked for any more", []string{"UnauthorizedOperation"}, time.Minute, nil, false, true, false,
			"UnauthorizedOperation"},
		{"refused, and an instance may not be shown yet", []string{refused}, 10*time.Second - 1, nil, false, true,
			false, refused},
		{"refused, and no instance is shown", []string{refused}, 10 * time.Second, nil, false, false, false, ""},
		{"refused, and its instance is shown", []string{refused}, 10 * time.Second,
			func(api *scripted, _ *Provider, r *fleetRequest) {
				api.shown = []ec2types.Instance{tagged("i-1", LaunchTagKey, r.token, ClaimsTagKey, shortUID(uidA))}
			}, true, false, false, ""},
		{"refused, and nobody can look", []string{refused}, 10 * time.Second,
			func(api *scripted, _ *Provider, _ *fleetRequest) { api.blind = true }, false, true, false,
			"UnauthorizedOperation"},
		{"there is no turn", nil, time.Minute, func(_ *scripted, p *Provider, _ *fleetRequest) {
			p.fleetLimiter = noTurns()
		}, false, true, false, "asking again for a launch whose answer was lost"},
		{"who asks fails", []string{"panic"}, time.Minute, nil, false, true, false, "mistake in Tenon"},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := &scripted{answers: c.answers}
			p, r := withLostLaunch(api, c.ago)
			at := r.lostAt
			if c.change != nil {
				c.change(api, p, r)
			}
			err := p.awaitLaunch(t.Context(), uidA)
			if (err != nil) != c.lost || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v", c.name, err)
			}
			if has, lost := p.ownership.of(uidA) == "i-1",
				p.ownership.launching[uidA] == r; has != c.has || lost != c.lost ||
				len(p.ownership.callsUnderWay) != 0 {
				t.Errorf("%s: the claim has an instance: %t; it is not known: %t", c.name, has, lost)
			}
			if tries := p.ownership.tries[uidA].times; (tries == 1) != (!c.has && !c.lost) {
				t.Errorf("%s: %d launches have given the claim nothing", c.name, tries)
			}
			if since := r.lostAt.After(at); since != c.since {
				t.Errorf("%s: lost since %s, before since %s", c.name, r.lostAt, at)
			}
		})
	}
}

// Who asks may stop waiting: what came of the launch is found out all the same, and once.
func TestAskingGoesOnWithoutWhoAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &scripted{answers: []string{"lost", "launched"}}
		p, _ := withLostLaunch(api, time.Second)
		first, giveUp := context.WithCancel(t.Context())
		told := make(chan error, 1)
		go func() { told <- p.awaitLaunch(first, uidA) }()
		synctest.Wait()
		giveUp()
		if err := <-told; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up is told %v", err)
		}
		if err := p.awaitLaunch(t.Context(), uidA); err != nil || p.ownership.of(uidA) != "i-1" || len(api.calls) != 2 {
			t.Errorf("%v after %d calls", err, len(api.calls))
		}
		if err := p.awaitLaunch(t.Context(), uidB); err != nil {
			t.Errorf("a claim that was never launched for: %v", err)
		}
	})
}
