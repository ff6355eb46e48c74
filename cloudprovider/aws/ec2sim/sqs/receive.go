package sqs

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

type receiveIn struct {
	QueueURL                    string `json:"QueueUrl"`
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
	AttributeNames              []string // the older name of the next
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
}

type receiveOut struct {
	Messages []messageOut `json:",omitempty"`
}

type messageOut struct {
	MessageID         string `json:"MessageId"`
	ReceiptHandle     string
	MD5OfBody         string
	Body              string
	Attributes        map[string]string          `json:",omitempty"`
	MessageAttributes map[string]json.RawMessage `json:",omitempty"`
}

// wanted is a request to receive, with its defaults and limits applied.
type wanted struct {
	count        int
	hidden, wait time.Duration
	system, user []string
}

func (q *queue) wanted(in receiveIn) (wanted, *wire.Error) {
	w := wanted{
		count: 1, hidden: q.visibility, wait: q.wait,
		system: append(slices.Clone(in.AttributeNames), in.MessageSystemAttributeNames...),
		user:   in.MessageAttributeNames,
	}
	if in.MaxNumberOfMessages != nil {
		w.count = *in.MaxNumberOfMessages
	}
	if in.VisibilityTimeout != nil {
		w.hidden = time.Duration(*in.VisibilityTimeout) * time.Second
	}
	if in.WaitTimeSeconds != nil {
		w.wait = time.Duration(*in.WaitTimeSeconds) * time.Second
	}
	switch {
	case w.count < 1 || w.count > maxBatch:
		return w, wire.Errorf("InvalidParameterValue", "Value %d for parameter MaxNumberOfMessages is invalid. "+
			"Reason: Must be between 1 and 10, if provided.", w.count)
	case w.wait < 0 || w.wait > maxWait:
		return w, wire.Errorf("InvalidParameterValue", "Value %d for parameter WaitTimeSeconds is invalid. Reason: "+
			"Must be >= 0 and <= 20, if provided.", int(w.wait/time.Second))
	case w.hidden < 0 || w.hidden > maxHidden:
		return w, wire.Errorf("InvalidParameterValue", "Value %d for parameter VisibilityTimeout is invalid. Reason: "+
			"Must be between 0 and 43200, if provided.", int(w.hidden/time.Second))
	}
	return w, nil
}

// receive hands out messages and hides them for a while. With none there it waits for one, if it was asked to.
func (s *Service) receive(c *wire.Call, in receiveIn) (*receiveOut, *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueURL)
	if err != nil {
		return nil, err
	}
	w, err := q.wanted(in)
	if err != nil {
		return nil, err
	}
	var enough <-chan time.Time
	if w.wait > 0 {
		enough = s.opts.After(w.wait)
	}
	for {
		now := s.opts.Clock.Now()
		if found := q.take(now, w); len(found) > 0 || enough == nil {
			return &receiveOut{Messages: found}, nil
		}
		changed, back := q.changed, s.whenBack(q, now)
		s.mu.Unlock()
		over := false
		select {
		case <-changed:
		case <-back:
		case <-enough:
			over = true
		case <-c.HTTP.Context().Done():
			over = true
		}
		s.mu.Lock()
		if q.gone {
			return nil, noSuchQueue()
		}
		if over {
			enough = nil
			if c.HTTP.Context().Err() != nil {
				return &receiveOut{}, nil // nobody hears it: a message must not be hidden for nothing
			}
		}
	}
}

// whenBack tells when the next hidden message is back; nil if none is hidden. The lock is held.
func (s *Service) whenBack(q *queue, now time.Time) <-chan time.Time {
	var next time.Time
	for _, m := range q.messages {
		if m.visibleAt.After(now) && (next.IsZero() || m.visibleAt.Before(next)) {
			next = m.visibleAt
		}
	}
	if next.IsZero() {
		return nil
	}
	return s.opts.After(next.Sub(now))
}

// take receives what is there. The lock is held.
func (q *queue) take(now time.Time, w wanted) []messageOut {
	q.expire(now)
	var found []messageOut
	for _, m := range q.messages {
		if len(found) == w.count {
			break
		}
		if m.visibleAt.After(now) {
			continue
		}
		if m.receives == 0 {
			m.first = now
		}
		m.receives++
		m.visibleAt = now.Add(w.hidden)
		found = append(found, m.answer(w))
	}
	return found
}

func (m *message) answer(w wanted) messageOut {
	all := map[string]string{
		"SenderId":                         senderName,
		"SentTimestamp":                    strconv.FormatInt(m.sent.UnixMilli(), 10),
		"ApproximateReceiveCount":          strconv.Itoa(m.receives),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.first.UnixMilli(), 10),
	}
	out := messageOut{MessageID: m.id, ReceiptHandle: m.handle(), MD5OfBody: sum(m.body), Body: m.body,
		Attributes: map[string]string{}}
	for name, value := range all {
		if slices.Contains(w.system, "All") || slices.Contains(w.system, name) {
			out.Attributes[name] = value
		}
	}
	for name, value := range m.attributes {
		if slices.Contains(w.user, "All") || slices.Contains(w.user, ".*") || slices.Contains(w.user, name) {
			if out.MessageAttributes == nil {
				out.MessageAttributes = map[string]json.RawMessage{}
			}
			out.MessageAttributes[name] = value
		}
	}
	return out
}
