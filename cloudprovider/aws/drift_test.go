package aws_test

import (
	"testing"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

func TestDrift(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*world, *awsv1.EC2NodeClass, *v1.NodeClaim)
		want   cloudprovider.DriftReason
	}{
		{"nothing", func(*world, *awsv1.EC2NodeClass, *v1.NodeClaim) {}, ""},
		{"a new image", func(w *world, c *awsv1.EC2NodeClass, _ *v1.NodeClaim) {
			next := w.sim.World.AddImage(ec2types.Image{Name: new("node-next")})
			c.Status.AMIs = append([]awsv1.AMI{{ID: next, Requirements: c.Status.AMIs[0].Requirements}},
				c.Status.AMIs...)
		}, aws.AMIDrift},
		{"an older image beside it", func(_ *world, c *awsv1.EC2NodeClass, _ *v1.NodeClaim) {
			c.Status.AMIs = append(c.Status.AMIs, awsv1.AMI{ID: "ami-00000000000000001",
				Requirements: c.Status.AMIs[0].Requirements})
		}, ""},
		{"other subnets", func(_ *world, c *awsv1.EC2NodeClass, _ *v1.NodeClaim) {
			for i := range c.Status.Subnets {
				c.Status.Subnets[i].ID += "0"
			}
		}, aws.SubnetDrift},
		{"one more security group", func(_ *world, c *awsv1.EC2NodeClass, _ *v1.NodeClaim) {
			c.Status.SecurityGroups = append(c.Status.SecurityGroups, awsv1.SecurityGroup{ID: "sg-1"})
		}, aws.SecurityGroupDrift},
		{"another spec", func(_ *world, c *awsv1.EC2NodeClass, _ *v1.NodeClaim) {
			c.Annotations[awsv1.HashAnnotationKey] = "5678"
		}, aws.NodeClassDrift},
		{"another spec, hashed in another way", func(_ *world, c *awsv1.EC2NodeClass, _ *v1.NodeClaim) {
			c.Annotations[awsv1.HashAnnotationKey], c.Annotations[awsv1.HashVersionAnnotationKey] = "5678", "v7"
		}, ""},
		{"a status that is not there yet", func(_ *world, c *awsv1.EC2NodeClass, _ *v1.NodeClaim) {
			c.Status.AMIs, c.Status.Subnets, c.Status.SecurityGroups = nil, nil, nil
		}, ""},
		{"a placement group that it is not in", func(w *world, c *awsv1.EC2NodeClass, _ *v1.NodeClaim) {
			w.sim.World.AddPlacementGroup("near", ec2types.PlacementStrategyCluster, 0, nil)
			c.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: new("near")}
		}, aws.PlacementGroupDrift},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w, p := start(t, setup{})
			c := claim(in(corev1.LabelArchStable, v1.ArchitectureAmd64))
			created, err := p.Create(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			c.Status.ProviderID, c.Status.ImageID, c.Annotations = created.ProviderID, created.ImageID,
				created.Annotations
			if c.Annotations[awsv1.HashAnnotationKey] == "" {
				t.Fatal("the instance does not say which version of the class it was launched from")
			}
			if err := w.changeClass(t.Context(), func(class *awsv1.EC2NodeClass) {
				tc.change(w, class, c)
			}); err != nil {
				t.Fatal(err)
			}
			got, err := p.Drifted(t.Context(), c)
			if err != nil || got != tc.want {
				t.Errorf("drift is %q (%v), want %q", got, err, tc.want)
			}
		})
	}
}

// TestReservedCapacity sells a reservation first, no more of it than there is, and then the rest on other terms.
func TestReservedCapacity(t *testing.T) {
	w, p := start(t, setup{})
	id := w.sim.World.AddReservation(ec2types.CapacityReservation{
		InstanceType: new("m5.xlarge"), AvailabilityZone: new("us-west-2b"), TotalInstanceCount: new(int32(2)),
		InstanceMatchCriteria: ec2types.InstanceMatchCriteriaTargeted, CreateDate: new(time.Now()),
	})
	if err := w.changeClass(t.Context(), func(c *awsv1.EC2NodeClass) {
		c.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: id}}
	}); err != nil {
		t.Fatal(err)
	}
	got, err := p.Create(t.Context(), claim())
	if err != nil {
		t.Fatal(err)
	}
	if got.Type != "m5.xlarge" || got.Labels[v1.CapacityTypeLabelKey] != v1.CapacityTypeReserved ||
		got.Labels[awsv1.CapacityReservationIDLabelKey] != id {
		t.Errorf("with a reservation the claim got %s %v", got.Type, got.Labels)
	}
	list := claims(3)
	_, errs := launchAll(t, p, list, len(list))
	refused := 0
	for _, err := range errs {
		switch {
		case cloudprovider.IsNoCapacity(err):
			refused++
		case err != nil:
			t.Error(err)
		}
	}
	if refused != 2 {
		t.Errorf("of three claims for the one that was left %d were refused, want 2", refused)
	}
	after, err := p.Create(t.Context(), claim())
	if err != nil || after.Labels[v1.CapacityTypeLabelKey] == v1.CapacityTypeReserved {
		t.Errorf("after the reservation was used up: %v, %v", after, err)
	}
}

// TestReservationDrift changes what the class says of the reservation that an instance runs in.
func TestReservationDrift(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*world, *awsv1.EC2NodeClass)
		want   cloudprovider.DriftReason
	}{
		{"it is not named any more", func(*world, *awsv1.EC2NodeClass) {}, aws.CapacityReservationDrift},
		{"it is named", func(_ *world, c *awsv1.EC2NodeClass) {
			c.Status.CapacityReservations =
				[]awsv1.CapacityReservation{{ID: c.Spec.CapacityReservationSelectorTerms[0].ID}}
		}, ""},
		{"nobody has looked", func(_ *world, c *awsv1.EC2NodeClass) {
			c.Status.Conditions = c.Status.Conditions[:1]
		}, ""},
		{"nobody has looked since the class was edited", func(_ *world, c *awsv1.EC2NodeClass) {
			c.Status.Conditions[1].ObservedGeneration--
		}, ""},
		{"it could not be looked for", func(_ *world, c *awsv1.EC2NodeClass) {
			c.Status.Conditions[1].Status = metav1.ConditionUnknown
		}, ""},
		{"it has ended", func(w *world, c *awsv1.EC2NodeClass) {
			w.sim.World.CancelReservation(c.Spec.CapacityReservationSelectorTerms[0].ID)
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w, p := start(t, setup{})
			id := w.sim.World.AddReservation(ec2types.CapacityReservation{InstanceType: new("m5.xlarge"),
				AvailabilityZone: new("us-west-2b"), TotalInstanceCount: new(int32(1))})
			if err := w.changeClass(t.Context(), func(c *awsv1.EC2NodeClass) {
				c.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: id}}
			}); err != nil {
				t.Fatal(err)
			}
			c := claim()
			made, err := p.Create(t.Context(), c)
			if err != nil || made.Labels[v1.CapacityTypeLabelKey] != v1.CapacityTypeReserved {
				t.Fatalf("got %v (%v)", made, err)
			}
			c.Status.ProviderID, c.Labels[v1.CapacityTypeLabelKey] = made.ProviderID, v1.CapacityTypeReserved
			if err := w.changeClass(t.Context(), func(class *awsv1.EC2NodeClass) {
				class.Status.Conditions = append(class.Status.Conditions, metav1.Condition{
					Type: awsv1.ConditionTypeCapacityReservationsReady, Status: metav1.ConditionTrue, Reason: "Found",
					ObservedGeneration: class.Generation, LastTransitionTime: metav1.Now()})
				tc.change(w, class)
			}); err != nil {
				t.Fatal(err)
			}
			if got, err := p.Drifted(t.Context(), c); err != nil || got != tc.want {
				t.Errorf("drift is %q (%v), want %q", got, err, tc.want)
			}
		})
	}
}

// TestRehearsal makes the calls of a launch as dry runs.
func TestRehearsal(t *testing.T) {
	w, p := start(t, setup{})
	class := w.class()
	class.Spec.AssociatePublicIPAddress = new(false)
	calls, err := p.Rehearse(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		if err := c.Run(t.Context()); !fault.IsDryRun(err) {
			t.Errorf("%s: %v", c.Action, err)
		}
	}
	if n := len(w.alive()); n != 0 || len(w.sim.World.Templates()) != 0 {
		t.Errorf("a rehearsal left %d instances and %d launch templates", n, len(w.sim.World.Templates()))
	}
}

// TestAdopted lists an instance that Karpenter has launched, which carries none of our tags.
func TestAdopted(t *testing.T) {
	w, p := start(t, setup{})
	c := claim()
	if err := w.kube.Create(t.Context(), c.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	made, err := p.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.record(t.Context(), c, made); err != nil {
		t.Fatal(err)
	}
	for _, i := range w.alive() {
		if err := w.strip(i.ID); err != nil {
			t.Fatal(err)
		}
	}
	next, err := w.provider()
	if err != nil {
		t.Fatal(err)
	}
	list, err := next.List(t.Context())
	if err != nil || len(list) != 1 || list[0].ClaimUID != string(c.UID) {
		t.Errorf("an instance that the claim knows by its id is listed as %+v (%v)", list, err)
	}
}
