package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// paperLease is a lease without an API server.
type paperLease struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
	err    error
}

func (p *paperLease) Identity() string { return "us" }
func (p *paperLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &p.record, nil, p.err
}
func (p *paperLease) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	if p.err == nil {
		p.record = r
	}
	return p.err
}

func TestALeaderThatSeesAnotherHolderEnds(t *testing.T) {
	held := func(by string) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{HolderIdentity: by}
	}
	cases := []struct {
		name string
		do   func(*paperLease, *heldLease)
		want bool
	}{
		{"never elected", func(p *paperLease, _ *heldLease) { p.record = held("them") }, false},
		{"still elected", func(_ *paperLease, l *heldLease) { _ = l.Update(t.Context(), held("us")) }, false},
		{"replaced", func(p *paperLease, l *heldLease) {
			_ = l.Update(t.Context(), held("us"))
			p.record = held("them")
		}, true},
		{"released by itself", func(p *paperLease, l *heldLease) {
			_ = l.Update(t.Context(), held("us"))
			_ = l.Update(t.Context(), held(""))
			p.record = held("them")
		}, false},
		{"refused", func(p *paperLease, l *heldLease) {
			p.err = errors.New("conflict")
			_ = l.Update(t.Context(), held("us"))
			p.err, p.record = nil, held("them")
		}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var lost error
			paper := &paperLease{}
			lease := &heldLease{Interface: paper, term: NewTerm(), lost: func(err error) { lost = err }}
			c.do(paper, lease)
			if _, _, err := lease.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
			if errors.Is(lost, errLost) != c.want {
				t.Errorf("lost: %v", lost)
			}
		})
	}
}

func TestATermEndsByItself(t *testing.T) {
	at := time.Unix(1000, 0)
	now := &Term{now: func() time.Time { return at }, wall: func() time.Time { return at }}
	lease := &heldLease{Interface: &paperLease{}, term: now, lost: func(error) {}}
	if now.Holds() {
		t.Error("it holds before the election")
	}
	if err := lease.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us"}); err != nil {
		t.Fatal(err)
	}
	at = at.Add(Lasts - time.Millisecond)
	if !now.Holds() {
		t.Error("it has ended too early")
	}
	at = at.Add(time.Millisecond)
	if now.Holds() {
		t.Error("it holds although others may have taken over")
	}
	if err := lease.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us"}); err != nil ||
		!now.Holds() {
		t.Errorf("a renewal does not help: %v", err)
	}
	if err := lease.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil || now.Holds() {
		t.Errorf("it holds after it was given up: %v", err)
	}
}

// A machine that is suspended takes its steady clock with it; the wall clock tells. If that is set back, the steady one
// tells.
func TestATermEndsByEitherClock(t *testing.T) {
	start := time.Unix(1000, 0)
	for _, x := range []struct {
		name         string
		steady, wall time.Duration
		want         bool
	}{
		{"both in time", 14 * time.Second, 14 * time.Second, true},
		{"suspended for a minute", time.Second, time.Minute, false},
		{"the wall clock was set back by an hour", 14 * time.Second, -time.Hour, true},
		{"set back, and time is up", 15 * time.Second, -time.Hour, false},
	} {
		steady, wall := start, start
		now := &Term{now: func() time.Time { return steady }, wall: func() time.Time { return wall }}
		lease := &heldLease{Interface: &paperLease{}, term: now, lost: func(error) {}}
		if err := lease.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us"}); err != nil {
			t.Fatal(err)
		}
		steady, wall = start.Add(x.steady), start.Add(x.wall)
		if got := now.Holds(); got != x.want {
			t.Errorf("%s: holds %v, want %v", x.name, got, x.want)
		}
	}
}

func TestATermThatWasEndedNeverHoldsAgain(t *testing.T) {
	term := NewTerm()
	lease := &heldLease{Interface: &paperLease{}, term: term, lost: func(error) {}}
	if term.Holds() {
		t.Error("a replica leads before it is elected")
	}
	elect := func() {
		if err := lease.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us"}); err != nil {
			t.Fatal(err)
		}
	}
	if elect(); !term.Holds() {
		t.Error("a replica that was elected does not lead")
	}
	term.End()
	if elect(); term.Holds() {
		t.Error("a replica that was told never to act again leads")
	}
}
