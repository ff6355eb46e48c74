package cluster

import (
	"fmt"
	"time"
)

// DriftAnnotation says on a claim that was made in place of a drifted node how many of the pool's replacements in a row had drifted
// themselves by then, and of which generations the pool and its NodeClass were: again pool class.
const DriftAnnotation = "tenon.sh/drift-replacement"

// soonDrift is how soon after it was made a replacement must have drifted for that to be strange.
const soonDrift = time.Hour

// DriftMark is what a claim that was made in place of a drifted node says about that.
type DriftMark struct {
	// Again is how many of the pool's replacements in a row had drifted themselves, soon after they were made and though nobody had
	// changed anything.
	Again int
	// Pool and Class are the generations that it was made from; 0 for a claim that replaces no drifted node.
	Pool, Class int64
}

// FormatDriftMark writes it as an annotation's text.
func FormatDriftMark(m DriftMark) string { return fmt.Sprintf("%d %d %d", m.Again, m.Pool, m.Class) }

// ParseDriftMark reads what FormatDriftMark wrote; the empty text is no mark.
func ParseDriftMark(text string) (DriftMark, error) {
	var m DriftMark
	if text == "" {
		return m, nil
	}
	if n, err := fmt.Sscanf(text, "%d %d %d", &m.Again, &m.Pool, &m.Class); n != 3 || err != nil || m.Again < 0 {
		return DriftMark{}, fmt.Errorf("%s: %q is not three numbers", DriftAnnotation, text)
	}
	m.Again = min(m.Again, mostTries)
	return m, nil
}

// DriftsAgain reports whether a claim that was made in place of a drifted node has soon drifted itself, although neither its pool nor its
// NodeClass has been changed since: whatever is made in its place may do the same.
func (s *Snapshot) DriftsAgain(c *Claim) bool {
	drifted := c.Condition(Drifted)
	return s.SameSinceMade(c) && drifted.Status == True && drifted.Since.Before(c.Created.Add(soonDrift))
}

// SameSinceMade reports whether a claim was made in place of a drifted node, and its pool and NodeClass are as they were then.
func (s *Snapshot) SameSinceMade(c *Claim) bool {
	p := s.Pool(c.Pool)
	return p != nil && c.Drift.Pool != 0 && c.Drift.Pool == p.Generation && c.Drift.Class == p.NodeClass.Generation
}

// ProbeWatch is how long a replacement must be up and not drift for the others to follow. The cloud is asked about each new
// instance within a minute.
const ProbeWatch = 2 * time.Minute

// DriftedAgain finds the newest claim of the pool that was made in place of a drifted node and has drifted itself, and how often in a
// row that was so. What drifted before a later one came up and stayed as it was made counts no more; nil if nothing is left.
func (s *Snapshot) DriftedAgain(p *Pool) (last *Claim, again int) {
	var proven time.Time
	for _, c := range s.ClaimsOf(p.Name) {
		up := c.Condition(Initialized)
		if !c.Is(Drifted) && s.SameSinceMade(c) && up.Status == True && !s.Now.Before(up.Since.Add(ProbeWatch)) {
			proven = Later(proven, c.Created)
		}
	}
	for _, c := range s.ClaimsOf(p.Name) {
		if !s.DriftsAgain(c) || c.Condition(Drifted).Since.Before(proven) {
			continue
		}
		again = max(again, c.Drift.Again+1)
		if last == nil || c.Created.After(last.Created) || c.Created.Equal(last.Created) && c.Name < last.Name {
			last = c
		}
	}
	return last, again
}

// DriftMarkFor is what a claim of the pool says that is made in place of a drifted node. It goes on with the pool's count, whichever of
// its nodes goes: a probe mostly replaces one that was there before the first replacement drifted.
func (s *Snapshot) DriftMarkFor(p *Pool) DriftMark {
	_, again := s.DriftedAgain(p)
	return DriftMark{Again: again, Pool: p.Generation, Class: p.NodeClass.Generation}
}
