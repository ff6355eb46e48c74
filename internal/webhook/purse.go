package webhook

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

const (
	// piece is what a large request pays for at a time, and pieces are all there are.
	piece  = 1 << 20
	pieces = 128
	// mostLarge are the large requests at the same time. With claimPlaces they are fewer than the connections: what
	// they ask the API server for must be able to come back here.
	mostLarge = 64
)

// purse bounds the bytes of large requests. They pay for each piece as it arrives, so that one that has announced much
// and sends nothing keeps nothing from others. A piece is given only if afterwards all that hold some can still come to
// their end one after the other: two that have half of what they need would wait for each other.
type purse struct {
	mutex  sync.Mutex
	free   int
	most   int
	stakes []*stake
	// changed is closed, and a new one made, when pieces come back.
	changed chan struct{}
}

// stake is what one request holds, and what it still needs.
type stake struct {
	joined     bool
	held, left int
}

func newPurse(pieces, most int) *purse {
	return &purse{free: pieces, most: most, changed: make(chan struct{})}
}

// join lets a request take so many pieces.
func (p *purse) join(s *stake, pieces int) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(p.stakes) == p.most {
		return fmt.Errorf("%d large requests: %w", p.most, errFull)
	}
	s.joined, s.left = true, pieces
	p.stakes = append(p.stakes, s)
	return nil
}

// take waits for a piece.
func (p *purse) take(ctx context.Context, s *stake) error {
	for {
		changed, ok := p.try(s)
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for other large requests to end: %w", ctx.Err())
		}
	}
}

// try takes a piece if it can be given. If not, it returns what tells when to try again.
func (p *purse) try(s *stake) (changed <-chan struct{}, ok bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.free, s.held, s.left = p.free-1, s.held+1, s.left-1
	if p.allCanEnd() {
		return nil, true
	}
	p.free, s.held, s.left = p.free+1, s.held-1, s.left+1
	return p.changed, false
}

// allCanEnd tells whether there is an order in which each gets what it needs when those before it have given all back.
// If there is one, that by need is one.
func (p *purse) allCanEnd() bool {
	byNeed := slices.SortedFunc(slices.Values(p.stakes), func(a, b *stake) int { return a.left - b.left })
	free := p.free
	for _, s := range byNeed {
		if s.left > free {
			return false
		}
		free += s.held
	}
	return free >= 0
}

// leave gives everything back.
func (p *purse) leave(s *stake) {
	if !s.joined {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.stakes = slices.DeleteFunc(p.stakes, func(other *stake) bool { return other == s })
	p.free += s.held
	s.joined, s.held, s.left = false, 0, 0
	close(p.changed)
	p.changed = make(chan struct{})
}
