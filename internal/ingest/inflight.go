package ingest

import (
	"maps"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

const (
	// watchTimeout is how long the watch may take to show a write before the command is planned again if need be. A
	// busy API server's watch may be ten seconds and more behind, and doing everything twice would not help it.
	watchTimeout = time.Minute
	// createWatchTimeout is the same for a claim that was created. It is long: were it forgotten while it is there, its
	// pods would be given a second node.
	createWatchTimeout = 5 * time.Minute

	// nominationWatchTimeout is the same for a pod that was told its node: its node is kept closed meanwhile.
	nominationWatchTimeout = 5 * time.Second

	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
	// lastEviction bounds the wait of an eviction: a disruption budget may allow it at any moment.
	lastEviction = 10 * time.Second
)

// inFlight is a command under way: begun and not done, or done and not shown by the watch.
type inFlight struct {
	command command.Command
	unseen  []command.Write // nil while the command runs
	until   time.Time       // zero while the command runs
	// the watch has shown what it writes while it was running: it may be gone again when it is done
	seenEarly bool
}

// Begin notes that a command is being carried out.
func (b *Book) Begin(c command.Command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.putInFlight(c.Key(), &inFlight{command: c})
	if _, create := c.(command.CreateClaim); create {
		b.noteChange(changesSupply)
		return
	}
	b.noteChange(b.bindChange(c))
}

// Abandon notes that a command that was begun is not carried out after all: it is planned anew if need be.
func (b *Book) Abandon(c command.Command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noteAndWake(b.endInFlight(c.Key()))
}

// Record notes what became of a command.
func (b *Book) Record(o command.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := o.Command.Key()
	what := b.applyOutcome(o)
	defer func() { b.noteAndWake(what) }()
	if o.Err != nil {
		what |= b.endInFlight(key)
		b.retries[key] = nextRetry(b.retries[key], o)
		return
	}
	delete(b.retries, key)
	if o.RetryAfter > 0 {
		b.retries[key] = cluster.Retry{NotBefore: o.At.Add(o.RetryAfter)}
	}
	if before := b.inFlight[key]; before != nil && before.seenEarly {
		what |= b.endInFlight(key)
		return
	}
	f := &inFlight{command: o.Command, until: o.At.Add(watchTimeout)}
	switch o.Command.(type) {
	case command.CreateClaim:
		f.until = o.At.Add(createWatchTimeout)
	case command.Nominate, command.Bind:
		f.until = o.At.Add(nominationWatchTimeout)
	}
	for _, w := range o.Writes {
		if !b.isSeen(w) {
			f.unseen = append(f.unseen, w)
		}
	}
	if len(f.unseen) == 0 {
		what |= b.endInFlight(key)
		return
	}
	b.putInFlight(key, f)
}

// awaitedWrite is an object of which the watch has yet to show a write.
type awaitedWrite struct{ kind, name string }

// putInFlight keeps a command under way, and what it waits for. The lock is held.
func (b *Book) putInFlight(key string, f *inFlight) {
	b.dropInFlight(key)
	b.inFlight[key] = f
	for _, w := range f.unseen {
		what := awaitedWrite{w.Kind, w.Name}
		if b.awaitingWrites[what] == nil {
			b.awaitingWrites[what] = make(map[string]bool)
		}
		b.awaitingWrites[what][key] = true
	}
}

// dropInFlight forgets a command. The lock is held.
func (b *Book) dropInFlight(key string) {
	f := b.inFlight[key]
	if f == nil {
		return
	}
	delete(b.inFlight, key)
	for _, w := range f.unseen {
		what := awaitedWrite{w.Kind, w.Name}
		if delete(b.awaitingWrites[what], key); len(b.awaitingWrites[what]) == 0 {
			delete(b.awaitingWrites, what)
		}
	}
}

// endInFlight ends a command in flight. A claim that was counted on and has not appeared is one less to count on. The
// lock is held.
func (b *Book) endInFlight(key string) change {
	f := b.inFlight[key]
	if f == nil {
		return noChange
	}
	b.dropInFlight(key)
	if create, ok := f.command.(command.CreateClaim); ok && b.claims[create.Name] == nil {
		return changesRoom
	}
	return b.bindChange(f.command)
}

// applyOutcome takes in what an outcome says about the cloud. The lock is held.
func (b *Book) applyOutcome(o command.Outcome) change {
	what := noChange
	if b.market.Shortages.Refuse(o.Unavailable, o.At) {
		what |= changesSupply
	}
	switch c := o.Command.(type) {
	case command.Terminate:
		if o.InstanceGone {
			if b.instancesGone[c.ProviderID] = o.At; c.Claim != "" {
				// an orphan may be beside the instance that its claim has
				b.instancesGone[c.UID] = o.At
			}
			delete(b.instancesGone, "")
			what |= changesSupply
		}
		b.noteOrphanEnd(c, o)
		if o.Err != nil {
			b.requestInventory()
		}
	case command.LaunchInstance:
		what |= b.applyLaunch(c, o)
	case command.Evict:
		if o.Err == nil {
			b.noteEviction(c, o.At)
			what |= changesDisruption
		}
	case command.DeleteClaim:
		if e := b.claims[c.Claim]; e != nil && o.Err == nil && isFailedLaunch(c) {
			b.noteLaunchResult(e.claim.Pool, false)
		}
	}
	return what
}

// applyLaunch takes in what became of a launch. The lock is held.
func (b *Book) applyLaunch(c command.LaunchInstance, o command.Outcome) change {
	if o.Err != nil {
		b.requestInventory() // the cloud may have launched it all the same
	}
	e := b.claims[c.Claim]
	if e == nil || e.claim.UID != c.UID { // a namesake is another claim
		return noChange
	}
	what := noChange
	switch held, freed := b.launches.Update(e.claim.Pool, o); {
	case freed:
		what = changesRoom
	case held:
		what = changesSupply
	}
	if o.Refused && o.Err == nil {
		b.launches.Refuse(e.claim.UID, o.At, o.Refusal)
		what |= changesSupply // its pods look for another place
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

// settleWrites lets go of the commands that were waiting for the watch to show what it has just shown, and reports
// whether there were any. The lock is held.
func (b *Book) settleWrites(kind, name string) (settled bool) {
	for key := range b.awaitingWrites[awaitedWrite{kind, name}] {
		if !b.anyUnseen(b.inFlight[key].unseen) {
			b.dropInFlight(key)
			settled = true
		}
	}
	return settled
}

// noteNominationSeen notes that a nomination which is being written is there. kube-scheduler may take it back before
// the one who writes it knows that it is written. The lock is held.
func (b *Book) noteNominationSeen(p *cluster.Pod) {
	if p.Node != "" || len(b.inFlight) == 0 {
		return
	}
	f := b.inFlight[command.Nominate{UID: p.UID}.Key()]
	if f == nil || !f.until.IsZero() {
		return
	}
	if c, ok := f.command.(command.Nominate); ok && c.Node == p.Nominated {
		f.seenEarly = true
	}
}

func (b *Book) anyUnseen(writes []command.Write) bool {
	for _, w := range writes {
		if !b.isSeen(w) {
			return true
		}
	}
	return false
}

// isSeen reports whether the watch has caught up with a write. The lock is held.
func (b *Book) isSeen(w command.Write) bool {
	var have uint64
	var there, leaving bool
	switch w.Kind {
	case command.KindClaim:
		if e := b.claims[w.Name]; e != nil {
			have, there, leaving = parseVersion(e.claim.Version), true, !e.claim.Deleting.IsZero()
		}
	case command.KindNode:
		if e := b.nodes[w.Name]; e != nil {
			have, there, leaving = parseVersion(e.node.Version), true, !e.node.Deleting.IsZero()
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
	return have >= parseVersion(w.Version)
}

// expireOld forgets what time has settled. The lock is held.
func (b *Book) expireOld(now time.Time) {
	b.forgetGone()
	for key, f := range b.inFlight {
		if !f.until.IsZero() && now.After(f.until) {
			b.noteChange(b.endInFlight(key))
		}
	}
	opened, forgotten := b.market.Shortages.Update(now)
	for range opened + b.launches.EndBackoffs(now) {
		b.noteChange(changesRoom)
	}
	for range forgotten {
		b.noteChange(changesSupply)
	}
	b.endProtections(now)
	b.forgetEvictions(now)
	maps.DeleteFunc(b.orphansEnded, func(_ string, at time.Time) bool { return !now.Before(at.Add(orphanEndsCount)) })
	for key, r := range b.retries {
		if now.After(r.NotBefore.Add(10 * lastRetry)) {
			delete(b.retries, key)
		}
	}
}

// forgetGone drops what was noted about instances of which neither claim nor node is left, and which the cloud no
// longer lists. The lock is held.
func (b *Book) forgetGone() {
	if len(b.instancesGone) == 0 {
		return
	}
	left := make(map[string]bool, len(b.instancesGone))
	for _, e := range b.claims {
		left[e.claim.UID], left[e.claim.ProviderID] = true, true
	}
	for _, e := range b.nodes {
		left[e.node.ProviderID] = true
	}
	if b.inventory.now != nil { // what it listed before the end may still be in it
		for _, i := range b.inventory.now.Instances {
			left[i.ProviderID] = true
		}
	}
	for key := range b.instancesGone {
		if !left[key] {
			delete(b.instancesGone, key)
		}
	}
}
