package interrupt_test

import (
	"strings"
	"testing"
	"time"
)

const unhealthy = "karpenter_interruption_instance_status_unhealthy_total"

// A machine that fails its checks is given two minutes; then it goes by force.
func TestImpaired(t *testing.T) {
	w := newWorld(t)
	w.options.Queue = ""
	id, blip := w.running("one"), w.running("blip")
	if err := w.World.Kill(id); err != nil {
		t.Fatal(err)
	}
	if err := w.World.Impair(blip, true, false); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.clock.AwaitWaiters(1)
	w.clock.Advance(time.Minute)
	w.clock.AwaitWaiters(1)
	if got := w.interruption("one"); got != "" {
		t.Errorf("after a minute the claim says %q", got)
	}
	if err := w.World.Impair(blip, false, false); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(time.Minute)
	w.until("the claim says so", 0, func() bool { return strings.HasSuffix(w.interruption("one"), "Status force") })
	for range 3 { // it is counted once
		w.clock.AwaitWaiters(1)
		w.clock.Advance(time.Minute)
	}
	w.clock.AwaitWaiters(1)
	for _, category := range []string{"InstanceStatus", "SystemStatus"} {
		if got := w.counter(unhealthy, category); got != 1 {
			t.Errorf("%s is counted %v times", category, got)
		}
	}
	if got := w.interruption("blip"); got != "" || w.events.count("InstanceUnhealthy") != 2 {
		t.Errorf("the other claim says %q, events:\n%s", got, strings.Join(w.events.all(), "\n"))
	}
}

func TestScheduledEvent(t *testing.T) {
	w := newWorld(t)
	w.options.Queue = ""
	id := w.running("one")
	at := w.clock.Now().Add(48 * time.Hour)
	if err := w.World.ScheduleEvent(id, "instance-retirement", at); err != nil {
		t.Fatal(err)
	}
	w.start()
	want := "EventStatus " + at.UTC().Format(time.RFC3339)
	w.until("the claim says so", 0, func() bool { return w.interruption("one") == want })
	w.clock.AwaitWaiters(1)
	if w.counter(unhealthy, "EventStatus") != 1 || w.events.count("InstanceUnhealthy: AWS has planned a change of "+
		"the instance (instance-retirement)") != 2 {
		t.Errorf("%v, events:\n%s", w.counter(unhealthy, "EventStatus"), strings.Join(w.events.all(), "\n"))
	}
}

// A missing permission is told with AWS's code and the fix, once, and needs no restart.
func TestStatusDenied(t *testing.T) {
	w := newWorld(t)
	w.options.Queue = ""
	id := w.running("one")
	w.Faults.Deny("ec2:DescribeInstanceStatus")
	if err := w.World.ScheduleEvent(id, "system-reboot", w.clock.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.start()
	for range 3 {
		w.clock.AwaitWaiters(1)
		w.clock.Advance(time.Minute)
	}
	w.clock.AwaitWaiters(1)
	if w.logged.count("UnauthorizedOperation") != 1 || w.logged.count("allow ec2:DescribeInstanceStatus") != 1 {
		t.Errorf("log:\n%s", strings.Join(w.logged.all(), "\n"))
	}
	w.Faults.Allow("ec2:DescribeInstanceStatus")
	w.clock.Advance(time.Minute)
	w.until("the claim says so", 0, func() bool { return strings.HasPrefix(w.interruption("one"), "EventStatus ") })
	w.clock.AwaitWaiters(1)
	if w.logged.count("known again") != 1 {
		t.Errorf("log:\n%s", strings.Join(w.logged.all(), "\n"))
	}
}
