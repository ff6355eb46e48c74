package loop

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Liveness tells whether passes come to their end. The zero value has not begun, as the loop of a replica that is not
// elected.
type Liveness struct {
	// Now is the clock.
	Now func() time.Time

	last atomic.Pointer[time.Time]
}

// passEnded notes that a pass has come to its end, or that the loop begins.
func (l *Liveness) passEnded() {
	if l == nil {
		return
	}
	now := l.Now()
	l.last.Store(&now)
}

// stop notes that there are no more passes to expect.
func (l *Liveness) stop() {
	if l != nil {
		l.last.Store(nil)
	}
}

// Check is an error if the loop runs and no pass has come to its end for longer than most.
func (l *Liveness) Check(most time.Duration) error {
	last := l.last.Load()
	if last == nil {
		return nil
	}
	if since := l.Now().Sub(*last); since > most {
		return fmt.Errorf("no pass has come to its end for %s, and it may take %s: the planner hangs",
			since.Round(time.Second), most)
	}
	return nil
}
