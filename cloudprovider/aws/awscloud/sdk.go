package awscloud

import (
	"context"
	"io"
	"net/http"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
)

const (
	// awsAttempts is how often a call is made before its error counts. More would only hide what a caller could act on.
	awsAttempts = 5
	// regionPatience is how long the machine may take to say in which region it is.
	regionPatience = 5 * time.Second
	// awsTimeout bounds how long AWS may take to begin its answer.
	awsTimeout = time.Minute
	// awsConnections are kept open to each service.
	awsConnections = 64
)

// awsClient keeps enough connections for the bursts that a controller makes.
func awsClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost, t.ResponseHeaderTimeout = 4*awsConnections, awsConnections, awsTimeout
	})
}

// plainBodies hides the WriteTo of the SDK's request bodies. If an answer begins before all of the body was sent, which
// a near endpoint may do, the SDK closes the body; its WriteTo then reports an end that the HTTP client takes for a
// failure, and cuts the connection that the answer is read from.
type plainBodies struct{ next sdk.HTTPClient }

func (p plainBodies) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		plain := *r
		plain.Body = struct{ io.ReadCloser }{r.Body}
		r = &plain
	}
	return p.next.Do(r)
}

// regionOfMachine asks the machine that we run on.
func regionOfMachine(ctx context.Context, conf sdk.Config) (string, error) {
	out, err := imds.NewFromConfig(conf).GetRegion(ctx, &imds.GetRegionInput{})
	if err != nil {
		return "", err
	}
	return out.Region, nil
}
