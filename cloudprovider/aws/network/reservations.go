package network

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

const (
	// reclaim is how long before the end of a capacity block its nodes are drained.
	reclaim = 40 * time.Minute
	// taken is how long before the end EC2 begins to take the instances back.
	taken = 30 * time.Minute
)

// Reservation is capacity that was paid for in advance.
type Reservation struct {
	ID, Zone, InstanceType, OwnerID string
	// MatchCriteria is open or targeted.
	MatchCriteria string
	Type          awsv1.CapacityReservationType
	Interruptible bool
	// Tenancy is default or dedicated; Platform is what EC2 calls the operating system, such as Linux/UNIX.
	Tenancy, Platform string
	// Available of Total instances were free when it was read.
	Available, Total int
	// End is zero if the reservation has none.
	End    time.Time
	ReadAt time.Time
}

// State tells whether the reservation is near its end.
func (r Reservation) State(now time.Time) awsv1.CapacityReservationState {
	if r.Type == awsv1.CapacityReservationTypeCapacityBlock && !r.End.IsZero() && !now.Before(r.End.Add(-reclaim)) {
		return awsv1.CapacityReservationStateExpiring
	}
	return awsv1.CapacityReservationStateActive
}

// TakenBack is when EC2 begins to end the instances of a capacity block.
func (r Reservation) TakenBack() time.Time { return r.End.Add(-taken) }

// Status is the reservation as a class shows it.
func (r Reservation) Status(now time.Time) awsv1.CapacityReservation {
	out := awsv1.CapacityReservation{
		ID: r.ID, AvailabilityZone: r.Zone, InstanceType: r.InstanceType, OwnerID: r.OwnerID,
		Interruptible:         r.Interruptible,
		InstanceMatchCriteria: r.MatchCriteria, ReservationType: r.Type, State: r.State(now),
	}
	if !r.End.IsZero() {
		out.EndTime = new(metav1.NewTime(r.End))
	}
	return out
}

// CapacityReservations lists the active reservations that the class selects, by id. None is no error, nor is an id that
// does not exist.
func (f *Finder) CapacityReservations(ctx context.Context, class *awsv1.EC2NodeClass) ([]Reservation, error) {
	terms := class.Spec.CapacityReservationSelectorTerms
	if len(terms) == 0 {
		return nil, nil
	}
	return remembered(ctx, &f.reservations, terms, f.askReservations)
}

// ReservationsByID lists those of the reservations that are active.
func (f *Finder) ReservationsByID(ctx context.Context, ids []string) ([]Reservation, error) {
	class := &awsv1.EC2NodeClass{}
	for _, id := range ids {
		class.Spec.CapacityReservationSelectorTerms = append(class.Spec.CapacityReservationSelectorTerms,
			awsv1.CapacityReservationSelectorTerm{ID: id})
	}
	return f.CapacityReservations(ctx, class)
}

// ForgetReservation makes the next question for any class that uses the reservation go to EC2: it is full or gone.
func (f *Finder) ForgetReservation(id string) {
	f.reservations.forget(func(found []Reservation) bool {
		return slices.ContainsFunc(found, func(r Reservation) bool { return r.ID == id })
	})
}

func (f *Finder) askReservations(ctx context.Context, terms []awsv1.CapacityReservationSelectorTerm) ([]Reservation,
	error) {
	read := f.now()
	byID := map[string]Reservation{}
	for _, query := range reservationQueries(terms) {
		list, err := f.describeReservations(ctx, query)
		if err != nil {
			return nil, fault.Explain("finding the capacity reservations of spec.capacityReservationSelectorTerms", err)
		}
		for _, r := range list {
			if one, ok := reservation(&r, read); ok {
				byID[one.ID] = one
			}
		}
	}
	out := make([]Reservation, 0, len(byID))
	for _, r := range byID {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Reservation) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// reservation converts what EC2 said; false if the reservation can't be used, or is of a kind that we don't know.
func reservation(r *ec2types.CapacityReservation, read time.Time) (Reservation, bool) {
	out := Reservation{
		ID: deref(r.CapacityReservationId), Zone: deref(r.AvailabilityZone), InstanceType: deref(r.InstanceType),
		OwnerID:       deref(r.OwnerId),
		MatchCriteria: string(r.InstanceMatchCriteria), Type: awsv1.CapacityReservationType(r.ReservationType),
		Interruptible: deref(r.Interruptible), Tenancy: string(r.Tenancy), Platform: string(r.InstancePlatform),
		Available: int(deref(r.AvailableInstanceCount)), Total: int(deref(r.TotalInstanceCount)), End: deref(r.EndDate),
		ReadAt: read,
	}
	if out.Type == "" {
		out.Type = awsv1.CapacityReservationTypeDefault
	}
	known := (out.MatchCriteria == "open" || out.MatchCriteria == "targeted") &&
		(out.Type == awsv1.CapacityReservationTypeDefault || out.Type == awsv1.CapacityReservationTypeCapacityBlock)
	return out, known && (r.State == "" || r.State == ec2types.CapacityReservationStateActive)
}

// reservationQueries turns terms, of which any may match, into as few questions as possible. EC2 has no filter for the
// id of a reservation, so ids are named.
func reservationQueries(terms []awsv1.CapacityReservationSelectorTerm) []*ec2.DescribeCapacityReservationsInput {
	active := filter("state", string(ec2types.CapacityReservationStateActive))
	var queries []*ec2.DescribeCapacityReservationsInput
	var ids []string
	for _, t := range terms {
		if t.ID != "" {
			ids = append(ids, t.ID)
			continue
		}
		filters := append([]ec2types.Filter{active}, tagFilters(t.Tags)...)
		if t.OwnerID != "" {
			filters = append(filters, filter("owner-id", t.OwnerID))
		}
		if t.InstanceMatchCriteria != "" {
			filters = append(filters, filter("instance-match-criteria", t.InstanceMatchCriteria))
		}
		queries = append(queries, &ec2.DescribeCapacityReservationsInput{Filters: filters,
			MaxResults: new(int32(pageSize))})
	}
	if len(ids) > 0 {
		queries = append(queries, &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: ids,
			Filters: []ec2types.Filter{active}})
	}
	return queries
}

// describeReservations asks EC2. An id that is gone fails the question for all, so then each is asked for by itself.
func (f *Finder) describeReservations(ctx context.Context,
	in *ec2.DescribeCapacityReservationsInput) ([]ec2types.CapacityReservation, error) {
	var out []ec2types.CapacityReservation
	for {
		page, err := f.api.DescribeCapacityReservations(ctx, in)
		if ids := in.CapacityReservationIds; fault.IsNotFound(err) && len(ids) > 0 {
			return f.reservationsOneByOne(ctx, ids, in.Filters)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, page.CapacityReservations...)
		if deref(page.NextToken) == "" {
			return out, nil
		}
		in.NextToken = page.NextToken
	}
}

func (f *Finder) reservationsOneByOne(ctx context.Context, ids []string,
	filters []ec2types.Filter) ([]ec2types.CapacityReservation, error) {
	if len(ids) == 1 {
		return nil, nil
	}
	var out []ec2types.CapacityReservation
	for _, id := range ids {
		some, err := f.describeReservations(ctx,
			&ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{id}, Filters: filters})
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}
