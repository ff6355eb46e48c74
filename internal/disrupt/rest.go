package disrupt

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// firstRest is how long a node is left alone after a disruption of it was given up for the first time. It doubles
	// with each, up to longestRest; a node that has been at rest for so long begins anew.
	firstRest   = time.Minute
	longestRest = time.Hour
)

// restOf is until when a node rests now, and how often it has.
func restOf(c *cluster.Claim, now time.Time) (until time.Time, rests int) {
	return nextRestAfter(c.RestUntil, c.Rests, longestRest, now)
}

// longestSavingRest is how long at most a node is not fenced to save money because pods needed it whenever it was. If
// it carries nothing it costs money in vain meanwhile.
const longestSavingRest = 10 * time.Minute

// savingRestOf is the same for a node that was fenced to save money and is needed.
func savingRestOf(c *cluster.Claim, now time.Time) (until time.Time, rests int) {
	return nextRestAfter(c.SavingRestUntil, c.SavingRests, longestSavingRest, now)
}

// nextRestAfter is the next rest of a node that has rested so often, and until then.
func nextRestAfter(last time.Time, rests int, longest time.Duration, now time.Time) (until time.Time, more int) {
	if now.After(last.Add(longest)) {
		rests = 0
	}
	wait := firstRest
	for range min(rests, 10) {
		wait *= 2
	}
	return now.Add(min(wait, longest)), rests + 1
}

// defaultReplacementTimeout is how long replacements are awaited if nobody says otherwise.
const defaultReplacementTimeout = 10 * time.Minute

// replacementWait is how long replacements are awaited.
func (s Settings) replacementWait() time.Duration {
	if s.ReplacementTimeout > 0 {
		return s.ReplacementTimeout
	}
	return defaultReplacementTimeout
}
