// Package fault puts errors of the AWS SDK into one clear line: what was being done, AWS's own code and message, and
// what the reader can do about it. Where a caller acts on the kind of an error it gets cloudprovider's typed one.
//
// It is public, pure and used by every package that calls AWS, so that the same mistake reads the same everywhere.
package fault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/tenon-sh/tenon/cloudprovider"
)

// Error is an answer of AWS that says no, or the lack of an answer.
type Error struct {
	// Doing is what we were about, such as "launching 3 instances".
	Doing string
	// Call is the action in the words of an IAM policy, such as "ec2:CreateFleet"; empty if it is not known.
	Call string
	// Code is AWS's own; empty if AWS did not answer.
	Code    string
	Message string
	// Fix is what the reader can do; empty if there is nothing to say.
	Fix   string
	cause error
}

func (e *Error) Error() string {
	parts := make([]string, 0, 4)
	for _, p := range []string{e.Doing, e.Call, e.Code, e.Message} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	line := strings.Join(parts, ": ")
	if e.Fix != "" {
		line += "; fix: " + e.Fix
	}
	return line
}

func (e *Error) Unwrap() error { return e.cause }

// Explain returns nil for nil. Otherwise the answer reads as one line and is an UnauthorizedError or a ThrottledError
// of package cloudprovider if it is of that kind. An error that was explained already only gets what was being done in
// front of it.
func Explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, told := errors.AsType[*Error](err); told || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	e := &Error{Doing: doing, Call: Call(err), cause: err}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		e.Code, e.Message = api.ErrorCode(), oneLine(api.ErrorMessage())
	} else {
		e.Message = oneLine(innermost(err))
	}
	e.Fix = Fix(e.Code, e.Call)
	switch {
	case LacksCredentials(err) && IsIdentity(err) && e.Code == "":
		// Nobody has refused us: the way there is missing.
		e.Fix = "AWS STS can't be reached, so the controller can't take on its role; in a network without a way out " +
			"add a VPC endpoint for STS, or set AWS_ENDPOINT_URL_STS to one"
	case LacksCredentials(err):
		e.Fix = "give the controller credentials: a role for its service account (IRSA or EKS Pod Identity), the " +
			"instance's own role, or the AWS_* environment variables"
		return &cloudprovider.UnauthorizedError{Cause: e}
	case IsUnauthorized(err):
		return &cloudprovider.UnauthorizedError{Cause: e}
	case IsThrottled(err):
		return &cloudprovider.ThrottledError{Cause: e}
	}
	return e
}

// Code is AWS's own code of the error; empty if AWS has not answered.
func Code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// ErrFenced says that a request was not sent, because this replica may no longer lead. Whoever leads decides anew.
var ErrFenced = errors.New("nothing was sent: this replica can't be sure that it still leads")

// Lost reports whether it is not known if AWS did what it was asked: no answer came, or one that says that something
// broke on the way. A caller has to look, or to ask again with the same token.
func Lost(err error) bool {
	// EC2 answers a lack of capacity with a status of 500, and that is an answer.
	if err == nil || errors.Is(err, ErrFenced) || LacksCredentials(err) || IsThrottled(err) ||
		strings.HasPrefix(Code(err), "Insufficient") {
		return false
	}
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && response.HTTPStatusCode() >= 500 {
		return true
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorFault() == smithy.FaultServer || serverCode(api.ErrorCode())
	}
	return true
}

// IsNotFound reports whether AWS says that what was named does not exist.
func IsNotFound(err error) bool {
	code := Code(err)
	return strings.Contains(code, "NotFound") || code == "NoSuchEntity" || code == "ResourceNotFoundException" ||
		code == "AWS.SimpleQueueService.NonExistentQueue"
}

// IsDryRun reports whether the answer to a dry run was that it would have worked.
func IsDryRun(err error) bool { return Code(err) == "DryRunOperation" }

// IsUnauthorized reports whether AWS knows us not, or does not let us.
func IsUnauthorized(err error) bool {
	code := Code(err)
	switch code {
	case "UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "AuthFailure", "UnauthorizedAccess",
		"NotAuthorized",
		"Client.UnauthorizedOperation", "OptInRequired", "MissingAuthenticationToken", "IncompleteSignature":
		return true
	}
	return expired(code) || unknownKey(code) || strings.HasPrefix(code, "AuthFailure.")
}

// IsThrottled reports whether AWS asks us to slow down.
func IsThrottled(err error) bool {
	switch Code(err) {
	case "RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled",
		"RequestThrottledException",
		"TooManyRequestsException", "EC2ThrottledException", "SlowDown", "ResourceCountLimitThrottled",
		"BandwidthLimitExceeded",
		"PriorRequestNotComplete", "ProvisionedThroughputExceededException":
		return true
	}
	response, ok := errors.AsType[*smithyhttp.ResponseError](err)
	return ok && response.HTTPStatusCode() == http.StatusTooManyRequests
}

// IsExpired reports whether AWS knows us, but calls our session too old.
func IsExpired(err error) bool { return expired(Code(err)) }

func expired(code string) bool {
	switch code {
	case "ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired":
		return true
	}
	return false
}

func unknownKey(code string) bool {
	switch code {
	case "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidSignatureException",
		"InvalidAccessKeyId",
		"InvalidIdentityToken":
		return true
	}
	return false
}

// serverCode lists the codes with which EC2 says, sometimes with a status that looks like our fault, that something
// broke on its side.
func serverCode(code string) bool {
	switch code {
	case "InternalError", "InternalFailure", "ServiceUnavailable", "Unavailable", "ServiceUnavailableException",
		"InternalServerError", "RequestTimeout":
		return true
	}
	return false
}

// LacksCredentials reports whether the call was never made, because we have nobody to make it as.
func LacksCredentials(err error) bool {
	if err == nil {
		return false
	}
	if _, ok := errors.AsType[*v4.SigningError](err); ok {
		return true
	}
	var api smithy.APIError
	return !errors.As(err, &api) && strings.Contains(err.Error(), "get identity")
}

// Call is the action that failed, in the words of an IAM policy; empty if it is not known. To make one call the SDK may
// make another first, to take on a role: then that is the one that failed.
func Call(err error) string {
	name := ""
	for {
		op, ok := errors.AsType[*smithy.OperationError](err)
		if !ok {
			return name
		}
		if op.OperationName != "" {
			name = Service(op.ServiceID) + ":" + op.OperationName
		}
		err = op.Err
	}
}

// IsIdentity reports whether what failed was to become who we should be, and not the call that was to follow.
func IsIdentity(err error) bool { return strings.HasPrefix(Call(err), "sts:") }

// Service is how IAM policies name a service that the SDK knows under the id.
func Service(id string) string {
	switch id {
	case "ARC Zonal Shift":
		return "arc-zonal-shift"
	default:
		return strings.ToLower(strings.ReplaceAll(id, " ", "-"))
	}
}

// innermost is the text of the error without what the SDK wraps around it.
func innermost(err error) string {
	for {
		op, ok := errors.AsType[*smithy.OperationError](err)
		if !ok {
			return err.Error()
		}
		err = op.Err
	}
}

// longest is how much of a message is kept: conditions and events are read by people.
const longest = 400

// oneLine shortens what AWS says to one line that a person reads. The encoded part of an authorization failure is left
// out; it is long and says nothing to the eye.
func oneLine(text string) string {
	if at := strings.Index(text, "Encoded authorization failure message"); at >= 0 {
		text = strings.TrimRight(text[:at], " .") + "."
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}

// DidNothing tells whether EC2 has done nothing about a call and remembers nothing of it.
func DidNothing(err error) bool {
	return errors.Is(err, ErrFenced) || IsThrottled(err) || LacksCredentials(err) || IsUnauthorized(err)
}
