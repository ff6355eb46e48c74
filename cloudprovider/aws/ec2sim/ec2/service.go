// Package ec2 is the EC2 service of the simulated cloud: it puts EC2's wire protocol, its paging, filters, throttling
// and errors around the world of package cloud.
package ec2

import (
	"net/http"
	"net/url"
	"sort"
	"strings"
	"sync"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2/query"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Service answers EC2's calls. It is a wire.Service.
type Service struct {
	world   *cloud.World
	names   *query.Names
	limiter *limiter
	actions map[string]action
	tokens  sync.Mutex // calls with a client token run one after the other, so that two equal ones don't both act
}

// request is a call with its form.
type request struct {
	*wire.Call
	form url.Values
}

// action answers one kind of call.
type action func(*request) (any, *wire.Error)

// New makes the service for a world. The limits are AWSLimits, NoLimits or a test's own.
func New(world *cloud.World, limits Limits) *Service {
	s := &Service{world: world, names: query.NewNames(), limiter: newLimiter(limits, world.Now)}
	s.actions = map[string]action{
		"DescribeAvailabilityZones":      read(s, s.describeZones),
		"DescribeInstanceTypes":          read(s, s.describeTypes),
		"DescribeInstanceTypeOfferings":  read(s, s.describeOfferings),
		"DescribeVpcs":                   read(s, s.describeVPCs),
		"DescribeSubnets":                read(s, s.describeSubnets),
		"DescribeSecurityGroups":         read(s, s.describeGroups),
		"DescribeImages":                 read(s, s.describeImages),
		"DescribeCapacityReservations":   read(s, s.describeReservations),
		"DescribePlacementGroups":        read(s, s.describePlacementGroups),
		"DescribeSpotPriceHistory":       read(s, s.describeSpotPrices),
		"DescribeLaunchTemplates":        read(s, s.describeTemplates),
		"DescribeLaunchTemplateVersions": read(s, s.describeTemplateVersions),
		"DescribeInstances":              read(s, s.describeInstances),
		"DescribeInstanceStatus":         read(s, s.describeStatus),
		"DescribeTags":                   read(s, s.describeTags),
		"CreateLaunchTemplate":           write(s, s.createTemplate),
		"CreateLaunchTemplateVersion":    write(s, s.createTemplateVersion),
		"DeleteLaunchTemplate":           write(s, s.deleteTemplate),
		"DeleteLaunchTemplateVersions":   write(s, s.deleteTemplateVersions),
		"CreateFleet":                    write(s, s.createFleet),
		"RunInstances":                   write(s, s.runInstances),
		"TerminateInstances":             write(s, s.terminateInstances),
		"CreateTags":                     write(s, s.createTags),
		"DeleteTags":                     write(s, s.deleteTags),
	}
	return s
}

// write makes an action of a function over the SDK's types. The function looks after a dry run itself, because EC2
// checks the request before it answers one.
func write[I, O any](s *Service, answer func(*request, *I) (*O, *wire.Error)) action {
	return func(r *request) (any, *wire.Error) {
		var input I
		if err := s.names.Decode(r.form, &input); err != nil {
			return nil, wire.Errorf("InvalidParameterValue", "The request can't be read: %v", err)
		}
		return answer(r, &input)
	}
}

// read is write for actions that change nothing; a dry run of these needs no more than the permission.
func read[I, O any](s *Service, answer func(*request, *I) (*O, *wire.Error)) action {
	act := write(s, answer)
	return func(r *request) (any, *wire.Error) {
		if err := dryRun(r.form.Get("DryRun") == "true"); err != nil {
			return nil, err
		}
		return act(r)
	}
}

// dryRun is the answer to a request that would have succeeded.
func dryRun(asked bool) *wire.Error {
	if !asked {
		return nil
	}
	return &wire.Error{Code: "DryRunOperation", Message: "Request would have succeeded, but DryRun flag is set.",
		Status: http.StatusPreconditionFailed}
}

// Name is ec2.
func (s *Service) Name() string { return "ec2" }

// Actions lists what the service can do.
func (s *Service) Actions() []string {
	names := make([]string, 0, len(s.actions))
	for name := range s.actions {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Action is the form's action.
func (s *Service) Action(r *http.Request, body []byte) string {
	return formOf(r, body).Get("Action")
}

// formOf reads the parameters, which may be in the body or, for a GET, in the address.
func formOf(r *http.Request, body []byte) url.Values {
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form) == 0 {
		return r.URL.Query()
	}
	return form
}

// ServeAWS answers a call.
func (s *Service) ServeAWS(w http.ResponseWriter, c *wire.Call) {
	r := &request{Call: c, form: formOf(c.HTTP, c.Body)}
	act, ok := s.actions[c.Action]
	if !ok {
		s.Fail(w, c, wire.Errorf("InvalidAction", "The action %s is not valid for this web service.", c.Action))
		return
	}
	if err := s.limiter.admit(c.Action, r.form); err != nil {
		s.Fail(w, c, err)
		return
	}
	output, err := act(r)
	if err != nil {
		s.Fail(w, c, err)
		return
	}
	body, failed := s.names.Encode(c.Action, c.RequestID, output)
	if failed != nil {
		s.Fail(w, c, &wire.Error{Code: "InternalError", Message: failed.Error(),
			Status: http.StatusInternalServerError})
		return
	}
	respond(w, http.StatusOK, body)
}

// Fail answers with an error.
func (s *Service) Fail(w http.ResponseWriter, c *wire.Call, e *wire.Error) {
	respond(w, e.StatusCode(), query.Error(c.RequestID, e.Code, e.Message))
}

func respond(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // who hung up does not want the rest
}

// once runs a call with a client token at most once: an equal call gets the first one's answer.
func once[O any](s *Service, r *request, token string, run func() (*O, *wire.Error)) (*O, *wire.Error) {
	if token == "" {
		return run()
	}
	if len(token) > 64 {
		return nil, wire.Errorf("InvalidParameterValue", "The client token has more than 64 characters.")
	}
	s.tokens.Lock()
	defer s.tokens.Unlock()
	asked := r.form.Encode()
	answer, err := s.world.Recall(r.Action, token, asked)
	if err != nil {
		return nil, err
	}
	if earlier, ok := answer.(*O); ok {
		return earlier, nil
	}
	output, err := run()
	if err == nil {
		s.world.Remember(r.Action, token, asked, output)
	}
	return output, err
}

// hasPrefixIn says whether the form has a parameter of a list.
func hasPrefixIn(form url.Values, prefix string) bool {
	for name := range form {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
