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
	"github.com/aws/smithy-go"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ratelimit"
)

// lastCall is an EC2 that answers one launch, and after that there are no more turns.
type lastCall struct {
	everyCall
	p      *Launcher
	answer func(*ec2.CreateFleetInput) (*ec2.CreateFleetOutput, error)
	calls  int
}

func (l *lastCall) CreateFleet(_ context.Context, in *ec2.CreateFleetInput,
	_ ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	l.calls++
	l.p.limiter = noTurns()
	return l.answer(in)
}

// noTurns is a limiter that lets nobody through any more.
func noTurns() *ratelimit.Fleet {
	now := time.Now()
	out := ratelimit.NewFleet(func() time.Time { return now }) // a clock that stands earns no turns
	for range ratelimit.FleetBurst {
		_ = out.Pass(context.Background(), 1)
	}
	return out
}

// soldOut refuses all that is asked for.
func soldOut(in *ec2.CreateFleetInput) (*ec2.CreateFleetOutput, error) {
	out := &ec2.CreateFleetOutput{}
	for _, o := range in.LaunchTemplateConfigs[0].Overrides {
		out.Errors = append(out.Errors, ec2types.CreateFleetError{ErrorCode: new("InsufficientInstanceCapacity"),
			ErrorMessage: new("none"),
			LaunchTemplateAndOverrides: &ec2types.LaunchTemplateAndOverridesResponse{
				Overrides: &ec2types.FleetLaunchTemplateOverrides{InstanceType: o.InstanceType, SubnetId: o.SubnetId}}})
	}
	return out, nil
}

// noSubnetThere refuses the whole call for its subnet.
func noSubnetThere(in *ec2.CreateFleetInput) (*ec2.CreateFleetOutput, error) {
	return nil, &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateFleet", Err: &smithy.GenericAPIError{
		Code: "InvalidSubnetID.NotFound", Message: "The subnet ID '" +
			*in.LaunchTemplateConfigs[0].Overrides[0].SubnetId + "' does not exist"}}
}

// silent launches nothing and does not say why.
func silent(*ec2.CreateFleetInput) (*ec2.CreateFleetOutput, error) {
	return &ec2.CreateFleetOutput{}, nil
}

// TestNoSecondTurn has EC2 refuse something, and the second turn does not come in time: claims are told what was
// refused. That they have only not had their turn is told to those who were not asked for at all.
func TestNoSecondTurn(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer func(*ec2.CreateFleetInput) (*ec2.CreateFleetOutput, error)
		wishes [][]string
		queued []bool
		text   string
		kinds  string // what is called sold out
	}{
		{"sold out", soldOut, [][]string{{"a", "b"}, {"a", "b", "c"}}, []bool{false, false},
			"InsufficientInstanceCapacity", "a b"},
		{"a subnet that is gone", noSubnetThere, [][]string{{"a"}}, []bool{false}, "InvalidSubnetID.NotFound", ""},
		{"without a reason", silent, [][]string{{"a", "b"}, {"a", "b", "c"}}, []bool{false, false},
			"does not say why", ""},
		{"two launches, of which one is refused", soldOut, [][]string{{"a", "b", "c"}, {"b"}}, []bool{false, false},
			"InsufficientInstanceCapacity", "a b c"},
		{"nobody was asked for", nil, [][]string{{"a"}}, []bool{true}, "waiting for a turn", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := time.Now()
				where := roomy{now: &now}
				p := New(Options{Network: where, Register: ownership.NewRegister(), ClusterName: "lab",
					Wait: Sleep, Now: time.Now})
				api := &lastCall{p: p, answer: tc.answer}
				p.o.EC2 = api
				l := &fleetLaunch{launcher: p, answers: map[*Request]launchAnswer{},
					triedOptions: map[optionKey]bool{}}
				if tc.answer == nil {
					l.calls, p.limiter = 1, noTurns()
				}
				var list []*Request
				for i, kinds := range tc.wishes {
					q := wisher(string(rune('a'+i)), kinds...)
					q.spec.class, q.spec.Tags = &awsv1.EC2NodeClass{}, map[string]string{}
					list = append(list, q)
				}
				ctx, cancel := context.WithTimeout(t.Context(), launchLimit)
				defer cancel()
				l.launchAll(ctx, list)
				for i, q := range list {
					err := l.answers[q].Err
					if err == nil || cloudprovider.IsQueued(err) != tc.queued[i] ||
						!strings.Contains(err.Error(), tc.text) {
						t.Errorf("claim %d is told %v", i, err)
					}
					var kinds []string
					if none, ok := errors.AsType[*cloudprovider.NoCapacityError](err); ok {
						for _, ref := range none.Exhausted {
							kinds = append(kinds, ref.Type)
						}
					}
					if got := strings.Join(kinds, " "); got != tc.kinds {
						t.Errorf("claim %d is told that %q are sold out, want %q", i, got, tc.kinds)
					}
				}
				if tc.answer != nil && api.calls != 1 {
					t.Errorf("EC2 was called %d times", api.calls)
				}
			})
		})
	}
}
