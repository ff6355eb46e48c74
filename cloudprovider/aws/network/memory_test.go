package network_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
)

func TestAnswersAreRememberedForAMinute(t *testing.T) {
	w := newWorld(t)
	w.subnet("us-west-2a", "10.0.1.0/24", "team", "blue")
	class := withSubnets(awsv1.SubnetSelectorTerm{Tags: map[string]string{"team": "blue"}})
	for _, step := range []struct {
		after time.Duration
		calls int
	}{{0, 1}, {59 * time.Second, 1}, {time.Second, 2}, {time.Second, 2}} {
		w.clock.pass(step.after)
		subnetIDs(t, w, class)
		if got := w.calls("DescribeSubnets"); got != step.calls {
			t.Errorf("%d calls after %s more, want %d", got, step.after, step.calls)
		}
	}
}

// A user who has just tagged the subnets should not wait for a minute.
func TestNothingFoundIsAskedAgainSoon(t *testing.T) {
	w := newWorld(t)
	id := w.subnet("us-west-2a", "10.0.1.0/24")
	class := withSubnets(awsv1.SubnetSelectorTerm{Tags: map[string]string{"team": "blue"}})
	if got := subnetIDs(t, w, class); len(got) != 0 {
		t.Fatalf("found %v", got)
	}
	if err := w.SetTags([]string{id}, map[string]string{"team": "blue"}); err != nil {
		t.Fatal(err)
	}
	w.clock.pass(10 * time.Second)
	if got := subnetIDs(t, w, class); !slices.Equal(got, []string{id}) {
		t.Errorf("found %v after ten seconds, want %s", got, id)
	}
}

func TestBusyEC2IsNoNews(t *testing.T) {
	w := newWorld(t)
	id := w.subnet("us-west-2a", "10.0.1.0/24", "team", "blue")
	class := withSubnets(awsv1.SubnetSelectorTerm{Tags: map[string]string{"team": "blue"}})
	subnetIDs(t, w, class)
	w.faults.Add(faults.Fault{Service: "ec2", Action: "DescribeSubnets", Code: "RequestLimitExceeded", Status: 503})
	w.clock.pass(2 * time.Minute)
	for range 3 {
		if got := subnetIDs(t, w, class); !slices.Equal(got, []string{id}) {
			t.Fatalf("found %v while EC2 was busy, want what was known", got)
		}
	}
	if got := w.calls("DescribeSubnets"); got != 2 {
		t.Errorf("%d calls, want the one that failed and no more for a while", got)
	}
	w.clock.pass(time.Hour)
	if _, err := w.finder.Subnets(t.Context(), class); !cloudprovider.IsThrottled(err) {
		t.Errorf("an hour later the error is %v, want that it is throttled", err)
	}
	w.faults.Clear()
	w.clock.pass(5 * time.Second)
	if got := subnetIDs(t, w, class); !slices.Equal(got, []string{id}) {
		t.Errorf("found %v once EC2 answers again", got)
	}
}

// A subnet that was full makes EC2 be asked again, and while EC2 does not answer the list from before serves.
func TestForgottenWhileEC2IsBusy(t *testing.T) {
	w := newWorld(t)
	id := w.subnet("us-west-2a", "10.0.1.0/24", "team", "blue")
	class := withSubnets(awsv1.SubnetSelectorTerm{Tags: map[string]string{"team": "blue"}})
	subnetIDs(t, w, class)
	w.finder.ForgetSubnet(id)
	w.faults.Add(faults.Fault{Service: "ec2", Action: "DescribeSubnets", Code: "RequestLimitExceeded", Status: 503})
	for range 3 {
		if got := subnetIDs(t, w, class); !slices.Equal(got, []string{id}) {
			t.Fatalf("found %v, want what was known", got)
		}
	}
	if got := w.calls("DescribeSubnets"); got != 2 {
		t.Errorf("%d calls, want one more for all", got)
	}
	w.faults.Clear()
	w.clock.pass(5 * time.Second)
	if subnetIDs(t, w, class); w.calls("DescribeSubnets") != 3 {
		t.Errorf("%d calls, want another once EC2 answers", w.calls("DescribeSubnets"))
	}
}

// Many who want to know the same wait for one question, and nobody longer than it likes.
func TestOneQuestionForAll(t *testing.T) {
	api := &slow{asked: make(chan struct{}, 100), answer: make(chan error)}
	finder := network.New(network.Options{API: api, Now: time.Now})
	class := withSubnets(awsv1.SubnetSelectorTerm{ID: "subnet-1"})
	results := make(chan error, 20)
	for range 20 {
		go func() {
			_, err := finder.Subnets(t.Context(), class)
			results <- err
		}()
	}
	<-api.asked
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := finder.Subnets(impatient, class); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait gets %v", err)
	}
	finder.ForgetSubnet("subnet-1") // does not wait either
	api.answer <- &smithy.GenericAPIError{Code: "RequestLimitExceeded"}
	for range 20 {
		if err := <-results; !cloudprovider.IsThrottled(err) {
			t.Errorf("error is %v", err)
		}
	}
	if n := len(api.asked); n != 0 {
		t.Errorf("%d more questions, want none for a while", n)
	}
}

// That an attempt took too long is EC2's trouble and told to all; that the caller who asked had no time left is not.
func TestWhoseTimeIsUp(t *testing.T) {
	api := &slow{asked: make(chan struct{}, 100), answer: make(chan error)}
	finder := network.New(network.Options{API: api, Now: (&clock{now: time.Unix(0, 0)}).Now})
	class := withSubnets(awsv1.SubnetSelectorTerm{ID: "subnet-1"})
	impatient, cancel := context.WithCancel(t.Context())
	results := make(chan error, 2)
	ask := func(ctx context.Context) {
		_, err := finder.Subnets(ctx, class)
		results <- err
	}
	go ask(impatient)
	<-api.asked
	go ask(t.Context())
	cancel()
	api.answer <- context.Canceled
	if err := <-results; !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up gets %v", err)
	}
	<-api.asked // the other asks for itself
	api.answer <- context.DeadlineExceeded
	if err := <-results; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the other gets %v", err)
	}
	if _, err := finder.Subnets(t.Context(), class); !errors.Is(err, context.DeadlineExceeded) || len(api.asked) != 0 {
		t.Errorf("right after EC2 did not answer in time the error is %v, %d questions", err, len(api.asked))
	}
}

// slow is an EC2 that answers when the test says so.
type slow struct {
	network.API
	asked  chan struct{}
	answer chan error
}

func (s *slow) DescribeSubnets(context.Context, *ec2.DescribeSubnetsInput,
	...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error) {
	s.asked <- struct{}{}
	return nil, <-s.answer
}

// Answers that nobody wants any more make room for others; the others stay.
func TestOldAnswersMakeRoom(t *testing.T) {
	w := newWorld(t)
	class := func(n int) *awsv1.EC2NodeClass {
		return withSubnets(awsv1.SubnetSelectorTerm{ID: fmt.Sprintf("subnet-%d", n)})
	}
	api := &counting{}
	finder := network.New(network.Options{API: api, Now: w.clock.Now})
	for n := range 1001 {
		if _, err := finder.Subnets(t.Context(), class(n)); err != nil {
			t.Fatal(err)
		}
		w.clock.pass(time.Millisecond)
	}
	for _, n := range []int{1000, 500, 1} {
		if _, _ = finder.Subnets(t.Context(), class(n)); api.calls != 1001 {
			t.Errorf("%d calls after asking for %d again, want none more", api.calls, n)
		}
	}
	if _, _ = finder.Subnets(t.Context(), class(0)); api.calls != 1002 {
		t.Errorf("%d calls, want one more for the oldest", api.calls)
	}
}

// counting is an EC2 without subnets.
type counting struct {
	network.API
	calls int
}

func (c *counting) DescribeSubnets(context.Context, *ec2.DescribeSubnetsInput,
	...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error) {
	c.calls++
	return &ec2.DescribeSubnetsOutput{}, nil
}
