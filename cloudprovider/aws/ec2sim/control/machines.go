package control

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// planAhead is when a scheduled event begins.
const planAhead = 24 * time.Hour

// verbs are what can happen to machines.
func (p *Panel) verbs() map[string]func(id string, in Pick) *wire.Error {
	return map[string]func(id string, in Pick) *wire.Error{
		"interrupt": func(id string, _ Pick) *wire.Error { return p.World.InterruptSpot(id) },
		"rebalance": func(id string, _ Pick) *wire.Error { return p.World.AdviseRebalance(id) },
		"kill":      func(id string, _ Pick) *wire.Error { return p.World.Kill(id) },
		"impair":    func(id string, in Pick) *wire.Error { return p.World.Impair(id, in.System, in.Instance) },
		"withdraw": func(id string, _ Pick) *wire.Error {
			return p.World.Withdraw(id, "Server.InternalError", "Server.InternalError: the host of the machine failed")
		},
		"schedule": func(id string, in Pick) *wire.Error {
			return p.World.ScheduleEvent(id, cmp.Or(in.Event, string(ec2types.EventCodeInstanceRetirement)),
				p.World.Now().Add(planAhead))
		},
	}
}

// Happen lets something happen to machines: interrupt (a spot warning, then the end), rebalance (a recommendation),
// kill (the machine dies, EC2 calls it running), impair (status checks), withdraw (AWS ends it at once), schedule (an
// event is planned). It returns the ids.
func (p *Panel) Happen(verb string, in Pick) ([]string, error) {
	do := p.verbs()[verb]
	if do == nil {
		return nil, bad("nothing called %q happens to machines: it is interrupt, rebalance, kill, impair, withdraw "+
			"or schedule", verb)
	}
	if (verb == "interrupt" || verb == "rebalance") && in.CapacityType == "" {
		in.CapacityType = "spot"
	}
	if known := ec2types.EventCode("").Values(); in.Event != "" && !slices.Contains(known,
		ec2types.EventCode(in.Event)) {
		return nil, bad("there is no event %q; there are %s", in.Event, list(known))
	}
	ids, err := p.pick(in)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := refused(do(id, in)); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func (p *Panel) machineRoutes(on route) {
	on("GET", "machines", func(*http.Request) (any, error) { return p.Machines(), nil })
	on("POST", "machines/{verb}", func(r *http.Request) (any, error) {
		in, err := read[Pick](r)
		if err != nil {
			return nil, err
		}
		ids, err := p.Happen(r.PathValue("verb"), in)
		return map[string][]string{"machines": ids}, err
	})
}
