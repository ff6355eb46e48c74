package launch

import (
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/batch"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ratelimit"
)

const (
	// Launches that may go together are gathered until none has come for launchIdle, for launchMax at the longest.
	launchIdle = 35 * time.Millisecond
	launchMax  = time.Second
	// In a rush, when one launch follows the other, claims come in as workers get free and not all at once. Then it
	// pays to wait a little longer each time, streakIdle and streakMax at the most: a call for each handful would soon
	// be too many for EC2.
	streakIdle = 500 * time.Millisecond
	streakMax  = 4 * time.Second
	// otherKindWeight is how many launches of others count as much as one of the same kind.
	otherKindWeight = 2
	// While a crowd of claims is being launched, others come in when these are done: a launch for fewer than plenty
	// waits for them.
	manyLaunching  = 40
	enoughTogether = 30
	// mostTogether is how many instances one call launches at the most. More would not save much, and each instance
	// carries the list of the claims that it may be for.
	mostTogether = 100
)

// launchPace says how long launches are gathered.
type launchPace struct {
	now func() time.Time

	mu     sync.Mutex
	byKind map[string]ratelimit.Streak
	all    ratelimit.Streak
	// inProgress is how many claims are being launched.
	inProgress int
}

// window is how launches of the kind are gathered now.
func (p *launchPace) window(kind string) batch.Window {
	p.mu.Lock()
	defer p.mu.Unlock()
	run := max(p.byKind[kind].Length(p.now()), p.all.Length(p.now())/otherKindWeight)
	out := batch.Window{Idle: min(launchIdle<<min(run, 10), streakIdle), Max: launchMax, Items: mostTogether}
	if out.Idle == streakIdle {
		out.Max = streakMax
	}
	return out
}

// underWay is how many claims are being launched.
func (p *launchPace) underWay() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inProgress
}

// ended notes that a launch of so many claims is done.
func (p *launchPace) ended(size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inProgress -= size
}

// began notes a launch of the kind for so many claims.
func (p *launchPace) began(kind string, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for key, r := range p.byKind {
		if r.Length(now) == 0 {
			delete(p.byKind, key)
		}
	}
	if p.byKind == nil {
		p.byKind = map[string]ratelimit.Streak{}
	}
	p.inProgress += size
	p.byKind[kind], p.all = p.byKind[kind].Next(now), p.all.Next(now)
}
