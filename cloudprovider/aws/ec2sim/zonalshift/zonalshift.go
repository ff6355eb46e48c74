// Package zonalshift is the part of the simulated cloud that moves traffic away from a zone: Application Recovery
// Controller. It shows the shifts of the clusters that take part.
package zonalshift

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/protocol"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Service shows shifts. It is a wire.Service.
type Service struct {
	protocol.REST
	clock   wire.Clock
	zoneIDs []string

	mu        sync.Mutex
	resources map[string]*resource // by ARN
	serial    int
}

type resource struct {
	name, arn string
	shifts    []shift
}

// shift is traffic that is being moved away from a zone.
type shift struct {
	id, zone string
	auto     bool // AWS began it by itself
	from, to time.Time
}

// New makes a service; zoneIDs are the zones of the region, such as usw2-az1.
func New(clock wire.Clock, zoneIDs []string) *Service {
	s := &Service{clock: clock, zoneIDs: zoneIDs, resources: map[string]*resource{}}
	s.REST = protocol.REST{Service: "arc-zonal-shift", Routes: []protocol.Route{
		{Method: http.MethodGet, Path: "/managedresources", Action: "ListManagedResources", Do: s.list},
		{Method: http.MethodGet, Path: "/managedresources/{resource}", Action: "GetManagedResource", Do: s.get},
	}}
	return s
}

// Manage makes a resource take part.
func (s *Service) Manage(name, arn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resources[arn] = &resource{name: name, arn: arn}
}

// Shift moves the traffic of all resources away from a zone (by id) for a while. An automatic shift is one that AWS
// begins and ends as it sees fit.
func (s *Service) Shift(zoneID string, life time.Duration, auto bool) error {
	if !slices.Contains(s.zoneIDs, zoneID) {
		return fmt.Errorf("shifting away from %q: the region's zones are %v", zoneID, s.zoneIDs)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for _, r := range s.resources {
		s.serial++
		r.shifts = append(r.shifts, shift{id: fmt.Sprintf("00000000-0000-4000-9000-%012d", s.serial), zone: zoneID,
			auto: auto, from: now, to: now.Add(life)})
	}
	return nil
}

// Cancel ends all shifts away from a zone. That there is none is an error.
func (s *Service) Cancel(zoneID string) error {
	if !slices.Contains(s.zoneIDs, zoneID) {
		return fmt.Errorf("ending the shift away from %q: the region's zones are %v", zoneID, s.zoneIDs)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := 0
	for _, r := range s.resources {
		before := len(r.shifts)
		r.shifts = slices.DeleteFunc(r.shifts, func(one shift) bool { return one.zone == zoneID })
		ended += before - len(r.shifts)
	}
	if ended == 0 {
		return fmt.Errorf("ending the shift away from %s: there is none", zoneID)
	}
	return nil
}

type shiftOut struct {
	ID       string        `json:"zonalShiftId"`
	Resource string        `json:"resourceIdentifier"`
	AwayFrom string        `json:"awayFrom"`
	Start    protocol.Time `json:"startTime"`
	Expiry   protocol.Time `json:"expiryTime"`
	Status   string        `json:"appliedStatus"`
	Comment  string        `json:"comment"`
}

type autoOut struct {
	AwayFrom string        `json:"awayFrom"`
	Start    protocol.Time `json:"startTime"`
	Status   string        `json:"appliedStatus"`
}

type resourceOut struct {
	ARN     string             `json:"arn"`
	Name    string             `json:"name"`
	Zones   []string           `json:"availabilityZones,omitempty"`
	Weights map[string]float64 `json:"appliedWeights"`
	Shifts  []shiftOut         `json:"zonalShifts"`
	Autos   []autoOut          `json:"autoshifts"`
	Auto    string             `json:"zonalAutoshiftStatus"`
}

// show is what a resource looks like now. Of two shifts the one that somebody asked for is applied. The lock is held.
func (s *Service) show(r *resource) resourceOut {
	now := s.clock.Now()
	r.shifts = slices.DeleteFunc(r.shifts, func(one shift) bool { return !now.Before(one.to) })
	out := resourceOut{
		ARN: r.arn, Name: r.name, Weights: map[string]float64{}, Shifts: []shiftOut{}, Autos: []autoOut{},
		Auto: "ENABLED",
	}
	for _, id := range s.zoneIDs {
		out.Weights[id] = 1
	}
	manual := slices.ContainsFunc(r.shifts, func(one shift) bool { return !one.auto })
	for _, one := range r.shifts {
		status := "APPLIED"
		if one.auto && manual {
			status = "NOT_APPLIED"
		} else {
			out.Weights[one.zone] = 0
		}
		if one.auto {
			out.Autos = append(out.Autos, autoOut{AwayFrom: one.zone, Start: protocol.Time(one.from), Status: status})
			continue
		}
		out.Shifts = append(out.Shifts, shiftOut{
			ID: one.id, Resource: r.arn, AwayFrom: one.zone, Start: protocol.Time(one.from),
			Expiry: protocol.Time(one.to), Status: status,
			Comment: "asked for at the simulator's control endpoint",
		})
	}
	return out
}

func (s *Service) get(_ *wire.Call, path map[string]string, _ url.Values) (any, *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.resources[path["resource"]]
	if r == nil {
		return nil, &wire.Error{Code: "ResourceNotFoundException", Status: http.StatusNotFound,
			Message: fmt.Sprintf("The resource %s is not managed by zonal shift.", path["resource"])}
	}
	return s.show(r), nil
}

type listOut struct {
	Items []resourceOut `json:"items"`
	Next  string        `json:"nextToken,omitempty"`
}

func (s *Service) list(_ *wire.Call, _ map[string]string, query url.Values) (any, *wire.Error) {
	size := 100
	if text := query.Get("maxResults"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return nil, wire.Errorf("ValidationException", "maxResults must be between 1 and 100.")
		}
		size = n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var arns []string
	for arn := range s.resources {
		arns = append(arns, arn)
	}
	slices.Sort(arns)
	part, next, ok := protocol.Page(arns, query.Get("nextToken"), size)
	if !ok {
		return nil, wire.Errorf("ValidationException", "The pagination token is invalid.")
	}
	out := listOut{Items: []resourceOut{}, Next: next}
	for _, arn := range part {
		one := s.show(s.resources[arn])
		one.Zones = s.zoneIDs
		out.Items = append(out.Items, one)
	}
	return out, nil
}
