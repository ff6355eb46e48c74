package inflight

import (
	"maps"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

const (
	// WatchTimeout is how long the watch may take to show a write before the command is planned again if need be. A
	// busy API server's watch may be ten seconds and more behind, and doing everything twice would not help it.
	WatchTimeout = time.Minute
	// CreateWatchTimeout is the same for a claim that was created. It is long: were it forgotten while it is there, its
	// pods would be given a second node.
	CreateWatchTimeout = 5 * time.Minute

	// nominationWatchTimeout is the same for a pod that was told its node: its node is kept closed meanwhile.
	nominationWatchTimeout = 5 * time.Second

	FirstRetry = 100 * time.Millisecond
	LastRetry  = 30 * time.Second
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

// Commands are those that are under way, and those that have failed.
type Commands struct {
	all      map[string]*inFlight
	awaiting map[awaitedWrite]map[string]bool // the commands that wait for an object
	retries  map[string]cluster.Retry
}

// New knows of no command.
func New() Commands {
	return Commands{all: make(map[string]*inFlight), awaiting: make(map[awaitedWrite]map[string]bool),
		retries: make(map[string]cluster.Retry)}
}

// Begin notes that a command is being carried out.
func (m *Commands) Begin(c command.Command) { m.put(c.Key(), &inFlight{command: c}) }

// Has reports whether the command with the key is under way.
func (m *Commands) Has(key string) bool { return m.all[key] != nil }

// Each yields the commands that are under way, in no order.
func (m *Commands) Each(yield func(command.Command) bool) {
	for _, f := range m.all {
		if !yield(f.command) {
			return
		}
	}
}

// Keys are the keys of the commands that are under way.
func (m *Commands) Keys() map[string]bool {
	out := make(map[string]bool, len(m.all))
	for key := range m.all {
		out[key] = true
	}
	return out
}

// Retries says which commands have failed, and when they may be tried again.
func (m *Commands) Retries() map[string]cluster.Retry { return maps.Clone(m.retries) }

// Done notes what became of a command. It returns the command if it is under way no longer: it has failed, or the watch
// has shown all that it wrote.
func (m *Commands) Done(o command.Outcome, look Look) command.Command {
	key := o.Command.Key()
	if o.Err != nil {
		m.retries[key] = nextRetry(m.retries[key], o)
		return m.End(key)
	}
	delete(m.retries, key)
	if o.RetryAfter > 0 {
		m.retries[key] = cluster.Retry{NotBefore: o.At.Add(o.RetryAfter)}
	}
	if before := m.all[key]; before != nil && before.seenEarly {
		return m.End(key)
	}
	f := &inFlight{command: o.Command, until: o.At.Add(WatchTimeout)}
	switch o.Command.(type) {
	case command.CreateClaim:
		f.until = o.At.Add(CreateWatchTimeout)
	case command.Nominate, command.Bind:
		f.until = o.At.Add(nominationWatchTimeout)
	}
	for _, w := range o.Writes {
		if !look.shows(w) {
			f.unseen = append(f.unseen, w)
		}
	}
	if len(f.unseen) == 0 {
		return m.End(key)
	}
	m.put(key, f)
	return nil
}

// awaitedWrite is an object of which the watch has yet to show a write.
type awaitedWrite struct{ kind, name string }

// put keeps a command under way, and what it waits for.
func (m *Commands) put(key string, f *inFlight) {
	m.drop(key)
	m.all[key] = f
	for _, w := range f.unseen {
		what := awaitedWrite{w.Kind, w.Name}
		if m.awaiting[what] == nil {
			m.awaiting[what] = make(map[string]bool)
		}
		m.awaiting[what][key] = true
	}
}

// drop forgets a command.
func (m *Commands) drop(key string) {
	f := m.all[key]
	if f == nil {
		return
	}
	delete(m.all, key)
	for _, w := range f.unseen {
		what := awaitedWrite{w.Kind, w.Name}
		if delete(m.awaiting[what], key); len(m.awaiting[what]) == 0 {
			delete(m.awaiting, what)
		}
	}
}

// End ends a command, and returns it; nil if it is not under way.
func (m *Commands) End(key string) command.Command {
	f := m.all[key]
	if f == nil {
		return nil
	}
	m.drop(key)
	return f.command
}

// nextRetry doubles the wait with each failure.
func nextRetry(r cluster.Retry, o command.Outcome) cluster.Retry {
	r.Attempts++
	last := LastRetry
	if _, evict := o.Command.(command.Evict); evict {
		last = lastEviction
	}
	wait := min(FirstRetry<<min(r.Attempts-1, 20), last)
	return cluster.Retry{Attempts: r.Attempts, NotBefore: o.At.Add(wait), Message: o.Err.Error()}
}

// Settle lets go of the commands that were waiting for the watch to show what it has just shown, and reports
// whether there were any.
func (m *Commands) Settle(kind, name string, look Look) (settled bool) {
	for key := range m.awaiting[awaitedWrite{kind, name}] {
		if !slices.ContainsFunc(m.all[key].unseen, func(w command.Write) bool { return !look.shows(w) }) {
			m.drop(key)
			settled = true
		}
	}
	return settled
}

// NominationSeen notes that a nomination which is being written is there. kube-scheduler may take it back before
// the one who writes it knows that it is written.
func (m *Commands) NominationSeen(p *cluster.Pod) {
	if p.Node != "" || len(m.all) == 0 {
		return
	}
	f := m.all[command.Nominate{UID: p.UID}.Key()]
	if f == nil || !f.until.IsZero() {
		return
	}
	if c, ok := f.command.(command.Nominate); ok && c.Node == p.Nominated {
		f.seenEarly = true
	}
}

// Look finds an object as the watch has shown it.
type Look func(kind, name string) Seen

// Seen is what the watch has shown of an object.
type Seen struct {
	There, Leaving bool
	Version        uint64
	// Node and Nominated are a pod's.
	Node, Nominated string
}

// shows reports whether the watch has caught up with a write.
func (look Look) shows(w command.Write) bool {
	x := look(w.Kind, w.Name)
	switch {
	case w.Nominated || w.Bound:
		return !x.There || w.Kind == command.KindPod &&
			(x.Leaving || x.Node != "" || w.Nominated && x.Nominated == w.Node)
	case w.Version == "":
		return !x.There || x.Leaving && !w.Gone
	case !x.There:
		// A created object is not there yet; an updated one is gone. Only the former is waited for.
		return !w.Created
	}
	return x.Version >= decode.ParseVersion(w.Version)
}

// Expire ends the commands whose writes the watch should have shown by now, and returns them.
func (m *Commands) Expire(now time.Time) []command.Command {
	var out []command.Command
	for key, f := range m.all {
		if !f.until.IsZero() && now.After(f.until) {
			out = append(out, m.End(key))
		}
	}
	for key, r := range m.retries {
		if now.After(r.NotBefore.Add(10 * LastRetry)) {
			delete(m.retries, key)
		}
	}
	return out
}
