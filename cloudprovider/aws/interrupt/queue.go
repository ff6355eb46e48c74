package interrupt

import (
	"context"
	"errors"
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
	// A queue that can't be read is tried again after firstRetry, then after twice as long each time, at most after
	// lastRetry.
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
			w.metrics.readable.WithLabelValues().Set(0)
			if text := err.Error(); text != told { // the same trouble is told once
				log.FromContext(ctx).Error(err, "interruptions are not heard of until the queue can be read",
					"queue", w.Queue)
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
		w.metrics.readable.WithLabelValues().Set(1)
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
		QueueUrl: url, MaxNumberOfMessages: mostMessages, VisibilityTimeout: int32(hidden.Seconds()),
		WaitTimeSeconds: int32(longPoll.Seconds()),
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{
			sqstypes.MessageSystemAttributeNameSentTimestamp,
		},
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

// letter is a message and what it says.
type letter struct {
	*sqstypes.Message
	notice
	sent time.Time
	// void says that nothing follows from it.
	void bool
}

// handle has messages worked on, each by itself. It does not wait for them: one whose claim can't be written must not
// keep those that come after it.
func (w *Watcher) handle(ctx context.Context, work *desk, url string, messages []sqstypes.Message) {
	if len(messages) == 0 {
		return
	}
	claims, err := w.claims(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "the NodeClaims could not be read; messages of the interruption queue wait")
		return // they come back
	}
	var doubtful []letter
	for i := range messages {
		l := letter{Message: &messages[i]}
		if !w.guarded(ctx, &messages[i], func() { l = w.open(ctx, &messages[i], accountOf(url)) }) {
			continue // it comes back
		}
		if l.ofState() && !l.void {
			doubtful = append(doubtful, l)
			continue
		}
		work.do(func() { w.finish(ctx, url, &l, claims, nil) })
	}
	if len(doubtful) > 0 {
		work.do(func() {
			w.guarded(ctx, doubtful[0].Message, func() { w.verify(ctx, url, doubtful, claims) })
		})
	}
}

// guarded does something about a message. One that nobody thought of must not keep all others from being heard: if it
// fails, that is told, and the message comes back later.
func (w *Watcher) guarded(ctx context.Context, m *sqstypes.Message, do func()) (done bool) {
	err := w.Guard.Run("working on a message about an interruption", do)
	if err != nil {
		log.FromContext(ctx).Error(err, "a message could not be handled; the queue gives it again", "message",
			aws.ToString(m.MessageId))
	}
	return err == nil
}

// do has something done when there is a slot. It must not panic (see guarded).
func (d *desk) do(what func()) {
	d.slots <- struct{}{}
	d.Go(func() {
		defer func() { <-d.slots }()
		what()
	})
}

// verify asks EC2 about the instances that messages say are at their end, and does what is left of the messages then.
func (w *Watcher) verify(ctx context.Context, url string, letters []letter, claims map[string]*claim) {
	states, err := w.confirm(ctx, letters, claims)
	if err != nil {
		if ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "messages about the state of instances come back later", "messages",
				len(letters))
		}
		return
	}
	for i := range letters {
		w.finish(ctx, url, &letters[i], claims, states)
	}
}

// finish does what a message asks for, and deletes it if nothing more is to be done.
func (w *Watcher) finish(ctx context.Context, url string, l *letter, claims map[string]*claim, states ended) {
	w.guarded(ctx, l.Message, func() {
		if w.take(ctx, l, claims, states) {
			w.delete(ctx, url, l.Message)
		}
	})
}

// open reads a message. One that can't be read, or is not to be believed, is void: it will never be any better.
func (w *Watcher) open(ctx context.Context, m *sqstypes.Message, account string) letter {
	now := w.Now()
	n, err := read(aws.ToString(m.Body), now)
	w.metrics.received.WithLabelValues(n.counted).Inc()
	l := letter{Message: m, notice: n, sent: sentAt(m, n.at)}
	w.metrics.queued.Observe(max(0, now.Sub(l.sent).Seconds()))
	why := malformed
	switch {
	case errors.Is(err, errTooLong):
		why = tooLong
	case err == nil:
		why, err = w.distrust(&n, account, now)
	}
	if err != nil {
		l.void = true
		w.metrics.ignored.WithLabelValues(why).Inc()
		log.FromContext(ctx).Error(err, "a message is dropped", "message", aws.ToString(m.MessageId), "queue", w.Queue,
			"why", why)
	}
	return l
}

// take does what one message asks for, and reports whether it is done with.
func (w *Watcher) take(ctx context.Context, l *letter, claims map[string]*claim, states ended) bool {
	if l.void {
		return true
	}
	now, done := w.Now(), true
	for _, id := range l.instances {
		c := claims[id]
		recent := now.Before(l.sent.Add(patience))
		over, asked := states[id]
		switch {
		case c == nil:
			done = done && !(l.patient && recent)
		case l.misfit(c) != "":
			w.ignore(ctx, l, l.misfit(c), c)
		case asked && !over && recent: // EC2 may not show it yet
			done = false
		case asked && !over:
			w.ignore(ctx, l, unconfirmed, c)
		default:
			if err := w.note(ctx, c, &l.notice); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "a message could not be handled; the queue gives it again", "message",
					aws.ToString(l.MessageId))
				done = false
			}
		}
	}
	return done && ctx.Err() == nil
}

// ignore notes that a message was not believed of a claim's instance.
func (w *Watcher) ignore(ctx context.Context, l *letter, why string, c *claim) {
	w.metrics.ignored.WithLabelValues(why).Inc()
	log.FromContext(ctx).Info("a message is ignored, because it may not come from AWS",
		"message", aws.ToString(l.MessageId), "why", why, "NodeClaim", c.name, "said", l.text)
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
	if _, err := w.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &url,
		ReceiptHandle: m.ReceiptHandle}); err != nil {
		log.FromContext(ctx).Error(fault.Explain("deleting a message of queue "+w.Queue, err), "the message comes "+
			"back, which changes nothing")
		return
	}
	w.metrics.deleted.Inc()
}
