// Package control is the panel on which somebody makes things happen in the simulated cloud, over HTTP with JSON:
// capacity runs out, spot instances are interrupted, machines die, prices change, images appear, calls fail. From Go
// the same is done with the parts of the panel themselves.
package control

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/events"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/images"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/pricing"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/sigv4"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/zonalshift"
)

// Prefix is where the panel is on the simulator's server. No AWS service has such a path.
const Prefix = "/_tenon/"

// Panel is everything that can be touched.
type Panel struct {
	World    *cloud.World
	Prices   *pricing.Book
	Images   *images.Publisher
	Faults   *faults.Injector
	Keys     *sigv4.Ring
	Shifts   *zonalshift.Service
	Messages *events.Bridge
	// Calls counts the calls by action, such as ec2:CreateFleet.
	Calls func() map[string]int
	// Actions lists the calls that there are, in the same form; may be nil.
	Actions func() []string
	// Problems says why machines did not join the cluster, by instance id; may be nil.
	Problems func() map[string]string
}

// Handler serves the panel under Prefix.
func (p *Panel) Handler() http.Handler {
	mux := http.NewServeMux()
	on := func(method, path string, do func(r *http.Request) (any, error)) {
		mux.HandleFunc(method+" "+Prefix+path, func(w http.ResponseWriter, r *http.Request) {
			out, err := do(r)
			answer(w, out, err)
		})
	}
	p.machineRoutes(on)
	p.marketRoutes(on)
	p.networkRoutes(on)
	p.troubleRoutes(on)
	return mux
}

// route adds a path to the panel.
type route func(method, path string, do func(r *http.Request) (any, error))

// badRequest is an error of whoever asked.
type badRequest struct{ error }

func bad(format string, args ...any) error { return badRequest{fmt.Errorf(format, args...)} }

// refused makes an error of what the world answered, and nil of nil.
func refused(e *wire.Error) error {
	if e == nil {
		return nil
	}
	return badRequest{e}
}

func answer(w http.ResponseWriter, out any, err error) {
	status := http.StatusOK
	if err != nil {
		status = http.StatusInternalServerError
		if errors.As(err, new(badRequest)) {
			status = http.StatusBadRequest
		}
		out = map[string]string{"error": err.Error()}
	}
	if out == nil {
		out = map[string]string{}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(out) // a client that went away does not hear it
}

// read decodes a request's body. An unknown field is an error: a misspelt one would do something else than was meant.
func read[T any](r *http.Request) (T, error) {
	var in T
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return in, bad("reading the request: %w", err)
	}
	return in, nil
}

// Machine is an instance as the panel shows it.
type Machine struct {
	ID           string            `json:"id"`
	Node         string            `json:"node"` // the name that its Node has
	Type         string            `json:"type"`
	Zone         string            `json:"zone"`
	CapacityType string            `json:"capacityType"`
	State        string            `json:"state"`
	Reason       string            `json:"reason,omitempty"`
	Image        string            `json:"image"`
	Price        float64           `json:"dollarsPerHour"`
	Dead         bool              `json:"dead,omitempty"`
	Problem      string            `json:"problem,omitempty"` // why it did not join
	Tags         map[string]string `json:"tags"`
}

// Machines lists the instances, ended ones included as long as EC2 shows them.
func (p *Panel) Machines() []Machine {
	var problems map[string]string
	if p.Problems != nil {
		problems = p.Problems()
	}
	all := []Machine{}
	for _, i := range p.World.Instances() {
		all = append(all, Machine{
			ID: i.ID, Node: i.PrivateDNS, Type: i.Type, Zone: i.Zone, CapacityType: string(i.Market),
			State:  string(i.State),
			Reason: i.ReasonMessage, Image: i.Image, Price: i.HourlyPrice, Dead: i.Dead, Problem: problems[i.ID],
			Tags: i.Tags,
		})
	}
	return all
}

// Pick says which machines something happens to.
type Pick struct {
	// Machines are ids, or names of nodes.
	Machines []string `json:"machines,omitempty"`
	// Any picks so many living ones of the capacity type (all types if empty), those with the lowest ids.
	Any          int    `json:"any,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
	// System and Instance are the status checks that fail, for "impair"; both false makes the machine well again.
	System   bool `json:"system,omitempty"`
	Instance bool `json:"instance,omitempty"`
	// Event is what is planned, for "schedule": system-reboot, instance-retirement, …
	Event string `json:"event,omitempty"`
}

// pick finds the machines.
func (p *Panel) pick(in Pick) ([]string, error) {
	if len(in.Machines) == 0 && in.Any < 1 {
		return nil, bad("name machines in \"machines\", or say in \"any\" how many")
	}
	if in.CapacityType != "" && !slices.Contains(markets(), in.CapacityType) {
		return nil, noSuchMarket(in.CapacityType)
	}
	var ids []string
	all := p.World.Instances()
	for _, name := range in.Machines {
		at := slices.IndexFunc(all, func(i cloud.Instance) bool {
			return i.ID == name || i.PrivateDNS == name && i.State.Alive()
		})
		if at < 0 {
			return nil, bad("there is no instance or node %q", name)
		}
		ids = append(ids, all[at].ID)
	}
	for _, i := range all {
		if len(ids) < in.Any && i.State.Alive() && (in.CapacityType == "" || in.CapacityType == string(i.Market)) {
			ids = append(ids, i.ID)
		}
	}
	if len(ids) < in.Any {
		return nil, bad("there are %d %s instances that run, not %d", len(ids), cmp.Or(in.CapacityType,
			"spot and on-demand"), in.Any)
	}
	return ids, nil
}
