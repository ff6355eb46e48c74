// Package events turns what happens to machines into the messages that EventBridge sends, and puts them into a queue.
package events

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
)

// Queue takes messages. Package sqs has one.
type Queue interface {
	// Send says whether there is such a queue.
	Send(name, body string) bool
}

// Bridge sends messages about machines to a queue. Its Tell is a hook for cloud.World.OnChange.
type Bridge struct {
	Queue   Queue
	Name    string // of the queue
	Region  string
	Account string

	mu     sync.Mutex
	serial int
	muted  bool
}

// Mute stops messages, or lets them go again: those in between are lost, as with a rule that somebody deleted.
func (b *Bridge) Mute(muted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.muted = muted
}

// message is the envelope that all events have.
type message struct {
	Version    string         `json:"version"`
	ID         string         `json:"id"`
	DetailType string         `json:"detail-type"`
	Source     string         `json:"source"`
	Account    string         `json:"account"`
	Time       string         `json:"time"`
	Region     string         `json:"region"`
	Resources  []string       `json:"resources"`
	Detail     map[string]any `json:"detail"`
}

// Tell sends the message about a change, if there is one for it.
func (b *Bridge) Tell(c cloud.Change) {
	m := b.message(c)
	b.mu.Lock()
	muted := b.muted
	b.serial++
	m.ID = fmt.Sprintf("00000000-0000-4000-a000-%012d", b.serial)
	b.mu.Unlock()
	if muted || m.DetailType == "" {
		return
	}
	body, err := json.Marshal(m)
	if err != nil {
		return // strings and maps of strings always encode
	}
	b.Queue.Send(b.Name, string(body))
}

// message words a change. Status checks and tags have no message: one has to ask for them.
func (b *Bridge) message(c cloud.Change) message {
	id := c.Instance.ID
	m := message{
		Version: "0", Source: "aws.ec2", Account: b.Account, Time: stamp(c.At), Region: b.Region,
		Resources: []string{fmt.Sprintf("arn:aws:ec2:%s:%s:instance/%s", b.Region, b.Account, id)},
		Detail:    map[string]any{"instance-id": id},
	}
	switch c.Kind {
	case cloud.StateChanged:
		m.DetailType = "EC2 Instance State-change Notification"
		m.Detail["state"] = string(c.Instance.State)
	case cloud.SpotWarned:
		m.DetailType = "EC2 Spot Instance Interruption Warning"
		m.Detail["instance-action"] = "terminate"
	case cloud.RebalanceAdvised:
		m.DetailType = "EC2 Instance Rebalance Recommendation"
	case cloud.ReservationWarned:
		m.DetailType = "EC2 Capacity Reservation Instance Interruption Warning"
		m.Detail["instance-action"] = "terminate"
		m.Detail["instance-termination-time"] = stamp(c.Instance.InterruptAt)
		m.Detail["azId"] = c.Instance.ZoneID
	case cloud.EventScheduled:
		b.health(&m, c)
	}
	return m
}

// health words a scheduled event as AWS Health does: the resources are bare ids.
func (b *Bridge) health(m *message, c cloud.Change) {
	id, code := c.Instance.ID, "AWS_EC2_INSTANCE_STOP_SCHEDULED"
	var plan cloud.Event
	if n := len(c.Instance.Events); n > 0 {
		plan = c.Instance.Events[n-1]
	}
	switch plan.Code {
	case "instance-retirement":
		code = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"
	case "instance-reboot", "system-reboot":
		code = "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED"
	case "system-maintenance":
		code = "AWS_EC2_SYSTEM_MAINTENANCE_EVENT"
	}
	m.DetailType, m.Source, m.Resources = "AWS Health Event", "aws.health", []string{id}
	m.Detail = map[string]any{
		"eventArn": fmt.Sprintf("arn:aws:health:%s::event/EC2/%s/%s", b.Region, code, plan.ID),
		"service":  "EC2", "eventTypeCode": code, "eventTypeCategory": "scheduledChange", "eventRegion": b.Region,
		"startTime": plan.NotBefore.UTC().Format(time.RFC1123), "endTime": plan.NotAfter.UTC().Format(time.RFC1123),
		"eventDescription": []map[string]string{{"language": "en_US", "latestDescription": plan.Description}},
		"affectedEntities": []map[string]string{{"entityValue": id}},
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
