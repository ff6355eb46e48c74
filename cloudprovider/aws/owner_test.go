package aws_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
)

// one launches an instance for a claim that is stored, and returns both with the instance's id.
func one(t *testing.T, w *world, p *aws.Provider) (*v1.NodeClaim, *cloudprovider.Instance, string) {
	t.Helper()
	c := claim()
	w.store(t, c)
	made, err := p.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return c, made, made.ProviderID[strings.LastIndex(made.ProviderID, "/")+1:]
}

// untag takes a tag off an instance.
func untag(t *testing.T, w *world, id, key string) {
	t.Helper()
	if err := w.sim.World.RemoveTags([]string{id}, []cloud.TagMatch{{Key: key}}); err != nil {
		t.Fatal(err.Message)
	}
}

// An instance carries the identity of its cluster from the moment of its launch.
func TestInstancesCarryTheIdentity(t *testing.T) {
	w, p := start(t, setup{})
	_, made, id := one(t, w, p)
	if got := w.sim.World.Tags(id)[ownership.IdentityTagKey]; got != identity {
		t.Errorf("tag %s is %q, want %q", ownership.IdentityTagKey, got, identity)
	}
	if made.Annotations[ownership.IdentityTaggedAnnotationKey] != "true" || made.Unproven {
		t.Errorf("the claim is not told: %+v", made)
	}
}

// Two clusters have the same name. Neither sees, finds or ends an instance of the other.
func TestNamesakeClusterIsLeftAlone(t *testing.T) {
	w, p := start(t, setup{})
	_, made, _ := one(t, w, p)
	namesake, err := w.provider(func(o *aws.Options) { o.Identity, o.Claims = "another", nil })
	if err != nil {
		t.Fatal(err)
	}
	if list, err := namesake.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("the namesake lists %d (%v)", len(list), err)
	}
	if _, err := namesake.Get(t.Context(), made.ProviderID); !cloudprovider.IsNotFound(err) {
		t.Errorf("the namesake finds it: %v", err)
	}
	for _, owner := range []cloudprovider.Owner{made.Owner(), {}} {
		err := namesake.Delete(t.Context(), made.ProviderID, owner)
		want := "instance " + made.ProviderID + " is left alone: it belongs to the cluster with identity " + identity +
			", not to " + owner.String() + " of this cluster"
		if !cloudprovider.IsNotOwned(err) || err.Error() != want {
			t.Errorf("the namesake ends it: %v, want %q", err, want)
		}
	}
	if n := len(w.alive()); n != 1 {
		t.Errorf("EC2 runs %d instances", n)
	}
	if list, err := p.List(t.Context()); err != nil || len(list) != 1 || list[0].Unproven {
		t.Errorf("its own cluster lists %+v (%v)", list, err)
	}
}

// What EC2 shows decides whose an instance is: tags that somebody took off, put on or changed.
func TestWhoseAnInstanceIs(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(t *testing.T, w *world, id string)
		ends   bool
	}{
		{"nothing has changed", func(*testing.T, *world, string) {}, true},
		{"it lost the identity, as one that Karpenter launched has none", func(t *testing.T, w *world, id string) {
			untag(t, w, id, ownership.IdentityTagKey)
		}, true},
		{"it got another identity", func(t *testing.T, w *world, id string) {
			if err := w.sim.World.SetTags([]string{id},
				map[string]string{ownership.IdentityTagKey: "another"}); err != nil {
				t.Fatal(err.Message)
			}
		}, false},
		{"it lost the cluster's name", func(t *testing.T, w *world, id string) {
			untag(t, w, id, awsv1.ClusterTagPrefix+cluster)
		}, false},
		{"it lost the pool's name", func(t *testing.T, w *world, id string) {
			untag(t, w, id, awsv1.NodePoolTagKey)
		}, false},
		{"the cluster only shares it", func(t *testing.T, w *world, id string) {
			if err := w.sim.World.SetTags([]string{id}, map[string]string{awsv1.ClusterTagPrefix +
				cluster: "shared"}); err != nil {
				t.Fatal(err.Message)
			}
		}, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			w, p := start(t, setup{})
			c, made, id := one(t, w, p)
			if err := w.record(t.Context(), c, made); err != nil {
				t.Fatal(err)
			}
			x.change(t, w, id)
			next, err := w.provider() // one that has nothing in memory
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range []*aws.Provider{next, p} {
				if err := q.Delete(t.Context(), made.ProviderID, cloudprovider.Owner{ClaimName: c.Name,
					ClaimUID: "another"}); !cloudprovider.IsNotOwned(err) {
					t.Errorf("for a namesake: %v", err)
				}
				if n := len(w.alive()); n != 1 {
					t.Fatalf("EC2 runs %d instances", n)
				}
			}
			if !x.ends { // whoever has launched it remembers whose it was, and must not go by that
				if err := p.Delete(t.Context(), made.ProviderID, made.Owner()); !cloudprovider.IsNotOwned(err) {
					t.Errorf("for its claim, by whom has launched it: %v", err)
				}
			}
			err = next.Delete(t.Context(), made.ProviderID, made.Owner())
			if x.ends != (err == nil) || !x.ends && !cloudprovider.IsNotOwned(err) || (len(w.alive()) == 0) != x.ends {
				t.Errorf("for its claim: %v, EC2 runs %d", err, len(w.alive()))
			}
		})
	}
}

// Karpenter's instances carry the claim's name and nothing else that is the claim's. The claim says which instance it
// has.
func TestInstanceFromKarpenter(t *testing.T) {
	w, p := start(t, setup{})
	c, made, id := one(t, w, p)
	if err := w.record(t.Context(), c, made); err != nil {
		t.Fatal(err)
	}
	if err := w.strip(id); err != nil {
		t.Fatal(err)
	}
	untag(t, w, id, ownership.IdentityTagKey)
	next, err := w.provider()
	if err != nil {
		t.Fatal(err)
	}
	list, err := next.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Owner() != made.Owner() || !list[0].Unproven {
		t.Fatalf("it is listed as %+v (%v), want the claim's and unproven", list, err)
	}
	err = next.Delete(t.Context(), made.ProviderID, cloudprovider.Owner{})
	refusal, ok := errors.AsType[*cloudprovider.NotOwnedError](err)
	if !ok || refusal.Owner != made.Owner() {
		t.Errorf("for nobody: %v", err)
	}
	if err := next.Delete(t.Context(), made.ProviderID, made.Owner()); err != nil || len(w.alive()) != 0 {
		t.Errorf("for its claim: %v, EC2 runs %d", err, len(w.alive()))
	}
}
