package interrupt

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
)

// warning is how long before its end a spot instance, or one of a reservation, is warned.
const warning = 2 * time.Minute

// leastWarning is how much time pods get in any case by a warning. One that says that the end has come is late, or not
// true: an instance that has ended is told of by its state, which EC2 confirms.
const leastWarning = 30 * time.Second

// What messages are counted as: the contract's words.
const (
	spotInterruption = "spot_interrupted"
	rebalance        = "rebalance_recommendation"
	scheduledChange  = "scheduled_change"
	stopped          = "instance_stopped"
	terminated       = "instance_terminated"
	reservationEnds  = "capacity_reservation_interrupted"
	noOp             = "no_op"
)

// notice is what one message, or one look at an instance, comes to.
type notice struct {
	// counted is the type of the message.
	counted string
	// instances are the ids of those that it is about; none if nothing follows from it.
	instances []string
	cloudprovider.Interruption
	// at is when AWS said it; account and region are where.
	at              time.Time
	account, region string
	// reason and text are of the event that tells people.
	reason, text string
	// patient notices are kept for a while if nobody claims the instance: its launch may not have been written down
	// yet.
	patient bool
}

// envelope is what all messages of EventBridge have in common. What a message is about is in its detail, whose fields
// differ.
type envelope struct {
	DetailType string          `json:"detail-type"`
	Source     string          `json:"source"`
	Account    string          `json:"account"`
	Region     string          `json:"region"`
	Time       time.Time       `json:"time"`
	Detail     json.RawMessage `json:"detail"`
}

// detail are the fields that we read.
type detail struct {
	Instance string `json:"instance-id"`
	State    string `json:"state"`
	// EndsAt is of reservations.
	EndsAt string `json:"instance-termination-time"`
	// The rest is of AWS Health.
	Service  string `json:"service"`
	Category string `json:"eventTypeCategory"`
	Code     string `json:"eventTypeCode"`
	Status   string `json:"statusCode"`
	StartsAt string `json:"startTime"`
	Entities []struct {
		Value string `json:"entityValue"`
	} `json:"affectedEntities"`
}

// read reads a message. One that is about something else than the end of an instance names no instances.
func read(body string, now time.Time) (notice, error) {
	if len(body) > longestBody {
		return notice{counted: noOp}, fmt.Errorf("reading a message of the interruption queue: %w: it has %d bytes, "+
			"want %d at most", errTooLong, len(body), longestBody)
	}
	var e envelope
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return notice{counted: noOp}, fmt.Errorf("reading a message of the interruption queue: %w", err)
	}
	n := notice{counted: noOp, at: e.Time, account: e.Account, region: e.Region}
	if n.at.IsZero() || n.at.After(now) { // nothing can have been said yet; clocks differ a little
		n.at = now
	}
	if e.Source != "aws.health" && e.Source != "aws.ec2" {
		return n, nil // what others call their fields is theirs
	}
	var d detail
	if err := json.Unmarshal(e.Detail, &d); err != nil {
		return n, fmt.Errorf("reading a message of the interruption queue, %s of %s: %w", e.DetailType, e.Source, err)
	}
	if e.Source == "aws.health" {
		d.health(&n, now)
		return n, nil
	}
	n.ofInstance(&d, e.DetailType, now)
	return n, nil
}

// ofState tells that the notice is about an instance that EC2 says has stopped or ended.
func (n *notice) ofState() bool { return n.counted == stopped || n.counted == terminated }

// endsAt sets when a warning says that the instance ends.
func (n *notice) endsAt(at, now time.Time) {
	if least := now.Add(leastWarning); at.Before(least) {
		at = least
	}
	n.Deadline = seconds(at)
}

// ofInstance is about one instance.
func (n *notice) ofInstance(d *detail, what string, now time.Time) {
	if d.Instance == "" {
		return
	}
	switch what {
	case "EC2 Spot Instance Interruption Warning":
		n.counted, n.patient = spotInterruption, true
		n.Kind = cloudprovider.SpotInterruption
		n.endsAt(n.at.Add(warning), now)
		n.reason, n.text = "SpotInterrupted", "EC2 takes the spot instance back at "+stamp(n.Deadline)
	case "EC2 Instance Rebalance Recommendation":
		n.counted, n.patient = rebalance, true
		n.Kind = cloudprovider.RebalanceRecommendation
		n.reason, n.text = "SpotRebalanceRecommendation", "EC2 expects that it will take the spot instance back"
	case "EC2 Capacity Reservation Instance Interruption Warning":
		n.counted, n.patient = reservationEnds, true
		n.Kind = cloudprovider.ReservationInterruption
		at, err := time.Parse(time.RFC3339, d.EndsAt)
		if err != nil {
			at = n.at.Add(warning)
		}
		n.endsAt(at, now)
		n.reason, n.text = "CapacityReservationInstanceInterrupted", "The owner of the capacity reservation takes "+
			"the instance back at "+stamp(n.Deadline)
	case "EC2 Instance State-change Notification":
		if !d.state(n) {
			return
		}
	default:
		return
	}
	n.instances = []string{d.Instance}
}

// state is about an instance that stops or ends. Whatever runs there ends with it, so there is nothing to wait for. It
// reports false for the other states.
func (d *detail) state(n *notice) bool {
	switch d.State {
	case "stopping", "stopped":
		n.counted, n.Kind, n.reason = stopped, cloudprovider.InstanceStopping, "InstanceStopping"
	case "shutting-down", "terminated":
		n.counted, n.Kind, n.reason = terminated, cloudprovider.InstanceTerminating, "InstanceTerminating"
	default:
		return false
	}
	n.Deadline, n.text = seconds(n.at), "The instance is "+d.State
	return true
}

// health is about a change that AWS has planned for instances.
func (d *detail) health(n *notice, now time.Time) {
	if d.Service != "EC2" || d.Category != "scheduledChange" {
		return
	}
	n.counted = scheduledChange
	if d.Status == "closed" { // it is over, or called off
		return
	}
	starts, err := time.Parse(time.RFC1123, d.StartsAt)
	if err != nil {
		starts = time.Time{}
	}
	n.plan(d.Code, starts, now)
	for _, entity := range d.Entities {
		if strings.HasPrefix(entity.Value, "i-") {
			n.instances = append(n.instances, entity.Value)
		}
	}
}

// plan is about a change that is planned for a time. If that is not known or has come, there may be a moment left.
func (n *notice) plan(what string, at, now time.Time) {
	n.Kind, n.Deadline, n.reason = cloudprovider.ScheduledChange, seconds(at), "InstanceUnhealthy"
	if least := now.Add(warning); at.Before(least) {
		n.Deadline = seconds(least)
	}
	n.text = fmt.Sprintf("AWS has planned a change of the instance (%s) for %s", what, stamp(n.Deadline))
}

// seconds is a time as the annotation has it.
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
