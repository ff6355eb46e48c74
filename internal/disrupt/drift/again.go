package drift

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/reason"
)

const (
	// firstProbe and lastProbe bound the time from a replacement that has drifted again to the next, which doubles; the
	// first comes at once, because what the NodeClass stands for may just have changed.
	firstProbe = 5 * time.Minute
	lastProbe  = time.Hour
)

// probeAfter is how long after a replacement was made the next may follow, if it has drifted as the nth in a row.
func probeAfter(n int) time.Duration {
	if n <= 1 {
		return 0
	}
	return min(firstProbe<<min(n-2, 10), lastProbe)
}

// checkReplacementsDrift finds out whether what is made in place of the pool's drifted nodes drifts itself: then one at
// a time finds out whether that goes on, less and less often. It is over when one that was made after that has been up
// for a while and has not drifted.
func (r *rollout) checkReplacementsDrift(rollouts *Rollouts, p *cluster.Pool) {
	s := rollouts.s
	var watched time.Time
	for _, c := range rollouts.replacements[p.Name] {
		up := c.Condition(cluster.Initialized)
		switch {
		case c.Pool != p.Name || c.DriftReplacement.DriftedInRow == 0 || c.Is(cluster.Drifted) ||
			!s.UnchangedSinceMade(c):
		case up.Status != cluster.True:
			watched = cluster.Later(watched, s.Now.Add(r.replacementTimeout))
		case s.Now.Before(up.Since.Add(cluster.ProbeWatch)):
			watched = cluster.Later(watched, up.Since.Add(cluster.ProbeWatch))
		}
	}
	last, again := s.DriftedAgain(p)
	if last == nil && watched.IsZero() {
		return
	}
	r.replacementsDrift = true
	r.paused = reason.Of(reason.ReplacementsDrift)
	if last != nil {
		r.paused = reason.Of(reason.ReplacementDrifted, last.Name, Of(s, last))
		watched = cluster.Later(watched, last.Created.Add(probeAfter(again)))
	}
	r.mayBegin = 1
	if s.Now.Before(watched) {
		r.mayBegin, r.wakeAt = 0, cluster.Earlier(r.wakeAt, watched)
	}
	for _, c := range s.ClaimsOf(p.Name) {
		if disrupt.MoveReason(c.Move) == command.Drifted || disrupt.BeingFenced(s, c) {
			r.mayBegin = 0
		}
	}
}
