package access

import (
	"context"
	"strings"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"

	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// Fence lets a request that changes something go out only while leads says that this replica leads. It is asked right
// before each attempt is sent: a request may have waited for its turn, for others to join it or for its next attempt,
// and the process may have been frozen meanwhile.
func Fence(leads func() bool) func(*middleware.Stack) error {
	check := func(ctx context.Context, in middleware.FinalizeInput,
		next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if !reads(awsmiddleware.GetOperationName(ctx)) && !leads() {
			return middleware.FinalizeOutput{}, middleware.Metadata{}, fault.ErrFenced
		}
		return next.HandleFinalize(ctx, in)
	}
	return func(stack *middleware.Stack) error {
		return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("tenonFence", check), middleware.After)
	}
}

// reads tells whether a call of the name changes nothing.
func reads(operation string) bool {
	for _, verb := range []string{"Describe", "Get", "List", "Receive"} {
		if strings.HasPrefix(operation, verb) {
			return true
		}
	}
	return false
}
