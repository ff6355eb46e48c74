package access_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/access"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// house is an endpoint that notes what it was asked.
func house(t *testing.T, asked *[]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		action := r.FormValue("Action")
		*asked = append(*asked, action)
		fmt.Fprintf(w, `<%[1]sResponse><%[1]sResult><Credentials><AccessKeyId>KEY</AccessKeyId>`+
			`<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>`+
			`<Expiration>2126-01-01T00:00:00Z</Expiration></Credentials></%[1]sResult></%[1]sResponse>`, action)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// inside is an environment that says nothing of AWS, but for what the test says.
func inside(t *testing.T, env map[string]string) {
	t.Helper()
	for _, line := range os.Environ() {
		if name, _, _ := strings.Cut(line, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "") // so that it is put back
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{"AWS_REGION": "us-west-2", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none} {
		t.Setenv(name, value)
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// closed is an HTTP client that reaches only this machine.
type closed struct{ asked []string }

func (c *closed) Do(r *http.Request) (*http.Response, error) {
	if r.URL.Hostname() != "127.0.0.1" {
		c.asked = append(c.asked, r.URL.Hostname())
		return nil, fmt.Errorf("lookup %s: no such host", r.URL.Hostname())
	}
	return http.DefaultClient.Do(r)
}

func load(t *testing.T, way *closed) aws.Config {
	t.Helper()
	conf, err := access.Load(t.Context(), config.WithHTTPClient(way), config.WithRetryer(func() aws.Retryer {
		return aws.NopRetryer{}
	}))
	if err != nil {
		t.Fatal(err)
	}
	return conf
}

const arn = "arn:aws:iam::123456789012:role/tenon"

// A role is taken on where all other services are asked, however the controller comes by it.
func TestRolesAreTakenOnAtTheSameEndpoint(t *testing.T) {
	var all, own []string
	allURL, ownURL := house(t, &all), house(t, &own)
	irsa := map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": file(t, "token"), "AWS_ROLE_ARN": arn}
	keys := "\n[profile base]\naws_access_key_id = id\naws_secret_access_key = secret\n"
	for _, tc := range []struct {
		name     string
		env      map[string]string
		all, own int
	}{
		{"irsa", map[string]string{"AWS_ENDPOINT_URL": allURL}, 1, 0},
		{"irsa with an endpoint of STS", map[string]string{"AWS_ENDPOINT_URL": allURL, "AWS_ENDPOINT_URL_STS": ownURL},
			0, 1},
		{"irsa with only an endpoint of STS", map[string]string{"AWS_ENDPOINT_URL_STS": ownURL}, 0, 1},
		{"irsa, endpoints ignored", map[string]string{"AWS_ENDPOINT_URL": allURL,
			"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, 0, 0},
		{"irsa, endpoint in a file", map[string]string{"AWS_CONFIG_FILE": file(t, "[default]\nendpoint_url = "+allURL+
			"\n")}, 1, 0},
		{"role of a profile", map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "", "AWS_ENDPOINT_URL": allURL,
			"AWS_CONFIG_FILE": file(t, "[default]\nrole_arn = "+arn+"\nsource_profile = base\n"+keys)}, 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all, own = nil, nil
			inside(t, irsa)
			for name, value := range tc.env {
				t.Setenv(name, value)
			}
			way := &closed{}
			got, err := load(t, way).Credentials.Retrieve(t.Context())
			if len(all) != tc.all || len(own) != tc.own {
				t.Errorf("asked %q at the one for all and %q at the one of STS", all, own)
			}
			if public := tc.all+tc.own == 0; public != (len(way.asked) > 0) || public != (err != nil) || !public &&
				got.AccessKeyID != "KEY" {
				t.Errorf("got %q, %v, after %q", got.AccessKeyID, err, way.asked)
			}
		})
	}
}

// With no way to STS at all the error says so, and not that credentials are missing.
func TestNoWayToSTS(t *testing.T) {
	inside(t, map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": file(t, "token"), "AWS_ROLE_ARN": arn})
	_, raw := ec2.NewFromConfig(load(t, &closed{})).DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	err := fault.Explain("finding subnets", raw)
	for _, want := range []string{"sts:AssumeRoleWithWebIdentity", "no such host", "STS can't be reached",
		"VPC endpoint for STS", "AWS_ENDPOINT_URL_STS"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if cloudprovider.IsUnauthorized(err) || fault.LacksCredentials(err) || strings.Contains(err.Error(),
		"give the controller credentials") {
		t.Errorf("nobody has refused us: %v", err)
	}
}
