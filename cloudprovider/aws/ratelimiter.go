package aws

import (
	"context"
	"sync"
	"time"
)

// rateLimiter keeps calls of one kind below the rate at which EC2 refuses them: so many at once, then one in every
// interval.
type rateLimiter struct {
	burst    int
	interval time.Duration
	now      func() time.Time

	mu     sync.Mutex
	tokens int
	refill time.Time
}

func newRateLimiter(burst int, interval time.Duration, now func() time.Time) *rateLimiter {
	return &rateLimiter{burst: burst, interval: interval, now: now, tokens: burst, refill: now()}
}

// takeToken takes a turn if there is one, else it says after how long there may be.
func (b *rateLimiter) takeToken() (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if earned := int(now.Sub(b.refill) / b.interval); earned > 0 {
		b.tokens = min(b.burst, b.tokens+earned)
		b.refill = b.refill.Add(time.Duration(earned) * b.interval)
	}
	if b.tokens == 0 {
		return b.refill.Add(b.interval).Sub(now)
	}
	b.tokens--
	return 0
}

// drainTokens notes that EC2 has refused a call all the same: others in the account make some, too.
func (b *rateLimiter) drainTokens() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens, b.refill = 0, b.now()
}

// wait waits for a turn.
func (b *rateLimiter) wait(ctx context.Context) error {
	for {
		wait := b.takeToken()
		if wait == 0 {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}
