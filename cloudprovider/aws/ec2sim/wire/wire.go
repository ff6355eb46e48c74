// Package wire is what the services of the simulated cloud share: the shape of one call as it came off the wire, the
// error that every service can answer with, and the interfaces by which a service and a gate plug into the server. It
// knows no service and no protocol.
package wire

import (
	"fmt"
	"net/http"
	"time"
)

// Clock tells the simulated cloud the time. Tests hand in one that they move.
type Clock interface {
	Now() time.Time
}

// RealClock is the machine's clock.
type RealClock struct{}

// Now returns the machine's time.
func (RealClock) Now() time.Time { return time.Now() }

// Call is one request with what the server found out about it before a service sees it.
type Call struct {
	Service   string // as the credential scope names it: ec2, ssm, iam, …
	Region    string // of the credential scope
	Action    string // DescribeSubnets, GetParameter, …
	AccessKey string // who signed
	RequestID string
	Body      []byte
	HTTP      *http.Request // its body has been read: use Body
}

// Error is what a service answers instead of a result. Each service writes it in its own protocol.
type Error struct {
	Code    string
	Message string
	Status  int // HTTP; zero means 400
}

// Errorf makes an error that blames the request.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Status: http.StatusBadRequest}
}

// Error is the code and the message in one line.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// StatusCode is the HTTP status to answer with.
func (e *Error) StatusCode() int {
	if e.Status == 0 {
		return http.StatusBadRequest
	}
	return e.Status
}

// Service is one of AWS's services.
type Service interface {
	// Name is the service's name in a credential scope.
	Name() string
	// Action says what a request asks for, so that gates can tell actions apart before the service sees the call.
	Action(r *http.Request, body []byte) string
	// Actions lists what the service can do, in order.
	Actions() []string
	// ServeAWS answers a call that passed all gates.
	ServeAWS(w http.ResponseWriter, c *Call)
	// Fail writes an error in the service's protocol.
	Fail(w http.ResponseWriter, c *Call, e *Error)
}

// Gate is something that a call must pass before its service: the signature, a permission, a fault that somebody asked
// for. It may take its time.
type Gate interface {
	Pass(c *Call) *Error
}

// GateFunc is a function as a Gate.
type GateFunc func(c *Call) *Error

// Pass calls the function.
func (f GateFunc) Pass(c *Call) *Error { return f(c) }

// Denied is the error for a caller whose permissions don't cover an action, with the code that the service uses for it.
func Denied(c *Call) *Error {
	code := "AccessDeniedException"
	switch c.Service {
	case "ec2":
		code = "UnauthorizedOperation"
	case "iam", "sts", "sqs":
		code = "AccessDenied"
	}
	return &Error{
		Code: code,
		Message: fmt.Sprintf("You are not authorized to perform this operation. User with access key %s has no "+
			"policy that allows %s:%s.", c.AccessKey, c.Service, c.Action),
		Status: http.StatusForbidden,
	}
}
