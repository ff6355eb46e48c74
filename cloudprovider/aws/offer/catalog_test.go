package offer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
)

// TestStaleStockIsHandedOut asks what EC2 sells while somebody else finds out, and right after that has failed.
func TestStaleStockIsHandedOut(t *testing.T) {
	now := time.Unix(1000, 0)
	c := &Catalog{Options: Options{Now: func() time.Time {
		return now
	}}, reading: make(chan struct{}, 1), region: &regionTypes{},
		askAt: now}
	c.reading <- struct{}{} // somebody is asking
	var group sync.WaitGroup
	group.Go(func() {
		if region, err := c.regionNow(t.Context()); region == nil || err != nil {
			t.Errorf("while somebody asks, the others get %v (%v)", region, err)
		}
	})
	group.Wait()
	c.region = nil
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.regionNow(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("who gives up waits: %v", err)
	}
	if _, err := c.update(t.Context(), nil, errors.New("busy")); err == nil {
		t.Fatal("no error")
	}
	<-c.reading
	if _, err := c.regionNow(t.Context()); err == nil || err.Error() != "busy" {
		t.Errorf("a moment after a failure: %v", err)
	}
	now = now.Add(regionFirstRetry)
	if _, _, due := c.known(); !due {
		t.Error("it is never asked for again")
	}
}

// TestServes holds reservations against types.
func TestServes(t *testing.T) {
	linux := &cloudprovider.InstanceType{Labels: map[string][]string{corev1.LabelOSStable: {"linux"},
		awsv1.InstanceTenancyLabelKey: {"default", "dedicated"}}}
	windows := &cloudprovider.InstanceType{Labels: map[string][]string{corev1.LabelOSStable: {"windows"}}}
	for _, tc := range []struct {
		r    network.Reservation
		t    *cloudprovider.InstanceType
		want bool
	}{
		{network.Reservation{Platform: "Linux/UNIX", Tenancy: "default"}, linux, true},
		{network.Reservation{Platform: "Linux/UNIX", Tenancy: "dedicated"}, linux, true},
		{network.Reservation{Platform: "Red Hat Enterprise Linux"}, linux, true},
		{network.Reservation{Platform: "Windows"}, linux, false},
		{network.Reservation{Platform: "Windows with SQL Server"}, windows, true},
		{network.Reservation{Platform: "Linux/UNIX"}, windows, false},
	} {
		if got := serves(&tc.r, tc.t); got != tc.want {
			t.Errorf("%+v serves %v: %v", tc.r, tc.t.Labels, got)
		}
	}
}

// plain is what a class needs of its surroundings if nothing is sold.
type plain struct {
	Shapes
	Prices
}

func (plain) Revision() uint64 { return 1 }

// TestListsOfClassesThatAreGone asks for the list of a class, and long after for that of another.
func TestListsOfClassesThatAreGone(t *testing.T) {
	now := time.Unix(1000, 0)
	c := &Catalog{Options: Options{Now: func() time.Time { return now }, Shapes: plain{}, Prices: plain{}},
		byClass: map[string]*ClassCatalog{}}
	ask := func(name string) {
		class := &awsv1.EC2NodeClass{}
		class.Name = name
		if _, _, err := c.build(class, &regionTypes{}, &purchaseTerms{}, name, name); err != nil {
			t.Fatal(err)
		}
	}
	ask("old")
	ask("used")
	now = now.Add(classLasts)
	ask("used")
	now = now.Add(time.Minute)
	ask("new")
	if c.byClass["old"] != nil || c.byClass["used"] == nil || c.byClass["new"] == nil {
		t.Errorf("%d lists are kept, want those of the classes that are used", len(c.byClass))
	}
	if list := c.all(); len(list) != 2 {
		t.Errorf("%d lists are told of", len(list))
	}
}
