package offerings

import (
	"iter"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/require"
)

// reservationsOf finds the reservations of a provider's list and the label by which a claim is pinned to each.
func reservationsOf(types []*cloudprovider.InstanceType) map[string]string {
	var out map[string]string
	for _, t := range types {
		for _, o := range t.Offerings {
			if o.ReservationID == "" {
				continue
			}
			if out == nil {
				out = make(map[string]string)
			}
			for key, value := range o.Labels {
				if value == o.ReservationID {
					out[o.ReservationID] = key
				}
			}
		}
	}
	return out
}

// countPinned counts, by reservation, the claims that will take an instance of it and that the provider had not
// launched when it said how many are left. A claim that may use either of two counts for both.
//
// claims are those that there are, asked those that are being made.
func countPinned(reservations map[string]string, told time.Time, claims iter.Seq[*cluster.Claim],
	asked iter.Seq[command.CreateClaim]) map[string]int {
	if len(reservations) == 0 {
		return nil
	}
	out := make(map[string]int)
	count := func(set require.Set, labels cluster.Labels) {
		for id, key := range reservations {
			values, _ := set.Get(key)
			list, finite := values.Listed()
			label, _ := labels.Get(key)
			if label == id || finite && slices.Contains(list, id) {
				out[id]++
			}
		}
	}
	for c := range claims {
		launched := c.Condition(cluster.Launched)
		if launched.Status == cluster.False || launched.Status != cluster.True && !c.Deleting.IsZero() {
			continue
		}
		// Conditions tell the time in whole seconds.
		if launched.Status != cluster.True || !launched.Since.Before(told.Truncate(time.Second)) {
			count(c.Requirements, c.Labels)
		}
	}
	for create := range asked {
		count(create.Requirements, create.Labels)
	}
	return out
}
