package zonalshift_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
)

func TestShifts(t *testing.T) {
	ctx := context.Background()
	clock := simtest.NewClock()
	a, config := simtest.Start(t, account.Options{Clock: clock, ZonalShift: true})
	client := arczonalshift.NewFromConfig(config)
	get := func() *arczonalshift.GetManagedResourceOutput {
		t.Helper()
		out, err := client.GetManagedResource(ctx,
			&arczonalshift.GetManagedResourceInput{ResourceIdentifier: aws.String(a.EKS.ARN(a.Cluster))})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := get(); len(out.ZonalShifts) != 0 || out.AppliedWeights["usw2-az1"] != 1 {
		t.Errorf("before any shift there is %+v", out)
	}
	if err := a.Shifts.Shift("usw2-az9", time.Hour, false); err == nil {
		t.Error("a zone that is not there can be left")
	}
	if err := a.Shifts.Shift("usw2-az1", time.Hour, false); err != nil {
		t.Fatal(err)
	}
	out := get()
	if len(out.ZonalShifts) != 1 || aws.ToString(out.ZonalShifts[0].AwayFrom) != "usw2-az1" ||
		out.ZonalShifts[0].AppliedStatus != types.AppliedStatusApplied || out.AppliedWeights["usw2-az1"] != 0 {
		t.Errorf("during a shift there is %+v", out)
	}
	if err := a.Shifts.Shift("usw2-az2", time.Hour, true); err != nil {
		t.Fatal(err)
	}
	if out := get(); len(out.Autoshifts) != 1 ||
		out.Autoshifts[0].AppliedStatus != types.AutoshiftAppliedStatusNotApplied {
		t.Errorf("an automatic shift beside one that was asked for is %+v", out.Autoshifts)
	}
	list, err := client.ListManagedResources(ctx, &arczonalshift.ListManagedResourcesInput{})
	if err != nil || len(list.Items) != 1 || len(list.Items[0].AvailabilityZones) != 3 ||
		len(list.Items[0].ZonalShifts) != 1 {
		t.Errorf("the list is %+v, %v", list, err)
	}
	a.Shifts.Cancel("usw2-az1")
	if out := get(); len(out.ZonalShifts) != 0 || out.AppliedWeights["usw2-az1"] != 1 ||
		out.AppliedWeights["usw2-az2"] != 0 {
		t.Errorf("after the shift was cancelled there is %+v", out)
	}
	clock.Advance(time.Hour)
	if out := get(); len(out.Autoshifts) != 0 {
		t.Errorf("after its time a shift is still there: %+v", out)
	}
}

func TestUnmanaged(t *testing.T) {
	a, config := simtest.Start(t, account.Options{})
	_, err := arczonalshift.NewFromConfig(config).GetManagedResource(context.Background(),
		&arczonalshift.GetManagedResourceInput{ResourceIdentifier: aws.String(a.EKS.ARN(a.Cluster))})
	if missing := (*types.ResourceNotFoundException)(nil); !errors.As(err, &missing) {
		t.Errorf("a cluster that takes no part gives %v", err)
	}
}
