package inflight

import (
	"errors"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/command"
)

// A command counts as under way until the watch has shown what it wrote, or should have by far.
func TestACommandIsUnderWayUntilItIsSeen(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	shown := Seen{There: true, Version: 4}
	look := func(kind, name string) Seen {
		if kind != command.KindNode || name != "n" {
			t.Errorf("%s %s is looked for", kind, name)
		}
		return shown
	}
	fence := command.Fence{Node: "n"}
	done := command.Outcome{Command: fence, At: now, Writes: []command.Write{{Kind: command.KindNode, Name: "n",
		Version: "5"}}}
	m := New()
	m.Begin(fence)
	if m.Done(done, look) != nil || !m.Has(fence.Key()) || m.Settle(command.KindNode, "n", look) {
		t.Error("the watch has not shown the write")
	}
	if shown.Version = 5; !m.Settle(command.KindNode, "n", look) || m.Has(fence.Key()) || len(m.awaiting) > 0 {
		t.Error("the watch has shown the write")
	}
	shown.Version = 4
	m.Begin(fence)
	m.Done(done, look)
	if ended := m.Expire(now.Add(WatchTimeout)); len(ended) > 0 {
		t.Errorf("ended too early: %v", ended)
	}
	if ended := m.Expire(now.Add(WatchTimeout + 1)); len(ended) != 1 || len(m.Keys()) > 0 {
		t.Errorf("the watch shows nothing: %v", ended)
	}
}

// A command that failed is under way no longer, and is tried again later and later.
func TestAFailureIsTriedAgainLater(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	fence := command.Fence{Node: "n"}
	m := New()
	for _, wait := range []time.Duration{FirstRetry, 2 * FirstRetry, 4 * FirstRetry} {
		m.Begin(fence)
		if m.Done(command.Outcome{Command: fence, At: now, Err: errors.New("boom")}, nil) == nil {
			t.Error("it is still under way")
		}
		if got := m.Retries()[fence.Key()]; !got.NotBefore.Equal(now.Add(wait)) || got.Message != "boom" {
			t.Errorf("the next try: %+v, want after %s", got, wait)
		}
	}
	m.Begin(fence)
	if m.Done(command.Outcome{Command: fence, At: now}, nil); len(m.Retries()) > 0 {
		t.Error("a failure is remembered after a success")
	}
}
