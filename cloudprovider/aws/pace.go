package aws

import (
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
)

const (
	// Launches that may go together are gathered until none has come for launchIdle, for launchMax at the longest.
	launchIdle = 35 * time.Millisecond
	launchMax  = time.Second
	// In a rush, when one launch follows the other, claims come in as hands get free and not all at once. Then it pays to
	// wait a little longer each time, rushIdle and rushMax at the most: a call for each handful would soon be too many for
	// EC2. What comes more than rushGap after the last is no rush.
	rushIdle = 500 * time.Millisecond
	rushMax  = 4 * time.Second
	rushGap  = 10 * time.Second
	// strangers is how many launches of others count as much as one of the same kind.
	strangers = 2
	// While a crowd of claims is being launched, others come in when these are done: a launch for fewer than plenty waits for
	// them.
	crowd  = 40
	plenty = 30
	// mostTogether is how many instances one call launches at the most. More would not save much, and each instance carries
	// the list of the claims that it may be for.
	mostTogether = 100
)

// pace says how long launches are gathered.
type pace struct {
	now func() time.Time

	mu    sync.Mutex
	calls map[string]rush
	all   rush
	// out is how many claims are being launched.
	out int
}

// rush counts launches that followed each other.
type rush struct {
	last time.Time
	run  int
}

// length is how many launches the rush has had; none if it is over.
func (r rush) length(now time.Time) int {
	if now.Sub(r.last) >= rushGap {
		return 0
	}
	return r.run
}

// next is the rush with one more launch.
func (r rush) next(now time.Time) rush { return rush{last: now, run: r.length(now) + 1} }

// window is how launches of the kind are gathered now.
func (p *pace) window(kind string) batch.Window {
	p.mu.Lock()
	defer p.mu.Unlock()
	run := max(p.calls[kind].length(p.now()), p.all.length(p.now())/strangers)
	out := batch.Window{Idle: min(launchIdle<<min(run, 10), rushIdle), Max: launchMax, Items: mostTogether}
	if out.Idle == rushIdle {
		out.Max = rushMax
	}
	return out
}

// underWay is how many claims are being launched.
func (p *pace) underWay() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out
}

// ended notes that a launch of so many claims is done.
func (p *pace) ended(size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out -= size
}

// began notes a launch of the kind for so many claims.
func (p *pace) began(kind string, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for key, r := range p.calls {
		if r.length(now) == 0 {
			delete(p.calls, key)
		}
	}
	if p.calls == nil {
		p.calls = map[string]rush{}
	}
	p.out += size
	p.calls[kind], p.all = p.calls[kind].next(now), p.all.next(now)
}
