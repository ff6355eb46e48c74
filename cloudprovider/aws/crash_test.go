package aws_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
)

// TestCrashBeforeNames launches six together, lets the core write two of them down, and kills the controller before any
// instance has got its name. The next one must give each claim one instance, and nobody another's.
func TestCrashBeforeNames(t *testing.T) {
	w, p := start(t, setup{})
	w.faults.Deny("ec2:CreateTags")
	list := claims(6)
	for _, c := range list {
		if err := w.kube.Create(t.Context(), c.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	got, errs := launchAll(t, p, list, len(list))
	distinct(t, list, got, errs)
	recorded := map[types.UID]string{}
	for _, i := range []int{1, 4} {
		if err := w.record(t.Context(), list[i], got[i]); err != nil {
			t.Fatal(err)
		}
		recorded[list[i].UID] = got[i].ProviderID
	}

	next, err := w.provider()
	if err != nil {
		t.Fatal(err)
	}
	if n := owners(t, next, list); n != 6 {
		t.Errorf("after the crash the list names %d owners, want 6", n)
	}
	again, errs := launchAll(t, next, list, len(list))
	distinct(t, list, again, errs)
	for i, c := range list {
		if again[i].Annotations[awsv1.HashAnnotationKey] == "" {
			t.Errorf("%s does not say which version of the class it was launched from", again[i].ProviderID)
		}
		if id, ok := recorded[c.UID]; ok && again[i].ProviderID != id {
			t.Errorf("claim %s was written down with %s and now gets %s", c.Name, id, again[i].ProviderID)
		}
	}
	if n := len(w.alive()); n != 6 {
		t.Errorf("EC2 runs %d instances, want 6", n)
	}
	w.faults.Allow("ec2:CreateTags")
}

// owners counts the different claims of the list that the provider lists instances for.
func owners(t *testing.T, p cloudprovider.Instances, claims []*v1.NodeClaim) int {
	t.Helper()
	list, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range claims {
		known[string(c.UID)] = true
	}
	seen := map[string]bool{}
	for _, i := range list {
		if known[i.ClaimUID] {
			seen[i.ClaimUID] = true
		}
	}
	return len(seen)
}

// TestCrashAndClaimsGone leaves six instances of which two claims still exist: the other four are nobody's.
func TestCrashAndClaimsGone(t *testing.T) {
	w, p := start(t, setup{})
	w.faults.Deny("ec2:CreateTags")
	list := claims(6)
	for _, c := range list[:2] {
		if err := w.kube.Create(t.Context(), c.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	_, errs := launchAll(t, p, list, len(list))
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	next, err := w.provider()
	if err != nil {
		t.Fatal(err)
	}
	all, err := next.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	orphans := 0
	for _, i := range all {
		if i.ClaimUID == "" {
			orphans++
		}
	}
	if len(all) != 6 || orphans != 4 {
		t.Errorf("%d instances are listed and %d are nobody's; want 6 and 4", len(all), orphans)
	}
	if n := owners(t, next, list[:2]); n != 2 {
		t.Errorf("%d of the two claims that are left have an instance", n)
	}
}

// TestCrashWhileInvisible kills the controller while EC2 does not show the instance yet. The next one must not launch a
// second: EC2 knows the token.
func TestCrashWhileInvisible(t *testing.T) {
	w, p := start(t, setup{timing: cloud.Timing{Visibility: 1 << 40}})
	c := claim()
	first, err := p.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	next, err := w.provider()
	if err != nil {
		t.Fatal(err)
	}
	second, err := next.Create(t.Context(), c)
	if err != nil || second.ProviderID != first.ProviderID {
		t.Errorf("got %v (%v), want %s", second, err, first.ProviderID)
	}

	// With other words for the same claim EC2 refuses to guess, and so do we.
	third, err := w.provider()
	if err != nil {
		t.Fatal(err)
	}
	c.Spec.Requirements = append(c.Spec.Requirements, in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand))
	if got, err := third.Create(t.Context(), c); err == nil {
		t.Errorf("a claim whose instance is not to be seen got %s", got.ProviderID)
	}
	if n := len(w.alive()); n != 1 {
		t.Errorf("EC2 runs %d instances, want 1", n)
	}
}

// TestCrashDuringLaunch kills the controller while the answer to a merged launch is on its way.
func TestCrashDuringLaunch(t *testing.T) {
	w, p := start(t, setup{})
	list := claims(4)
	for _, c := range list {
		if err := w.kube.Create(t.Context(), c.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	w.faults.Add(faults.Fault{Service: "ec2", Action: "CreateFleet", Lose: true, Times: 3})
	launchAll(t, p, list, len(list))
	next, err := w.provider()
	if err != nil {
		t.Fatal(err)
	}
	got, errs := launchAll(t, next, list, len(list))
	distinct(t, list, got, errs)
	if n := len(w.alive()); n != 4 {
		t.Errorf("EC2 runs %d instances, want 4", n)
	}
}

// TestListWithoutACatalog takes away the permission to read what EC2 sells: what runs is listed all the same.
func TestListWithoutACatalog(t *testing.T) {
	w, p := start(t, setup{})
	c := claim()
	if _, err := p.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	next, err := w.provider()
	if err != nil {
		t.Fatal(err)
	}
	w.faults.Deny("ec2:DescribeInstanceTypes")
	list, err := next.List(t.Context())
	if err != nil || len(list) != 1 || list[0].ClaimUID != string(c.UID) {
		t.Errorf("listed %v (%v)", list, err)
	}
	if _, err := next.Create(t.Context(), c); !cloudprovider.IsUnauthorized(err) {
		t.Errorf("Create describes an instance of which it knows nothing: %v", err)
	}
}
