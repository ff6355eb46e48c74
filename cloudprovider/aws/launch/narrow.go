package launch

import (
	"slices"
	"strings"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/offer"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

const (
	// mostTypes is how many instance types one launch offers to EC2: enough for it to find capacity, few enough for its
	// limit on the size of a request.
	mostTypes = 60
	// mostLines is how many combinations of type and subnet a launch names. EC2 takes no more in a fleet that it
	// maintains; in one of type instant it would, but a longer list would find no more capacity.
	mostLines = 300
	// mostTemplates is its limit on how many launch templates it may name.
	mostTemplates = 50
)

// narrowCandidates keeps of the offerings that a claim may be launched on, cheapest first, those that are asked of EC2
// together: all of one capacity type, because a fleet buys one. A claim with minValues wants a choice: for it nothing
// is left out because it is dear or seldom needed, and what is left out for the size of the request leaves as many
// values.
func narrowCandidates(claim *v1.NodeClaim, ranked []choose.Candidate,
	refused func(cloudprovider.OfferingRef) bool) []choose.Candidate {
	wide := minValues(claim)
	kept := dropRefused(slices.DeleteFunc(slices.Clone(ranked), func(c choose.Candidate) bool {
		return !isAvailable(&c)
	}), refused)
	if reserved := OnlyCapacityType(kept, v1.CapacityTypeReserved); len(reserved) > 0 {
		kept = oneReservation(reserved)
		if len(wide) == 0 {
			kept = DropExotic(kept)
		}
		return cheapestTypes(kept, wide)
	}
	if len(wide) == 0 {
		kept = worthwhileSpot(DropExotic(kept))
	}
	if spot := OnlyCapacityType(kept, v1.CapacityTypeSpot); len(spot) > 0 {
		return cheapestTypes(spot, wide)
	}
	return cheapestTypes(kept, wide)
}

// minValues are how many values of a label a claim wants to be asked for, by label.
func minValues(claim *v1.NodeClaim) map[string]int {
	out := map[string]int{}
	for _, r := range claim.Spec.Requirements {
		if r.MinValues != nil {
			out[r.Key] = max(out[r.Key], *r.MinValues)
		}
	}
	return out
}

func nothingRefused(cloudprovider.OfferingRef) bool { return false }

// dropRefused drops what something is held against, unless there is nothing else.
func dropRefused(list []choose.Candidate, refused func(cloudprovider.OfferingRef) bool) []choose.Candidate {
	var out []choose.Candidate
	for _, c := range list {
		ref := c.Ref()
		ref.Within = c.Offering.ReservationID
		if !refused(ref) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return list
	}
	return out
}

func isAvailable(c *choose.Candidate) bool {
	return c.Offering.Available && (c.Offering.ReservationID == "" || c.Offering.ReservationCapacity > 0)
}

// OnlyCapacityType are the candidates that are sold on the terms.
func OnlyCapacityType(list []choose.Candidate, kind string) []choose.Candidate {
	var out []choose.Candidate
	for _, c := range list {
		if c.Ref().CapacityType == kind {
			out = append(out, c)
		}
	}
	return out
}

// reservationKind says how a reservation is bought, and which goes first at the same price: an ordinary one, then a
// capacity block, then one that its owner may take back.
func reservationKind(c *choose.Candidate) int {
	switch {
	case offer.IsInterruptible(c.Offering):
		return 2
	case offer.IsBlock(c.Offering):
		return 1
	}
	return 0
}

// oneReservation makes a choice among reservations that one fleet can ask for. Ordinary reservations, capacity blocks
// and interruptible reservations are bought in different ways, so only the kind of the cheapest stays; a block is paid
// for already, so only the cheapest of them. Of several reservations of a type in a zone the one with most left stays.
func oneReservation(list []choose.Candidate) []choose.Candidate {
	first := 0
	for i := range list {
		if list[i].Offering.Price == list[0].Offering.Price &&
			reservationKind(&list[i]) < reservationKind(&list[first]) {
			first = i
		}
	}
	if offer.IsBlock(list[first].Offering) {
		return list[first : first+1]
	}
	kind := reservationKind(&list[first])
	type place struct{ kind, zone string }
	best := map[place]choose.Candidate{}
	for _, c := range list {
		if reservationKind(&c) != kind {
			continue
		}
		at := place{c.Type.Name, c.Ref().Zone}
		if have, ok := best[at]; !ok || c.Offering.ReservationCapacity > have.Offering.ReservationCapacity {
			best[at] = c
		}
	}
	return slices.DeleteFunc(slices.Clone(list), func(c choose.Candidate) bool {
		return best[place{c.Type.Name, c.Ref().Zone}].Offering != c.Offering
	})
}

// DropExotic drops machines that few need, with accelerators or without a hypervisor, unless there are no others.
func DropExotic(list []choose.Candidate) []choose.Candidate {
	var out []choose.Candidate
	for _, c := range list {
		if !isExotic(&c) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return list
	}
	return out
}

func isExotic(c *choose.Candidate) bool {
	labels := c.Type.Labels
	for _, key := range []string{awsv1.InstanceGPUCountLabelKey, awsv1.InstanceAcceleratorCountLabelKey} {
		if len(labels[key]) > 0 {
			return true
		}
	}
	return strings.Contains(c.Type.Name, "metal")
}

// worthwhileSpot drops spot offerings that cost more than the cheapest that can't be interrupted.
func worthwhileSpot(list []choose.Candidate) []choose.Candidate {
	steady := OnlyCapacityType(list, v1.CapacityTypeOnDemand)
	if len(steady) == 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(c choose.Candidate) bool {
		return c.Ref().CapacityType == v1.CapacityTypeSpot && c.Offering.Price > steady[0].Offering.Price
	})
}

// cheapestTypes keeps the cheapest types, so that the request is not too large for EC2, and those that bring values
// which are wanted.
func cheapestTypes(list []choose.Candidate, wide map[string]int) []choose.Candidate {
	types := typesForValues(list, wide)
	for i := 0; i < len(list) && len(types) < mostTypes; i++ {
		types[list[i].Type.Name] = true
	}
	var out []choose.Candidate
	for _, c := range list {
		if !types[c.Type.Name] {
			continue
		}
		if out = append(out, c); len(out) == mostLines && len(wide) == 0 {
			break
		}
	}
	return out
}

// typesForValues are the cheapest types that together have as many values as are wanted.
func typesForValues(list []choose.Candidate, wide map[string]int) map[string]bool {
	types := map[string]bool{}
	for key, least := range wide {
		seen := map[string]bool{}
		for i := 0; i < len(list) && len(seen) < least; i++ {
			if value := list[i].Label(key); value != "" && !seen[value] {
				seen[value], types[list[i].Type.Name] = true, true
			}
		}
	}
	return types
}
