package access

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/prometheus/client_golang/prometheus"
)

// Count counts and times calls to AWS: what it returns is one of the APIOptions of the SDK's configuration. A request
// is what somebody wanted; it has one attempt, and more if it is tried again.
func Count(registry prometheus.Registerer, now func() time.Time) (func(*middleware.Stack) error, error) {
	labels := []string{"service", "action", "code"}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	times := prometheus.ExponentialBuckets(0.005, 2, 15)
	c := &counts{
		now:   now,
		total: counter("aws_sdk_go_request_total", "Requests to AWS, by the status of the last answer."),
		took: histogram("aws_sdk_go_request_duration_seconds", "Time until a request to AWS was answered for "+
			"good.", times),
		attempts: counter("aws_sdk_go_request_attempt_total", "Attempts of requests to AWS, by the status of the "+
			"answer."),
		attemptFor: histogram("aws_sdk_go_request_attempt_duration_seconds", "Time until an attempt was answered.",
			times),
		retries: histogram("aws_sdk_go_request_retry_count", "How often requests to AWS were tried again.",
			[]float64{0, 1, 2, 3, 4, 5, 10}),
	}
	for _, metric := range []prometheus.Collector{c.total, c.took, c.attempts, c.attemptFor, c.retries} {
		if err := registry.Register(metric); err != nil {
			return nil, fmt.Errorf("registering the metrics of calls to AWS: %w", err)
		}
	}
	return c.add, nil
}

type counts struct {
	now              func() time.Time
	total, attempts  *prometheus.CounterVec
	took, attemptFor *prometheus.HistogramVec
	retries          *prometheus.HistogramVec
}

func (c *counts) add(stack *middleware.Stack) error {
	return errors.Join(
		// after who says which service it is
		stack.Initialize.Add(middleware.InitializeMiddlewareFunc("tenonRequests", c.request), middleware.After),
		stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("tenonAttempts", c.attempt), (&retry.Attempt{}).ID(),
			middleware.After),
	)
}

// request is around all attempts.
func (c *counts) request(ctx context.Context, in middleware.InitializeInput,
	next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	began := c.now()
	out, answer, err := next.HandleInitialize(ctx, in)
	labels := answered(ctx, answer, err)
	c.total.WithLabelValues(labels...).Inc()
	c.took.WithLabelValues(labels...).Observe(max(0, c.now().Sub(began).Seconds()))
	if results, ok := retry.GetAttemptResults(answer); ok && len(results.Results) > 0 {
		c.retries.WithLabelValues(labels...).Observe(float64(len(results.Results) - 1))
	}
	return out, answer, err
}

// attempt is around one attempt.
func (c *counts) attempt(ctx context.Context, in middleware.FinalizeInput,
	next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	began := c.now()
	out, answer, err := next.HandleFinalize(ctx, in)
	labels := answered(ctx, answer, err)
	c.attempts.WithLabelValues(labels...).Inc()
	c.attemptFor.WithLabelValues(labels...).Observe(max(0, c.now().Sub(began).Seconds()))
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
