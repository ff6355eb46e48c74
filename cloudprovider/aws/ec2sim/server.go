// Package ec2sim is an EC2 that fits in a test: one HTTP server that speaks AWS's wire protocols well enough that a
// program which uses the AWS SDK can't tell it from the real one, but for the endpoint. This package is the server: it
// finds out which service a request is for and sends it there through the gates (signature, permissions, faults). The
// state is in package cloud, EC2's protocol in package ec2; the other services have packages of their own and are
// handed in.
//
// The provider must not import anything of this, and this imports nothing of the provider but data: else the two could
// agree on a mistake.
package ec2sim

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/catalog"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Options is what a server is made of.
type Options struct {
	// World is the cloud to serve. If it is nil, one is made of Config.
	World *cloud.World
	// Config describes the world to make. Without types it gets all that EC2 sells in its region, with their zones and
	// prices.
	Config cloud.Config
	// Limits are EC2's rates; nil means those that AWS documents. A test whose clock stands still wants ec2.NoLimits.
	Limits *ec2.Limits
	// Services are the other services, Gates what every call must pass, in this order.
	Services []wire.Service
	Gates    []wire.Gate
}

// Server is the simulated cloud's endpoint. It is an http.Handler.
type Server struct {
	World *cloud.World
	EC2   *ec2.Service

	services map[string]wire.Service
	gates    []wire.Gate
	mux      *http.ServeMux

	mu    sync.Mutex
	count int
	calls map[string]int
}

// Loser is a gate that lets a call be carried out and its answer be lost.
type Loser interface {
	Lose(c *wire.Call) bool
}

// latency is how long an answer takes at least. The SDK (smithy-go 1.28) closes a request's body when the response's
// head is there; if its own writing goroutine has not come to its end by then, it takes the closed body for a failure
// and cuts the connection. No real network is that fast, so this one isn't either.
const latency = time.Millisecond

// maxBody is more than any request of the SDK has.
const maxBody = 4 << 20

// New makes a server.
func New(o Options) (*Server, error) {
	world := o.World
	if world == nil {
		config, err := withCatalog(o.Config)
		if err != nil {
			return nil, err
		}
		world = cloud.New(config)
	}
	limits := ec2.AWSLimits()
	if o.Limits != nil {
		limits = *o.Limits
	}
	s := &Server{World: world, EC2: ec2.New(world, limits), services: map[string]wire.Service{}, gates: o.Gates,
		mux: http.NewServeMux(), calls: map[string]int{}}
	for _, service := range append([]wire.Service{s.EC2}, o.Services...) {
		if s.services[service.Name()] != nil {
			return nil, fmt.Errorf("making the simulator: two services are called %q", service.Name())
		}
		s.services[service.Name()] = service
	}
	s.mux.HandleFunc("/", s.serveAWS)
	return s, nil
}

// withCatalog fills in what EC2 sells in the region.
func withCatalog(config cloud.Config) (cloud.Config, error) {
	if len(config.Types) > 0 {
		return config, nil
	}
	if config.Region == "" {
		config.Region = "us-west-2"
	}
	types, zones, err := catalog.Region(config.Region)
	if err != nil {
		return config, fmt.Errorf("reading the catalog: %w", err)
	}
	config.Types, config.TypeZones = types, zones
	if config.Prices == nil {
		prices, err := catalog.Prices(config.Region)
		if err != nil {
			return config, fmt.Errorf("reading the price list: %w", err)
		}
		config.Prices = prices
	}
	return config, nil
}

// Handle serves a path that is none of AWS's, such as the control endpoint.
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// ServeHTTP answers every request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Calls says how often each action was called, by "service:Action", those that a gate refused included.
func (s *Server) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// Actions lists what all services can do, as "service:Action", in order.
func (s *Server) Actions() []string {
	var all []string
	for name, service := range s.services {
		for _, action := range service.Actions() {
			all = append(all, name+":"+action)
		}
	}
	slices.Sort(all)
	return all
}

func (s *Server) serveAWS(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the request's body can't be read", http.StatusBadRequest)
		return
	}
	time.Sleep(latency)
	scope := scopeOf(r, body)
	c := &wire.Call{Service: scope.service, Region: scope.region, AccessKey: scope.key, Body: body, HTTP: r}
	service := s.services[c.Service]
	if service == nil {
		http.Error(w, fmt.Sprintf("the simulator has no service %q", c.Service), http.StatusNotFound)
		return
	}
	c.Action = service.Action(r, body)
	c.RequestID = s.register(c)
	w.Header().Set("X-Amzn-Requestid", c.RequestID)
	for _, gate := range s.gates {
		if err := gate.Pass(c); err != nil {
			service.Fail(w, c, err)
			return
		}
	}
	for _, gate := range s.gates {
		if loser, ok := gate.(Loser); ok && loser.Lose(c) {
			service.ServeAWS(nowhere{}, c)
			panic(http.ErrAbortHandler) // cuts the connection: the caller can't know whether it was done
		}
	}
	service.ServeAWS(w, c)
}

// register counts a call and numbers it.
func (s *Server) register(c *wire.Call) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[c.Service+":"+c.Action]++
	s.count++
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", s.count, s.count)
}

// scope is what a signature says about the request.
type scope struct {
	key, region, service string
}

// scopeOf finds out which service a request is for: its signature says so; one without is told by the target of a JSON
// call or, for the one call that is made before there are credentials, by its action. Whatever else comes unsigned goes
// to EC2, where the signature's gate refuses it.
func scopeOf(r *http.Request, body []byte) scope {
	credential := r.URL.Query().Get("X-Amz-Credential")
	if header := r.Header.Get("Authorization"); credential == "" {
		_, after, _ := strings.Cut(header, "Credential=")
		credential, _, _ = strings.Cut(after, ",")
	}
	if parts := strings.Split(strings.TrimSpace(credential), "/"); len(parts) == 5 {
		return scope{key: parts[0], region: parts[2], service: parts[3]}
	}
	target, _, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch target {
	case "AmazonSSM":
		return scope{service: "ssm"}
	case "AmazonSQS":
		return scope{service: "sqs"}
	case "AWSPriceListService":
		return scope{service: "pricing"}
	}
	if form, err := url.ParseQuery(string(body)); err == nil && form.Get("Action") == "AssumeRoleWithWebIdentity" {
		return scope{service: "sts"}
	}
	return scope{service: "ec2"}
}

// nowhere is where lost answers go.
type nowhere struct{}

// Header is one that nobody reads.
func (nowhere) Header() http.Header { return http.Header{} }

// Write takes everything.
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader does nothing.
func (nowhere) WriteHeader(int) {}
