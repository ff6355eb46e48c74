package cluster

import "time"

// Earlier is the earlier of two times to look again; the zero time stands for "not because of this".
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
