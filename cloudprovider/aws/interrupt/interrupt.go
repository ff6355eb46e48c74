// Package interrupt hears from AWS that instances will be taken away, or have failed, and writes it on their
// NodeClaims.
//
// It is an edge and decides nothing: what follows from an interruption is decided by whoever reads the annotation
// cloudprovider.InterruptionAnnotation. It listens to an SQS queue that EventBridge fills (queue.go) and asks EC2 about
// the health of instances (status.go). Whoever may write to the queue may write what he likes, so a message that says
// an instance is at its end is compared with what EC2 says (trust.go). A message is deleted from the queue only once
// the claim says what was in it, so a crash loses nothing; and what is heard twice changes nothing.
package interrupt

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
)

// SQSAPI is what is asked of SQS.
type SQSAPI interface {
	GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, opts ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput,
		error)
	ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput,
		opts ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput,
		opts ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
}

// EC2API is what is asked of EC2.
type EC2API interface {
	DescribeInstanceStatus(ctx context.Context, in *ec2.DescribeInstanceStatusInput,
		opts ...func(*ec2.Options)) (*ec2.DescribeInstanceStatusOutput, error)
}

// InstancesAPI is asked what state instances are really in.
type InstancesAPI interface {
	DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput,
		opts ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
}

// Recorder writes events.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Rebalance is what a rebalance recommendation leads to.
type Rebalance string

// Ignore only tells of it; Replace has the node replaced, without haste.
const (
	Ignore  Rebalance = "ignore"
	Replace Rebalance = "replace"
)

// Options are what a Watcher works with.
type Options struct {
	// Client reads NodeClaims, as plain trees, and Nodes, and may do so from a cache; it annotates NodeClaims.
	// Required.
	Client client.Client
	// SQS and the name of the Queue; without a name no queue is read.
	SQS   SQSAPI
	Queue string
	// Instances confirms what the queue says of an instance's state; Region is where they are. Messages from elsewhere
	// are not believed. Required with a queue.
	Instances InstancesAPI
	Region    string
	// EC2 is asked about the health of instances; nil for not at all.
	EC2 EC2API
	// Events and Metrics are required.
	Events  Recorder
	Metrics prometheus.Registerer
	// Guard catches panics; nil to tell nobody of them.
	Guard *recovery.Guard
	// Rebalance is Ignore if it is empty.
	Rebalance Rebalance
	// Now tells the time, After when a time has passed; the machine's if nil.
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
}

// Watcher hears of interruptions. A manager runs it.
type Watcher struct {
	Options
	metrics *metrics

	mu sync.Mutex
	// heard is what was written on claims lately, by UID: the cache may not show it yet.
	heard map[string]*record
	// failing are the status checks that were found impaired at the last look.
	failing map[check]bool
}

// New makes a Watcher.
func New(o Options) (*Watcher, error) {
	for name, missing := range map[string]bool{
		"Client": o.Client == nil, "Events": o.Events == nil, "Metrics": o.Metrics == nil, "SQS": o.Queue != "" &&
			o.SQS == nil,
		"Instances": o.Queue != "" && o.Instances == nil, "Region": o.Queue != "" && o.Region == "",
	} {
		if missing {
			return nil, fmt.Errorf("making a watcher of interruptions: Options.%s is missing", name)
		}
	}
	switch o.Rebalance {
	case "":
		o.Rebalance = Ignore
	case Ignore, Replace:
	default:
		return nil, fmt.Errorf("making a watcher of interruptions: Options.Rebalance is %q; use %s or %s", o.Rebalance,
			Ignore, Replace)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	w := &Watcher{Options: o, heard: map[string]*record{}, failing: map[check]bool{}}
	var err error
	w.metrics, err = newMetrics(o.Metrics)
	return w, err
}

// NeedLeaderElection makes a manager run it on the leader only: messages are taken from the queue by whoever reads it.
func (w *Watcher) NeedLeaderElection() bool { return true }

// Start listens until the context ends. Trouble with AWS is told and tried again; it never ends the Watcher.
func (w *Watcher) Start(ctx context.Context) error {
	var parts sync.WaitGroup
	if w.Queue != "" {
		parts.Go(func() { w.Guard.Keep(ctx, "listening to the interruption queue", w.After, w.listen) })
	}
	if w.EC2 != nil {
		parts.Go(func() { w.Guard.Keep(ctx, "looking at the health of instances", w.After, w.examine) })
	}
	parts.Wait()
	return nil
}

// pause waits, and reports false if the context ended meanwhile.
func (w *Watcher) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-w.After(d):
		return true
	}
}
