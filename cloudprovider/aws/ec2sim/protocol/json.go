package protocol

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Op answers one action with a value to encode.
type Op func(c *wire.Call) (any, *wire.Error)

// On makes an Op of a function that takes the decoded JSON body.
func On[In, Out any](f func(c *wire.Call, in In) (Out, *wire.Error)) Op {
	return func(c *wire.Call) (any, *wire.Error) {
		var in In
		if len(c.Body) > 0 {
			if err := json.Unmarshal(c.Body, &in); err != nil {
				return nil, wire.Errorf("SerializationException", "%v", err)
			}
		}
		return f(c, in)
	}
}

// JSON is a service that takes and gives JSON and finds the action in the header X-Amz-Target.
type JSON struct {
	Service string // in credential scopes
	Version string // of the protocol: 1.0 or 1.1
	Ops     map[string]Op
	// QueryCodes are the codes that errors had when the service still spoke XML, where they differ. SQS sends them
	// along, and clients go by them. Nil for a service that was never like that.
	QueryCodes map[string]string
}

var _ wire.Service = (*JSON)(nil)

// Name is the service's name in credential scopes.
func (s *JSON) Name() string { return s.Service }

// Actions lists what the service can do.
func (s *JSON) Actions() []string { return slices.Sorted(maps.Keys(s.Ops)) }

// Action is what comes after the dot in X-Amz-Target.
func (s *JSON) Action(r *http.Request, _ []byte) string {
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return action
}

// ServeAWS answers a call.
func (s *JSON) ServeAWS(w http.ResponseWriter, c *wire.Call) {
	op := s.Ops[c.Action]
	if op == nil {
		s.Fail(w, c, unknown(c))
		return
	}
	out, failed := op(c)
	if failed != nil {
		s.Fail(w, c, failed)
		return
	}
	body, err := encode(out)
	if err != nil {
		s.Fail(w, c, internal(err))
		return
	}
	write(w, c, http.StatusOK, "application/x-amz-json-"+s.Version, body)
}

// Fail writes an error.
func (s *JSON) Fail(w http.ResponseWriter, c *wire.Call, e *wire.Error) {
	if s.QueryCodes != nil {
		code := e.Code
		if old, ok := s.QueryCodes[code]; ok {
			code = old
		}
		w.Header().Set("X-Amzn-Query-Error", code+";"+blame(e))
	}
	body, err := encode(map[string]string{"__type": e.Code, "message": e.Message})
	if err != nil {
		body = []byte("{}")
	}
	write(w, c, e.StatusCode(), "application/x-amz-json-"+s.Version, body)
}

// blame says whose fault an error is.
func blame(e *wire.Error) string {
	if e.StatusCode() >= 500 {
		return "Receiver"
	}
	return "Sender"
}
