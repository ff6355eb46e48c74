package ingest

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

const (
	// settleFor is how long the watch may take to show a write before the command is planned again if need be.
	settleFor = 10 * time.Second
	// exhaustedFor is how long an offering that the cloud refused is left alone.
	exhaustedFor = 3 * time.Minute

	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// flight is a command under way: begun and not done, or done and not shown by the watch.
type flight struct {
	command command.Command
	waiting []command.Write // nil while the command runs
	until   time.Time       // zero while the command runs
}

// Begin notes that a command is being carried out.
func (b *Book) Begin(c command.Command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flights[c.Key()] = &flight{command: c}
	b.rev++
}

// Record notes what became of a command.
func (b *Book) Record(o command.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.touch()
	key := o.Command.Key()
	for _, e := range o.Exhausted {
		b.exhausted[e] = o.At.Add(exhaustedFor)
	}
	if t, ok := o.Command.(command.Terminate); ok && o.Gone {
		b.gone[t.Claim], b.gone[t.ProviderID] = true, true
		delete(b.gone, "")
	}
	if o.Err != nil {
		delete(b.flights, key)
		b.retries[key] = nextRetry(b.retries[key], o)
		return
	}
	delete(b.retries, key)
	if o.Again > 0 {
		b.retries[key] = cluster.Retry{NotBefore: o.At.Add(o.Again)}
	}
	f := &flight{command: o.Command, until: o.At.Add(settleFor)}
	for _, w := range o.Writes {
		if !b.shown(w) {
			f.waiting = append(f.waiting, w)
		}
	}
	if len(f.waiting) == 0 {
		delete(b.flights, key)
		return
	}
	b.flights[key] = f
}

// nextRetry doubles the wait with each failure.
func nextRetry(r cluster.Retry, o command.Outcome) cluster.Retry {
	r.Attempts++
	wait := min(firstRetry<<min(r.Attempts-1, 20), lastRetry)
	return cluster.Retry{Attempts: r.Attempts, NotBefore: o.At.Add(wait), Message: o.Err.Error()}
}

// settle lets go of the commands that were waiting for the watch to show what it has just shown. The lock is held.
func (b *Book) settle(kind, name string) {
	for key, f := range b.flights {
		if f.until.IsZero() || !waitsFor(f, kind, name) {
			continue
		}
		if !b.anyHidden(f.waiting) {
			delete(b.flights, key)
		}
	}
}

func waitsFor(f *flight, kind, name string) bool {
	for _, w := range f.waiting {
		if w.Kind == kind && w.Name == name {
			return true
		}
	}
	return false
}

func (b *Book) anyHidden(writes []command.Write) bool {
	for _, w := range writes {
		if !b.shown(w) {
			return true
		}
	}
	return false
}

// shown reports whether the watch has caught up with a write. The lock is held.
func (b *Book) shown(w command.Write) bool {
	var have uint64
	var there, leaving bool
	switch w.Kind {
	case command.KindClaim:
		if e := b.claims[w.Name]; e != nil {
			have, there, leaving = version(e.claim.Version), true, !e.claim.Deleting.IsZero()
		}
	case command.KindNode:
		if e := b.nodes[w.Name]; e != nil {
			have, there, leaving = version(e.node.Version), true, !e.node.Deleting.IsZero()
		}
	case command.KindPool:
		if e := b.pools[w.Name]; e != nil {
			have, there, leaving = e.version, true, e.pool.Deleting
		}
	case command.KindPod:
		if p := b.pods[w.Name]; p != nil {
			there, leaving = true, !p.Deleting.IsZero()
		}
	}
	if w.Version == "" {
		return !there || leaving && !w.Gone
	}
	if !there {
		// A created object is not there yet; an updated one is gone. Only the former is waited for.
		return !w.Created
	}
	return have >= version(w.Version)
}

// expire forgets what time has settled. The lock is held.
func (b *Book) expire(now time.Time) {
	for key, f := range b.flights {
		if !f.until.IsZero() && now.After(f.until) {
			delete(b.flights, key)
		}
	}
	for key, until := range b.exhausted {
		if now.After(until) {
			delete(b.exhausted, key)
			b.rev++
		}
	}
	for key, r := range b.retries {
		if now.After(r.NotBefore.Add(10 * lastRetry)) {
			delete(b.retries, key)
		}
	}
}

// forgetGone drops what was noted about an instance once neither claim nor node is left. The lock is held.
func (b *Book) forgetGone(claim, providerID string) {
	if claim != "" && b.claims[claim] == nil {
		delete(b.gone, claim)
	}
	for _, e := range b.nodes {
		if e.node.ProviderID == providerID {
			return
		}
	}
	for _, e := range b.claims {
		if e.claim.ProviderID == providerID {
			return
		}
	}
	delete(b.gone, providerID)
}
