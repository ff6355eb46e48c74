// Package simtest starts a simulated AWS account for a test, and has a clock that the test moves.
package simtest

import (
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
)

// Start serves an account on a loopback port until the test ends, and returns it with a configuration of the SDK.
func Start(t testing.TB, o account.Options) (*account.Account, aws.Config) {
	t.Helper()
	a, err := account.New(o)
	if err != nil {
		t.Fatalf("making a simulated account: %v", err)
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return a, a.Config(server.URL)
}
