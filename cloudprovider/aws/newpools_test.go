package aws_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	simec2 "github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// TestManyNewPools launches the first node of many pools at once. Each needs launch templates of its own: EC2 never has
// to slow us down, and the first have their node long before the last.
func TestManyNewPools(t *testing.T) {
	s := setup{limits: simec2.AWSLimits(), gates: []wire.Gate{busyEC2(2)}}
	inBubble(t, s, func(t *testing.T, w *world, p *aws.Provider) {
		list := claims(16, in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand))
		for i, c := range list {
			c.Labels[v1.NodePoolLabelKey] = fmt.Sprintf("pool-%d", i)
		}
		began, early := time.Now(), 0
		ends, errs := make([]time.Duration, len(list)), make([]error, len(list))
		var group sync.WaitGroup
		for i, c := range list {
			group.Go(func() {
				_, errs[i] = p.Create(t.Context(), c)
				ends[i] = time.Since(began)
			})
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		for _, end := range ends {
			if end < took/2 {
				early++
			}
		}
		made, templates := w.sim.Calls()["ec2:CreateLaunchTemplate"], len(w.sim.World.Templates())
		t.Logf("%d launch templates, %d calls, %s, %d of %d before half of it", templates, made,
			took.Round(time.Second), early, len(list))
		if n := w.sim.EC2.Throttled()["CreateLaunchTemplate"]; n > 0 || made != templates || templates < 100 {
			t.Errorf("%d calls for %d launch templates, %d of them throttled", made, templates, n)
		}
		if early < len(list)/4 {
			t.Errorf("only %d of %d had their node in the first half of the time", early, len(list))
		}
	})
}
