package cluster

import "time"

// LongestGrace is the longest time that a number of seconds in an object of Kubernetes stands for: a hundred years.
// Kubernetes takes numbers of 64 bits there, and a time.Duration ends after 292 years. What is longer would come round
// as a time that has passed.
const LongestGrace = 100 * 365 * 24 * time.Hour

// Seconds is how long so many seconds of an object are. Less than none is none, and more than LongestGrace is
// LongestGrace.
func Seconds(n int64) time.Duration {
	return time.Duration(min(max(n, 0), int64(LongestGrace/time.Second))) * time.Second
}
