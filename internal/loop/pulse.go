package loop

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Pulse tells whether passes come to their end. The zero value has not begun, as the loop of a replica that is not
// elected.
type Pulse struct {
	// Now is the clock.
	Now func() time.Time

	last atomic.Pointer[time.Time]
}

// beat notes that a pass has come to its end, or that the loop begins.
func (p *Pulse) beat() {
	if p == nil {
		return
	}
	now := p.Now()
	p.last.Store(&now)
}

// stop notes that there are no more passes to expect.
func (p *Pulse) stop() {
	if p != nil {
		p.last.Store(nil)
	}
}

// Check is an error if the loop runs and no pass has come to its end for longer than most.
func (p *Pulse) Check(most time.Duration) error {
	last := p.last.Load()
	if last == nil {
		return nil
	}
	if since := p.Now().Sub(*last); since > most {
		return fmt.Errorf("no pass has come to its end for %s, and it may take %s: the planner hangs",
			since.Round(time.Second), most)
	}
	return nil
}
