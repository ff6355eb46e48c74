package aws_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
)

// terminateAll deletes the instances at the same time.
func endAll(t *testing.T, p cloudprovider.Instances, list []*cloudprovider.Instance) []error {
	errs := make([]error, len(list))
	var group sync.WaitGroup
	for i, one := range list {
		group.Go(func() { errs[i] = p.Delete(t.Context(), one.ProviderID, one.Owner()) })
	}
	group.Wait()
	return errs
}

// TestOneThatCannotBeEnded protects one of sixty instances from termination: the others end, in few calls.
func TestOneThatCannotBeEnded(t *testing.T) {
	w, p := start(t, setup{})
	list := claims(60)
	got, errs := launchAll(t, p, list, len(list))
	distinct(t, list, got, errs)
	id := got[17].ProviderID[strings.LastIndex(got[17].ProviderID, "/")+1:]
	if err := w.sim.World.Protect(id, true); err != nil {
		t.Fatal(err.Message)
	}
	for i, err := range endAll(t, p, got) {
		if (i == 17) != (err != nil) {
			t.Errorf("instance %d: %v", i, err)
		}
	}
	if n := len(w.alive()); n != 1 {
		t.Errorf("EC2 runs %d instances, want the one that is protected", n)
	}
	if n := w.sim.Calls()["ec2:TerminateInstances"]; n > 4 {
		t.Errorf("it took %d calls", n)
	}
}

// TestRefusalWithoutAName has EC2 refuse to end instances without saying which it means.
func TestRefusalWithoutAName(t *testing.T) {
	w, p := start(t, setup{})
	list := claims(32)
	got, errs := launchAll(t, p, list, len(list))
	distinct(t, list, got, errs)
	w.faults.Add(faults.Fault{Service: "ec2", Action: "TerminateInstances", Code: "OperationNotPermitted",
		Status: 400, Times: 1})
	if err := errors.Join(endAll(t, p, got)...); err != nil {
		t.Error(err)
	}
	if n := w.sim.Calls()["ec2:TerminateInstances"]; n > 6 {
		t.Errorf("it took %d calls", n)
	}
	if n := len(w.alive()); n != 0 {
		t.Errorf("EC2 runs %d instances", n)
	}
}

// TestListWhileTheCatalogIsOut lists instances of which it can't find out what they are: that is tried once, not for
// each.
func TestListWhileTheCatalogIsOut(t *testing.T) {
	w, p := start(t, setup{})
	list := claims(30)
	got, errs := launchAll(t, p, list, len(list))
	distinct(t, list, got, errs)
	next, err := w.provider()
	if err != nil {
		t.Fatal(err)
	}
	before := w.sim.Calls()["ec2:DescribeInstanceTypes"]
	w.faults.Deny("ec2:DescribeInstanceTypes")
	for range 2 {
		listed, err := next.List(t.Context())
		if err != nil || len(listed) != 30 {
			t.Fatalf("%d are listed (%v)", len(listed), err)
		}
	}
	if n := w.sim.Calls()["ec2:DescribeInstanceTypes"] - before; n != 1 {
		t.Errorf("EC2 was asked %d times what it sells, want once", n)
	}
}

// TestShiftedZoneIsLeftAlone moves traffic away from every zone: names can wait.
func TestShiftedZoneIsLeftAlone(t *testing.T) {
	w, p := start(t, setup{})
	w.faults.Deny("ec2:CreateTags")
	list := claims(3)
	w.store(t, list...)
	got, errs := launchAll(t, p, list, len(list))
	distinct(t, list, got, errs)
	called := func() int { return w.sim.Calls()["ec2:CreateTags"] }
	eventually(t, "the first controller has given up naming them", func() bool { return called() == 3 })
	w.faults.Allow("ec2:CreateTags")
	before := called()
	away, err := w.provider(func(o *aws.Options) { o.Shifted = func(string) bool { return true } })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := away.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := away.Delete(t.Context(), got[0].ProviderID, got[0].Owner()); err != nil {
		t.Errorf("an instance in a shifted zone can't be ended: %v", err)
	}
	back, err := w.provider()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := back.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the two that are left are named", func() bool { return called() >= before+2 })
	if n := called() - before; n != 2 {
		t.Errorf("%d names were written, want 2: those of a shifted zone can wait", n)
	}
}
