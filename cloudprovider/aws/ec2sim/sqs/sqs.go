// Package sqs is the queues of the simulated cloud: messages are seen at least once, are hidden while somebody works on
// them, come back if they aren't deleted in time, and get lost when they grow old.
package sqs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/protocol"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Options are what a service is made of.
type Options struct {
	Clock   wire.Clock
	Region  string
	Account string
	// After tells when a time has passed, for long polls; time.After if nil.
	After func(time.Duration) <-chan time.Time
}

// Service keeps queues. It is a wire.Service.
type Service struct {
	protocol.JSON
	opts Options

	mu     sync.Mutex
	queues map[string]*queue
	serial int
}

// queue is one queue.
type queue struct {
	name       string
	created    time.Time
	visibility time.Duration // how long a received message is hidden
	retention  time.Duration // how long a message lives
	wait       time.Duration // how long a receiver waits if it says nothing
	messages   []*message
	changed    chan struct{} // closed when a message comes or is let go
	gone       bool
}

// New makes a service without queues.
func New(opts Options) *Service {
	if opts.After == nil {
		opts.After = time.After
	}
	s := &Service{opts: opts, queues: map[string]*queue{}}
	s.JSON = protocol.JSON{
		Service: "sqs", Version: "1.0",
		Ops: map[string]protocol.Op{
			"CreateQueue":             protocol.On(s.createQueue),
			"DeleteQueue":             protocol.On(s.deleteQueue),
			"PurgeQueue":              protocol.On(s.purgeQueue),
			"GetQueueUrl":             protocol.On(s.queueURL),
			"GetQueueAttributes":      protocol.On(s.attributes),
			"SendMessage":             protocol.On(s.sendMessage),
			"SendMessageBatch":        protocol.On(s.sendBatch),
			"ReceiveMessage":          protocol.On(s.receive),
			"DeleteMessage":           protocol.On(s.deleteMessage),
			"DeleteMessageBatch":      protocol.On(s.deleteBatch),
			"ChangeMessageVisibility": protocol.On(s.changeVisibility),
		},
		QueryCodes: map[string]string{
			"QueueDoesNotExist":            "AWS.SimpleQueueService.NonExistentQueue",
			"QueueNameExists":              "QueueAlreadyExists",
			"MessageNotInflight":           "AWS.SimpleQueueService.MessageNotInflight",
			"EmptyBatchRequest":            "AWS.SimpleQueueService.EmptyBatchRequest",
			"TooManyEntriesInBatchRequest": "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
		},
	}
	return s
}

// Create makes a queue that keeps messages for a while, and else has SQS's defaults. One that is there stays.
func (s *Service) Create(name string, retention time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues[name] == nil {
		q := s.newQueue(name)
		q.retention = retention
		s.queues[name] = q
	}
}

func (s *Service) newQueue(name string) *queue {
	return &queue{
		name: name, created: s.opts.Clock.Now(), visibility: 30 * time.Second, retention: 4 * 24 * time.Hour,
		changed: make(chan struct{}),
	}
}

// Remove makes a queue go with its messages.
func (s *Service) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[name]; q != nil {
		q.gone = true
		q.wake()
		delete(s.queues, name)
	}
}

// Send puts a message into a queue, and says whether there is such a queue.
func (s *Service) Send(name, body string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return false
	}
	s.put(q, body, 0, nil)
	return true
}

// Len is how many messages a queue holds, hidden ones included.
func (s *Service) Len(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return 0
	}
	q.expire(s.opts.Clock.Now())
	return len(q.messages)
}

// wake tells those who wait that it is worth looking again. The lock is held.
func (q *queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// find gets the queue that a URL ends with. The lock is held.
func (s *Service) find(url string) (*queue, *wire.Error) {
	name := url[strings.LastIndexByte(url, '/')+1:]
	q := s.queues[name]
	if q == nil || name == "" {
		return nil, noSuchQueue()
	}
	return q, nil
}

func noSuchQueue() *wire.Error {
	return wire.Errorf("QueueDoesNotExist", "The specified queue does not exist.")
}

// url is where a queue is, seen from the caller.
func (s *Service) url(c *wire.Call, name string) string {
	return fmt.Sprintf("http://%s/%s/%s", c.HTTP.Host, s.opts.Account, name)
}

type createIn struct {
	QueueName  string
	Attributes map[string]string
}

type urlOut struct {
	QueueURL string `json:"QueueUrl"`
}

func (s *Service) createQueue(c *wire.Call, in createIn) (*urlOut, *wire.Error) {
	if in.QueueName == "" || strings.Trim(in.QueueName,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || len(in.QueueName) > 80 {
		return nil, wire.Errorf("InvalidParameterValue", "Can only include alphanumeric characters, hyphens, or "+
			"underscores. 1 to 80 in length")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.newQueue(in.QueueName)
	if err := q.set(in.Attributes); err != nil {
		return nil, err
	}
	if old := s.queues[in.QueueName]; old != nil {
		if old.visibility != q.visibility || old.retention != q.retention || old.wait != q.wait {
			return nil, wire.Errorf("QueueNameExists", "A queue already exists with the same name and a different "+
				"value for attribute")
		}
		return &urlOut{s.url(c, old.name)}, nil
	}
	s.queues[in.QueueName] = q
	return &urlOut{s.url(c, q.name)}, nil
}

// set takes the attributes that matter here; others, such as policies, are let pass.
func (q *queue) set(attributes map[string]string) *wire.Error {
	for name, field := range map[string]*time.Duration{
		"VisibilityTimeout": &q.visibility, "MessageRetentionPeriod": &q.retention,
		"ReceiveMessageWaitTimeSeconds": &q.wait,
	} {
		text, given := attributes[name]
		if !given {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return wire.Errorf("InvalidAttributeValue", "Invalid value for the parameter %s.", name)
		}
		*field = time.Duration(n) * time.Second
	}
	return nil
}

type queueIn struct {
	QueueURL string `json:"QueueUrl"`
}

type nothing struct{}

func (s *Service) deleteQueue(_ *wire.Call, in queueIn) (*nothing, *wire.Error) {
	s.mu.Lock()
	q, err := s.find(in.QueueURL)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	s.Remove(q.name)
	return &nothing{}, nil
}

func (s *Service) purgeQueue(_ *wire.Call, in queueIn) (*nothing, *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueURL)
	if err != nil {
		return nil, err
	}
	q.messages = nil
	return &nothing{}, nil
}

type nameIn struct{ QueueName string }

func (s *Service) queueURL(c *wire.Call, in nameIn) (*urlOut, *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues[in.QueueName] == nil {
		return nil, noSuchQueue()
	}
	return &urlOut{s.url(c, in.QueueName)}, nil
}

type attributesIn struct {
	QueueURL       string `json:"QueueUrl"`
	AttributeNames []string
}

type attributesOut struct{ Attributes map[string]string }

func (s *Service) attributes(_ *wire.Call, in attributesIn) (*attributesOut, *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(in.QueueURL)
	if err != nil {
		return nil, err
	}
	now := s.opts.Clock.Now()
	q.expire(now)
	hidden := 0
	for _, m := range q.messages {
		if m.visibleAt.After(now) {
			hidden++
		}
	}
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
	all := map[string]string{
		"QueueArn": fmt.Sprintf("arn:aws:sqs:%s:%s:%s", s.opts.Region,
			s.opts.Account, q.name),
		"ApproximateNumberOfMessages":           strconv.Itoa(len(q.messages) - hidden),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(hidden),
		"ApproximateNumberOfMessagesDelayed":    "0",
		"CreatedTimestamp":                      strconv.FormatInt(q.created.Unix(), 10),
		"LastModifiedTimestamp":                 strconv.FormatInt(q.created.Unix(), 10),
		"VisibilityTimeout":                     seconds(q.visibility),
		"MessageRetentionPeriod":                seconds(q.retention),
		"ReceiveMessageWaitTimeSeconds":         seconds(q.wait),
		"MaximumMessageSize":                    strconv.Itoa(maxBody),
		"DelaySeconds":                          "0",
	}
	if slices.Contains(in.AttributeNames, "All") {
		return &attributesOut{all}, nil
	}
	some := map[string]string{}
	for _, name := range in.AttributeNames {
		value, ok := all[name]
		if !ok {
			return nil, wire.Errorf("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
		some[name] = value
	}
	return &attributesOut{some}, nil
}
