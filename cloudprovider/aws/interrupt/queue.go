package interrupt

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

const (
	// longPoll is how long SQS waits for a message, hidden how long one that was received is nobody else's.
	longPoll, hidden = 20 * time.Second, 20 * time.Second
	mostMessages     = 10
	// callLimit bounds one call: a long poll and its answer.
	callLimit = 30 * time.Second
	// A queue that can't be read is tried again after firstRetry, then after twice as long each time, at most after lastRetry.
	firstRetry, lastRetry = time.Second, time.Minute
	// A claim that can't be written is tried again a few times while its message is hidden.
	writes, betweenWrites = 3, 2 * time.Second
	// patience is how long a warning is kept that nobody claims the instance of.
	patience = time.Minute
	// mostOpen is how many messages are worked on at the same time.
	mostOpen = 100
)

// listen reads the queue until the context ends.
func (w *Watcher) listen(ctx context.Context) {
	work := &desk{slots: make(chan struct{}, mostOpen)}
	defer work.Wait()
	url, wait, told := "", firstRetry, ""
	for ctx.Err() == nil {
		messages, err := w.receive(ctx, &url)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.metrics.readable.Set(0)
			if text := err.Error(); text != told { // the same trouble is told once
				log.FromContext(ctx).Error(err, "interruptions are not heard of until the queue can be read", "queue", w.Queue)
				told = text
			}
			if !w.pause(ctx, wait) {
				return
			}
			wait = min(2*wait, lastRetry)
			continue
		}
		if told != "" {
			log.FromContext(ctx).Info("the interruption queue can be read again", "queue", w.Queue)
		}
		w.metrics.readable.Set(1)
		wait, told = firstRetry, ""
		w.handle(ctx, work, url, messages)
	}
}

// receive waits for messages. Where the queue is has to be asked once; url keeps the answer as long as it is good.
func (w *Watcher) receive(ctx context.Context, url *string) ([]sqstypes.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	doing := "reading queue " + w.Queue + " (--interruption-queue)"
	if *url == "" {
		out, err := w.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &w.Queue})
		if err != nil {
			return nil, fault.Explain(doing, err)
		}
		*url = aws.ToString(out.QueueUrl)
	}
	out, err := w.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: url, MaxNumberOfMessages: mostMessages, VisibilityTimeout: int32(hidden.Seconds()), WaitTimeSeconds: int32(longPoll.Seconds()),
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameSentTimestamp},
	})
	if err != nil {
		*url = "" // it may have been made anew
		return nil, fault.Explain(doing, err)
	}
	return out.Messages, nil
}

// desk is where messages are worked on.
type desk struct {
	sync.WaitGroup
	slots chan struct{}
}

// handle has messages worked on, each by itself. It does not wait for them: one whose claim can't be written must not keep those that
// come after it.
func (w *Watcher) handle(ctx context.Context, work *desk, url string, messages []sqstypes.Message) {
	if len(messages) == 0 {
		return
	}
	claims, err := w.claims(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "messages of the interruption queue wait")
		return // they come back
	}
	for i := range messages {
		work.slots <- struct{}{}
		work.Go(func() {
			defer func() { <-work.slots }()
			defer func() { // one message that nobody thought of must not keep all others from being heard
				if r := recover(); r != nil {
					log.FromContext(ctx).Error(fmt.Errorf("%v", r), "working on a message failed, which is a mistake in Tenon; it comes back later",
						"message", aws.ToString(messages[i].MessageId), "stack", string(debug.Stack()))
				}
			}()
			if w.take(ctx, &messages[i], claims) {
				w.delete(ctx, url, &messages[i])
			}
		})
	}
}

// take does what one message asks for, and reports whether it is done with.
func (w *Watcher) take(ctx context.Context, m *sqstypes.Message, claims map[string]*claim) bool {
	now := w.Now()
	n, err := read(aws.ToString(m.Body), now)
	w.metrics.received.WithLabelValues(n.counted).Inc()
	if err != nil { // it will never be any better
		log.FromContext(ctx).Error(err, "a message is dropped", "message", aws.ToString(m.MessageId), "queue", w.Queue)
		return true
	}
	sent := sentAt(m, n.at)
	w.metrics.queued.Observe(max(0, now.Sub(sent).Seconds()))
	done := true
	for _, id := range n.instances {
		c := claims[id]
		if c == nil {
			done = done && !(n.patient && now.Before(sent.Add(patience)))
			continue
		}
		if err := w.note(ctx, c, &n); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "a message comes back later", "message", aws.ToString(m.MessageId))
			done = false
		}
	}
	return done && ctx.Err() == nil
}

// sentAt is when the message came into the queue, or was made if that is not known.
func sentAt(m *sqstypes.Message, made time.Time) time.Time {
	text := m.Attributes[string(sqstypes.MessageSystemAttributeNameSentTimestamp)]
	if milli, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(milli)
	}
	return made
}

// note writes what was heard on a claim, and tries again soon if that fails.
func (w *Watcher) note(ctx context.Context, c *claim, n *notice) error {
	var all error
	for try := range writes {
		if try > 0 && !w.pause(ctx, betweenWrites) {
			break
		}
		err := w.apply(ctx, c, n)
		if err == nil {
			return nil
		}
		all = errors.Join(all, err)
	}
	return all
}

// delete takes a message out of the queue. If that fails it comes back and changes nothing.
func (w *Watcher) delete(ctx context.Context, url string, m *sqstypes.Message) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if _, err := w.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
		log.FromContext(ctx).Error(fault.Explain("deleting a message of queue "+w.Queue, err), "the message comes back, which changes nothing")
		return
	}
	w.metrics.deleted.Inc()
}
