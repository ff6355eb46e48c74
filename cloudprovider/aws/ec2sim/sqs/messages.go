package sqs

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

const (
	maxBody    = 1 << 20 // bytes of a message
	maxBatch   = 10
	maxWait    = 20 * time.Second
	maxHidden  = 12 * time.Hour
	senderName = "AIDASIMULATED"
)

// message is one message.
type message struct {
	id, body   string
	attributes map[string]json.RawMessage
	sent       time.Time
	visibleAt  time.Time
	first      time.Time // received
	receives   int
}

func sum(body string) string {
	h := md5.Sum([]byte(body)) // the protocol's check of bodies; nothing secret hangs on it
	return hex.EncodeToString(h[:])
}

// put adds a message. The lock is held.
func (s *Service) put(q *queue, body string, delay time.Duration, attributes map[string]json.RawMessage) *message {
	s.serial++
	now := s.opts.Clock.Now()
	q.expire(now) // here as well, for a queue that nobody reads
	m := &message{
		id: fmt.Sprintf("00000000-0000-4000-8000-%012d", s.serial), body: body, attributes: attributes, sent: now,
		visibleAt: now.Add(delay),
	}
	q.messages = append(q.messages, m)
	q.wake()
	return m
}

// expire drops messages that are too old. They are in the order in which they were sent.
func (q *queue) expire(now time.Time) {
	old := 0
	for old < len(q.messages) && now.Sub(q.messages[old].sent) > q.retention {
		old++
	}
	q.messages = slices.Delete(q.messages, 0, old)
}

// handle is what a receiver deletes a message with. It carries the receipt's number: SQS lets an old receipt delete,
// too.
func (m *message) handle() string { return m.id + "#" + strconv.Itoa(m.receives) }

// byHandle finds a message by its receipt. The lock is held. A message that has been deleted is nil and no error.
func (q *queue) byHandle(handle string) (*message, *wire.Error) {
	id, number, ok := strings.Cut(handle, "#")
	if _, err := strconv.Atoi(number); !ok || err != nil {
		return nil, wire.Errorf("ReceiptHandleIsInvalid", "The input receipt handle %q is not a valid receipt handle.",
			handle)
	}
	for _, m := range q.messages {
		if m.id == id {
			return m, nil
		}
	}
	return nil, nil
}

type sendIn struct {
	QueueURL          string `json:"QueueUrl"`
	ID                string `json:"Id"` // in a batch
	MessageBody       string
	DelaySeconds      int
	MessageAttributes map[string]json.RawMessage
}

type sendOut struct {
	ID               string `json:"Id,omitempty"`
	MessageID        string `json:"MessageId"`
	MD5OfMessageBody string
}

func (s *Service) sendMessage(_ *wire.Call, in sendIn) (*sendOut, *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueURL)
	if err != nil {
		return nil, err
	}
	return s.accept(q, in)
}

func (s *Service) accept(q *queue, in sendIn) (*sendOut, *wire.Error) {
	if in.MessageBody == "" {
		return nil, wire.Errorf("MissingParameter", "The request must contain the parameter MessageBody.")
	}
	if len(in.MessageBody) > maxBody {
		return nil, wire.Errorf("InvalidParameterValue", "One or more parameters are invalid. Reason: Message must "+
			"be shorter than %d bytes.", maxBody)
	}
	m := s.put(q, in.MessageBody, time.Duration(in.DelaySeconds)*time.Second, in.MessageAttributes)
	return &sendOut{ID: in.ID, MessageID: m.id, MD5OfMessageBody: sum(m.body)}, nil
}

type sendBatchIn struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []sendIn
}

type batchOut struct {
	Successful []any
	Failed     []failed
}

type failed struct {
	ID          string `json:"Id"`
	Code        string
	Message     string
	SenderFault bool
}

func (s *Service) sendBatch(_ *wire.Call, in sendBatchIn) (*batchOut, *wire.Error) {
	if err := checkBatch(len(in.Entries)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueURL)
	if err != nil {
		return nil, err
	}
	out := &batchOut{Successful: []any{}, Failed: []failed{}}
	for _, e := range in.Entries {
		if sent, err := s.accept(q, e); err != nil {
			out.Failed = append(out.Failed, failed{ID: e.ID, Code: err.Code, Message: err.Message, SenderFault: true})
		} else {
			out.Successful = append(out.Successful, sent)
		}
	}
	return out, nil
}

func checkBatch(n int) *wire.Error {
	switch {
	case n == 0:
		return wire.Errorf("EmptyBatchRequest", "There should be at least one entry in the request.")
	case n > maxBatch:
		return wire.Errorf("TooManyEntriesInBatchRequest", "Maximum number of entries per request are %d. You have "+
			"sent %d.", maxBatch, n)
	}
	return nil
}

type deleteIn struct {
	QueueURL      string `json:"QueueUrl"`
	ID            string `json:"Id"`
	ReceiptHandle string
}

func (s *Service) deleteMessage(_ *wire.Call, in deleteIn) (*nothing, *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueURL)
	if err != nil {
		return nil, err
	}
	return &nothing{}, q.drop(in.ReceiptHandle)
}

func (q *queue) drop(handle string) *wire.Error {
	m, err := q.byHandle(handle)
	if err != nil || m == nil {
		return err
	}
	q.messages = slices.DeleteFunc(q.messages, func(other *message) bool { return other == m })
	return nil
}

type deleteBatchIn struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []deleteIn
}

func (s *Service) deleteBatch(_ *wire.Call, in deleteBatchIn) (*batchOut, *wire.Error) {
	if err := checkBatch(len(in.Entries)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueURL)
	if err != nil {
		return nil, err
	}
	out := &batchOut{Successful: []any{}, Failed: []failed{}}
	for _, e := range in.Entries {
		if err := q.drop(e.ReceiptHandle); err != nil {
			out.Failed = append(out.Failed, failed{ID: e.ID, Code: err.Code, Message: err.Message, SenderFault: true})
		} else {
			out.Successful = append(out.Successful, map[string]string{"Id": e.ID})
		}
	}
	return out, nil
}

type visibilityIn struct {
	QueueURL          string `json:"QueueUrl"`
	ReceiptHandle     string
	VisibilityTimeout int
}

func (s *Service) changeVisibility(_ *wire.Call, in visibilityIn) (*nothing, *wire.Error) {
	hidden := time.Duration(in.VisibilityTimeout) * time.Second
	if hidden < 0 || hidden > maxHidden {
		return nil, wire.Errorf("InvalidParameterValue", "Value %d for parameter VisibilityTimeout is invalid. "+
			"Reason: Must be between 0 and 43200, if provided.", in.VisibilityTimeout)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueURL)
	if err != nil {
		return nil, err
	}
	m, err := q.byHandle(in.ReceiptHandle)
	if err != nil {
		return nil, err
	}
	now := s.opts.Clock.Now()
	if m == nil || !m.visibleAt.After(now) {
		return nil, wire.Errorf("MessageNotInflight", "The message referred to isn't in flight.")
	}
	m.visibleAt = now.Add(hidden)
	q.wake()
	return &nothing{}, nil
}
