package interrupt_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

const ignored = "tenon_interruption_ignored_messages_total"

// forged is a message as EventBridge writes it, by somebody who is not EventBridge.
type forged struct {
	kind, account, region, detail string
	at                            time.Time
}

func (w *world) send(f forged) {
	w.t.Helper()
	body := fmt.Sprintf(`{"version": "0", "id": "1", "detail-type": %q, "source": "aws.ec2", "account": %q, `+
		`"region": %q, "time": %q, "detail": %s}`,
		f.kind, f.account, f.region, f.at.UTC().Format(time.RFC3339), f.detail)
	if !w.SQS.Send(w.Cluster, body) {
		w.t.Fatal("there is no queue")
	}
}

const (
	spotWarning = "EC2 Spot Instance Interruption Warning"
	stateNotice = "EC2 Instance State-change Notification"
	theAccount  = "123456789012"
)

// bought writes the claim's capacity type.
func (w *world) bought(name, as string) {
	w.t.Helper()
	c := &v1.NodeClaim{}
	if err := w.kube.Get(context.Background(), client.ObjectKey{Name: name}, c); err != nil {
		w.t.Fatal(err)
	}
	c.Labels = map[string]string{v1.CapacityTypeLabelKey: as}
	if err := w.kube.Update(context.Background(), c); err != nil {
		w.t.Fatal(err)
	}
}

const reservationWarning = "EC2 Capacity Reservation Instance Interruption Warning"

// Whoever may write to the queue may write what he likes. What can't be so is dropped and counted; no claim is touched.
func TestWhatIsNotBelieved(t *testing.T) {
	for _, x := range []struct {
		name, why string
		message   func(w *world, id string) forged
		bought    string
	}{
		{"another account", "elsewhere", func(w *world, id string) forged {
			return forged{spotWarning, "999999999999", w.config.Region, `{"instance-id": "` + id + `"}`, w.clock.Now()}
		}, "spot"},
		{"no account", "elsewhere", func(w *world, id string) forged {
			return forged{spotWarning, "", w.config.Region, `{"instance-id": "` + id + `"}`, w.clock.Now()}
		}, "spot"},
		{"another region", "elsewhere", func(w *world, id string) forged {
			return forged{spotWarning, theAccount, "eu-west-1", `{"instance-id": "` + id + `"}`, w.clock.Now()}
		}, "spot"},
		{"a state change in another region", "elsewhere", func(w *world, id string) forged {
			return forged{stateNotice, theAccount, "eu-west-1", `{"instance-id": "` + id + `", "state": "terminated"}`,
				w.clock.Now()}
		}, "spot"},
		{"a warning of long ago", "stale", func(w *world, id string) forged {
			return forged{spotWarning, theAccount, w.config.Region, `{"instance-id": "` + id + `"}`,
				w.clock.Now().Add(-11 * time.Minute)}
		}, "spot"},
		{"a spot warning of an instance on demand", "not_spot", func(w *world, id string) forged {
			return forged{spotWarning, theAccount, w.config.Region, `{"instance-id": "` + id + `"}`, w.clock.Now()}
		}, "on-demand"},
		{"advice about an instance of a reservation", "not_spot", func(w *world, id string) forged {
			return forged{"EC2 Instance Rebalance Recommendation", theAccount, w.config.Region, `{"instance-id": "` +
				id + `"}`, w.clock.Now()}
		}, "reserved"},
		{"a reservation's end, and the instance is on demand", "not_reserved", func(w *world, id string) forged {
			detail := `{"instance-id": "` + id + `", "instance-termination-time": "1970-01-01T00:00:00Z"}`
			return forged{reservationWarning, theAccount, w.config.Region, detail, w.clock.Now()}
		}, "on-demand"},
		{"an end of an instance that runs", "unconfirmed", func(w *world, id string) forged {
			return forged{stateNotice, theAccount, w.config.Region, `{"instance-id": "` + id +
				`", "state": "terminated"}`, w.clock.Now()}
		}, "on-demand"},
		{"a stop of an instance that runs", "unconfirmed", func(w *world, id string) forged {
			return forged{stateNotice, theAccount, w.config.Region, `{"instance-id": "` + id +
				`", "state": "stopping"}`, w.clock.Now()}
		}, "on-demand"},
		{"a body of a megabyte", "too_long", func(w *world, id string) forged {
			return forged{spotWarning, theAccount, w.config.Region, `{"instance-id": "` + id + `", "x": "` +
				strings.Repeat("x", 1<<20) + `"}`, w.clock.Now()}
		}, "spot"},
		{"no JSON", "malformed", func(w *world, id string) forged {
			return forged{spotWarning, theAccount, w.config.Region, `{"instance-id": `, w.clock.Now()}
		}, "spot"},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld(t)
			w.options.EC2 = nil
			id := w.running("one")
			w.bought("one", x.bought)
			w.send(x.message(w, id))
			w.start()
			w.until("it is dropped", time.Second, func() bool {
				return w.counter(ignored, x.why) == 1 && w.counter(deletedMessages, "") == 3
			})
			if got := w.interruption("one"); got != "" || len(w.events.all()) > 0 {
				t.Errorf("the claim says %q, events:\n%s", got, strings.Join(w.events.all(), "\n"))
			}
		})
	}
}

// As long as EC2 can't be asked, a message about an instance's end waits. Warnings don't.
func TestStateWaitsForEC2(t *testing.T) {
	w := newWorld(t)
	w.options.EC2 = nil
	id, warned := w.running("one"), w.running("warned")
	w.start()
	w.until("what was before is read", 0, func() bool { return w.counter(deletedMessages, "") >= 4 })
	w.Faults.Deny("ec2:DescribeInstances")
	if err := w.World.Withdraw(id, "Server.SpotInstanceTermination", "taken back"); err != nil {
		t.Fatal(err)
	}
	w.until("EC2 is asked", time.Second, func() bool {
		return w.logged.count("messages about the state of instances come back later") > 0
	})
	if err := w.World.InterruptSpot(warned); err != nil {
		t.Fatal(err)
	}
	w.until("the warning is written down", 0, func() bool {
		return strings.HasPrefix(w.interruption("warned"), "SpotInterruption ")
	})
	if got := w.interruption("one"); got != "" {
		t.Errorf("the claim says %q, and EC2 has said nothing", got)
	}
	w.Faults.Allow("ec2:DescribeInstances")
	w.until("the claim says that the machine ends", time.Second, func() bool {
		return strings.HasPrefix(w.interruption("one"), "InstanceTerminating ")
	})
}
