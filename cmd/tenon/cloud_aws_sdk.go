package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
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

// awsTransport keeps enough connections for the bursts that a controller makes.
func awsTransport() http.RoundTripper {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	return plainBodies{&http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		MaxIdleConns: 4 * awsConnections, MaxIdleConnsPerHost: awsConnections, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: awsTimeout,
	}}
}

// plainBodies hides the WriteTo of the SDK's request bodies. If an answer begins before all of the body was sent, which a
// near endpoint may do, the SDK closes the body; its WriteTo then reports an end that the HTTP client takes for a failure, and
// cuts the connection that the answer is read from.
type plainBodies struct{ next http.RoundTripper }

func (p plainBodies) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		plain := *r
		plain.Body = struct{ io.ReadCloser }{r.Body}
		r = &plain
	}
	return p.next.RoundTrip(r)
}

// regionOfMachine asks the machine that we run on.
func regionOfMachine(ctx context.Context, conf sdk.Config) (string, error) {
	out, err := imds.NewFromConfig(conf).GetRegion(ctx, &imds.GetRegionInput{})
	if err != nil {
		return "", err
	}
	return out.Region, nil
}

// tellPriceAge shows how old the prices are that nodes are bought by.
func tellPriceAge(book *price.Book) error {
	for _, kind := range []price.Kind{price.OnDemand, price.Spot} {
		err := metrics.Registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tenon_aws_price_age_seconds", Help: "How old the prices are that nodes are bought by.",
			ConstLabels: prometheus.Labels{"kind": string(kind)},
		}, func() float64 { return book.Age(kind).Seconds() }))
		if err != nil {
			return err
		}
	}
	return nil
}
