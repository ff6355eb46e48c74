package awscloud

import (
	"context"
	"strings"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// renewAfter is how long a session that was asked for is given the benefit of the doubt.
const renewAfter = 5 * time.Second

// renewSession has the next call ask for new credentials after AWS has called ours too old. The SDK keeps those of a
// session until the time that it was told; a session may be ended before, and a clock may be wrong.
func renewSession(from sdk.CredentialsProvider) func(*middleware.Stack) error {
	s := &session{from: from}
	return func(stack *middleware.Stack) error {
		const signing = "Signing"
		if _, signs := stack.Finalize.Get(signing); !signs {
			return nil
		}
		return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("tenonSession", s.watch), signing,
			middleware.After)
	}
}

// session is who we are to AWS.
type session struct {
	from sdk.CredentialsProvider

	mu      sync.Mutex
	renewed time.Time
}

// watch looks at the answer to a signed call.
func (s *session) watch(ctx context.Context, in middleware.FinalizeInput,
	next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	out, answer, err := next.HandleFinalize(ctx, in)
	if request, ok := in.Request.(*smithyhttp.Request); ok && fault.IsExpired(err) {
		s.end(ctx, request.Header.Get("Authorization"))
	}
	return out, answer, err
}

// end gives the session up with which a call was signed, unless there is another already: many calls fail together.
func (s *session) end(ctx context.Context, signature string) {
	cache, ok := s.from.(interface{ Invalidate() })
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.renewed) < renewAfter {
		return
	}
	if now, err := s.from.Retrieve(ctx); err == nil && strings.Contains(signature, "Credential="+now.AccessKeyID+"/") {
		cache.Invalidate()
		s.renewed = time.Now()
	}
}
