package control_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/control"
	sim "github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
)

// stage is an account with a panel that is used over HTTP.
type stage struct {
	*account.Account
	t      *testing.T
	clock  *simtest.Clock
	config aws.Config
	panel  control.Client
}

func start(t *testing.T) stage {
	t.Helper()
	clock, limits := simtest.NewClock(), sim.NoLimits()
	a, config := simtest.Start(t, account.Options{Clock: clock, After: clock.After, Limits: &limits})
	return stage{a, t, clock, config, control.Client{URL: *config.BaseEndpoint}}
}

// launch starts a machine over the wire.
func (s stage) launch(spot bool) (string, error) {
	s.t.Helper()
	in := &ec2.RunInstancesInput{
		ImageId: s.World.Images()[0].ImageId, InstanceType: "m5.large", MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		SubnetId: aws.String(s.Network.Private[0]),
		UserData: aws.String(base64.StdEncoding.EncodeToString([]byte("x"))),
	}
	for _, m := range s.World.Images() {
		if strings.HasPrefix(aws.ToString(m.Name), "amazon-eks-node-al2023-x86_64-standard") {
			in.ImageId = m.ImageId
		}
	}
	if spot {
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot}
	}
	out, err := ec2.NewFromConfig(s.config).RunInstances(context.Background(), in)
	if err != nil {
		return "", err
	}
	return aws.ToString(out.Instances[0].InstanceId), nil
}

func (s stage) mustLaunch(spot bool) string {
	s.t.Helper()
	id, err := s.launch(spot)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// messages takes everything from the account's queue and returns the types.
func (s stage) messages() []string {
	s.t.Helper()
	client := sqs.NewFromConfig(s.config)
	url, err := client.GetQueueUrl(context.Background(), &sqs.GetQueueUrlInput{QueueName: aws.String(s.Cluster)})
	if err != nil {
		s.t.Fatal(err)
	}
	var kinds []string
	for {
		out, err := client.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: url.QueueUrl,
			MaxNumberOfMessages: 10})
		if err != nil {
			s.t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return kinds
		}
		for _, m := range out.Messages {
			var event struct {
				Kind   string `json:"detail-type"`
				Detail struct {
					State string `json:"state"`
				} `json:"detail"`
			}
			if err := json.Unmarshal([]byte(aws.ToString(m.Body)), &event); err != nil {
				s.t.Fatal(err)
			}
			kinds = append(kinds, strings.TrimSpace(event.Kind+" "+event.Detail.State))
		}
	}
}

func (s stage) state(id string) string {
	s.t.Helper()
	all, err := s.panel.Machines(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range all {
		if m.ID == id {
			return m.State
		}
	}
	return "unknown"
}

func TestASpotInterruption(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	onDemand, spot := s.mustLaunch(false), s.mustLaunch(true)
	s.messages()
	if _, err := s.panel.Happen(ctx, "interrupt", control.Pick{Machines: []string{onDemand}}); err == nil {
		t.Error("an on-demand machine can be interrupted")
	}
	if _, err := s.panel.Happen(ctx, "rebalance", control.Pick{Machines: []string{onDemand}}); err == nil ||
		!strings.Contains(err.Error(), "no spot instance") {
		t.Errorf("advising to rebalance an on-demand machine: %v", err)
	}
	hit, err := s.panel.Happen(ctx, "interrupt", control.Pick{Any: 1})
	if err != nil || len(hit) != 1 || hit[0] != spot {
		t.Fatalf("%v was interrupted, want %s (%v)", hit, spot, err)
	}
	if got := s.messages(); len(got) != 1 || got[0] != "EC2 Spot Instance Interruption Warning" {
		t.Errorf("the queue has %v", got)
	}
	if got := s.state(spot); got != "running" && got != "pending" {
		t.Errorf("right after the warning the machine is %s", got)
	}
	s.clock.Advance(2 * time.Minute)
	s.World.Tick()
	if got := s.state(spot); got == "running" || got == "pending" {
		t.Errorf("two minutes after the warning the machine is %s", got)
	}
	if got := strings.Join(s.messages(), ","); !strings.Contains(got, "State-change Notification shutting-down") {
		t.Errorf("at the end the queue has %s", got)
	}
}

func TestMachinesDie(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	id := s.mustLaunch(false)
	node := ""
	if all, err := s.panel.Machines(ctx); err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	} else {
		node = all[0].Node
	}
	if _, err := s.panel.Happen(ctx, "kill", control.Pick{Machines: []string{node}}); err != nil {
		t.Fatal(err)
	}
	status, err := ec2.NewFromConfig(s.config).DescribeInstanceStatus(ctx,
		&ec2.DescribeInstanceStatusInput{InstanceIds: []string{id}})
	if err != nil || len(status.InstanceStatuses) != 1 ||
		status.InstanceStatuses[0].SystemStatus.Status != types.SummaryStatusImpaired {
		t.Errorf("a dead machine's status is %+v, %v", status, err)
	}
	if _, err := s.panel.Happen(ctx, "schedule", control.Pick{Machines: []string{id},
		Event: "instance-retirement"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.messages(), ","); !strings.Contains(got, "AWS Health Event") {
		t.Errorf("the queue has %s", got)
	}
	if _, err := s.panel.Happen(ctx, "withdraw", control.Pick{Machines: []string{id}}); err != nil {
		t.Fatal(err)
	}
	if got := s.state(id); got != "shutting-down" && got != "terminated" {
		t.Errorf("a machine that AWS took back is %s", got)
	}
	for verb, in := range map[string]control.Pick{"kill": {Machines: []string{"i-none"}}, "tickle": {Any: 1},
		"rebalance": {Any: 7}} {
		if _, err := s.panel.Happen(ctx, verb, in); err == nil {
			t.Errorf("%s %+v is not refused", verb, in)
		}
	}
}

func TestTheMarket(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	if err := s.panel.SetCapacity(ctx, control.Capacity{Type: "m5.*", Zone: "us-west-2a",
		CapacityType: "spot"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.launch(true); err == nil || !strings.Contains(err.Error(), "InsufficientInstanceCapacity") {
		t.Errorf("without capacity a launch gives %v", err)
	}
	s.mustLaunch(false)
	if err := s.panel.Do(ctx, http.MethodDelete, "capacity", nil, nil); err != nil {
		t.Fatal(err)
	}
	s.mustLaunch(true)

	for _, p := range []control.Price{{Type: "m5.large", Dollars: 1}, {Type: "m5.large", Zone: "us-west-2a",
		Dollars: 0.5}} {
		if err := s.panel.SetPrice(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	onDemand, _ := s.World.OnDemandPrice("m5.large")
	spot, _ := s.World.SpotPriceNow("m5.large", "us-west-2a")
	if onDemand != 1 || spot != 0.5 {
		t.Errorf("the prices are %v and %v, want 1 and 0.5", onDemand, spot)
	}
	for _, p := range []control.Price{{Type: "m5.tiny", Dollars: 1}, {Type: "m5.large"},
		{Type: "m5.large", Zone: "mars", Dollars: 1}} {
		if err := s.panel.SetPrice(ctx, p); err == nil {
			t.Errorf("the price %+v is not refused", p)
		}
	}
	before := len(s.World.Images())
	release, err := s.panel.Publish(ctx, "al2023")
	if err != nil || len(s.World.Images()) != before+len(release.Images) || len(release.Images) == 0 {
		t.Errorf("published %+v, %v", release, err)
	}
	if _, err := s.panel.Publish(ctx, "beos"); err == nil {
		t.Error("a family that is none can be published")
	}
}

func TestTrouble(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	subnet := s.Network.Private[0]
	for _, step := range []struct {
		method, path string
		in           any
		want         string // in the error of the next launch
	}{
		{"POST", "faults", control.Fault{Fault: faults.Fault{Action: "RunInstances", Code: "Unavailable", Status: 503,
			Times: 1}}, "Unavailable"},
		{"POST", "permissions/deny", map[string]string{"action": "ec2:RunInstances"}, "UnauthorizedOperation"},
		{"POST", "permissions/allow", map[string]string{"action": "ec2:RunInstances"}, ""},
		{"POST", "throttle", faults.Limit{Action: "RunInstances"}, "RequestLimitExceeded"},
		{"DELETE", "trouble", nil, ""},
		{"POST", "subnets/" + subnet, map[string]int{"free": 0}, "InsufficientFreeAddressesInSubnet"},
		{"DELETE", "subnets/" + subnet, nil, "InvalidSubnetID.NotFound"},
		{"DELETE", "credentials/" + s.Key.ID, nil, "AuthFailure"},
		{"POST", "credentials", map[string]string{"id": s.Key.ID, "secret": s.Key.Secret}, "InvalidSubnetID.NotFound"},
	} {
		if err := s.panel.Do(ctx, step.method, step.path, step.in, nil); err != nil {
			t.Fatal(err)
		}
		_, err := s.launch(false)
		if step.want == "" && err != nil || step.want != "" && (err == nil || !strings.Contains(err.Error(),
			step.want)) {
			t.Errorf("after %s %s %v a launch gives %v, want %q", step.method, step.path, step.in, err, step.want)
		}
	}
	calls, err := s.panel.Calls(ctx)
	if err != nil || calls["ec2:RunInstances"] != 9 {
		t.Errorf("counted %v, %v", calls, err)
	}
	if err := s.panel.Do(ctx, "POST", "faults", map[string]string{"cod": "X"}, nil); err == nil ||
		!strings.Contains(err.Error(), "cod") {
		t.Errorf("a misspelt field gives %v", err)
	}
	if err := s.panel.Do(ctx, "POST", "faults", map[string]string{}, nil); err == nil {
		t.Error("a fault that does nothing is not refused")
	}
}

// A group that somebody makes on the panel takes launches, and stays as long as it has machines.
func TestAPlacementGroup(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	id, err := s.panel.MakeGroup(ctx, control.Group{Name: "near", Strategy: "cluster",
		Tags: map[string]string{"team": "blue"}})
	if err != nil {
		t.Fatal(err)
	}
	client := ec2.NewFromConfig(s.config)
	machine := s.mustLaunch(false)
	image := s.World.Instances()[0].Image
	out, err := client.RunInstances(ctx, &ec2.RunInstancesInput{ImageId: &image, InstanceType: "m5.large",
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		SubnetId: aws.String(s.Network.Private[0]), Placement: &types.Placement{GroupName: aws.String("near")}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.panel.PlacementGroups(ctx)
	if err != nil || len(all) != 1 || all[0].ID != id || all[0].Machines != 1 || all[0].Tags["team"] != "blue" {
		t.Errorf("the groups are %+v (%v), one of the machines is %s", all, err, machine)
	}
	if err := s.panel.Do(ctx, http.MethodDelete, "placement-groups/near", nil, nil); err == nil ||
		!strings.Contains(err.Error(), "in use") {
		t.Errorf("removing a group with a machine: %v", err)
	}
	if _, err := client.TerminateInstances(ctx,
		&ec2.TerminateInstancesInput{InstanceIds: []string{aws.ToString(out.Instances[0].InstanceId)}}); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(10 * time.Minute)
	if err := s.panel.Do(ctx, http.MethodDelete, "placement-groups/near", nil, nil); err != nil {
		t.Error(err)
	}
}

// A reservation that somebody makes on the panel takes launches of its platform.
func TestAReservation(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	for _, r := range []control.Reserve{
		{Type: "m5.large", Zone: "us-west-2a", Count: 2, Tags: map[string]string{"team": "blue"}},
		{Type: "m5.large", Zone: "us-west-2a", Count: 2, Platform: "Windows"},
	} {
		if _, err := s.panel.Reserve(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	s.mustLaunch(false)
	all, err := s.panel.Reservations(ctx)
	if err != nil || len(all) != 2 {
		t.Fatalf("the reservations are %+v (%v)", all, err)
	}
	for _, r := range all {
		if want := map[string]int32{"Linux/UNIX": 1, "Windows": 2}[r.Platform]; r.Free != want {
			t.Errorf("%d of the reservation for %s are free, want %d", r.Free, r.Platform, want)
		}
	}
}
