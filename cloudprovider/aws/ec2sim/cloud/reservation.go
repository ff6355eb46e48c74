package cloud

import (
	"maps"
	"sort"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// AddReservation makes a capacity reservation. Type, zone and total count must be given; the rest has EC2's defaults.
func (w *World) AddReservation(r ec2types.CapacityReservation) string {
	defer w.enter()()
	id := w.newID("cr")
	maps.Copy(w.tags[id], TagMap(r.Tags))
	r.Tags = nil
	r.CapacityReservationId = aws.String(id)
	r.CapacityReservationArn = aws.String(w.arn("capacity-reservation", id))
	if r.OwnerId == nil {
		r.OwnerId = aws.String(w.cfg.Account)
	}
	if r.AvailableInstanceCount == nil {
		r.AvailableInstanceCount = r.TotalInstanceCount
	}
	if zone, ok := w.zoneByName(aws.ToString(r.AvailabilityZone)); ok {
		r.AvailabilityZoneId = aws.String(zone.ID)
	}
	if r.InstanceMatchCriteria == "" {
		r.InstanceMatchCriteria = ec2types.InstanceMatchCriteriaOpen
	}
	if r.InstancePlatform == "" {
		r.InstancePlatform = ec2types.CapacityReservationInstancePlatformLinuxUnix
	}
	if r.ReservationType == "" {
		r.ReservationType = ec2types.CapacityReservationTypeDefault
	}
	if r.State == "" {
		r.State = ec2types.CapacityReservationStateActive
	}
	if r.Tenancy == "" {
		r.Tenancy = ec2types.CapacityReservationTenancyDefault
	}
	r.EndDateType = ec2types.EndDateTypeUnlimited
	if r.EndDate != nil {
		r.EndDateType = ec2types.EndDateTypeLimited
	}
	now := w.clock.Now()
	r.CreateDate, r.StartDate = &now, &now
	r.EbsOptimized, r.EphemeralStorage = aws.Bool(false), aws.Bool(false)
	w.reserves[id] = &r
	return id
}

// SetReservation changes how many instances a reservation has room for in total and now.
func (w *World) SetReservation(id string, total, available int) *wire.Error {
	defer w.enter()()
	r := w.reserves[id]
	if r == nil {
		return noSuchReservation(id)
	}
	r.TotalInstanceCount, r.AvailableInstanceCount = aws.Int32(int32(total)), aws.Int32(int32(available))
	return nil
}

// CancelReservation ends a reservation. Its instances go on, outside of it.
func (w *World) CancelReservation(id string) *wire.Error {
	defer w.enter()()
	r := w.reserves[id]
	if r == nil {
		return noSuchReservation(id)
	}
	r.State = ec2types.CapacityReservationStateCancelled
	r.AvailableInstanceCount = aws.Int32(0)
	for _, i := range w.instances {
		if i.CapacityReservation == id && i.Market != CapacityBlock {
			i.CapacityReservation = ""
		}
	}
	return nil
}

// InterruptReservation warns the instances of a reservation and ends them after the warning time, as EC2 does when the
// owner takes interruptible capacity back.
func (w *World) InterruptReservation(id string) *wire.Error {
	defer w.enter()()
	if w.reserves[id] == nil {
		return noSuchReservation(id)
	}
	for _, at := range w.list(func(i *Instance) bool { return i.CapacityReservation == id && i.State.Alive() }) {
		w.interrupt(w.instances[at.ID], ReservationWarned)
	}
	return nil
}

// Reservations lists the capacity reservations by id.
func (w *World) Reservations() []ec2types.CapacityReservation {
	defer w.enter()()
	all := make([]ec2types.CapacityReservation, 0, len(w.reserves))
	for id, r := range w.reserves {
		one := *r
		one.Tags = tagList(w.tags[id])
		one.State = w.reservationState(r)
		all = append(all, one)
	}
	sort.Slice(all, func(a, b int) bool { return *all[a].CapacityReservationId < *all[b].CapacityReservationId })
	return all
}

func (w *World) reservationState(r *ec2types.CapacityReservation) ec2types.CapacityReservationState {
	if r.State == ec2types.CapacityReservationStateActive && r.EndDate != nil && !w.clock.Now().Before(*r.EndDate) {
		return ec2types.CapacityReservationStateExpired
	}
	return r.State
}

// reserve finds the reservation that a launch goes into: the one that it names, an open one that fits, or none.
func (w *World) reserve(p *place) (*ec2types.CapacityReservation, *wire.Error) {
	spec := p.request.CapacityReservationSpecification
	if p.market == Spot {
		return nil, nil
	}
	if spec != nil && spec.CapacityReservationTarget != nil &&
		spec.CapacityReservationTarget.CapacityReservationId != nil {
		return w.reserveNamed(p, *spec.CapacityReservationTarget.CapacityReservationId)
	}
	preference := ec2types.CapacityReservationPreferenceOpen
	if spec != nil && spec.CapacityReservationPreference != "" {
		preference = spec.CapacityReservationPreference
	}
	if preference == ec2types.CapacityReservationPreferenceNone {
		return nil, nil
	}
	var best *ec2types.CapacityReservation
	for _, r := range w.reserves {
		if r.InstanceMatchCriteria == ec2types.InstanceMatchCriteriaOpen && w.fits(r, p) &&
			aws.ToInt32(r.AvailableInstanceCount) > 0 &&
			(best == nil || *r.CapacityReservationId < *best.CapacityReservationId) {
			best = r
		}
	}
	if best == nil && preference == ec2types.CapacityReservationPreferenceCapacityReservationsOnly {
		return nil, reservationFull()
	}
	return best, nil
}

func (w *World) reserveNamed(p *place, id string) (*ec2types.CapacityReservation, *wire.Error) {
	r := w.reserves[id]
	if r == nil {
		return nil, noSuchReservation(id)
	}
	if !w.fits(r, p) {
		return nil, wire.Errorf("InvalidParameterCombination", "The capacity reservation %s is for %s in %s, %s, %s "+
			"tenancy, and %s; the request is for %s in %s.",
			id, aws.ToString(r.InstanceType), aws.ToString(r.AvailabilityZone), r.InstancePlatform, r.Tenancy,
			w.reservationState(r), p.info.InstanceType, p.zone.Name)
	}
	if aws.ToInt32(r.AvailableInstanceCount) <= 0 {
		return nil, reservationFull()
	}
	return r, nil
}

func (w *World) fits(r *ec2types.CapacityReservation, p *place) bool {
	block := r.ReservationType == ec2types.CapacityReservationTypeCapacityBlock
	return w.reservationState(r) == ec2types.CapacityReservationStateActive && block == (p.market == CapacityBlock) &&
		aws.ToBool(r.Interruptible) == (p.market == Interruptible) &&
		aws.ToString(r.InstanceType) == string(p.info.InstanceType) &&
		aws.ToString(r.AvailabilityZone) == p.zone.Name &&
		string(r.Tenancy) == tenancyOf(p.request) &&
		isWindows(string(r.InstancePlatform)) == isWindows(string(p.image.Platform))
}

// tenancyOf is the tenancy that a launch asks for.
func tenancyOf(r *ec2.RunInstancesInput) string {
	if r.Placement == nil || r.Placement.Tenancy == "" {
		return string(ec2types.TenancyDefault)
	}
	return string(r.Placement.Tenancy)
}

// isWindows tells Windows from everything else, in the words of a reservation and of an image.
func isWindows(platform string) bool { return strings.HasPrefix(strings.ToLower(platform), "windows") }

func reservationFull() *wire.Error {
	return wire.Errorf("ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible "+
		"and available capacity for this request.")
}

func noSuchReservation(id string) *wire.Error {
	return wire.Errorf("InvalidCapacityReservationId.NotFound", "The capacity reservation ID '%s' does not exist", id)
}

// HasOpenReservation says whether an open reservation for a type in a zone has room.
func (w *World) HasOpenReservation(kind, zone string) bool {
	defer w.enter()()
	for _, r := range w.reserves {
		if r.InstanceMatchCriteria == ec2types.InstanceMatchCriteriaOpen &&
			w.reservationState(r) == ec2types.CapacityReservationStateActive &&
			aws.ToString(r.InstanceType) == kind && aws.ToString(r.AvailabilityZone) == zone &&
			aws.ToInt32(r.AvailableInstanceCount) > 0 {
			return true
		}
	}
	return false
}
