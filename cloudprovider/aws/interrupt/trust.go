package interrupt

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// Why messages are ignored.
const (
	malformed   = "malformed"
	tooLong     = "too_long"
	elsewhere   = "elsewhere"    // another account or region
	stale       = "stale"        // a warning of what should long have happened
	notSpot     = "not_spot"     // a spot warning of an instance that is not spot
	notReserved = "not_reserved" // a warning about a capacity reservation, and the instance is of none
	unconfirmed = "unconfirmed"  // EC2 says that the instance runs
)

const (
	// longestBody is more than EventBridge ever sends.
	longestBody = 256 << 10
	// staleAfter is how old a warning may be: what it warned of has happened two minutes after it, or will not.
	staleAfter = 10 * time.Minute
	// confirmLimit bounds the question for the state of instances.
	confirmLimit = 10 * time.Second
)

var errTooLong = errors.New("it is too long")

// accountOf is the account of a queue by its URL; empty if that does not tell.
func accountOf(queue string) string {
	u, err := url.Parse(queue)
	if err != nil {
		return ""
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 2 || len(parts[len(parts)-2]) != 12 {
		return ""
	}
	return parts[len(parts)-2]
}

// distrust says why a notice about instances is not believed, whatever EC2 says; empty if nothing speaks against it.
func (w *Watcher) distrust(n *notice, account string, now time.Time) (why string, err error) {
	switch {
	case len(n.instances) == 0:
		return "", nil
	case n.region != w.Region:
		return elsewhere, fmt.Errorf("the message is from region %q, and the cluster is in %q", n.region, w.Region)
	case account != "" && n.account != account:
		return elsewhere, fmt.Errorf("the message is about account %q, and the queue is in %q", n.account, account)
	case n.patient && now.Sub(n.at) > staleAfter:
		return stale, fmt.Errorf("the message is of %s, and warns of what happens within two minutes", stamp(n.at))
	}
	return "", nil
}

// misfit says why a notice can't be about an instance that was bought in this way; empty if it can.
func (n *notice) misfit(c *claim) string {
	switch {
	case c.bought == "":
	case n.Kind == cloudprovider.SpotInterruption, n.Kind == cloudprovider.RebalanceRecommendation:
		if c.bought != v1.CapacityTypeSpot {
			return notSpot
		}
	case n.Kind == cloudprovider.ReservationInterruption && c.bought != v1.CapacityTypeReserved:
		return notReserved
	}
	return ""
}

// ended is what EC2 says of instances that are said to be at their end: true if it is so.
type ended map[string]bool

// confirm asks EC2 about the instances that messages say are stopping or ending, all in one call. What it can't find
// out is an error: such messages come back.
func (w *Watcher) confirm(ctx context.Context, letters []letter, claims map[string]*claim) (ended, error) {
	var ids []string
	for i := range letters {
		for _, id := range letters[i].instances {
			if c := claims[id]; c != nil && !c.deleting {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, confirmLimit)
	defer cancel()
	out := make(ended, len(ids))
	for _, id := range ids {
		out[id] = true // what EC2 does not know any more has ended
	}
	pages := ec2.NewDescribeInstancesPaginator(w.Instances, &ec2.DescribeInstancesInput{
		Filters: []ec2types.Filter{{Name: aws.String("instance-id"), Values: ids}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fault.Explain("asking EC2 whether instances are at their end", err)
		}
		for _, r := range page.Reservations {
			for i := range r.Instances {
				out[aws.ToString(r.Instances[i].InstanceId)] = !runs(&r.Instances[i])
			}
		}
	}
	return out, nil
}

func runs(i *ec2types.Instance) bool {
	return i.State != nil && (i.State.Name == ec2types.InstanceStateNamePending ||
		i.State.Name == ec2types.InstanceStateNameRunning)
}
