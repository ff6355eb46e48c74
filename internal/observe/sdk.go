package observe

import (
	"context"
	"errors"
	"strconv"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/prometheus/client_golang/prometheus"
)

// SDK counts and times calls to AWS: what it returns is one of the APIOptions of the SDK's configuration. A request is what
// somebody wanted; it has one attempt, and more if it is tried again.
func SDK(registry Registerer, now func() time.Time) func(*middleware.Stack) error {
	mk := maker{registry}
	labels := []string{"service", "action", "code"}
	buckets := prometheus.ExponentialBuckets(0.005, 2, 15)
	s := &sdk{
		now:        now,
		total:      mk.counter("aws_sdk_go_request_total", "Requests to AWS, by the status of the last answer.", labels...),
		took:       mk.histogram("aws_sdk_go_request_duration_seconds", "Time until a request to AWS was answered for good.", buckets, labels...),
		attempts:   mk.counter("aws_sdk_go_request_attempt_total", "Attempts of requests to AWS, by the status of the answer.", labels...),
		attemptFor: mk.histogram("aws_sdk_go_request_attempt_duration_seconds", "Time until an attempt was answered.", buckets, labels...),
		retries:    mk.histogram("aws_sdk_go_request_retry_count", "How often requests to AWS were tried again.", []float64{0, 1, 2, 3, 4, 5, 10}, labels...),
	}
	return func(stack *middleware.Stack) error {
		return errors.Join(
			stack.Initialize.Add(middleware.InitializeMiddlewareFunc("tenonRequests", s.request), middleware.After), // after who says which service it is
			stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("tenonAttempts", s.attempt), (&retry.Attempt{}).ID(), middleware.After),
		)
	}
}

type sdk struct {
	now              func() time.Time
	total, attempts  *prometheus.CounterVec
	took, attemptFor *prometheus.HistogramVec
	retries          *prometheus.HistogramVec
}

// request is around all attempts.
func (s *sdk) request(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	began := s.now()
	out, answer, err := next.HandleInitialize(ctx, in)
	labels := answered(ctx, answer, err)
	s.total.WithLabelValues(labels...).Inc()
	s.took.WithLabelValues(labels...).Observe(elapsed(began, s.now()))
	if results, ok := retry.GetAttemptResults(answer); ok && len(results.Results) > 0 {
		s.retries.WithLabelValues(labels...).Observe(float64(len(results.Results) - 1))
	}
	return out, answer, err
}

// attempt is around one attempt.
func (s *sdk) attempt(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	began := s.now()
	out, answer, err := next.HandleFinalize(ctx, in)
	labels := answered(ctx, answer, err)
	s.attempts.WithLabelValues(labels...).Inc()
	s.attemptFor.WithLabelValues(labels...).Observe(elapsed(began, s.now()))
	return out, answer, err
}

// answered are the service, the action and the status of the answer, which is "<error>" if there was none.
func answered(ctx context.Context, answer middleware.Metadata, err error) []string {
	code := "<error>"
	if failed, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		code = strconv.Itoa(failed.HTTPStatusCode())
	} else if raw, ok := awsmiddleware.GetRawResponse(answer).(*smithyhttp.Response); ok && raw != nil {
		code = strconv.Itoa(raw.StatusCode)
	}
	return []string{awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx), code}
}
