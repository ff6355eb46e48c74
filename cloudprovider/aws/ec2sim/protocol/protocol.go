// Package protocol speaks the three languages in which the simulated cloud's services other than EC2 talk: JSON with
// the action in a header (SSM, SQS, Pricing), JSON over paths (EKS, zonal shifts), and forms answered with XML (IAM,
// STS). A service gives it a table of actions and is a wire.Service.
package protocol

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Time is a time as JSON services write it: seconds since 1970 with a fraction.
type Time time.Time

// MarshalJSON writes the seconds.
func (t Time) MarshalJSON() ([]byte, error) {
	return json.Marshal(float64(time.Time(t).UnixMilli()) / 1000)
}

// unknown is the answer to an action that the simulator does not have.
func unknown(c *wire.Call) *wire.Error {
	return wire.Errorf("UnknownOperationException", "The simulated %s does not know the action %q.",
		c.Service, c.Action)
}

// write sends an answer. A client that has gone away does not hear it, which is its affair.
func write(w http.ResponseWriter, c *wire.Call, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Amzn-Requestid", c.RequestID)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// encode writes JSON without escaping what is only special in HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

func internal(err error) *wire.Error {
	return &wire.Error{Code: "InternalFailure", Message: err.Error(), Status: http.StatusInternalServerError}
}
