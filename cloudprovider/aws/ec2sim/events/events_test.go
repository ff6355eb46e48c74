package events_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/events"
)

// mailbox keeps what is sent.
type mailbox []string

func (m *mailbox) Send(name, body string) bool {
	*m = append(*m, name+" "+body)
	return true
}

func at() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func TestMessages(t *testing.T) {
	plan := cloud.Event{ID: "instance-event-1", Code: "instance-retirement", NotBefore: at().Add(time.Hour),
		NotAfter: at().Add(2 * time.Hour)}
	for _, c := range []struct {
		kind     cloud.ChangeKind
		instance cloud.Instance
		typ, src string
		detail   map[string]string
	}{
		{cloud.StateChanged, cloud.Instance{State: cloud.ShuttingDown}, "EC2 Instance State-change Notification",
			"aws.ec2",
			map[string]string{"instance-id": "i-1", "state": "shutting-down"}},
		{cloud.SpotWarned, cloud.Instance{}, "EC2 Spot Instance Interruption Warning", "aws.ec2",
			map[string]string{"instance-id": "i-1", "instance-action": "terminate"}},
		{cloud.RebalanceAdvised, cloud.Instance{}, "EC2 Instance Rebalance Recommendation", "aws.ec2",
			map[string]string{"instance-id": "i-1"}},
		{cloud.ReservationWarned, cloud.Instance{InterruptAt: at().Add(2 * time.Minute), ZoneID: "usw2-az1"},
			"EC2 Capacity Reservation Instance Interruption Warning", "aws.ec2",
			map[string]string{"instance-id": "i-1", "instance-termination-time": "2026-03-01T12:02:00Z",
				"azId": "usw2-az1"}},
		{cloud.EventScheduled, cloud.Instance{Events: []cloud.Event{plan}}, "AWS Health Event", "aws.health",
			map[string]string{"service": "EC2", "eventTypeCategory": "scheduledChange",
				"eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"}},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			var box mailbox
			bridge := &events.Bridge{Queue: &box, Name: "lab", Region: "us-west-2", Account: "123456789012"}
			c.instance.ID = "i-1"
			bridge.Tell(cloud.Change{Kind: c.kind, At: at(), Instance: c.instance})
			if len(box) != 1 {
				t.Fatalf("%d messages were sent", len(box))
			}
			queue, body, _ := strings.Cut(box[0], " ")
			var m struct {
				DetailType   string `json:"detail-type"`
				Source, Time string
				Resources    []string
				Detail       map[string]any
			}
			if err := json.Unmarshal([]byte(body), &m); err != nil {
				t.Fatal(err)
			}
			if queue != "lab" || m.DetailType != c.typ || m.Source != c.src || m.Time != "2026-03-01T12:00:00Z" ||
				len(m.Resources) != 1 || !strings.HasSuffix(m.Resources[0], "i-1") {
				t.Errorf("got %s to %s", body, queue)
			}
			for key, want := range c.detail {
				if m.Detail[key] != want {
					t.Errorf("the detail's %s is %v, want %s", key, m.Detail[key], want)
				}
			}
		})
	}
}

func TestSilence(t *testing.T) {
	var box mailbox
	bridge := &events.Bridge{Queue: &box, Name: "lab"}
	bridge.Tell(cloud.Change{Kind: cloud.InstanceImpaired, At: at()})
	bridge.Mute(true)
	bridge.Tell(cloud.Change{Kind: cloud.SpotWarned, At: at()})
	bridge.Mute(false)
	if len(box) != 0 {
		t.Errorf("sent %v: EventBridge knows nothing of status checks, and a muted bridge says nothing", box)
	}
	bridge.Tell(cloud.Change{Kind: cloud.SpotWarned, At: at()})
	if len(box) != 1 {
		t.Errorf("after it was muted the bridge sent %v", box)
	}
}
