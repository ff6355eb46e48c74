package tries

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

func startTime() time.Time { return time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) }

// look has the tracker look at an empty cluster.
func look(tr *Tracker, now time.Time) map[string]*cluster.WorkloadTries {
	s := &cluster.Snapshot{Now: now}
	s.Seal()
	return tr.Review(s, Known{
		Pod:       func(string) (*cluster.Pod, bool) { return nil, false },
		Class:     func(string) *cluster.PodClass { return nil },
		AddAuthor: func(string, *cluster.Cause) {},
	})
}

func TestOnlySoManyOwnersAreRemembered(t *testing.T) {
	now := startTime()
	tr := New(now)
	for i := range maxDormant + 2 {
		age := DormantAfter + time.Duration(maxDormant+2-i)*time.Millisecond
		tr.histories[fmt.Sprint(i)] = &tryHistory{tries: 1, lastMissed: now.Add(-age)}
	}
	look(&tr, now)
	if len(tr.histories) != maxDormant || tr.histories["0"] != nil || tr.histories["1"] != nil {
		t.Errorf("%d are remembered, want %d, the newest", len(tr.histories), maxDormant)
	}
}

func TestWordsOfOthersAreBounded(t *testing.T) {
	tr := New(startTime())
	tr.NoteMessage(&cluster.Pod{UID: "p1"}, true, strings.Repeat("é\n", 100_000), startTime())
	got := tr.messages["p1"].text
	if len(got) > longestMessage || !strings.HasSuffix(got, "...") || strings.Contains(got, "\n") ||
		!strings.HasPrefix(got, "é é") {
		t.Errorf("%d bytes are kept: %q", len(got), got)
	}
}

// What kube-scheduler says is kept as long as the pod is there and has no node.
func TestWordsAreForgotten(t *testing.T) {
	tr := New(startTime())
	for _, uid := range []string{"p1", "p2", "p3"} {
		tr.NoteMessage(&cluster.Pod{UID: uid}, true, "no room", startTime())
	}
	tr.NoteMessage(&cluster.Pod{UID: "p1", Node: "n1"}, true, "no room", startTime())
	tr.NoteMessage(&cluster.Pod{UID: "p2"}, false, "", startTime())
	if len(tr.messages) != 1 {
		t.Errorf("words about pods that have a place are kept: %v", tr.messages)
	}
	if tr.ForgetMessage("p3"); len(tr.messages) != 0 {
		t.Errorf("words about a pod that is gone are kept: %v", tr.messages)
	}
}

// A claim whose pods have run to their end has been of use, and is not followed any longer.
func TestAClaimIsFollowedUntilItWasOfUse(t *testing.T) {
	tr := New(startTime())
	c := &cluster.Claim{Name: "n1", UID: "u1", Created: startTime(), ProviderID: "m1",
		MadeFor: []cluster.MadeFor{{Owner: "o", Try: 1}}}
	tr.TrackClaim(c)
	tr.EndTracking(c, startTime())
	if look(&tr, startTime()); !tr.HasTrackers() {
		t.Error("it is forgotten before it is known whether pods wait for it")
	}
	tr.NotePodFinished("u1", "o")
	if look(&tr, startTime()); tr.HasTrackers() {
		t.Error("it was of use and is followed still")
	}
}

// The next node of a slot comes the later the more ended too soon; a change that may be the cure brings it forward.
func TestLostSlotsAlone(t *testing.T) {
	now := startTime()
	slots := NewSlots()
	pool := &cluster.Pool{Name: "static", Static: true}
	none := func(func(*cluster.Claim) bool) {}
	end := func(try int) {
		slots.End(&cluster.Claim{Pool: "static", Created: now, Slot: cluster.Slot{Number: 1, Try: try}},
			now.Add(time.Second), SlotEnd{InstanceGone: true})
	}
	end(1)
	end(5)
	lost := slots.Lost(pool, none, now)
	if len(lost) != 1 || lost[0].Tries != 5 || !lost[0].Next.Equal(now.Add(cluster.TryAfter(5))) ||
		!strings.HasPrefix(lost[0].EndedBy, "the cloud") {
		t.Fatalf("lost slots: %+v", lost)
	}
	slots.Allow(now.Add(time.Millisecond))
	if lost = slots.Lost(pool, none, now); !lost[0].Next.Equal(now.Add(RetryAllowedEvery)) {
		t.Errorf("after a change the next is allowed at %s", lost[0].Next)
	}
	slots.DropPool("static")
	if lost = slots.Lost(pool, none, now); lost != nil {
		t.Errorf("the pool is gone, its slots are not: %+v", lost)
	}
}
