package ingest

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

const (
	// settleFor is how long the watch may take to show a write before the command is planned again if need be.
	settleFor = 10 * time.Second
	// createSettleFor is the same for a claim that was created. It is long: were it forgotten while it is there, its pods
	// would be given a second node.
	createSettleFor = 5 * time.Minute
	// exhaustedFor is how long an offering that the cloud refused is left alone.
	exhaustedFor = 3 * time.Minute

	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
	// lastEviction bounds the wait of an eviction: a disruption budget may allow it at any moment.
	lastEviction = 10 * time.Second

	// A pool whose launches are refused for no reason that the next plan could avoid is left alone for a while that
	// grows from firstHold to lastHold.
	firstHold = time.Second
	lastHold  = 5 * time.Minute
)

// refusal is what is remembered of a pool whose launches are refused.
type refusal struct {
	count int
	until time.Time
	over  bool // that until has passed has been noted
}

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
	if _, create := c.(command.CreateClaim); create {
		b.note(supply)
		return
	}
	b.note(nothing)
}

// Record notes what became of a command.
func (b *Book) Record(o command.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := o.Command.Key()
	what := b.learn(o)
	defer func() { b.touch(what) }()
	if o.Err != nil {
		what |= b.land(key)
		b.retries[key] = nextRetry(b.retries[key], o)
		return
	}
	delete(b.retries, key)
	if o.Again > 0 {
		b.retries[key] = cluster.Retry{NotBefore: o.At.Add(o.Again)}
	}
	f := &flight{command: o.Command, until: o.At.Add(settleFor)}
	if _, create := o.Command.(command.CreateClaim); create {
		f.until = o.At.Add(createSettleFor)
	}
	for _, w := range o.Writes {
		if !b.shown(w) {
			f.waiting = append(f.waiting, w)
		}
	}
	if len(f.waiting) == 0 {
		what |= b.land(key)
		return
	}
	b.flights[key] = f
}

// land ends a flight. A claim that was counted on and has not appeared is one less to count on. The lock is held.
func (b *Book) land(key string) change {
	f := b.flights[key]
	delete(b.flights, key)
	if f == nil {
		return nothing
	}
	if create, ok := f.command.(command.CreateClaim); ok && b.claims[create.Name] == nil {
		return room
	}
	return nothing
}

// learn takes in what an outcome says about the cloud. The lock is held.
func (b *Book) learn(o command.Outcome) change {
	what := nothing
	for _, e := range o.Exhausted {
		if _, known := b.exhausted[e]; !known {
			what |= supply
		}
		b.exhausted[e] = o.At.Add(exhaustedFor)
	}
	switch c := o.Command.(type) {
	case command.Terminate:
		if o.Gone {
			b.gone[c.UID], b.gone[c.ProviderID] = true, true
			delete(b.gone, "")
			what |= supply
		}
	case command.LaunchInstance:
		if e := b.claims[c.Claim]; e != nil && o.Err == nil {
			what |= b.judgeLaunch(e.claim.Pool, o, what != nothing)
		}
	}
	return what
}

// judgeLaunch holds a pool whose launch was refused without a hint what to try instead, and lets go of it after a launch
// that went well. The lock is held.
func (b *Book) judgeLaunch(pool string, o command.Outcome, news bool) change {
	r := b.refusals[pool]
	if !o.Refused {
		delete(b.refusals, pool)
		if r != nil {
			return room
		}
		return nothing
	}
	if news {
		return nothing
	}
	if r == nil {
		r = &refusal{}
		b.refusals[pool] = r
	}
	r.count++
	r.until, r.over = o.At.Add(min(firstHold<<min(r.count-1, 20), lastHold)), false
	return supply
}

// nextRetry doubles the wait with each failure.
func nextRetry(r cluster.Retry, o command.Outcome) cluster.Retry {
	r.Attempts++
	last := lastRetry
	if _, evict := o.Command.(command.Evict); evict {
		last = lastEviction
	}
	wait := min(firstRetry<<min(r.Attempts-1, 20), last)
	return cluster.Retry{Attempts: r.Attempts, NotBefore: o.At.Add(wait), Message: o.Err.Error()}
}

// settle lets go of the commands that were waiting for the watch to show what it has just shown, and reports whether
// there were any. The lock is held.
func (b *Book) settle(kind, name string) (settled bool) {
	for key, f := range b.flights {
		if f.until.IsZero() || !waitsFor(f, kind, name) {
			continue
		}
		if !b.anyHidden(f.waiting) {
			delete(b.flights, key)
			settled = true
		}
	}
	return settled
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
		if p, found := b.pods.get(w.Name); found {
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
	b.forgetGone()
	for key, f := range b.flights {
		if !f.until.IsZero() && now.After(f.until) {
			b.note(b.land(key))
		}
	}
	for key, until := range b.exhausted {
		if now.After(until) {
			delete(b.exhausted, key)
			b.note(room)
		}
	}
	for _, r := range b.refusals {
		if !r.over && !now.Before(r.until) {
			r.over = true
			b.note(room)
		}
	}
	for key, r := range b.retries {
		if now.After(r.NotBefore.Add(10 * lastRetry)) {
			delete(b.retries, key)
		}
	}
}

// forgetGone drops what was noted about instances of which neither claim nor node is left. The lock is held.
func (b *Book) forgetGone() {
	if len(b.gone) == 0 {
		return
	}
	left := make(map[string]bool, len(b.gone))
	for _, e := range b.claims {
		left[e.claim.UID], left[e.claim.ProviderID] = true, true
	}
	for _, e := range b.nodes {
		left[e.node.ProviderID] = true
	}
	for key := range b.gone {
		if !left[key] {
			delete(b.gone, key)
		}
	}
}
