package ingest

import (
	"maps"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

const (
	// settleFor is how long the watch may take to show a write before the command is planned again if need be. A busy API
	// server's watch may be ten seconds and more behind, and doing everything twice would not help it.
	settleFor = time.Minute
	// createSettleFor is the same for a claim that was created. It is long: were it forgotten while it is there, its pods
	// would be given a second node.
	createSettleFor = 5 * time.Minute

	// tellSettleFor is the same for a pod that was told its node: its node is kept closed meanwhile.
	tellSettleFor = 5 * time.Second

	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
	// lastEviction bounds the wait of an eviction: a disruption budget may allow it at any moment.
	lastEviction = 10 * time.Second
)

// flight is a command under way: begun and not done, or done and not shown by the watch.
type flight struct {
	command command.Command
	waiting []command.Write // nil while the command runs
	until   time.Time       // zero while the command runs
	shown   bool            // the watch has shown what it writes while it was running: it may be gone again when it is done
}

// Begin notes that a command is being carried out.
func (b *Book) Begin(c command.Command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.putFlight(c.Key(), &flight{command: c})
	if _, create := c.(command.CreateClaim); create {
		b.note(supply)
		return
	}
	b.note(b.bindChange(c))
}

// Abandon notes that a command that was begun is not carried out after all: it is planned anew if need be.
func (b *Book) Abandon(c command.Command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.touch(b.land(c.Key()))
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
	if before := b.flights[key]; before != nil && before.shown {
		what |= b.land(key)
		return
	}
	f := &flight{command: o.Command, until: o.At.Add(settleFor)}
	switch o.Command.(type) {
	case command.CreateClaim:
		f.until = o.At.Add(createSettleFor)
	case command.Nominate, command.Bind:
		f.until = o.At.Add(tellSettleFor)
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
	b.putFlight(key, f)
}

// awaited is an object of which the watch has yet to show a write.
type awaited struct{ kind, name string }

// putFlight keeps a command under way, and what it waits for. The lock is held.
func (b *Book) putFlight(key string, f *flight) {
	b.dropFlight(key)
	b.flights[key] = f
	for _, w := range f.waiting {
		what := awaited{w.Kind, w.Name}
		if b.awaiting[what] == nil {
			b.awaiting[what] = make(map[string]bool)
		}
		b.awaiting[what][key] = true
	}
}

// dropFlight forgets a command. The lock is held.
func (b *Book) dropFlight(key string) {
	f := b.flights[key]
	if f == nil {
		return
	}
	delete(b.flights, key)
	for _, w := range f.waiting {
		what := awaited{w.Kind, w.Name}
		if delete(b.awaiting[what], key); len(b.awaiting[what]) == 0 {
			delete(b.awaiting, what)
		}
	}
}

// land ends a flight. A claim that was counted on and has not appeared is one less to count on. The lock is held.
func (b *Book) land(key string) change {
	f := b.flights[key]
	if f == nil {
		return nothing
	}
	b.dropFlight(key)
	if create, ok := f.command.(command.CreateClaim); ok && b.claims[create.Name] == nil {
		return room
	}
	return b.bindChange(f.command)
}

// learn takes in what an outcome says about the cloud. The lock is held.
func (b *Book) learn(o command.Outcome) change {
	what := nothing
	if b.refuseOfferings(o.Exhausted, o.At) {
		what |= supply
	}
	switch c := o.Command.(type) {
	case command.Terminate:
		if o.Gone {
			if b.gone[c.ProviderID] = o.At; c.Claim != "" { // an orphan may be beside the instance that its claim has
				b.gone[c.UID] = o.At
			}
			delete(b.gone, "")
			what |= supply
		}
		b.noteOrphanEnd(c, o)
		if o.Err != nil {
			b.countSoon()
		}
	case command.LaunchInstance:
		what |= b.learnLaunch(c, o)
	case command.Evict:
		if o.Err == nil {
			b.noteEviction(c, o.At)
			what |= stakes
		}
	case command.DeleteClaim:
		if e := b.claims[c.Claim]; e != nil && o.Err == nil && failedToJoin(c) {
			b.joined(e.claim.Pool, false)
		}
	}
	return what
}

// learnLaunch takes in what became of a launch. The lock is held.
func (b *Book) learnLaunch(c command.LaunchInstance, o command.Outcome) change {
	if o.Err != nil {
		b.countSoon() // the cloud may have launched it all the same
	}
	e := b.claims[c.Claim]
	if e == nil || e.claim.UID != c.UID { // a namesake is another claim
		return nothing
	}
	what := b.judgeLaunch(e.claim.Pool, o)
	if o.Refused && o.Err == nil {
		b.refused[e.claim.UID] = refusal{at: o.At, said: o.Refusal}
		what |= supply // its pods look for another place
	}
	return what
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
	for key := range b.awaiting[awaited{kind, name}] {
		if !b.anyHidden(b.flights[key].waiting) {
			b.dropFlight(key)
			settled = true
		}
	}
	return settled
}

// showNomination notes that a nomination which is being written is there. kube-scheduler may take it back before the one who
// writes it knows that it is written. The lock is held.
func (b *Book) showNomination(p *cluster.Pod) {
	if p.Node != "" || len(b.flights) == 0 {
		return
	}
	f := b.flights[command.Nominate{UID: p.UID}.Key()]
	if f == nil || !f.until.IsZero() {
		return
	}
	if c, ok := f.command.(command.Nominate); ok && c.Node == p.Nominated {
		f.shown = true
	}
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
			if w.Nominated || w.Bound {
				return leaving || p.Node != "" || w.Nominated && p.Nominated == w.Node
			}
		}
	}
	if w.Nominated || w.Bound {
		return !there
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
	b.easeShortages(now)
	b.easeHolds(now)
	b.endProtection(now)
	b.forgetEvictions(now)
	maps.DeleteFunc(b.orphansEnded, func(_ string, at time.Time) bool { return !now.Before(at.Add(orphanEndsCount)) })
	for key, r := range b.retries {
		if now.After(r.NotBefore.Add(10 * lastRetry)) {
			delete(b.retries, key)
		}
	}
}

// forgetGone drops what was noted about instances of which neither claim nor node is left, and which the cloud no longer
// lists. The lock is held.
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
	if b.census.now != nil { // what it listed before the end may still be in it
		for _, i := range b.census.now.Instances {
			left[i.ProviderID] = true
		}
	}
	for key := range b.gone {
		if !left[key] {
			delete(b.gone, key)
		}
	}
}
