package sqs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
)

// queue is a client with the URL of the account's queue.
type queue struct {
	t      *testing.T
	client *sqs.Client
	url    *string
	clock  *simtest.Clock
	a      *account.Account
}

func newQueue(t *testing.T) queue {
	t.Helper()
	clock := simtest.NewClock()
	a, config := simtest.Start(t, account.Options{Clock: clock, After: clock.After})
	client := sqs.NewFromConfig(config)
	out, err := client.GetQueueUrl(context.Background(), &sqs.GetQueueUrlInput{QueueName: aws.String(a.Cluster)})
	if err != nil {
		t.Fatal(err)
	}
	return queue{t, client, out.QueueUrl, clock, a}
}

func (q queue) send(body string) {
	q.t.Helper()
	if _, err := q.client.SendMessage(context.Background(), &sqs.SendMessageInput{QueueUrl: q.url,
		MessageBody: aws.String(body)}); err != nil {
		q.t.Fatal(err)
	}
}

func (q queue) receive(n int32, wait int32) []types.Message {
	q.t.Helper()
	out, err := q.client.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{
		QueueUrl: q.url, MaxNumberOfMessages: n, WaitTimeSeconds: wait, VisibilityTimeout: 20,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		q.t.Fatal(err)
	}
	return out.Messages
}

func TestMessagesAreHiddenAndComeBack(t *testing.T) {
	q := newQueue(t)
	q.send("one")
	q.send("two")
	got := q.receive(10, 0)
	if len(got) != 2 || aws.ToString(got[0].Body) != "one" || got[0].Attributes["ApproximateReceiveCount"] != "1" ||
		got[0].Attributes["SentTimestamp"] == "" {
		t.Fatalf("got %+v", got)
	}
	if again := q.receive(10, 0); len(again) != 0 {
		t.Errorf("messages in flight are seen: %+v", again)
	}
	if _, err := q.client.DeleteMessage(context.Background(), &sqs.DeleteMessageInput{QueueUrl: q.url,
		ReceiptHandle: got[0].ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
	q.clock.Advance(20 * time.Second)
	back := q.receive(10, 0)
	if len(back) != 1 || aws.ToString(back[0].Body) != "two" || back[0].Attributes["ApproximateReceiveCount"] != "2" {
		t.Errorf("after the visibility timeout came %+v, want the message that was not deleted", back)
	}
	if *back[0].ReceiptHandle == *got[1].ReceiptHandle {
		t.Error("two receipts have one handle")
	}
	q.clock.Advance(5*time.Minute + time.Second)
	if old := q.receive(10, 0); len(old) != 0 || q.a.SQS.Len(q.a.Cluster) != 0 {
		t.Errorf("messages outlive their retention: %+v", old)
	}
}

func TestLongPoll(t *testing.T) {
	for name, c := range map[string]struct {
		before  func(q queue)
		waiters int
		wake    func(q queue)
		want    int
	}{
		"a message comes": {func(queue) {}, 1, func(q queue) { q.a.SQS.Send(q.a.Cluster, "late") }, 1},
		"nothing comes":   {func(queue) {}, 1, func(q queue) { q.clock.Advance(20 * time.Second) }, 0},
		"a message comes back": {func(q queue) {
			q.send("x")
			q.receive(1, 0)
			q.clock.Advance(10 * time.Second)
		}, 2, func(q queue) { q.clock.Advance(10 * time.Second) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t)
			c.before(q)
			got := make(chan []types.Message, 1)
			go func() { got <- q.receive(10, 20) }()
			q.clock.AwaitWaiters(c.waiters)
			c.wake(q)
			if messages := <-got; len(messages) != c.want {
				t.Errorf("the poll ended with %+v, want %d messages", messages, c.want)
			}
		})
	}
}

func TestQueueErrors(t *testing.T) {
	ctx := context.Background()
	q := newQueue(t)
	_, err := q.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("none")})
	missing := (*types.QueueDoesNotExist)(nil)
	if !errors.As(err, &missing) || missing.ErrorCode() != "AWS.SimpleQueueService.NonExistentQueue" {
		t.Errorf("a queue that is not there gives %v", err)
	}
	_, err = q.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: q.url, ReceiptHandle: aws.String("made-up")})
	if invalid := (*types.ReceiptHandleIsInvalid)(nil); !errors.As(err, &invalid) {
		t.Errorf("a made-up handle gives %v", err)
	}
	_, err = q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: q.url, MaxNumberOfMessages: 11})
	if api := smithy.APIError(nil); !errors.As(err, &api) || api.ErrorCode() != "InvalidParameterValue" {
		t.Errorf("eleven messages at once give %v", err)
	}
	q.a.SQS.Remove(q.a.Cluster)
	_, err = q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: q.url})
	if !errors.As(err, &missing) {
		t.Errorf("a removed queue gives %v", err)
	}
}

func TestQueueAttributesAndBatches(t *testing.T) {
	ctx := context.Background()
	q := newQueue(t)
	created, err := q.client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("other"),
		Attributes: map[string]string{"MessageRetentionPeriod": "300", "SqsManagedSseEnabled": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := q.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: created.QueueUrl,
		Entries: []types.SendMessageBatchRequestEntry{
			{Id: aws.String("a"), MessageBody: aws.String("1")}, {Id: aws.String("b"), MessageBody: aws.String("2")},
		}})
	if err != nil || len(sent.Successful) != 2 {
		t.Fatalf("got %+v, %v", sent, err)
	}
	got, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: created.QueueUrl})
	if err != nil || len(got.Messages) != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	attributes, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: created.QueueUrl,
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"ApproximateNumberOfMessages": "1", "ApproximateNumberOfMessagesNotVisible": "1",
		"MessageRetentionPeriod": "300",
		"VisibilityTimeout":      "30", "QueueArn": "arn:aws:sqs:us-west-2:123456789012:other",
	} {
		if attributes.Attributes[name] != want {
			t.Errorf("%s is %q, want %q", name, attributes.Attributes[name], want)
		}
	}
	deleted, err := q.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: created.QueueUrl,
		Entries: []types.DeleteMessageBatchRequestEntry{
			{Id: aws.String("a"), ReceiptHandle: got.Messages[0].ReceiptHandle},
			{Id: aws.String("b"), ReceiptHandle: aws.String("bad")},
		}})
	if err != nil || len(deleted.Successful) != 1 || len(deleted.Failed) != 1 ||
		aws.ToString(deleted.Failed[0].Id) != "b" {
		t.Errorf("got %+v, %v", deleted, err)
	}
	if n := q.a.SQS.Len("other"); n != 1 {
		t.Errorf("%d messages are left, want 1", n)
	}
}
