package control

import (
	"net/http"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
)

// Fault is a fault with its delay in seconds.
type Fault struct {
	faults.Fault
	DelaySeconds float64 `json:"delaySeconds,omitempty"`
}

// Trouble is everything that goes wrong now.
type Trouble struct {
	Faults []Fault        `json:"faults"`
	Limits []faults.Limit `json:"limits"`
	Denied []string       `json:"denied"`
}

// Trouble lists what goes wrong now.
func (p *Panel) Trouble() Trouble {
	all, limits, denied := p.Faults.Active()
	out := Trouble{Faults: []Fault{}, Limits: limits, Denied: denied}
	for _, f := range all {
		out.Faults = append(out.Faults, Fault{Fault: f, DelaySeconds: f.Delay.Seconds()})
	}
	return out
}

func (p *Panel) troubleRoutes(on route) {
	on("GET", "calls", func(*http.Request) (any, error) { return p.Calls(), nil })
	on("GET", "trouble", func(*http.Request) (any, error) { return p.Trouble(), nil })
	on("DELETE", "trouble", func(*http.Request) (any, error) {
		p.Faults.Clear()
		return nil, nil
	})
	on("POST", "faults", func(r *http.Request) (any, error) {
		in, err := read[Fault](r)
		if err != nil {
			return nil, err
		}
		in.Delay = time.Duration(in.DelaySeconds * float64(time.Second))
		if err := p.checkFault(in); err != nil {
			return nil, err
		}
		p.Faults.Add(in.Fault)
		return nil, nil
	})
	on("POST", "throttle", func(r *http.Request) (any, error) {
		in, err := read[faults.Limit](r)
		if err != nil {
			return nil, err
		}
		if err := p.checkLimit(in); err != nil {
			return nil, err
		}
		p.Faults.Throttle(in)
		return nil, nil
	})
	on("POST", "messages", func(r *http.Request) (any, error) {
		in, err := read[struct {
			Muted bool `json:"muted"`
		}](r)
		if err == nil {
			p.Messages.Mute(in.Muted)
		}
		return nil, err
	})
	p.identityRoutes(on)
}
