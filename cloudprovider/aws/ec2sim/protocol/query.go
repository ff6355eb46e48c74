package protocol

import (
	"encoding/xml"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// FormOp answers one action that came as a form. The answer is encoded as the action's result; nil if it has none.
type FormOp func(c *wire.Call, form url.Values) (any, *wire.Error)

// Query is a service that takes forms and gives XML.
type Query struct {
	Service   string
	Namespace string // of the XML
	Ops       map[string]FormOp
}

var _ wire.Service = (*Query)(nil)

// Name is the service's name in credential scopes.
func (s *Query) Name() string { return s.Service }

// Actions lists what the service can do.
func (s *Query) Actions() []string { return slices.Sorted(maps.Keys(s.Ops)) }

// Action is the form's Action.
func (s *Query) Action(_ *http.Request, body []byte) string {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return ""
	}
	return form.Get("Action")
}

// response is the frame around a result:
// <XResponse><XResult>…</XResult><ResponseMetadata>…</ResponseMetadata></XResponse>.
type response struct {
	XMLName   xml.Name
	Namespace string `xml:"xmlns,attr"`
	Result    result
	RequestID string `xml:"ResponseMetadata>RequestId"`
}

// result writes any value under the name of the action's result.
type result struct {
	name  string
	value any
}

// MarshalXML writes the value, or nothing for an action without a result.
func (r result) MarshalXML(e *xml.Encoder, _ xml.StartElement) error {
	if r.value == nil {
		return nil
	}
	return e.EncodeElement(r.value, xml.StartElement{Name: xml.Name{Local: r.name}})
}

// ServeAWS answers a call.
func (s *Query) ServeAWS(w http.ResponseWriter, c *wire.Call) {
	op := s.Ops[c.Action]
	if op == nil {
		s.Fail(w, c, wire.Errorf("InvalidAction", "Could not find operation %s for version %s", c.Action,
			"of the simulator"))
		return
	}
	form, err := url.ParseQuery(string(c.Body))
	if err != nil {
		s.Fail(w, c, wire.Errorf("MalformedQueryString", "%v", err))
		return
	}
	value, failed := op(c, form)
	if failed != nil {
		s.Fail(w, c, failed)
		return
	}
	body, err := xml.Marshal(response{
		XMLName: xml.Name{Local: c.Action + "Response"}, Namespace: s.Namespace,
		Result: result{name: c.Action + "Result", value: value}, RequestID: c.RequestID,
	})
	if err != nil {
		s.Fail(w, c, internal(err))
		return
	}
	write(w, c, http.StatusOK, "text/xml", body)
}

// failure is an error in XML.
type failure struct {
	XMLName   xml.Name `xml:"ErrorResponse"`
	Namespace string   `xml:"xmlns,attr"`
	Type      string   `xml:"Error>Type"`
	Code      string   `xml:"Error>Code"`
	Message   string   `xml:"Error>Message"`
	RequestID string   `xml:"RequestId"`
}

// Fail writes an error.
func (s *Query) Fail(w http.ResponseWriter, c *wire.Call, e *wire.Error) {
	body, err := xml.Marshal(failure{Namespace: s.Namespace, Type: blame(e), Code: e.Code, Message: e.Message,
		RequestID: c.RequestID})
	if err != nil {
		body = []byte("<ErrorResponse/>")
	}
	write(w, c, e.StatusCode(), "text/xml", body)
}

// Pairs reads a list of keys and values, such as Tags.member.1.Key and Tags.member.1.Value.
func Pairs(form url.Values, name string) map[string]string {
	pairs := map[string]string{}
	for n := 1; ; n++ {
		at := name + ".member." + strconv.Itoa(n)
		if !form.Has(at + ".Key") {
			return pairs
		}
		pairs[form.Get(at+".Key")] = form.Get(at + ".Value")
	}
}

// List reads a list, such as TagKeys.member.1.
func List(form url.Values, name string) []string {
	var list []string
	for n := 1; ; n++ {
		at := name + ".member." + strconv.Itoa(n)
		if !form.Has(at) {
			return list
		}
		list = append(list, form.Get(at))
	}
}
