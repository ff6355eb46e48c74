package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ratelimit"
	"github.com/tenon-sh/tenon/cloudprovider/aws/template"
)

// everyCall are the calls of EC2 that a launcher and those it works with make.
type everyCall interface {
	API
	template.API
	ownership.API
}

// scripted is an EC2 that answers launches as is written: "ok" (nothing), "launched" (i-1), "lost" (no answer), "panic"
// or an error's code. It notes when it was called.
type scripted struct {
	everyCall
	answers []string
	began   time.Time
	calls   []time.Duration
	options []func(*ec2.Options)
	// shown are the instances that EC2 shows; blind says that it may not be asked for them.
	shown []ec2types.Instance
	blind bool
}

func (s *scripted) CreateFleet(_ context.Context, _ *ec2.CreateFleetInput,
	o ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	answer := s.answers[len(s.calls)]
	s.calls, s.options = append(s.calls, time.Since(s.began)), o
	switch answer {
	case "ok":
		return &ec2.CreateFleetOutput{FleetId: new("fleet")}, nil
	case "launched":
		return &ec2.CreateFleetOutput{Instances: []ec2types.CreateFleetInstance{{InstanceIds: []string{"i-1"},
			InstanceType: "m5.large"}}}, nil
	case "panic":
		panic("boom")
	case "lost":
		return nil, errors.New("connection reset by peer")
	}
	return nil, refusalOf(answer)
}

func refusalOf(code string) error {
	return &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateFleet",
		Err: &smithy.GenericAPIError{Code: code, Message: "no"}}
}

// A launch is asked for three times at the most: a little later if its answer was lost, and at the next turn if EC2 is
// busy. Whatever comes after a lost answer says nothing about the first time.
func TestHowOftenALaunchIsAskedFor(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		answers []string
		calls   []time.Duration // when
		lost    bool
		code    string // of the error; empty if there is none
	}{
		{[]string{"ok"}, []time.Duration{0}, false, ""},
		{[]string{"InvalidParameterValue"}, []time.Duration{0}, false, "InvalidParameterValue"},
		{[]string{"lost", "ok"}, []time.Duration{0, 200 * ms}, false, ""},
		{[]string{"lost", "lost", "ok"}, []time.Duration{0, 200 * ms, 600 * ms}, false, ""},
		{[]string{"lost", "lost", "lost"}, []time.Duration{0, 200 * ms, 600 * ms}, true, "?"},
		{[]string{"lost", "InvalidParameterValue"}, []time.Duration{0, 200 * ms}, true, "InvalidParameterValue"},
		{[]string{"RequestLimitExceeded", "ok"}, []time.Duration{0, time.Second}, false, ""},
		{[]string{"RequestLimitExceeded", "RequestLimitExceeded", "ok"},
			[]time.Duration{0, time.Second, 3 * time.Second}, false, ""},
		{[]string{"RequestLimitExceeded", "RequestLimitExceeded", "RequestLimitExceeded"},
			[]time.Duration{0, time.Second, 3 * time.Second}, false,
			"RequestLimitExceeded"},
		{[]string{"lost", "RequestLimitExceeded", "RequestLimitExceeded"}, []time.Duration{0, 200 * ms, 1200 * ms},
			true, "RequestLimitExceeded"},
		{[]string{"RequestLimitExceeded", "InvalidParameterValue"}, []time.Duration{0, time.Second}, false,
			"InvalidParameterValue"},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := &scripted{answers: c.answers, began: time.Now()}
			p := &Launcher{o: Options{EC2: api, Wait: Sleep, Now: time.Now}, limiter: ratelimit.NewFleet(time.Now)}
			out, lost, err := p.createFleet(t.Context(), &ec2.CreateFleetInput{})
			if lost != c.lost || (err != nil) != (c.code != "") || (out != nil) != (c.code == "") ||
				c.code != "?" && fault.Code(err) != c.code {
				t.Errorf("%v: lost %t, %v", c.answers, lost, err)
			}
			if !slices.Equal(api.calls, c.calls) {
				t.Errorf("%v: called after %v, want %v", c.answers, api.calls, c.calls)
			}
			if o := (ec2.Options{}); len(api.options) == 1 {
				if api.options[0](&o); o.Retryer == nil || o.Retryer.MaxAttempts() != 1 {
					t.Errorf("%v: the SDK tries again by itself", c.answers)
				}
			}
			p.limiter.Slower()
			answered := time.Now()
			if err := p.limiter.Pass(t.Context(), 1); err != nil || c.code == "" &&
				time.Since(answered) != time.Second {
				t.Errorf("%v: EC2 has answered, and the next are slowed down by %s (%v)", c.answers,
					time.Since(answered), err)
			}
		})
	}
}

// Who has no time for another try knows what the last one said.
func TestLaunchThatCannotBeAskedForAgain(t *testing.T) {
	for answer, wasLost := range map[string]bool{"lost": true, "RequestLimitExceeded": false} {
		synctest.Test(t, func(t *testing.T) {
			api := &scripted{answers: []string{answer, "ok"}, began: time.Now()}
			p := &Launcher{o: Options{EC2: api, Wait: Sleep, Now: time.Now}, limiter: noTurns()}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, lost, err := p.createFleet(ctx,
				&ec2.CreateFleetInput{}); lost != wasLost || err == nil || errors.Is(err,
				context.DeadlineExceeded) || len(api.calls) != 1 {
				t.Errorf("%s: lost %t, %v after %d calls", answer, lost, err, len(api.calls))
			}
		})
	}
}

// EC2 has done nothing about what was never sent, what came too often and what it does not let us do.
func TestWhatLeavesEC2Untouched(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("calling: %w", fault.ErrFenced), true}, {refusalOf("RequestLimitExceeded"),
			true}, {refusalOf("UnauthorizedOperation"), true},
		{refusalOf("AuthFailure"), true}, {&v4.SigningError{Err: errors.New("no identity")},
			true}, {refusalOf("InvalidParameterValue"), false}, {refusalOf("InsufficientInstanceCapacity"), false},
		{errors.New("connection reset by peer"), false},
	} {
		if got := fault.DidNothing(c.err); got != c.want {
			t.Errorf("%v: untouched %t, want %t", c.err, got, c.want)
		}
	}
}
