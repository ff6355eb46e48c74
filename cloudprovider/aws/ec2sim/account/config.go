package account

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Config is a configuration of the SDK for the account at the URL. It retries nothing that the account answered, nor an answer that
// got lost: a test wants to see every error.
func (a *Account) Config(url string) aws.Config {
	return aws.Config{
		Region: a.World.Region(), BaseEndpoint: aws.String(url), Retryer: retryer,
		Credentials: credentials.NewStaticCredentialsProvider(a.Key.ID, a.Key.Secret, a.Key.Token),
	}
}

// retryer tries again when the SDK's own HTTP client wrote to a connection that it had closed itself, which it does now and then on
// a busy machine: the request was never sent.
func retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = 3
		o.Retryables = []retry.IsErrorRetryable{retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
			return aws.BoolTernary(err != nil && strings.Contains(err.Error(), "use of closed network connection"))
		})}
		o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
	})
}
