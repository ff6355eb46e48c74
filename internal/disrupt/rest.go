package disrupt

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// firstRest is how long a node is left alone after a disruption of it was given up for the first time. It doubles
	// with each, up to LongestRest; a node that has been at rest for so long begins anew.
	firstRest   = time.Minute
	LongestRest = time.Hour
)

// RestOf is until when a node rests now, and how often it has.
func RestOf(c *cluster.Claim, now time.Time) (until time.Time, rests int) {
	return NextRestAfter(c.RestUntil, c.Rests, LongestRest, now)
}

// LongestSavingRest is how long at most a node is not fenced to save money because pods needed it whenever it was. If
// it carries nothing it costs money in vain meanwhile.
const LongestSavingRest = 10 * time.Minute

// SavingRestOf is the same for a node that was fenced to save money and is needed.
func SavingRestOf(c *cluster.Claim, now time.Time) (until time.Time, rests int) {
	return NextRestAfter(c.SavingRestUntil, c.SavingRests, LongestSavingRest, now)
}

// NextRestAfter is the next rest of a node that has rested so often, and until then.
func NextRestAfter(last time.Time, rests int, longest time.Duration, now time.Time) (until time.Time, more int) {
	if now.After(last.Add(longest)) {
		rests = 0
	}
	wait := firstRest
	for range min(rests, 10) {
		wait *= 2
	}
	return now.Add(min(wait, longest)), rests + 1
}

// DefaultReplacementTimeout is how long replacements are awaited if nobody says otherwise.
const DefaultReplacementTimeout = 10 * time.Minute

// ReplacementWait is how long replacements are awaited.
func (s Settings) ReplacementWait() time.Duration {
	if s.ReplacementTimeout > 0 {
		return s.ReplacementTimeout
	}
	return DefaultReplacementTimeout
}
