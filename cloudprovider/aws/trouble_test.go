package aws_test

import (
	"slices"
	"strings"
	"testing"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
)

// TestTroubleIsToldAndEnds makes each kind of trouble, looks whether the error is of the right kind, has AWS's code and
// the fix, and whether the same provider launches again once the trouble is over.
func TestTroubleIsToldAndEnds(t *testing.T) {
	whole := func(code string) func(*world) {
		return func(w *world) {
			w.faults.Add(faults.Fault{Service: "ec2", Action: "CreateFleet", Code: code, Status: 400})
		}
	}
	clear := func(w *world) { w.faults.Clear(); w.sim.World.ClearCapacity() }
	for _, tc := range []struct {
		name  string
		begin func(*world)
		end   func(*world)
		kind  func(error) bool
		texts []string
	}{
		{"wrong credentials", whole("AuthFailure"), clear, cloudprovider.IsUnauthorized, []string{"AuthFailure",
			"check them"}},
		{"expired token", whole("RequestExpired"), clear, cloudprovider.IsUnauthorized, []string{"RequestExpired",
			"session has ended"}},
		{"missing permission", func(w *world) { w.faults.Deny("ec2:CreateFleet") }, clear, cloudprovider.IsUnauthorized,
			[]string{"UnauthorizedOperation", "allow ec2:CreateFleet"}},
		{"throttled", func(w *world) {
			w.faults.Throttle(faults.Limit{Service: "ec2", Action: "CreateFleet"})
		}, clear, cloudprovider.IsThrottled, []string{"RequestLimitExceeded"}},
		{"unknown AMI", func(w *world) { w.sim.World.RemoveImage(w.images[v1.ArchitectureAmd64]) }, func(w *world) {
			next := w.sim.World.AddImage(ec2types.Image{Name: new("node-next"),
				Architecture: ec2types.ArchitectureValuesX8664})
			w.edit(func(c *awsv1.EC2NodeClass) { c.Status.AMIs[0].ID = next })
		}, cloudprovider.IsNotReady,
			[]string{"InvalidAMIID.NotFound", "spec.amiSelectorTerms"}},
		{"security group deleted", func(w *world) {
			w.sim.World.RemoveSecurityGroup(w.net.SecurityGroup)
		}, func(w *world) {
			next, err := w.sim.World.AddSecurityGroup(w.net.VPC, "next", nil)
			if err != nil {
				panic(err)
			}
			w.edit(func(c *awsv1.EC2NodeClass) { c.Status.SecurityGroups = []awsv1.SecurityGroup{{ID: next}} })
		}, cloudprovider.IsNotReady,
			[]string{"spec.securityGroupSelectorTerms"}},
		{"full subnets", func(w *world) {
			for _, id := range w.net.Private {
				w.leave(id, 0)
			}
		}, func(w *world) {
			for _, id := range w.net.Private {
				w.leave(id, 1000)
			}
		}, cloudprovider.IsNoCapacity, []string{"InsufficientFreeAddressesInSubnet", "spec.subnetSelectorTerms"}},
		{"quota", func(w *world) { w.sim.World.SetQuotas(cloud.Quotas{SpotInstances: 0, OnDemandVCPUs: 1}) },
			func(w *world) {
				w.sim.World.SetQuotas(cloud.Quotas{})
			}, cloudprovider.IsNoCapacity, []string{"VcpuLimitExceeded", "Service Quotas"}},
		{"no role for spot", func(w *world) {
			w.sim.World.SetCapacity(cloud.CapacityRule{Market: cloud.Spot,
				Code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted"})
		}, clear, cloudprovider.IsNoCapacity, []string{"create-service-linked-role"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, setup{}, func(t *testing.T, w *world, p *aws.Provider) {
				terms := in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand)
				if tc.name == "no role for spot" {
					terms = in(v1.CapacityTypeLabelKey, v1.CapacityTypeSpot)
				}
				ask := func() error {
					_, err := p.Create(t.Context(), claim(terms, in(corev1.LabelArchStable, v1.ArchitectureAmd64)))
					return err
				}
				tc.begin(w)
				err := ask()
				if err == nil || !tc.kind(err) {
					t.Fatalf("got %T: %v", err, err)
				}
				for _, text := range tc.texts {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%q lacks %q", err, text)
					}
				}
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("%q has more than one line", err)
				}
				tc.end(w)
				if err := ask(); err != nil {
					t.Errorf("after the trouble was over: %v", err)
				}
				if n := len(w.alive()); n != 1 {
					t.Errorf("EC2 runs %d instances, want 1", n)
				}
			})
		})
	}
}

// TestDeletedSubnet deletes the subnet that is used first: others take its place in the same call of Create.
func TestDeletedSubnet(t *testing.T) {
	w, p := start(t, setup{})
	first, err := p.Create(t.Context(), claim())
	if err != nil {
		t.Fatal(err)
	}
	zone := first.Labels[corev1.LabelTopologyZone]
	at := slices.IndexFunc(w.sim.World.Zones(), func(z cloud.Zone) bool { return z.Name == zone })
	w.sim.World.RemoveSubnet(w.net.Private[at])
	second, err := p.Create(t.Context(), claim())
	if err != nil {
		t.Fatalf("with a subnet deleted: %v", err)
	}
	if second.Labels[corev1.LabelTopologyZone] == zone {
		t.Errorf("an instance stands in %s, whose subnet is gone", zone)
	}
	_, err = p.Create(t.Context(), claim(in(corev1.LabelTopologyZone, zone)))
	if !cloudprovider.IsNoCapacity(err) || !strings.Contains(err.Error(), "spec.subnetSelectorTerms") {
		t.Errorf("a claim for the zone without subnet got %v", err)
	}
}

// TestFullSubnetHasASpare gives a zone two subnets and fills the one that looks better.
func TestFullSubnetHasASpare(t *testing.T) {
	w, p := start(t, setup{})
	spare, err := w.sim.World.AddSubnet(cloud.SubnetSpec{VPC: w.net.VPC, Zone: "us-west-2a", CIDR: "10.0.240.0/24",
		Tags: map[string]string{"karpenter.sh/discovery": cluster}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.changeClass(t.Context(), func(c *awsv1.EC2NodeClass) {
		c.Status.Subnets = append(c.Status.Subnets, awsv1.Subnet{ID: spare, Zone: "us-west-2a", ZoneID: "usw2-az1"})
	}); err != nil {
		t.Fatal(err)
	}
	here := in(corev1.LabelTopologyZone, "us-west-2a")
	if _, err := p.Create(t.Context(), claim(here)); err != nil { // the count of free addresses is known from here on
		t.Fatal(err)
	}
	w.leave(w.net.Private[0], 0)
	list := claims(3, here)
	got, errs := launchAll(t, p, list, len(list))
	distinct(t, list, got, errs)
	for _, i := range w.alive() {
		if slices.ContainsFunc(got, func(g *cloudprovider.Instance) bool {
			return strings.HasSuffix(g.ProviderID, i.ID)
		}) && i.Subnet != spare {
			t.Errorf("%s stands in %s, want the spare one", i.ID, i.Subnet)
		}
	}
}

// TestSubnetsShareTheLoad launches twice into a zone with two subnets before their count of free addresses is read
// again.
func TestSubnetsShareTheLoad(t *testing.T) {
	w, p := start(t, setup{})
	spare, err := w.sim.World.AddSubnet(cloud.SubnetSpec{VPC: w.net.VPC, Zone: "us-west-2a", CIDR: "10.0.240.0/24",
		Tags: map[string]string{"karpenter.sh/discovery": cluster}})
	if err != nil {
		t.Fatal(err)
	}
	w.leave(w.net.Private[0], 241)
	w.leave(spare, 240)
	used := map[string]int{}
	for range 2 {
		if _, err := p.Create(t.Context(), claim(in(corev1.LabelTopologyZone, "us-west-2a"))); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range w.alive() {
		used[i.Subnet]++
	}
	if used[spare] != 1 || used[w.net.Private[0]] != 1 {
		t.Errorf("the instances stand in %v, want one in each", used)
	}
}
