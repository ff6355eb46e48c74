package sigv4

import (
	"errors"
	"net/http"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Verifier lets only calls pass that a known key signed. It is a wire.Gate.
type Verifier struct {
	Keys  *Ring
	Clock wire.Clock // tells when temporary keys expire
	// Sent tells the callers' time, against which their signatures must be fresh. It differs from Clock where a test
	// moves the cloud's time by hand: the SDK signs with the machine's. Clock if nil.
	Sent wire.Clock
	// Open says which actions need no signature; nil: none.
	Open func(service, action string) bool
}

var _ wire.Gate = (*Verifier)(nil)

// Pass checks the signature of a call.
func (v *Verifier) Pass(c *wire.Call) *wire.Error {
	if v.Open != nil && v.Open(c.Service, c.Action) {
		return nil
	}
	now, ahead := v.Clock.Now(), time.Duration(0)
	if v.Sent != nil {
		ahead = v.Sent.Now().Sub(now)
	}
	lookup := func(id string) (Key, bool) {
		key, known := v.Keys.Lookup(id)
		if !key.Expires.IsZero() {
			key.Expires = key.Expires.Add(ahead)
		}
		return key, known
	}
	who, err := Check(c.HTTP, c.Body, lookup, now.Add(ahead))
	if err == nil && who.Service != c.Service {
		err = refuse(WrongSignature, "Credential should be scoped to correct service: '"+c.Service+"'.")
	}
	if err == nil {
		return nil
	}
	var refused *Error
	if !errors.As(err, &refused) {
		return &wire.Error{Code: "InternalFailure", Message: err.Error(), Status: http.StatusInternalServerError}
	}
	status, code, message := refused.For(c.Service)
	return &wire.Error{Code: code, Message: message, Status: status}
}
