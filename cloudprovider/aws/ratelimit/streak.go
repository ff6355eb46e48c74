package ratelimit

import "time"

// StreakGap is after how long without a call a streak is over.
const StreakGap = 10 * time.Second

// Streak counts calls that followed each other.
type Streak struct {
	last  time.Time
	count int
}

// Length is how many calls the streak has had; none if it is over.
func (s Streak) Length(now time.Time) int {
	if now.Sub(s.last) >= StreakGap {
		return 0
	}
	return s.count
}

// Next is the streak with one more call.
func (s Streak) Next(now time.Time) Streak {
	return Streak{last: now, count: s.Length(now) + 1}
}
