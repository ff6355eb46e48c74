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
	// saveRetryAfter is how long to wait after a file could not be written, before one is tried about the same failure
	// again.
	saveRetryAfter = 10 * time.Minute
	// mostSaved bounds how many failures are remembered about which a file was written; the oldest is forgotten first.
	mostSaved = 100
)

// Recorder keeps snapshot files.
type Recorder interface {
	Save(*replay.Case) (path string, err error)
}

// saveLog remembers about which failures files are written. Plans, checks and searches write.
type saveLog struct {
	mu   sync.Mutex
	of   map[string]saveRecord
	busy bool
}

// saveRecord is what is known about the file of a failure.
type saveRecord struct {
	at time.Time
	// done says that it is there, so that no other is written by this process.
	done bool
}

// begin reports whether a file is to be written about a failure now: if none was, and nobody is writing one. A snapshot
// is only kept in memory for a writer, so there is one at most.
func (r *saveLog) begin(what string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	have, known := r.of[what]
	if r.busy || known && (have.done || now.Before(have.at.Add(saveRetryAfter))) {
		return false
	}
	if r.of == nil {
		r.of = make(map[string]saveRecord)
	}
	if !known && len(r.of) >= mostSaved {
		oldest := ""
		for key, other := range r.of {
			if first := r.of[oldest]; oldest == "" || other.at.Before(first.at) || other.at.Equal(first.at) &&
				key < oldest {
				oldest = key
			}
		}
		delete(r.of, oldest)
	}
	r.busy, r.of[what] = true, saveRecord{at: now}
	return true
}

// end notes that the writer has come to its end.
func (r *saveLog) end(what string, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = false
	if have, known := r.of[what]; known {
		have.done = done
		r.of[what] = have
	}
}

// saveSnapshotFile writes a file from which the failure can be seen again, once for each mistake: the same step that
// fails in the same functions.
func (l *Loop) saveSnapshotFile(f *plan.PlannerFailure, c *replay.Case) {
	what := f.Step + " " + cmp.Or(f.Frames, f.Panic)
	if l.Recorder == nil || !l.savedFailures.begin(what, c.Snapshot.Now) {
		return
	}
	c.Engine, c.Taken, c.Policy, c.Panic, c.Stack = l.Version, c.Snapshot.Now, l.Policy, f.Panic, f.Stack
	write := func() {
		var path string
		var err error
		if failure := recoverPanic(plan.StepObserve, func() { path, err = l.Recorder.Save(c) }); failure != nil {
			err = fmt.Errorf("writing a snapshot file: %s", failure.Panic)
		}
		l.savedFailures.end(what, path != "")
		l.observe(func() { l.Observer.SnapshotSaved(path, err) })
	}
	if l.searchResults == nil {
		write() // whose clock it is decides how long things take
		return
	}
	l.running.Go(write) // the snapshot does not change any more
}
