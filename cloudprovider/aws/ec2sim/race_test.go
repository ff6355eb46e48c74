package ec2sim_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
)

// TestManyAtOnce launches, describes and ends from many sides at once. However they meet, no pool holds more than it
// can, no two machines have one address, and a token buys once.
func TestManyAtOnce(t *testing.T) {
	b := newBench(t)
	b.template()
	b.capacity("m5.large", "us-west-2a", 20)
	b.capacity("m5.large", "us-west-2b", 15)
	var wg sync.WaitGroup
	for n := range 12 {
		wg.Go(func() {
			in := b.fleet(onDemand, 10, b.override("m5.large", n%2), b.override("m5.large", 1-n%2),
				b.override("m5.xlarge", 0))
			in.ClientToken = aws.String(fmt.Sprintf("token-%d", n/2))
			in.LaunchTemplateConfigs[0].Overrides = in.LaunchTemplateConfigs[0].Overrides[n%2:]
			_, err := b.client.CreateFleet(b.ctx, in)
			if got := code(err); got != "" && got != "IdempotentParameterMismatch" {
				t.Error(err)
			}
		})
		wg.Go(func() {
			b.clock.step(time.Second)
			out, err := b.client.DescribeInstances(b.ctx, &sdk.DescribeInstancesInput{})
			if err != nil {
				t.Error(err)
				return
			}
			for _, r := range out.Reservations[:min(1, len(out.Reservations))] {
				if _, err := b.client.TerminateInstances(b.ctx,
					&sdk.TerminateInstancesInput{InstanceIds: []string{*r.Instances[0].InstanceId}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	pools, addresses, fleets := map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, i := range b.world.Instances() {
		fleets[i.Fleet] = true
		if i.State == "terminated" {
			continue
		}
		pools[i.Type+"/"+i.Zone]++
		if addresses[i.PrivateIP] {
			t.Errorf("two machines have %s", i.PrivateIP)
		}
		addresses[i.PrivateIP] = true
	}
	if pools["m5.large/us-west-2a"] > 20 || pools["m5.large/us-west-2b"] > 15 {
		t.Errorf("the pools hold %v", pools)
	}
	if len(fleets) != 6 {
		t.Errorf("six tokens bought %d fleets", len(fleets))
	}
}
