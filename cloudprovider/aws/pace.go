package aws

import (
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
)

const (
	// Launches with the same order are gathered until none has come for launchIdle, for launchMax at the longest.
	launchIdle = 35 * time.Millisecond
	launchMax  = time.Second
	// In a rush, when one launch follows the other, claims come in as hands get free and not all at once. Then it pays to
	// wait a little longer each time, rushIdle at the most: a call for each handful would soon be too many for EC2. What
	// comes more than rushGap after the last is no rush.
	rushIdle = 500 * time.Millisecond
	rushGap  = 2 * time.Second
	// mostTogether is how many instances one call launches at the most. More would not save much, and each instance carries
	// the list of the claims that it may be for.
	mostTogether = 100
)

// pace says how long launches are gathered.
type pace struct {
	now func() time.Time

	mu    sync.Mutex
	calls map[string]rush
}

// rush counts the launches of an order that followed each other.
type rush struct {
	last time.Time
	run  int
}

// window is how launches with the order are gathered now.
func (p *pace) window(order string) batch.Window {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := batch.Window{Idle: launchIdle, Max: launchMax, Items: mostTogether}
	if r, ok := p.calls[order]; ok && p.now().Sub(r.last) < rushGap {
		out.Idle = min(launchIdle<<min(r.run, 10), rushIdle)
	}
	return out
}

// called notes a launch of the order that is done.
func (p *pace) called(order string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for key, r := range p.calls {
		if now.Sub(r.last) >= rushGap {
			delete(p.calls, key)
		}
	}
	if p.calls == nil {
		p.calls = map[string]rush{}
	}
	p.calls[order] = rush{last: now, run: p.calls[order].run + 1}
}
