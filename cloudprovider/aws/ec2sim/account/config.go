package account

import (
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Config is a configuration of the SDK for the account at the URL, without retries: a test wants to see every error.
func (a *Account) Config(url string) aws.Config {
	return aws.Config{
		Region: a.World.Region(), BaseEndpoint: aws.String(url),
		Credentials: credentials.NewStaticCredentialsProvider(a.Key.ID, a.Key.Secret, a.Key.Token),
		HTTPClient:  &plainBodies{client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxIdle}}},
		Retryer:     func() aws.Retryer { return aws.NopRetryer{} },
	}
}

// maxIdle is how many connections a test's client keeps.
const maxIdle = 32

// plainBodies is an HTTP client that hides from net/http what else a request's body can do than be read. The SDK closes
// a body when the answer begins, and a body that writes itself then looks broken to net/http, which cuts the connection
// before the answer is read. Against an endpoint as near as this one that happens.
type plainBodies struct{ client http.Client }

// Do sends a request.
func (p *plainBodies) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return p.client.Do(r)
}
