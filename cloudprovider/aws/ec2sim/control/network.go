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
			all = append(all, subnet{aws.ToString(s.SubnetId), aws.ToString(s.AvailabilityZone), aws.ToString(s.CidrBlock), aws.ToInt32(s.AvailableIpAddressCount)})
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
		return nil, refused(p.World.SetFreeAddresses(r.PathValue("id"), in.Free))
	})
	on("DELETE", "subnets/{id}", func(r *http.Request) (any, error) {
		p.World.RemoveSubnet(r.PathValue("id"))
		return nil, nil
	})
	on("DELETE", "security-groups/{id}", func(r *http.Request) (any, error) {
		p.World.RemoveSecurityGroup(r.PathValue("id"))
		return nil, nil
	})
	on("POST", "zonal-shifts", func(r *http.Request) (any, error) {
		in, err := read[shift](r)
		if err != nil {
			return nil, err
		}
		if err := p.Shifts.Shift(in.Zone, time.Duration(in.Seconds*float64(time.Second)), in.Auto); err != nil {
			return nil, badRequest{err}
		}
		return nil, nil
	})
	on("DELETE", "zonal-shifts/{zone}", func(r *http.Request) (any, error) {
		p.Shifts.Cancel(r.PathValue("zone"))
		return nil, nil
	})
}
