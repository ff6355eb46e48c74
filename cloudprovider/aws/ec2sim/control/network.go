package control

import (
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// subnet is a subnet as the panel shows it.
type subnet struct {
	ID   string `json:"id"`
	Zone string `json:"zone"`
	CIDR string `json:"cidr"`
	Free int32  `json:"free"`
}

// snapshot is a snapshot to make known.
type snapshot struct {
	ID  string `json:"id,omitempty"` // a new one if empty
	GiB int32  `json:"gib"`
}

// shift is a zonal shift to begin.
type shift struct {
	Zone    string  `json:"zone"` // by id: usw2-az1
	Seconds float64 `json:"seconds"`
	Auto    bool    `json:"auto,omitempty"`
}

func (p *Panel) networkRoutes(on route) {
	on("GET", "subnets", func(*http.Request) (any, error) {
		all := []subnet{}
		for _, s := range p.World.Subnets() {
			all = append(all, subnet{aws.ToString(s.SubnetId), aws.ToString(s.AvailabilityZone),
				aws.ToString(s.CidrBlock), aws.ToInt32(s.AvailableIpAddressCount)})
		}
		return all, nil
	})
	on("POST", "subnets/{id}", func(r *http.Request) (any, error) {
		in, err := read[struct {
			Free int `json:"free"`
		}](r)
		if err != nil {
			return nil, err
		}
		return nil, p.ofSubnets(p.World.SetFreeAddresses(r.PathValue("id"), in.Free))
	})
	on("DELETE", "subnets/{id}", func(r *http.Request) (any, error) {
		return nil, p.ofSubnets(p.World.RemoveSubnet(r.PathValue("id")))
	})
	on("POST", "subnets/{id}/restore", func(r *http.Request) (any, error) {
		return nil, p.restoreSubnet(r.PathValue("id"))
	})
	on("POST", "snapshots", func(r *http.Request) (any, error) {
		in, err := read[snapshot](r)
		if err != nil {
			return nil, err
		}
		id, failed := p.World.AddSnapshot(in.ID, in.GiB)
		return snapshot{id, in.GiB}, refused(failed)
	})
	on("DELETE", "security-groups/{id}", func(r *http.Request) (any, error) {
		return nil, refused(p.World.RemoveSecurityGroup(r.PathValue("id")))
	})
	on("POST", "zonal-shifts", func(r *http.Request) (any, error) {
		in, err := read[shift](r)
		if err != nil {
			return nil, err
		}
		if in.Seconds <= 0 {
			return nil, bad("a zonal shift lasts longer than %g seconds", in.Seconds)
		}
		if err := p.Shifts.Shift(in.Zone, time.Duration(in.Seconds*float64(time.Second)), in.Auto); err != nil {
			return nil, badRequest{err}
		}
		return nil, nil
	})
	on("DELETE", "zonal-shifts/{zone}", func(r *http.Request) (any, error) {
		if err := p.Shifts.Cancel(r.PathValue("zone")); err != nil {
			return nil, badRequest{err}
		}
		return nil, nil
	})
}
