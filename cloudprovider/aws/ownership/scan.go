package ownership

import (
	"sync"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

const (
	// visibleWithin is how long after a launch EC2 may not show an instance yet.
	visibleWithin = time.Minute
	// SettledAfter is after how long a look at the instances shows whatever a process before this one has launched.
	SettledAfter = 10 * time.Second
	// recentFor is how old a look may be that questions without haste are answered from.
	recentFor = time.Minute
	// A look is shared by all who ask at about the same time.
	scanIdle  = 10 * time.Millisecond
	scanMax   = 100 * time.Millisecond
	scanLimit = time.Minute
	pageSize  = 1000
)

// Listing is a look at all instances of the cluster.
type Listing struct {
	Began     time.Time
	Instances []ec2types.Instance
	byID      map[string]*ec2types.Instance
}

// scanState keeps the last view and what it is good for.
type scanState struct {
	mu sync.Mutex
	// firstWanted is when somebody first wanted to launch; complete is set once a view was begun long enough after
	// that: then no process but this one can have launched what the register does not know.
	firstWanted time.Time
	complete    bool
	last        *Listing
}

// begin notes that somebody wants to launch and reports whether the register is known to be complete.
func (s *scanState) begin(now time.Time) (sure bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.firstWanted.IsZero() {
		s.firstWanted = now
	}
	return s.complete
}

func (s *scanState) noteScan(v *Listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || v.Began.After(s.last.Began) {
		s.last = v
	}
	if !s.firstWanted.IsZero() && !v.Began.Before(s.firstWanted.Add(SettledAfter)) {
		s.complete = true
	}
}

// isSettled tells whether what a process before this one has launched can be seen by now.
func (s *scanState) isSettled(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.complete || !s.firstWanted.IsZero() && !now.Before(s.firstWanted.Add(SettledAfter))
}

func (s *scanState) isComplete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.complete
}

func (s *scanState) recent(now time.Time) *Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && now.Sub(s.last.Began) > recentFor {
		s.last = nil
	}
	return s.last
}
