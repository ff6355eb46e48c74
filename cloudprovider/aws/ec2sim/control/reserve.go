package control

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Reserve is a capacity reservation to make.
type Reserve struct {
	Type          string            `json:"type"`
	Zone          string            `json:"zone"`
	Count         int32             `json:"count"`
	Platform      string            `json:"platform,omitempty"` // Linux/UNIX if empty
	Targeted      bool              `json:"targeted,omitempty"`
	CapacityBlock bool              `json:"capacityBlock,omitempty"`
	Interruptible bool              `json:"interruptible,omitempty"`
	Hours         float64           `json:"hours,omitempty"` // until it ends; zero: never
	Tags          map[string]string `json:"tags,omitempty"`
}

// Reservation is a capacity reservation as the panel shows it.
type Reservation struct {
	ID            string            `json:"id"`
	Type          string            `json:"type"`
	Zone          string            `json:"zone"`
	Platform      string            `json:"platform"`
	Kind          string            `json:"kind"`  // default or capacity-block
	Match         string            `json:"match"` // open or targeted
	State         string            `json:"state"`
	Count         int32             `json:"count"`
	Free          int32             `json:"free"`
	Interruptible bool              `json:"interruptible,omitempty"`
	Ends          *time.Time        `json:"ends,omitempty"`
	Tags          map[string]string `json:"tags"`
}

// Reservations lists the capacity reservations, those that have ended included.
func (p *Panel) Reservations() []Reservation {
	all := []Reservation{}
	for _, r := range p.World.Reservations() {
		all = append(all, Reservation{
			ID: aws.ToString(r.CapacityReservationId), Type: aws.ToString(r.InstanceType),
			Zone:     aws.ToString(r.AvailabilityZone),
			Platform: string(r.InstancePlatform), Kind: string(r.ReservationType),
			Match: string(r.InstanceMatchCriteria), State: string(r.State),
			Count: aws.ToInt32(r.TotalInstanceCount), Free: aws.ToInt32(r.AvailableInstanceCount),
			Interruptible: aws.ToBool(r.Interruptible), Ends: r.EndDate, Tags: cloud.TagMap(r.Tags),
		})
	}
	return all
}

// Reserve makes a capacity reservation and returns its id.
func (p *Panel) Reserve(in Reserve) (string, error) {
	platforms := ec2types.CapacityReservationInstancePlatform("").Values()
	_, known := p.World.InstanceType(in.Type)
	switch {
	case !known:
		return "", p.noSuchType(in.Type)
	case !slices.Contains(p.zones(), in.Zone):
		return "", p.noSuchZone(in.Zone)
	case !p.World.Sold(in.Type, in.Zone):
		return "", bad("%s is not sold in %q", in.Type, in.Zone)
	case in.Count < 1:
		return "", bad("%d is not a number of instances to reserve; use 1 or more", in.Count)
	case in.Hours < 0:
		return "", bad("a reservation can't last %g hours; use more than 0, or leave them out for one without an end",
			in.Hours)
	case in.Platform != "" && !slices.Contains(platforms, ec2types.CapacityReservationInstancePlatform(in.Platform)):
		return "", bad("there is no platform %q; there are %s", in.Platform, list(platforms))
	}
	out := ec2types.CapacityReservation{
		InstanceType: aws.String(in.Type), AvailabilityZone: aws.String(in.Zone),
		TotalInstanceCount:    aws.Int32(in.Count),
		InstanceMatchCriteria: ec2types.InstanceMatchCriteriaOpen, Interruptible: aws.Bool(in.Interruptible),
		InstancePlatform: ec2types.CapacityReservationInstancePlatform(cmp.Or(in.Platform,
			string(ec2types.CapacityReservationInstancePlatformLinuxUnix))),
	}
	if in.Targeted || in.CapacityBlock {
		out.InstanceMatchCriteria = ec2types.InstanceMatchCriteriaTargeted
	}
	if in.CapacityBlock {
		out.ReservationType = ec2types.CapacityReservationTypeCapacityBlock
	}
	if in.Hours > 0 {
		out.EndDate = aws.Time(p.World.Now().Add(time.Duration(in.Hours * float64(time.Hour))))
	}
	for key, value := range in.Tags {
		out.Tags = append(out.Tags, ec2types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	return p.World.AddReservation(out), nil
}

// ofReservations adds to the world's answer which reservations there are.
func (p *Panel) ofReservations(e *wire.Error) error {
	if e == nil {
		return nil
	}
	var ids []string
	for _, r := range p.Reservations() {
		ids = append(ids, r.ID)
	}
	return bad("%s; there are: %s", e.Message, orNone(ids))
}

func (p *Panel) reservationRoutes(on route) {
	on("GET", "reservations", func(*http.Request) (any, error) { return p.Reservations(), nil })
	on("POST", "reservations", func(r *http.Request) (any, error) {
		in, err := read[Reserve](r)
		if err != nil {
			return nil, err
		}
		id, err := p.Reserve(in)
		return map[string]string{"id": id}, err
	})
	on("POST", "reservations/{id}/interrupt", func(r *http.Request) (any, error) {
		return nil, p.ofReservations(p.World.InterruptReservation(r.PathValue("id")))
	})
	on("DELETE", "reservations/{id}", func(r *http.Request) (any, error) {
		return nil, p.ofReservations(p.World.CancelReservation(r.PathValue("id")))
	})
}
