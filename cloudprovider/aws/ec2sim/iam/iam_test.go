package iam_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
)

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if api := smithy.APIError(nil); !errors.As(err, &api) || api.ErrorCode() != code {
		t.Errorf("got %v, want the code %s", err, code)
	}
}

func TestLifeOfAnInstanceProfile(t *testing.T) {
	ctx := context.Background()
	clock := simtest.NewClock()
	a, config := simtest.Start(t, account.Options{Clock: clock, Propagation: 5 * time.Second})
	client := iam.NewFromConfig(config)
	name, role := aws.String("lab_1234"), aws.String(a.NodeRole())
	created, err := client.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{
		InstanceProfileName: name, Path: aws.String("/karpenter/us-west-2/lab/uid/"),
		Tags: []types.Tag{{Key: aws.String("one"), Value: aws.String("1")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	arn := aws.ToString(created.InstanceProfile.Arn)
	if want := "arn:aws:iam::123456789012:instance-profile/karpenter/us-west-2/lab/uid/lab_1234"; arn != want {
		t.Errorf("the profile's ARN is %s, want %s", arn, want)
	}
	if a.IAM.KnownToEC2("lab_1234") {
		t.Error("EC2 knows a profile at once")
	}
	clock.Advance(5 * time.Second)
	if !a.IAM.KnownToEC2("lab_1234") || !a.IAM.KnownToEC2(arn) {
		t.Error("EC2 does not know a profile after the time that news takes")
	}
	_, err = client.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: name})
	wantCode(t, err, "EntityAlreadyExists")

	for _, tag := range []types.Tag{{Key: aws.String("a<b>"), Value: aws.String("1")}, {Key: aws.String("one"),
		Value: aws.String("{x}|")}} {
		_, err = client.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{InstanceProfileName: name,
			Tags: []types.Tag{tag}})
		wantCode(t, err, "ValidationError")
	}

	add := &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: role}
	if _, err := client.AddRoleToInstanceProfile(ctx, add); err != nil {
		t.Fatal(err)
	}
	_, err = client.AddRoleToInstanceProfile(ctx, add)
	wantCode(t, err, "LimitExceeded")
	_, err = client.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: name})
	wantCode(t, err, "DeleteConflict")
	if _, err := client.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{InstanceProfileName: name,
		Tags: []types.Tag{{Key: aws.String("two"), Value: aws.String("2")}}}); err != nil {
		t.Fatal(err)
	}

	got, err := client.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: name})
	if err != nil {
		t.Fatal(err)
	}
	p := got.InstanceProfile
	if len(p.Roles) != 1 || aws.ToString(p.Roles[0].RoleName) != *role || len(p.Tags) != 2 ||
		aws.ToString(p.Tags[1].Value) != "2" {
		t.Errorf("got roles %v and tags %v", p.Roles, p.Tags)
	}

	remove := &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: role}
	if _, err := client.RemoveRoleFromInstanceProfile(ctx, remove); err != nil {
		t.Fatal(err)
	}
	_, err = client.RemoveRoleFromInstanceProfile(ctx, remove)
	wantCode(t, err, "NoSuchEntity")
	if _, err := client.DeleteInstanceProfile(ctx,
		&iam.DeleteInstanceProfileInput{InstanceProfileName: name}); err != nil {
		t.Fatal(err)
	}
	_, err = client.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: name})
	if missing := (*types.NoSuchEntityException)(nil); !errors.As(err, &missing) {
		t.Errorf("a deleted profile gives %v", err)
	}
}

func TestRoles(t *testing.T) {
	ctx := context.Background()
	a, config := simtest.Start(t, account.Options{})
	client := iam.NewFromConfig(config)
	got, err := client.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(a.NodeRole())})
	if err != nil || aws.ToString(got.Role.Arn) != "arn:aws:iam::123456789012:role/"+a.NodeRole() {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = client.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String("nobody")})
	wantCode(t, err, "NoSuchEntity")
	if _, err := client.CreateInstanceProfile(ctx,
		&iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("p")}); err != nil {
		t.Fatal(err)
	}
	_, err = client.AddRoleToInstanceProfile(ctx,
		&iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String("p"), RoleName: aws.String("nobody")})
	wantCode(t, err, "NoSuchEntity")
	a.Faults.Deny("iam:PassRole")
	_, err = client.AddRoleToInstanceProfile(ctx,
		&iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String("p"), RoleName: aws.String(a.NodeRole())})
	wantCode(t, err, "AccessDenied")
}

func TestListInstanceProfilesPages(t *testing.T) {
	ctx := context.Background()
	_, config := simtest.Start(t, account.Options{})
	client := iam.NewFromConfig(config)
	for n := range 5 {
		for _, path := range []string{"/mine/", "/yours/"} {
			_, err := client.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{
				InstanceProfileName: aws.String(fmt.Sprintf("p%d-%s", n, path[1:len(path)-1])), Path: aws.String(path),
				Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	pages, got := 0, 0
	p := iam.NewListInstanceProfilesPaginator(client, &iam.ListInstanceProfilesInput{PathPrefix: aws.String("/mine/"),
		MaxItems: aws.Int32(2)})
	for p.HasMorePages() {
		out, err := p.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, one := range out.InstanceProfiles {
			got++
			if aws.ToString(one.Path) != "/mine/" || len(one.Tags) != 0 {
				t.Errorf("the list has %s in %s with tags %v; it must be of /mine/ and, like IAM's lists, without tags",
					*one.InstanceProfileName, *one.Path, one.Tags)
			}
		}
	}
	if pages != 3 || got != 5 {
		t.Errorf("%d profiles on %d pages, want 5 on 3", got, pages)
	}
}
