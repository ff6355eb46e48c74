package ssm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
)

func TestGetParameter(t *testing.T) {
	a, config := simtest.Start(t, account.Options{})
	client := ssm.NewFromConfig(config)
	a.SSM.Put("/mine/one", "first")
	a.SSM.Put("/mine/one", "second")
	out, err := client.GetParameter(context.Background(), &ssm.GetParameterInput{Name: aws.String("/mine/one")})
	if err != nil {
		t.Fatal(err)
	}
	if p := out.Parameter; aws.ToString(p.Value) != "second" || p.Version != 2 || p.LastModifiedDate == nil ||
		aws.ToString(p.Name) != "/mine/one" {
		t.Errorf("got %+v", p)
	}
	_, err = client.GetParameter(context.Background(), &ssm.GetParameterInput{Name: aws.String("/mine/none")})
	if missing := (*types.ParameterNotFound)(nil); !errors.As(err, &missing) {
		t.Errorf("a parameter that is not there gives %v", err)
	}
	many, err := client.GetParameters(context.Background(), &ssm.GetParametersInput{Names: []string{"/mine/one",
		"/mine/none"}})
	if err != nil || len(many.Parameters) != 1 || len(many.InvalidParameters) != 1 {
		t.Errorf("got %+v, %v", many, err)
	}
}

func TestGetParametersByPathPages(t *testing.T) {
	a, config := simtest.Start(t, account.Options{})
	client := ssm.NewFromConfig(config)
	for n := range 23 {
		a.SSM.Put(fmt.Sprintf("/tree/leaf-%02d", n), "x")
	}
	a.SSM.Put("/tree/branch/leaf", "x")
	a.SSM.Put("/treehouse", "x")
	for recursive, want := range map[bool]int{false: 23, true: 24} {
		pages, got := 0, 0
		p := ssm.NewGetParametersByPathPaginator(client, &ssm.GetParametersByPathInput{Path: aws.String("/tree"),
			Recursive: aws.Bool(recursive)})
		for p.HasMorePages() {
			out, err := p.NextPage(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			pages++
			got += len(out.Parameters)
		}
		if got != want || pages != 3 {
			t.Errorf("recursive=%v: %d parameters on %d pages, want %d on 3", recursive, got, pages, want)
		}
	}
	_, err := client.GetParametersByPath(context.Background(), &ssm.GetParametersByPathInput{Path: aws.String("/tree"),
		NextToken: aws.String("!")})
	if api := smithy.APIError(nil); !errors.As(err, &api) || api.ErrorCode() != "InvalidNextToken" {
		t.Errorf("a made-up token gives %v", err)
	}
}
