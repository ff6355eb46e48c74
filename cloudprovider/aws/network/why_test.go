package network_test

import (
	"strings"
	"testing"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
)

const mendSubnets = "; tag the subnets that nodes should stand in, or change spec.subnetSelectorTerms"

func TestWhyNoSubnets(t *testing.T) {
	tags := func(words ...string) awsv1.SubnetSelectorTerm { return awsv1.SubnetSelectorTerm{Tags: pairs(words)} }
	cases := []struct {
		name  string
		there [][]string
		terms []awsv1.SubnetSelectorTerm
		want  string
	}{
		{"another value", [][]string{{"karpenter.sh/discovery", "blue"}, {"karpenter.sh/discovery", "blue"},
			{"karpenter.sh/discovery", "green"}},
			[]awsv1.SubnetSelectorTerm{tags("karpenter.sh/discovery", "red")},
			"no subnet matches tags karpenter.sh/discovery=red; 3 subnets in the cluster's VPC $VPC carry " +
				"karpenter.sh/discovery=blue, karpenter.sh/discovery=green"},
		{"another value on one", [][]string{{"team", "blue"}, {}},
			[]awsv1.SubnetSelectorTerm{tags("team", "red")},
			"no subnet matches tags team=red; 1 subnet in the cluster's VPC $VPC carries team=blue"},
		{"another tag", [][]string{{"Name", "x", "team", "blue"}, {"Name", "z", "team", "blue"}},
			[]awsv1.SubnetSelectorTerm{tags("karpenter.sh/discovery", "red")},
			"no subnet matches tags karpenter.sh/discovery=red; none of the 2 subnets in the cluster's VPC $VPC " +
				"carries the tag karpenter.sh/discovery; 2 subnets carry team=blue"},
		{"no tags at all", [][]string{{}, {}},
			[]awsv1.SubnetSelectorTerm{tags("team", "*")},
			"no subnet matches tags team=*; none of the 2 subnets in the cluster's VPC $VPC carries the tag team"},
		{"no subnets at all", nil,
			[]awsv1.SubnetSelectorTerm{tags("team", "blue")},
			"no subnet matches tags team=blue; there are no subnets in the cluster's VPC $VPC"},
		{"not all of the tags", [][]string{{"a", "1"}, {"a", "1", "b", "2"}, {"c", "3"}},
			[]awsv1.SubnetSelectorTerm{tags("a", "1", "b", "2", "c", "3")},
			"no subnet matches tags a=1, b=2, c=3; each tag is on some subnet but no subnet in the cluster's VPC " +
				"$VPC carries them all, $1 lacks c=3"},
		{"an id that is gone", [][]string{{}},
			[]awsv1.SubnetSelectorTerm{{ID: "subnet-gone"}},
			"no subnet has the id subnet-gone; in the cluster's VPC $VPC there is only $0"},
		{"many terms", nil,
			[]awsv1.SubnetSelectorTerm{{ID: "subnet-1"}, {ID: "subnet-2"}, {ID: "subnet-3"}, {ID: "subnet-4"},
				{ID: "subnet-5"}},
			"no subnet has the id subnet-1; there are no subnets in the cluster's VPC $VPC; no subnet has the id " +
				"subnet-2; no subnet has the id subnet-3; 2 more terms match none either"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			words := []string{"$VPC", w.vpc}
			for i, tags := range tc.there {
				words = append(words, "$"+string(rune('0'+i)), w.subnet("us-west-2a", "10.0."+string(rune('0'+i))+
					".0/24", tags...))
			}
			want := strings.NewReplacer(words...).Replace(tc.want) + mendSubnets
			if got := w.finder.WhyNoSubnets(t.Context(), withSubnets(tc.terms...)); got != want {
				t.Errorf("said  %s\nwant  %s", got, want)
			}
		})
	}
}

func TestWhyNoSecurityGroups(t *testing.T) {
	w := newWorld(t)
	id := w.group("nodes", "team", "blue")
	const mend = "; tag the security groups that nodes should have, or change spec.securityGroupSelectorTerms"
	got := w.finder.WhyNoSecurityGroups(t.Context(), withGroups(awsv1.SecurityGroupSelectorTerm{Name: "pods"}))
	if want := "no security group has the name pods; in the cluster's VPC " + w.vpc + " there is only " + id +
		" (nodes)" + mend; got != want {
		t.Errorf("said  %s\nwant  %s", got, want)
	}
	got = w.finder.WhyNoSecurityGroups(t.Context(),
		withGroups(awsv1.SecurityGroupSelectorTerm{Tags: map[string]string{"team": "red"}}))
	if want := "no security group matches tags team=red; 1 security group in the cluster's VPC " + w.vpc +
		" carries team=blue" + mend; got != want {
		t.Errorf("said  %s\nwant  %s", got, want)
	}
}

// If it is not known what is there, at least what was not found is said.
func TestWhyWithoutPermission(t *testing.T) {
	w := newWorld(t)
	w.faults.Deny("ec2:DescribeSubnets")
	got := w.finder.WhyNoSubnets(t.Context(),
		withSubnets(awsv1.SubnetSelectorTerm{Tags: map[string]string{"team": "red"}}))
	if want := "no subnet matches tags team=red" + mendSubnets; got != want {
		t.Errorf("said  %s\nwant  %s", got, want)
	}
}

func TestWhyNoPlacementGroup(t *testing.T) {
	for want, s := range map[string]*awsv1.PlacementGroupSelector{
		"no placement group pg-1 is":       {ID: new("pg-1")},
		"no placement group named mine is": {Name: new("mine")},
	} {
		if got := network.WhyNoPlacementGroup(s); !strings.HasPrefix(got, want) || !strings.HasSuffix(got,
			"change spec.placementGroupSelector") {
			t.Errorf("said %s", got)
		}
	}
}
