package cluster

import (
	"fmt"
	"time"
)

// DriftAnnotation says on a claim that was made in place of a drifted node how many of the pool's replacements in a row
// had drifted themselves by then, and of which generations the pool and its NodeClass were: again pool class.
const DriftAnnotation = "tenon.sh/drift-replacement"

// driftsSoon is how soon after it was made a replacement must have drifted for that to be strange.
const driftsSoon = time.Hour

// DriftReplacement is what a claim that was made in place of a drifted node says about that.
type DriftReplacement struct {
	// DriftedInRow is how many of the pool's replacements in a row had drifted themselves, soon after they were made
	// and though nobody had changed anything.
	DriftedInRow int
	// PoolGeneration and ClassGeneration are the generations that it was made from; 0 for a claim that replaces no
	// drifted node.
	PoolGeneration, ClassGeneration int64
}

// FormatDriftReplacement writes it as an annotation's text.
func FormatDriftReplacement(m DriftReplacement) string {
	return fmt.Sprintf("%d %d %d", m.DriftedInRow, m.PoolGeneration, m.ClassGeneration)
}

// ParseDriftReplacement reads what FormatDriftReplacement wrote; the empty text is no mark.
func ParseDriftReplacement(text string) (DriftReplacement, error) {
	var m DriftReplacement
	if text == "" {
		return m, nil
	}
	if n, err := fmt.Sscanf(text, "%d %d %d", &m.DriftedInRow, &m.PoolGeneration, &m.ClassGeneration); n != 3 ||
		err != nil || m.DriftedInRow < 0 {
		return DriftReplacement{}, fmt.Errorf("%s: %q is not three numbers", DriftAnnotation, text)
	}
	m.DriftedInRow = min(m.DriftedInRow, mostTries)
	return m, nil
}

// HasDriftedAgain reports whether a claim that was made in place of a drifted node has soon drifted itself, although
// neither its pool nor its NodeClass has been changed since: whatever is made in its place may do the same.
func (s *Snapshot) HasDriftedAgain(c *Claim) bool {
	drifted := c.Condition(Drifted)
	return s.UnchangedSinceMade(c) && drifted.Status == True && drifted.Since.Before(c.Created.Add(driftsSoon))
}

// UnchangedSinceMade reports whether a claim was made in place of a drifted node, and its pool and NodeClass are as
// they were then.
func (s *Snapshot) UnchangedSinceMade(c *Claim) bool {
	p := s.Pool(c.Pool)
	return p != nil && c.DriftReplacement.PoolGeneration != 0 && c.DriftReplacement.PoolGeneration == p.Generation &&
		c.DriftReplacement.ClassGeneration == p.NodeClass.Generation
}

// ProbeWatch is how long a replacement must be up and not drift for the others to follow. The cloud is asked about each
// new instance within a minute.
const ProbeWatch = 2 * time.Minute

// DriftedAgain finds the newest claim of the pool that was made in place of a drifted node and has drifted itself, and
// how often in a row that was so. What drifted before a later one came up and stayed as it was made counts no more; nil
// if nothing is left.
func (s *Snapshot) DriftedAgain(p *Pool) (last *Claim, again int) {
	var proven time.Time
	for _, c := range s.ClaimsOf(p.Name) {
		up := c.Condition(Initialized)
		if !c.Is(Drifted) && s.UnchangedSinceMade(c) && up.Status == True && !s.Now.Before(up.Since.Add(ProbeWatch)) {
			proven = Later(proven, c.Created)
		}
	}
	for _, c := range s.ClaimsOf(p.Name) {
		if !s.HasDriftedAgain(c) || c.Condition(Drifted).Since.Before(proven) {
			continue
		}
		again = max(again, c.DriftReplacement.DriftedInRow+1)
		if last == nil || c.Created.After(last.Created) || c.Created.Equal(last.Created) && c.Name < last.Name {
			last = c
		}
	}
	return last, again
}

// DriftReplacementFor is what a claim of the pool says that is made in place of a drifted node. It goes on with the
// pool's count, whichever of its nodes goes: a probe mostly replaces one that was there before the first replacement
// drifted.
func (s *Snapshot) DriftReplacementFor(p *Pool) DriftReplacement {
	_, again := s.DriftedAgain(p)
	return DriftReplacement{DriftedInRow: again, PoolGeneration: p.Generation, ClassGeneration: p.NodeClass.Generation}
}
