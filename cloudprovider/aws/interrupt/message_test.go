package interrupt

import (
	"slices"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func event(kind, source, detail string) string {
	return `{"version": "0", "id": "1", "detail-type": "` + kind + `", "source": "` + source +
		`", "account": "123456789012", "time": "2026-03-01T11:59:30Z",
		"region": "us-west-2", "resources": "arn:aws:ec2:us-west-2:123456789012:instance/i-1", "detail": ` + detail +
		`}`
}

func reservationEndsIn(after time.Duration) cloudprovider.Interruption {
	return cloudprovider.Interruption{Kind: cloudprovider.ReservationInterruption, Deadline: noon().Add(after)}
}

func TestRead(t *testing.T) {
	said := noon().Add(-30 * time.Second)
	health := func(rest string) string {
		return `{"service": "EC2", "eventTypeCategory": "scheduledChange",
			"eventTypeCode": "AWS_EC2_INSTANCE_STOP_SCHEDULED",
			"affectedEntities": [{"entityValue": "i-1"}, {"entityValue": "vol-1"}, {"entityValue": "i-2"}]` + rest + `}`
	}
	for _, c := range []struct {
		name, body, counted string
		want                cloudprovider.Interruption
		instances           []string
		reason              string
	}{
		{"spot", event("EC2 Spot Instance Interruption Warning", "aws.ec2",
			`{"instance-id": "i-1", "instance-action": "terminate"}`), "spot_interrupted",
			cloudprovider.Interruption{Kind: cloudprovider.SpotInterruption, Deadline: said.Add(2 * time.Minute)},
			[]string{"i-1"}, "SpotInterrupted"},
		{"rebalance", event("EC2 Instance Rebalance Recommendation", "aws.ec2", `{"instance-id": "i-1"}`),
			"rebalance_recommendation",
			cloudprovider.Interruption{Kind: cloudprovider.RebalanceRecommendation}, []string{"i-1"},
			"SpotRebalanceRecommendation"},
		{"reservation whose end has passed", event("EC2 Capacity Reservation Instance Interruption Warning", "aws.ec2",
			`{"instance-id": "i-1", "instance-termination-time": "1970-01-01T00:00:00Z"}`),
			"capacity_reservation_interrupted",
			reservationEndsIn(30 * time.Second), []string{"i-1"}, "CapacityReservationInstanceInterrupted"},
		{"reservation", event("EC2 Capacity Reservation Instance Interruption Warning", "aws.ec2",
			`{"instance-id": "i-1", "instance-action": "terminate", "instance-termination-time": `+
				`"2026-03-01T12:01:45Z"}`), "capacity_reservation_interrupted",
			reservationEndsIn(105 * time.Second), []string{"i-1"}, "CapacityReservationInstanceInterrupted"},
		{"stopping", event("EC2 Instance State-change Notification", "aws.ec2",
			`{"instance-id": "i-1", "state": "stopping"}`), "instance_stopped",
			cloudprovider.Interruption{Kind: cloudprovider.InstanceStopping, Deadline: said}, []string{"i-1"},
			"InstanceStopping"},
		{"terminated", event("EC2 Instance State-change Notification", "aws.ec2",
			`{"instance-id": "i-1", "state": "terminated"}`), "instance_terminated",
			cloudprovider.Interruption{Kind: cloudprovider.InstanceTerminating, Deadline: said}, []string{"i-1"},
			"InstanceTerminating"},
		{"running", event("EC2 Instance State-change Notification", "aws.ec2",
			`{"instance-id": "i-1", "state": "running"}`), "no_op",
			cloudprovider.Interruption{}, nil, ""},
		{"health", event("AWS Health Event", "aws.health", health(`, "startTime": "Mon, 02 Mar 2026 12:00:00 GMT"`)),
			"scheduled_change",
			cloudprovider.Interruption{Kind: cloudprovider.ScheduledChange, Deadline: noon().Add(24 * time.Hour)},
			[]string{"i-1", "i-2"}, "InstanceUnhealthy"},
		{"health without a time", event("AWS Health Event", "aws.health", health("")), "scheduled_change",
			cloudprovider.Interruption{Kind: cloudprovider.ScheduledChange, Deadline: noon().Add(2 * time.Minute)},
			[]string{"i-1", "i-2"}, "InstanceUnhealthy"},
		{"health, over", event("AWS Health Event", "aws.health", health(`, "statusCode": "closed"`)),
			"scheduled_change", cloudprovider.Interruption{}, nil, ""},
		{"health of another service", event("AWS Health Event", "aws.health",
			`{"service": "RDS", "eventTypeCategory": "scheduledChange"}`), "no_op",
			cloudprovider.Interruption{}, nil, ""},
		{"something else", event("EC2 Fleet Information", "aws.ec2fleet", `{"instance-id": "i-1"}`), "no_op",
			cloudprovider.Interruption{}, nil, ""},
		{"an alarm", event("CloudWatch Alarm State Change", "aws.cloudwatch",
			`{"alarmName": "x", "state": {"value": "ALARM"}}`), "no_op", cloudprovider.Interruption{}, nil, ""},
		{"a new kind", event("EC2 Instance Surprise", "aws.ec2", `{"instance-id": "i-1"}`), "no_op",
			cloudprovider.Interruption{}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := read(c.body, noon())
			if err != nil {
				t.Fatal(err)
			}
			if n.counted != c.counted || n.Interruption != c.want || !slices.Equal(n.instances, c.instances) ||
				n.reason != c.reason {
				t.Errorf("got %s %q %v %q\nwant %s %q %v %q", n.counted, n.Interruption, n.instances, n.reason,
					c.counted, c.want, c.instances, c.reason)
			}
		})
	}
}

func TestReadNonsense(t *testing.T) {
	for _, body := range []string{"", "hello", "[]", `{"source": "aws.ec2", "detail": "x"}`, `{"source": "aws.ec2"}`} {
		if n, err := read(body, noon()); err == nil || len(n.instances) > 0 || n.counted != noOp {
			t.Errorf("%q gives %+v, %v", body, n, err)
		}
	}
}
