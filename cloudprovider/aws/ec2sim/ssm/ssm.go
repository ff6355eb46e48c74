// Package ssm is the parameter store of the simulated cloud, as far as somebody reads from it: the public parameters
// that name the newest images, and those that a test puts in.
package ssm

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/protocol"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Service is the parameter store. It is a wire.Service.
type Service struct {
	protocol.JSON
	clock  wire.Clock
	region string

	mu         sync.Mutex
	parameters map[string]parameter
}

type parameter struct {
	value    string
	version  int64
	modified time.Time
}

// New makes an empty store.
func New(clock wire.Clock, region string) *Service {
	s := &Service{clock: clock, region: region, parameters: map[string]parameter{}}
	s.JSON = protocol.JSON{Service: "ssm", Version: "1.1", Ops: map[string]protocol.Op{
		"GetParameter":        protocol.On(s.get),
		"GetParameters":       protocol.On(s.getMany),
		"GetParametersByPath": protocol.On(s.getByPath),
	}}
	return s
}

// Put sets a parameter.
func (s *Service) Put(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parameters[name] = parameter{value: value, version: s.parameters[name].version + 1, modified: s.clock.Now()}
}

// Remove takes a parameter away.
func (s *Service) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.parameters, name)
}

// answer is a parameter on the wire.
type answer struct {
	ARN              string
	DataType         string
	LastModifiedDate protocol.Time
	Name             string
	Type             string
	Value            string
	Version          int64
}

func (s *Service) answer(name string, p parameter) answer {
	// Public parameters belong to no account.
	return answer{
		ARN:  fmt.Sprintf("arn:aws:ssm:%s::parameter/%s", s.region, strings.TrimPrefix(name, "/")),
		Name: name, Value: p.value, Version: p.version, Type: "String", DataType: "text",
		LastModifiedDate: protocol.Time(p.modified),
	}
}

type getIn struct{ Name string }

type getOut struct{ Parameter answer }

func (s *Service) get(_ *wire.Call, in getIn) (*getOut, *wire.Error) {
	if in.Name == "" {
		return nil, wire.Errorf("ValidationException", "1 validation error detected: Value '' at 'name' failed to "+
			"satisfy constraint: Member must have length greater than or equal to 1")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.parameters[in.Name]
	if !ok {
		return nil, wire.Errorf("ParameterNotFound", "Systems Manager could not find the parameter %s.", in.Name)
	}
	return &getOut{Parameter: s.answer(in.Name, p)}, nil
}

type getManyIn struct{ Names []string }

type getManyOut struct {
	InvalidParameters []string
	Parameters        []answer
}

// maxNames is how many names, and how many parameters of a path, one call may ask for.
const maxNames = 10

func (s *Service) getMany(_ *wire.Call, in getManyIn) (*getManyOut, *wire.Error) {
	if len(in.Names) == 0 || len(in.Names) > maxNames {
		return nil, wire.Errorf("ValidationException", "1 validation error detected: 'names' must have between 1 and "+
			"%d members", maxNames)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &getManyOut{InvalidParameters: []string{}, Parameters: []answer{}}
	for _, name := range in.Names {
		if p, ok := s.parameters[name]; ok {
			out.Parameters = append(out.Parameters, s.answer(name, p))
		} else {
			out.InvalidParameters = append(out.InvalidParameters, name)
		}
	}
	return out, nil
}

type byPathIn struct {
	Path       string
	Recursive  bool
	MaxResults int
	NextToken  string
}

type byPathOut struct {
	Parameters []answer
	NextToken  string `json:",omitempty"`
}

func (s *Service) getByPath(_ *wire.Call, in byPathIn) (*byPathOut, *wire.Error) {
	if !strings.HasPrefix(in.Path, "/") {
		return nil, wire.Errorf("ValidationException", "The parameter doesn't meet the parameter name requirements. "+
			"The parameter name must begin with a forward slash \"/\".")
	}
	if in.MaxResults < 0 || in.MaxResults > maxNames {
		return nil, wire.Errorf("ValidationException", "1 validation error detected: Value '%d' at 'maxResults' "+
			"failed to satisfy constraint: Member must have value less than or equal to %d", in.MaxResults, maxNames)
	}
	if in.MaxResults == 0 {
		in.MaxResults = maxNames
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	under := strings.TrimSuffix(in.Path, "/") + "/"
	var names []string
	for name := range s.parameters {
		rest, ok := strings.CutPrefix(name, under)
		if ok && (in.Recursive || !strings.Contains(rest, "/")) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	part, next, ok := protocol.Page(names, in.NextToken, in.MaxResults)
	if !ok {
		return nil, wire.Errorf("InvalidNextToken", "The specified token isn't valid.")
	}
	out := &byPathOut{Parameters: []answer{}, NextToken: next}
	for _, name := range part {
		out.Parameters = append(out.Parameters, s.answer(name, s.parameters[name]))
	}
	return out, nil
}
