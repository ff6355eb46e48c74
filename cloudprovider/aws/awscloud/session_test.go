package awscloud

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// A session that AWS ends before its time is given up at once, and the next call is made with another.
func TestAnEndedSessionIsRenewed(t *testing.T) {
	var ended string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Authorization"), "Credential="+ended+"/") {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `<Response><Errors><Error><Code>RequestExpired</Code><Message>Request has `+
				`expired.</Message></Error></Errors></Response>`)
			return
		}
		fmt.Fprint(w, `<DescribeSubnetsResponse `+
			`xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><subnetSet/></DescribeSubnetsResponse>`)
	}))
	t.Cleanup(server.Close)
	sessions := 0
	cache := sdk.NewCredentialsCache(sdk.CredentialsProviderFunc(func(context.Context) (sdk.Credentials, error) {
		sessions++
		return sdk.Credentials{AccessKeyID: fmt.Sprintf("KEY%d", sessions), SecretAccessKey: "secret", CanExpire: true,
			Expires: time.Now().Add(time.Hour)}, nil
	}))
	conf := sdk.Config{Region: "us-west-2", BaseEndpoint: &server.URL, Credentials: cache}
	conf.APIOptions = append(conf.APIOptions, renewSession(cache))
	api := ec2.NewFromConfig(conf)
	call := func() error {
		_, err := api.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
		return err
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	ended = "KEY1"
	if err := call(); !fault.IsExpired(err) {
		t.Fatalf("got %v", err)
	}
	if err := call(); err != nil || sessions != 2 {
		t.Errorf("after the session had ended: %v, %d sessions", err, sessions)
	}
	// If the next ends at once, too, AWS is not asked for one with every call.
	ended = "KEY2"
	for range 10 {
		_ = call()
	}
	if sessions != 2 {
		t.Errorf("%d sessions within a moment", sessions)
	}
}
