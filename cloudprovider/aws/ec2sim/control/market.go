package control

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/images"
)

// Capacity says how many machines each matching pool holds. Type, zone and capacity type may have stars; empty ones
// match all.
type Capacity struct {
	Type         string `json:"type,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
	Total        int    `json:"total"` // zero: nothing can be bought
	Code         string `json:"code,omitempty"`
}

// SetCapacity changes what can be bought. The last rule that matches a pool counts.
func (p *Panel) SetCapacity(in Capacity) error {
	if err := p.checkCapacity(in); err != nil {
		return err
	}
	p.World.SetCapacity(cloud.CapacityRule{Type: in.Type, Zone: in.Zone, Market: cloud.Market(in.CapacityType),
		Total: in.Total, Code: in.Code})
	return nil
}

// Price is a new price: of the spot pool in a zone, or, without a zone, on demand.
type Price struct {
	Type    string  `json:"type"`
	Zone    string  `json:"zone,omitempty"`
	Dollars float64 `json:"dollars"`
}

// SetPrice changes a price from now on.
func (p *Panel) SetPrice(in Price) error {
	if _, known := p.World.InstanceType(in.Type); !known {
		return p.noSuchType(in.Type)
	}
	if in.Dollars <= 0 {
		return bad("a price is above zero dollars")
	}
	if in.Zone == "" {
		p.Prices.Set(in.Type, in.Dollars)
		return nil
	}
	if !p.World.Sold(in.Type, in.Zone) {
		return bad("%s is not sold in %q", in.Type, in.Zone)
	}
	p.World.SetSpotPrice(in.Type, in.Zone, in.Dollars)
	return nil
}

// image is an image as the panel shows it.
type image struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Owner      string `json:"owner"`
	Created    string `json:"created"`
	Deprecated string `json:"deprecated,omitempty"`
}

func (p *Panel) marketRoutes(on route) {
	on("POST", "capacity", func(r *http.Request) (any, error) {
		in, err := read[Capacity](r)
		if err != nil {
			return nil, err
		}
		return nil, p.SetCapacity(in)
	})
	on("DELETE", "capacity", func(*http.Request) (any, error) {
		p.World.ClearCapacity()
		return nil, nil
	})
	on("POST", "prices", func(r *http.Request) (any, error) {
		in, err := read[Price](r)
		if err != nil {
			return nil, err
		}
		return nil, p.SetPrice(in)
	})
	on("GET", "images", func(*http.Request) (any, error) {
		all := []image{}
		for _, m := range p.World.Images() {
			all = append(all, image{aws.ToString(m.ImageId), aws.ToString(m.Name), aws.ToString(m.OwnerId),
				aws.ToString(m.CreationDate), aws.ToString(m.DeprecationTime)})
		}
		return all, nil
	})
	on("POST", "images", func(r *http.Request) (any, error) { return p.publish(r) })
	on("DELETE", "images/{id}", func(r *http.Request) (any, error) {
		return nil, p.ofImages(p.World.RemoveImage(r.PathValue("id")))
	})
	on("POST", "images/{id}/deprecate", func(r *http.Request) (any, error) {
		return nil, p.ofImages(p.World.DeprecateImage(r.PathValue("id"), p.World.Now()))
	})
	p.reservationRoutes(on)
	p.placementRoutes(on)
}

func (p *Panel) publish(r *http.Request) (images.Release, error) {
	in, err := read[struct {
		Family string `json:"family"`
	}](r)
	if err != nil {
		return images.Release{}, err
	}
	release, err := p.Images.Publish(in.Family, 0)
	if err != nil {
		return images.Release{}, badRequest{err}
	}
	return release, nil
}
