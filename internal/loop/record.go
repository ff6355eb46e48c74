package loop

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/replay"
)

const (
	// sameAgain is how long to wait after a file could not be written, before one is tried about the same failure again.
	sameAgain = 10 * time.Minute
	// mostSaved bounds how many failures are remembered about which a file was written; the oldest is forgotten first.
	mostSaved = 100
)

// Recorder keeps snapshot files.
type Recorder interface {
	Save(*replay.Case) (path string, err error)
}

// records remembers about which failures files are written. Plans, checks and searches write.
type records struct {
	mu   sync.Mutex
	of   map[string]recorded
	busy bool
}

// recorded is what is known about the file of a failure.
type recorded struct {
	at time.Time
	// done says that it is there, so that no other is written by this process.
	done bool
}

// begin reports whether a file is to be written about a failure now: if none was, and nobody is writing one. A snapshot
// is only kept in memory for a writer, so there is one at most.
func (r *records) begin(what string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	have, known := r.of[what]
	if r.busy || known && (have.done || now.Before(have.at.Add(sameAgain))) {
		return false
	}
	if r.of == nil {
		r.of = make(map[string]recorded)
	}
	if !known && len(r.of) >= mostSaved {
		oldest := ""
		for key, other := range r.of {
			if first := r.of[oldest]; oldest == "" || other.at.Before(first.at) || other.at.Equal(first.at) && key < oldest {
				oldest = key
			}
		}
		delete(r.of, oldest)
	}
	r.busy, r.of[what] = true, recorded{at: now}
	return true
}

// end notes that the writer has come to its end.
func (r *records) end(what string, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = false
	if have, known := r.of[what]; known {
		have.done = done
		r.of[what] = have
	}
}

// save writes a file from which the failure can be seen again, once for each mistake: the same step that fails in the
// same functions.
func (l *Loop) save(b *plan.Breakdown, c *replay.Case) {
	what := b.Step + " " + cmp.Or(b.Frames, b.Panic)
	if l.Recorder == nil || !l.saved.begin(what, c.Snapshot.Now) {
		return
	}
	c.Engine, c.Taken, c.Policy, c.Panic, c.Stack = l.Version, c.Snapshot.Now, l.Policy, b.Panic, b.Stack
	write := func() {
		var path string
		var err error
		if broken := guard(plan.StepObserve, func() { path, err = l.Recorder.Save(c) }); broken != nil {
			err = fmt.Errorf("writing a snapshot file: %s", broken.Panic)
		}
		l.saved.end(what, path != "")
		l.observe(func() { l.Observer.Saved(path, err) })
	}
	if l.findings == nil {
		write() // whose clock it is decides how long things take
		return
	}
	l.acts.Go(write) // the snapshot does not change any more
}
