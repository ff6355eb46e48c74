package launch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
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
func withLostLaunch(api *scripted, ago time.Duration) (p *Launcher, r *fleetRequest) {
	api.began = time.Now()
	now := time.Now()
	where := roomy{now: &now}
	register := ownership.NewRegister()
	p = New(Options{EC2: api, Network: where, ClusterName: "lab", Register: register, Wait: Sleep,
		Now:       time.Now,
		Instances: ownership.NewInstances(register, ownership.Options{EC2: api, ClusterName: "lab", Now: time.Now})})
	q := wisher(claimA, "m5.large")
	q.claim.Name = "mine"
	q.spec.class, q.spec.Tags = &awsv1.EC2NodeClass{}, map[string]string{}
	r = &fleetRequest{spec: q.spec, zones: map[string]string{}, input: &ec2.CreateFleetInput{},
		Launch: p.o.Register.BeginLaunch("lab", []ownership.Claim{q.owner()}), requests: []*Request{q}}
	r.Repeat = func(ctx context.Context) { p.repeatNow(ctx, r) }
	p.o.Register.NoteLost(r.Launch, errors.New("no answer"), now.Add(-ago), now)
	return p, r
}

// idOfInstance is the id of the claim's instance; empty if it has none.
func idOfInstance(p *Launcher, uid types.UID) string {
	if a := p.o.Register.InstanceOf(uid); a != nil {
		return a.ID
	}
	return ""
}

// What became of a launch whose answer was lost is asked of EC2 by the same token. What EC2 refuses now says nothing
// about the first time; only when all that was launched then must be shown, and is not, there was none.
func TestWhatBecameOfALostLaunch(t *testing.T) {
	const refused = "InvalidParameterValue"
	for _, c := range []struct {
		name    string
		answers []string
		ago     time.Duration
		change  func(*scripted, *Launcher, *fleetRequest)
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
			func(api *scripted, _ *Launcher, r *fleetRequest) {
				api.shown = []ec2types.Instance{{InstanceId: new("i-1"),
					State: &ec2types.InstanceState{Name: ec2types.InstanceStateNameRunning},
					Tags: []ec2types.Tag{{Key: new(ownership.LaunchTagKey), Value: &r.Token},
						{Key: new(ownership.ClaimsTagKey),
							Value: new(ownership.ClaimTags(r.Claims)[ownership.ClaimsTagKey])}}}}
			}, true, false, false, ""},
		{"refused, and nobody can look", []string{refused}, 10 * time.Second,
			func(api *scripted, _ *Launcher, _ *fleetRequest) { api.blind = true }, false, true, false,
			"UnauthorizedOperation"},
		{"there is no turn", nil, time.Minute, func(_ *scripted, p *Launcher, _ *fleetRequest) {
			p.limiter = noTurns()
		}, false, true, false, "asking again for a launch whose answer was lost"},
		{"who asks fails", []string{"panic"}, time.Minute, nil, false, true, false, "mistake in Tenon"},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := &scripted{answers: c.answers}
			p, r := withLostLaunch(api, c.ago)
			at := p.o.Register.LostAt(r.Launch)
			if c.change != nil {
				c.change(api, p, r)
			}
			err := p.AwaitLaunch(t.Context(), claimA)
			if (err != nil) != c.lost || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v", c.name, err)
			}
			of, underWay := p.o.Register.LaunchOf(claimA)
			if has, lost := idOfInstance(p, claimA) == "i-1", of == r.Launch; has != c.has || lost != c.lost ||
				underWay != nil {
				t.Errorf("%s: the claim has an instance: %t; it is not known: %t", c.name, has, lost)
			}
			if now := p.o.Register.LostAt(r.Launch); now.After(at) != c.since {
				t.Errorf("%s: lost since %s, before since %s", c.name, now, at)
			}
			if tries := refusedTimes(t, p.o.Register, claimA); (tries == 1) != (!c.has && !c.lost) {
				t.Errorf("%s: %d launches have given the claim nothing", c.name, tries)
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
		go func() { told <- p.AwaitLaunch(first, claimA) }()
		synctest.Wait()
		giveUp()
		if err := <-told; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up is told %v", err)
		}
		if err := p.AwaitLaunch(t.Context(), claimA); err != nil || idOfInstance(p, claimA) != "i-1" ||
			len(api.calls) != 2 {
			t.Errorf("%v after %d calls", err, len(api.calls))
		}
		if err := p.AwaitLaunch(t.Context(), claimB); err != nil {
			t.Errorf("a claim that was never launched for: %v", err)
		}
	})
}
