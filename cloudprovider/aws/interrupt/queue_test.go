package interrupt_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/prometheus/client_golang/prometheus"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/interrupt"
	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
)

const (
	deletedMessages = "karpenter_interruption_deleted_messages_total"
	received        = "karpenter_interruption_received_messages_total"
)

// running lets a new machine come up and takes its messages: the Watcher is to hear of nothing but the news.
func (w *world) running(name string) (id string) {
	id = w.launch(name)
	w.until("the machine runs", time.Second, func() bool {
		return slices.ContainsFunc(w.World.Instances(), func(i cloud.Instance) bool {
			return i.ID == id && i.State == cloud.Running
		})
	})
	return id
}

func TestSpotWarning(t *testing.T) {
	w := newWorld(t)
	w.options.EC2 = nil
	id := w.running("one")
	other := w.running("other")
	w.start()
	w.until("what was before is read", 0, func() bool {
		return w.counter(deletedMessages, "") == w.counter(received, "no_op") && w.counter(received, "no_op") >= 2
	})
	warned, before := w.clock.Now(), w.counter(deletedMessages, "")
	if err := w.World.InterruptSpot(id); err != nil {
		t.Fatal(err)
	}
	want := "SpotInterruption " + warned.Add(2*time.Minute).UTC().Format(time.RFC3339)
	w.until("the claim says so", 0, func() bool { return w.interruption("one") == want })
	w.until("the message is deleted", 0, func() bool { return w.counter(deletedMessages, "") == before+1 })
	text := "SpotInterrupted: EC2 takes the spot instance back at " +
		warned.Add(2*time.Minute).UTC().Format(time.RFC3339)
	if got := w.events.all(); len(got) != 2 || got[0] != "Warning NodeClaim/one "+text ||
		got[1] != "Warning Node/node-one "+text {
		t.Errorf("events:\n%s", strings.Join(got, "\n"))
	}
	if got := w.interruption("other"); got != "" {
		t.Errorf("the claim of %s says %q, of which nobody spoke", other, got)
	}
	for name, label := range map[string]string{received: "spot_interrupted",
		"karpenter_interruption_message_queue_duration_seconds": "", "tenon_interruption_queue_readable": ""} {
		if w.counter(name, label) < 1 {
			t.Errorf("%s %s is %v", name, label, w.counter(name, label))
		}
	}
}

// The account's queue tells of instances of EKS Auto Mode, too. Their NodeClaims belong to another controller.
func TestClaimsOfAnotherControllerAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.options.EC2 = nil
	id := w.running("")
	w.claimOf("theirs", id, v1.NodeClassReference{Group: "eks.amazonaws.com", Kind: "NodeClass", Name: "default"})
	ours := w.running("ours")
	w.start()
	for _, i := range []string{id, ours} {
		if err := w.World.InterruptSpot(i); err != nil {
			t.Fatal(err)
		}
	}
	w.until("our claim says so", 0, func() bool { return w.interruption("ours") != "" })
	w.until("all messages are read", 0, func() bool { return w.counter(received, "spot_interrupted") == 2 })
	if got := w.interruption("theirs"); got != "" {
		t.Errorf("the claim of another controller says %q", got)
	}
	for _, e := range w.events.all() {
		if strings.Contains(e, "theirs") {
			t.Errorf("an event about what belongs to another: %s", e)
		}
	}
}

// What is heard again changes nothing; what is more urgent does.
func TestRepeats(t *testing.T) {
	w := newWorld(t)
	w.options.EC2 = nil
	id := w.running("one")
	w.start()
	if err := w.World.InterruptSpot(id); err != nil {
		t.Fatal(err)
	}
	w.until("the claim says so", 0, func() bool { return w.interruption("one") != "" })
	w.until("its message is deleted", 0, func() bool { return w.counter(deletedMessages, "") >= 3 })
	first := w.interruption("one")
	w.clock.Advance(30 * time.Second)
	if err := w.World.InterruptSpot(id); err != nil { // a later deadline
		t.Fatal(err)
	}
	w.until("the second warning is read", 0, func() bool {
		return w.counter(received, "spot_interrupted") == 2 && w.counter(deletedMessages, "") >= 4
	})
	if got := w.interruption("one"); got != first || w.patches() != 1 || w.events.count("SpotInterrupted") != 2 {
		t.Errorf("%q, %d patches, events:\n%s", got, w.patches(), strings.Join(w.events.all(), "\n"))
	}
	if err := w.World.Withdraw(id, "Server.SpotInstanceTermination", "taken back early"); err != nil {
		t.Fatal(err)
	}
	w.until("the claim says that the machine ends", 0, func() bool {
		return strings.HasPrefix(w.interruption("one"), "InstanceTerminating ")
	})
}

// A message that nobody understands, or that is about nobody's machine, keeps no other waiting.
func TestBadMessages(t *testing.T) {
	w := newWorld(t)
	w.options.EC2 = nil
	id := w.running("one")
	for _, body := range []string{"not JSON", `{"source": "aws.ec2", "detail": 7}`, `{}`, strings.Repeat("x", 1000)} {
		if !w.SQS.Send(w.Cluster, body) {
			t.Fatal("there is no queue")
		}
	}
	if err := w.World.InterruptSpot(id); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.until("the claim says so", 0, func() bool {
		return strings.HasPrefix(w.interruption("one"), "SpotInterruption ")
	})
	w.until("nothing is left", 0, func() bool { return w.counter(deletedMessages, "") == 7 })
	// Two more say that the machine starts and runs.
	if w.counter(received, "no_op") != 6 || w.logged.count("a message is dropped") != 3 {
		t.Errorf("%v, log:\n%s", w.counter(received, "no_op"), strings.Join(w.logged.all(), "\n"))
	}
}

// A crash between the queue and the claim loses nothing, and neither does an API server that is out of order.
func TestNothingIsLost(t *testing.T) {
	w := newWorld(t)
	w.options.EC2 = nil
	id := w.running("one")
	w.refusing(errors.New("the API server is out of order"))
	stop := w.start()
	if err := w.World.InterruptSpot(id); err != nil {
		t.Fatal(err)
	}
	w.until("it is tried several times", time.Second, func() bool { return w.patches() >= 4 })
	stop()
	if got := w.counter(deletedMessages, ""); got != 2 { // those of its launch
		t.Errorf("%v messages are deleted, of which one was never written down", got)
	}
	w.refusing(nil)
	w.options.Metrics = newWorld(t).registry
	w.start()
	w.until("the claim says so", time.Second, func() bool {
		return strings.HasPrefix(w.interruption("one"), "SpotInterruption ")
	})
}

// A claim that can't be written keeps no other waiting.
func TestOneClaimHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	w.options.EC2 = nil
	id, other := w.running("one"), w.running("other")
	w.refusing(errors.New("the API server is out of order"))
	w.start()
	if err := w.World.InterruptSpot(id); err != nil {
		t.Fatal(err)
	}
	w.until("it is tried", 0, func() bool { return w.patches() >= 1 })
	w.refusing(nil)
	if err := w.World.InterruptSpot(other); err != nil {
		t.Fatal(err)
	}
	w.until("the other claim says so", 0, func() bool {
		return strings.HasPrefix(w.interruption("other"), "SpotInterruption ")
	})
}

// A warning may be there before the claim knows its machine.
func TestWarningBeforeTheClaim(t *testing.T) {
	w := newWorld(t)
	w.options.EC2 = nil
	id, stranger := w.running(""), w.running("")
	for _, id := range []string{id, stranger} {
		if err := w.World.InterruptSpot(id); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.until("the warnings are read", 0, func() bool { return w.counter(received, "spot_interrupted") == 2 })
	w.claim("late", id)
	w.until("the claim says so", time.Second, func() bool {
		return strings.HasPrefix(w.interruption("late"), "SpotInterruption ")
	})
	w.until("the stranger's warning is dropped in the end", time.Second, func() bool {
		return w.counter(deletedMessages, "") >= 6
	})
}

// A claim whose machine we have ended ourselves is left alone; but a warning makes its end more urgent.
func TestClaimThatGoes(t *testing.T) {
	w := newWorld(t)
	w.options.EC2 = nil
	id, warned := w.running("one"), w.running("warned")
	for _, name := range []string{"one", "warned"} {
		claim := &v1.NodeClaim{}
		claim.Name = name
		if err := w.kube.Delete(context.Background(), claim); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.World.Terminate([]string{id}); err != nil {
		t.Fatal(err)
	}
	if err := w.World.InterruptSpot(warned); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.until("the claim says so", 0, func() bool {
		return strings.HasPrefix(w.interruption("warned"), "SpotInterruption ")
	})
	w.until("all is read", 0, func() bool { return w.counter(deletedMessages, "") >= 6 })
	if got := w.interruption("one"); got != "" || w.events.count("InstanceTerminating") > 0 {
		t.Errorf("the claim says %q, events:\n%s", got, strings.Join(w.events.all(), "\n"))
	}
}

func TestRebalance(t *testing.T) {
	for choice, want := range map[interrupt.Rebalance]string{interrupt.Ignore: "",
		interrupt.Replace: "RebalanceRecommendation"} {
		t.Run(string(choice), func(t *testing.T) {
			w := newWorld(t)
			w.options.EC2, w.options.Rebalance = nil, choice
			id := w.running("one")
			w.start()
			for range 2 {
				if err := w.World.AdviseRebalance(id); err != nil {
					t.Fatal(err)
				}
			}
			w.until("the advice is read", 0, func() bool {
				return w.counter(received, "rebalance_recommendation") == 2 && w.counter(deletedMessages, "") == 4
			})
			if got := w.interruption("one"); got != want || w.events.count("Normal NodeClaim/one "+
				"SpotRebalanceRecommendation") != 1 {
				t.Errorf("the claim says %q, want %q; events:\n%s", got, want, strings.Join(w.events.all(), "\n"))
			}
			if err := w.World.InterruptSpot(id); err != nil {
				t.Fatal(err)
			}
			w.until("the warning holds", 0, func() bool {
				return strings.HasPrefix(w.interruption("one"), "SpotInterruption ")
			})
		})
	}
}

// A queue that does not exist, or may not be read, is told of with AWS's code and the fix, and needs no restart.
func TestQueueInTrouble(t *testing.T) {
	w := newWorld(t)
	w.options.EC2, w.options.Queue = nil, "later"
	w.Faults.Deny("sqs:ReceiveMessage")
	const readable = "tenon_interruption_queue_readable"
	if _, err := interrupt.New(w.options); err != nil || w.series(readable) != 0 {
		t.Errorf("a replica that does not read the queue shows %d series (%v)", w.series(readable), err)
	}
	w.registry = prometheus.NewRegistry()
	w.options.Metrics = w.registry
	w.start()
	w.until("the missing queue is told of", time.Second, func() bool {
		return w.logged.count("--interruption-queue") > 0
	})
	line := w.logged.all()[0]
	for _, part := range []string{"NonExistentQueue", "create the queue", "reading queue later", "sqs:GetQueueUrl"} {
		if !strings.Contains(line, part) {
			t.Errorf("%q does not say %q", line, part)
		}
	}
	w.SQS.Create("later", 5*time.Minute)
	w.Events.Name = "later"
	w.until("the missing permission is told of", time.Second, func() bool {
		return w.logged.count("allow sqs:ReceiveMessage") > 0
	})
	if n := w.series(readable); n != 1 || w.counter(readable, "") != 0 {
		t.Errorf("the queue counts as readable, or nothing says that it is not: %d series, %v", n,
			w.counter(readable, ""))
	}
	w.Faults.Allow("sqs:ReceiveMessage")
	id := w.running("one")
	if err := w.World.InterruptSpot(id); err != nil {
		t.Fatal(err)
	}
	w.until("the claim says so", time.Second, func() bool {
		return strings.HasPrefix(w.interruption("one"), "SpotInterruption ")
	})
	if w.logged.count("can be read again") != 1 || len(w.logged.all()) > 5 {
		t.Errorf("log:\n%s", strings.Join(w.logged.all(), "\n"))
	}
}

// panickingSQS fails when it is first asked for messages.
type panickingSQS struct {
	interrupt.SQSAPI
	calls atomic.Int32
}

func (p *panickingSQS) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput,
	o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if p.calls.Add(1) == 1 {
		panic("boom")
	}
	return p.SQSAPI.ReceiveMessage(ctx, in, o...)
}

// A panic of the one who listens ends nothing: it is told, and warnings are heard a second later.
func TestListeningBeginsAgainAfterAPanic(t *testing.T) {
	w := newWorld(t)
	var told atomic.Int32
	w.options.EC2, w.options.SQS = nil, &panickingSQS{SQSAPI: w.options.SQS}
	w.options.Guard = &recovery.Guard{Tell: func(recovery.Failure) { told.Add(1) }}
	id := w.running("one")
	w.start()
	if err := w.World.InterruptSpot(id); err != nil {
		t.Fatal(err)
	}
	w.until("the claim says so", time.Second, func() bool {
		return strings.HasPrefix(w.interruption("one"), "SpotInterruption ")
	})
	if told.Load() != 1 {
		t.Errorf("told %d times", told.Load())
	}
}
