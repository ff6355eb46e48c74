package interrupt

import (
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
)

// FuzzMessage reads any body of a message. Nothing panics; whatever names an instance has a kind, a text and a time
// that the annotation on the claim can carry; and what can't be read names none.
func FuzzMessage(f *testing.F) {
	for _, body := range []string{
		`{"detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","time":"2026-03-28T12:00:00Z",` +
			`"detail":{"instance-id":"i-1","instance-action":"terminate"}}`,
		`{"detail-type":"EC2 Instance Rebalance Recommendation","source":"aws.ec2","detail":{"instance-id":"i-1"}}`,
		`{"detail-type":"EC2 Instance State-change Notification","source":"aws.ec2","time":"2026-03-28T12:00:00Z",` +
			`"detail":{"instance-id":"i-1","state":"stopping"}}`,
		`{"detail-type":"EC2 Capacity Reservation Instance Interruption Warning","source":"aws.ec2",` +
			`"detail":{"instance-id":"i-1","instance-termination-time":"2026-03-28T12:05:00Z"}}`,
		`{"detail-type":"AWS Health Event","source":"aws.health","detail":{"service":"EC2",` +
			`"eventTypeCategory":"scheduledChange","eventTypeCode":"AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",` +
			`"startTime":"Sat, 28 Mar 2026 14:00:00 GMT","affectedEntities":[{"entityValue":"i-1"},` +
			`{"entityValue":"vol-1"}]}}`,
		`{"source":"aws.ec2","detail":null}`, `{"source":"aws.ec2","detail":[1]}`, `null`, ``, `[]`,
		`{"time":"+99999-01-01T00:00:00Z"}`,
	} {
		f.Add(body)
	}
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, body string) {
		n, err := read(body, now)
		if n.counted == "" {
			t.Error("it is counted as nothing")
		}
		if err != nil && len(n.instances) > 0 {
			t.Errorf("it can't be read (%v) and names %v", err, n.instances)
		}
		if len(n.instances) == 0 {
			return
		}
		if n.Kind == "" || n.reason == "" || n.text == "" || n.at.IsZero() {
			t.Errorf("it names %v and says %+v", n.instances, n)
		}
		text := n.Interruption.String()
		again, err := cloudprovider.ParseInterruption(text)
		if year := n.Deadline.Year(); err != nil && !n.Deadline.IsZero() && (year < 0 || year > 9999) {
			return // no annotation can carry such a time, and none is believed
		}
		if err != nil || !again.Deadline.Equal(n.Deadline) || again.Kind != n.Kind {
			t.Errorf("%q is read as %+v (%v), and was %+v", text, again, err, n.Interruption)
		}
		for _, id := range n.instances {
			if strings.TrimSpace(id) == "" {
				t.Errorf("it names an instance without a name: %q", n.instances)
			}
		}
	})
}
